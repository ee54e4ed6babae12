//! Switches between vCPUs of two VMs on one core: to one that its timer wakes, from one that goes to sleep, and
//! from one that has to leave the core.

use super::watcher::Slot;
use super::{Cache, caches, meet, nap, prepare, rest, series};
use crate::suite::{Check, Done};
use crate::{pass, wait};

/// How long a neighbour needs at most to note that it did not run, microseconds.
const NOTES_US: u64 = 20;

/// The timer wakes the vCPU, and it goes to sleep. Its neighbour on the core, which runs meanwhile, tells when it
/// ran last before the first and when it ran first after the second.
pub fn switch() -> Check<Done> {
    prepare()?;
    for cache in caches() {
        let (mut wake, mut sleep) = (series::begin(0), series::begin(1));
        Slot::leave_cold(cache == Cache::Cold);
        let settles = cache.settles(50);
        let mut woke = None;
        for _ in 0..=cache.repetitions() {
            wait::spin(wait::us(5));
            cache.prepare();
            let span = nap(settles);
            if let Some(woke) = woke
                && let Some(gap) = Slot::FIRST_CORE.around(woke)
                && (span.begin..span.end).contains(&gap.end)
            {
                wake.add(woke - gap.begin);
                sleep.add(gap.end - span.begin);
            }
            woke = Some(span.end);
        }
        Slot::leave_cold(false);
        wake.tell("wake", cache)?;
        sleep.tell("sleep", cache)?;
        rest();
    }
    pass!("")
}

/// The timer wakes the vCPU where one runs that leaves for another core then.
pub fn departure() -> Check<Done> {
    meet()?;
    for cache in caches() {
        let mut series = series::begin(0);
        Slot::leave_cold(cache == Cache::Cold);
        // It empties the caches where it arrives, too.
        let settles = cache.settles(50);
        for _ in 0..cache.repetitions() {
            cache.prepare();
            let span = nap(2 * settles);
            wait::spin(wait::us(NOTES_US));
            let gap = Slot::MIGRANT.before(span.end, span.end - wait::us(NOTES_US));
            if let Some(gap) = gap {
                series.add(span.end - gap.begin);
            }
            wait::spin(settles);
        }
        Slot::leave_cold(false);
        series.tell("departure", cache)?;
        rest();
    }
    pass!("")
}
