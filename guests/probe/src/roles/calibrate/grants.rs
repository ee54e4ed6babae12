//! A mutex goes to a task on another core, whose vCPU sleeps while another VM runs there.

use super::timers::{find_phase_again, keep_clear};
use super::watcher::Slot;
use super::{Cache, SERVED, SERVED_ON_SECOND_CORE, caches, prepare, rest, series};
use crate::arch::{cpu, timed};
use crate::gic::{self, offset::*};
use crate::roles::mutex::Claim;
use crate::suite::{Check, Done};
use crate::{cpus, ensure_eq, pass, wait};
use abi::platform::ppi::GRANT;
use abi::service::{MUTEX_LOCK, MUTEX_UNLOCK, QUEUED};
use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// The round that the waiter may begin, the one in which it waits, and the one in which it has given the mutex
/// back.
static ROUND: AtomicU64 = AtomicU64::new(0);
static WAITS: AtomicU64 = AtomicU64::new(0);
static BACK: AtomicU64 = AtomicU64::new(0);
static ROUNDS: AtomicU64 = AtomicU64::new(0);
/// When it went on.
static WOKE: AtomicU64 = AtomicU64::new(0);

/// Waits for the mutex in each round, with interrupts masked.
fn waiter() -> Check {
    gic::set(ISENABLER, GRANT);
    let claim = Claim::named("R", "other")?;
    for round in 1..=ROUNDS.load(SeqCst) {
        wait::until("the next round", || ROUND.load(SeqCst) == round)?;
        ensure_eq!(claim.call(MUTEX_LOCK), QUEUED, "MUTEX_LOCK by the waiter");
        cpu::mask_irq();
        WAITS.store(round, SeqCst);
        loop {
            let woke = timed::sleep().end;
            if claim.holds() {
                WOKE.store(woke, SeqCst);
                break;
            }
            cpu::unmask_irq();
            cpu::mask_irq();
        }
        cpu::unmask_irq();
        claim.give_back()?;
        BACK.store(round, SeqCst);
    }
    claim.close()
}

/// Gives the mutex to the waiter in each round. The neighbour on that core tells when it ran last before the
/// waiter did, once it runs again in the next round.
fn giver(cache: Cache) -> Check {
    let claim = Claim::named("R", "high")?;
    let (mut pass_on, mut grant) = (series::begin(0), series::begin(1));
    let settles = cache.settles(30);
    let rounds = cache.repetitions() + 1;
    ROUNDS.store(rounds, SeqCst);
    [&ROUND, &WAITS, &BACK, &WOKE].iter().for_each(|word| word.store(0, SeqCst));
    cpus::start(SERVED_ON_SECOND_CORE, waiter)?;
    for round in 1..=rounds {
        let woke = WOKE.load(SeqCst);
        claim.take()?;
        ROUND.store(round, SeqCst);
        wait::until("the waiter", || WAITS.load(SeqCst) == round)?;
        cache.prepare();
        wait::spin(settles);
        keep_clear();
        let gap = Slot::SECOND_CORE.around(woke);
        if let Some(gap) = gap.filter(|_| woke > 0) {
            grant.add(woke - gap.begin);
        }
        let (span, answer) = timed::call(MUTEX_UNLOCK, claim.handle());
        ensure_eq!(answer, 0, "MUTEX_UNLOCK");
        if round > 1 {
            pass_on.span(span);
        }
        wait::until("the mutex", || BACK.load(SeqCst) == round)?;
        // Long enough that the neighbour there notes the gap.
        wait::spin(wait::us(5));
    }
    cpus::join(SERVED_ON_SECOND_CORE)?;
    claim.close()?;
    pass_on.tell("pass-on", cache)?;
    grant.tell("grant", cache)
}

/// Both ends of a contended mutex.
pub fn grant() -> Check<Done> {
    prepare()?;
    cpus::start(SERVED, || {
        find_phase_again()?;
        for cache in caches() {
            Slot::leave_cold(cache == Cache::Cold);
            giver(cache)?;
            Slot::leave_cold(false);
            rest();
        }
        Ok(())
    })?;
    cpus::join(SERVED)?;
    pass!("")
}
