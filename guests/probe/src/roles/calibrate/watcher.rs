//! A vCPU of another VM that runs when nothing else does on its core, and notes when it did not: so EL2's
//! switches have a beginning and an end.

use super::cache;
use super::number;
use crate::arch::{cpu, mmio::Window};
use crate::suite::{Check, Done};
use crate::{cpus, ensure, needs_cassata, needs_two_vcpus, pass, platform, wait};

/// Bytes of a slot in the shared memory.
const STRIDE: u64 = 0x400;
/// Words of a slot: whether it watches; how many gaps it has noted.
const WATCHES: u64 = 0x00;
const COUNT: u64 = 0x08;
/// The last gaps, two words each.
const GAPS: u64 = 0x40;
const KEPT: u64 = 8;
/// Words that all slots share, behind the last one: whether caches shall be cold, whether the vCPU that
/// migrates has to end.
const COLD: u64 = 3 * STRIDE;
const MIGRANT_ENDS: u64 = 3 * STRIDE + 8;

/// Time in which a watcher did not run, as it read the counter before and behind.
#[derive(Clone, Copy, Debug)]
pub struct Gap {
    /// Before.
    pub begin: u64,
    /// Behind.
    pub end: u64,
}

/// Where a watcher notes its gaps.
#[derive(Clone, Copy, Debug)]
pub struct Slot(u64);

fn shared() -> Window {
    platform::get().shared[0].window()
}

impl Slot {
    /// That on the first core.
    pub const FIRST_CORE: Self = Self(0);
    /// That on the second core.
    pub const SECOND_CORE: Self = Self(1);
    /// The vCPU that migrates.
    pub const MIGRANT: Self = Self(2);

    fn word(self, offset: u64) -> u64 {
        shared().read64(self.0 * STRIDE + offset)
    }

    fn set(self, offset: u64, value: u64) {
        shared().write64(self.0 * STRIDE + offset, value);
    }

    /// Returns true once it watches.
    pub fn watches(self) -> bool {
        self.word(WATCHES) != 0
    }

    /// Returns the last gaps, the latest one first.
    fn gaps(self) -> impl Iterator<Item = Gap> {
        let count = self.word(COUNT);
        (count.saturating_sub(KEPT)..count).rev().map(move |number| {
            let at = GAPS + number % KEPT * 16;
            Gap { begin: self.word(at), end: self.word(at + 8) }
        })
    }

    /// Returns the gap in which `instant` lies, if it was noted.
    pub fn around(self, instant: u64) -> Option<Gap> {
        self.gaps().find(|gap| gap.begin <= instant && instant <= gap.end)
    }

    /// Returns the last gap that began before `instant`, but not before `earliest`.
    pub fn before(self, instant: u64, earliest: u64) -> Option<Gap> {
        self.gaps().find(|gap| gap.begin <= instant && gap.begin >= earliest)
    }

    fn note(self, gap: Gap) {
        let count = self.word(COUNT);
        let at = GAPS + count % KEPT * 16;
        self.set(at, gap.begin);
        self.set(at + 8, gap.end);
        cpu::dsb();
        self.set(COUNT, count + 1);
    }

    /// Has watchers leave cold caches behind when they have noted a gap, or not.
    pub fn leave_cold(cold: bool) {
        shared().write64(COLD, cold.into());
        cpu::dsb();
    }

    /// Has the vCPU that migrates go off.
    pub fn end_migrant() {
        shared().write64(MIGRANT_ENDS, 1);
        cpu::dsb();
    }

    /// Notes each gap that is longer than `threshold` ticks, until it `ends` after one.
    fn watch(self, threshold: u64, ends: impl Fn() -> bool) {
        cpu::mask_irq();
        self.set(WATCHES, 1);
        let mut last = wait::now();
        loop {
            let now = wait::now();
            if now - last <= threshold {
                last = now;
                continue;
            }
            self.note(Gap { begin: last, end: now });
            if ends() {
                break;
            }
            if shared().read64(COLD) != 0 {
                cache::sweep();
            }
            last = wait::now();
        }
        self.set(WATCHES, 0);
        cpu::unmask_irq();
    }
}

/// Watches the first core, and with a second vCPU the second core, for ever. A vCPU that takes a core from it
/// keeps the core for longer than 3 us.
pub fn neighbour() -> Check<Done> {
    needs_two_vcpus!();
    ensure!(!platform::get().shared.is_empty(), "there is no shared memory");
    cpus::start(1, || {
        Slot::SECOND_CORE.watch(wait::us(3), || false);
        Ok(())
    })?;
    Slot::FIRST_CORE.watch(wait::us(3), || false);
    pass!("")
}

/// Watches where it migrates, until it has to end.
pub fn migrant() -> Check<Done> {
    needs_cassata!();
    ensure!(!platform::get().shared.is_empty(), "there is no shared memory");
    let ends = || shared().read64(MIGRANT_ENDS) != 0;
    if number("stays", 1) != 0 {
        Slot::MIGRANT.watch(wait::ns(500), ends);
    }
    pass!("")
}
