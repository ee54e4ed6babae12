//! What was measured of one path, and the line that tells of it.

use super::cache::Cache;
use crate::arch::timed::Span;
use crate::suite::{Check, Text, text};
use crate::{ensure, println};
use abi::service::hash;
use arrayvec::ArrayVec;
use core::fmt::Arguments;
use core::sync::atomic::{AtomicU64, Ordering::SeqCst};
use spin::{Mutex, MutexGuard};

/// Most samples of a path: `cassata calibrate` asks for no more.
const MOST: usize = 20_000;

/// Samples in ticks.
pub struct Series {
    samples: ArrayVec<u32, MOST>,
}

/// What was measured of the two paths that an act has at most.
static SERIES: [Mutex<Series>; 2] =
    [const { Mutex::new(Series { samples: ArrayVec::new_const() }) }; 2];
/// Lines that were printed.
static TOLD: AtomicU64 = AtomicU64::new(0);

/// How many paths were told of.
pub fn told() -> u64 {
    TOLD.load(SeqCst)
}

/// Prints a line with a sum by which a reader sees that no byte of it was lost on the wire.
pub fn say(line: Arguments) {
    let line: Text = text(line);
    println!("{line} check={:016x}", hash(line.as_bytes()));
}

/// Begins the first or the second path of an act anew.
pub fn begin(which: usize) -> MutexGuard<'static, Series> {
    let mut series = of(which);
    series.clear();
    series
}

/// Returns what another vCPU has measured of the first or the second path.
pub fn of(which: usize) -> MutexGuard<'static, Series> {
    SERIES[which].lock()
}

impl Series {
    /// Forgets what was measured.
    pub fn clear(&mut self) {
        self.samples.clear();
    }

    /// Adds a time in ticks.
    pub fn add(&mut self, ticks: u64) {
        // What has no room is more than was asked for.
        let _ = self.samples.try_push(u32::try_from(ticks).unwrap_or(u32::MAX));
    }

    /// Adds the time between two reads.
    pub fn span(&mut self, span: Span) {
        self.add(span.ticks());
    }

    /// Tells of path `name`.
    pub fn tell(&mut self, name: &str, cache: Cache) -> Check {
        self.tell_of(name, cache, cache.repetitions())
    }

    /// Tells of path `name`, which was to be measured as often as `asked`: at least half of that it must have
    /// been.
    pub fn tell_of(&mut self, name: &str, cache: Cache, asked: u64) -> Check {
        self.samples.sort_unstable();
        let (all, count, asked) = (&self.samples, self.samples.len(), asked as usize);
        ensure!(2 * count >= asked && count > 0, "{name}: {count} of {asked} could be measured");
        let sum: u64 = all.iter().map(|&ticks| u64::from(ticks)).sum();
        let rank = |permille: usize| all[(count * permille).div_ceil(1_000).max(1) - 1];
        say(format_args!(
            "calibrate-path name={name} cache={} repetitions={count} ticks={sum} min={} median={} p999={} \
             max={}",
            cache.name(),
            all[0],
            rank(500),
            rank(999),
            all[count - 1],
        ));
        TOLD.fetch_add(1, SeqCst);
        Ok(())
    }
}
