//! What is in the caches when EL2 is entered.

use super::{number, word};
use crate::arch::{cpu, memory};
use crate::suite::{Check, Done};
use crate::{cpus, fail, pass, platform, wait};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes of a line, at least: each word that is written is in another one.
const LINE: usize = 64;
/// Bytes that each vCPU has for itself.
const SHARE: u64 = 8 << 20;

/// How a path is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// Again and again: EL2's code and data are in the caches.
    Warm,
    /// After a guest has written as much memory as the caches hold, and the instruction cache was emptied.
    Cold,
}

impl Cache {
    /// What lines call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Warm => "warm",
            Self::Cold => "cold",
        }
    }

    /// How often each path is measured.
    pub fn repetitions(self) -> u64 {
        match self {
            Self::Warm => number("repetitions", 1_000),
            Self::Cold => number("cold", 0),
        }
    }

    /// How often a path is measured that comes once in a server's period: a tenth as often.
    pub fn few(self) -> u64 {
        self.repetitions().div_ceil(10)
    }

    /// Empties the caches, if they are to be cold.
    pub fn prepare(self) {
        if self == Self::Cold {
            sweep();
        }
    }

    /// How long a neighbour needs until it has done so: ticks, at least `least_us`.
    pub fn settles(self, least_us: u64) -> u64 {
        let least = wait::us(least_us);
        if self == Self::Warm {
            return least;
        }
        let begin = wait::now();
        sweep();
        least + 3 * (wait::now() - begin)
    }
}

/// Memory of the calling vCPU's own.
fn own() -> &'static [AtomicU64] {
    let begin = platform::free_memory() + cpu::index() as u64 * SHARE;
    let size = (number("sweep_kib", 0) << 10).min(SHARE);
    memory::words(begin, begin + size)
}

/// Writes a word in each line of `probe.sweep_kib` of memory, and empties the instruction cache.
pub fn sweep() {
    write(own());
    cpu::ic_iallu();
}

fn write(words: &[AtomicU64]) {
    for word in words.iter().step_by(LINE / size_of::<u64>()) {
        word.store(word.load(Relaxed) + 1, Relaxed);
    }
}

/// A neighbour on cores that measure nothing: it writes memory without rest on all of them, if `probe.load` is
/// `memory`.
pub fn load() -> Check<Done> {
    fn endless() -> Check {
        let words = own();
        loop {
            write(words);
        }
    }
    if word("load") != "memory" {
        return pass!("nothing to do");
    }
    for index in platform::get().others() {
        cpus::start(index, endless)?;
    }
    endless()?;
    fail!("an endless load ended")
}
