//! Executing for a given time: short rounds of plain instructions, with a look in between.
//!
//! A round is the same on every vCPU and takes as long as when nothing else ran, so that rounds
//! count what was executed and not what time went by.

use super::TIMER;
use crate::suite::Check;
use crate::{ensure, wait};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Turns of the loop in a round: well below a microsecond.
const TURNS: u32 = 60;
/// Rounds that are measured at once, and how often.
const MEASURED: u64 = 64;
const TIMES: usize = 40;

/// What the probe executes for a segment beside its rounds, at most: it requests and gives back
/// what it holds, writes that down, and decides what to run. It lies inside the declared time,
/// which the rounds leave to it.
const SEGMENT_US: u64 = 3;
/// The same for a job: it wakes, is released, ends, and the vCPU goes to sleep.
const JOB_US: u64 = 5;

/// How long rounds take.
pub struct Work {
    /// [`MEASURED`] rounds, ticks.
    ticks: u64,
}

impl Work {
    /// Measures rounds when nothing comes in between, as far as there is such a time.
    pub fn calibrate() -> Self {
        let never = AtomicBool::new(false);
        let measure = |_| {
            let begin = wait::now();
            work(MEASURED, u64::MAX, &never);
            wait::now() - begin
        };
        Self { ticks: (0..TIMES).map(measure).min().unwrap_or(0).max(1) }
    }

    /// Returns the rounds for a segment of `wcet` ns, of which `percent` are executed; the last
    /// segment of a job leaves time to the job too.
    pub fn rounds(&self, wcet: u64, is_last: bool, percent: u64) -> u64 {
        let own = wcet.saturating_sub(reserve(is_last)) * percent / 100;
        wait::ns(own) * MEASURED / self.ticks
    }
}

/// Makes sure that the probe's own work fits into a segment of `wcet` ns.
pub fn check(task: &str, wcet: u64, is_last: bool) -> Check {
    let least = reserve(is_last);
    ensure!(wcet > least, "task {task} has a segment of {wcet} ns: the probe itself takes {least}");
    Ok(())
}

fn reserve(is_last: bool) -> u64 {
    1_000 * if is_last { SEGMENT_US + JOB_US } else { SEGMENT_US }
}

/// Executes `left` rounds, but no longer than until the counter reaches `until` or `flag` is set.
/// Returns how many are left.
#[inline(never)]
pub fn work(mut left: u64, until: u64, flag: &AtomicBool) -> u64 {
    while left > 0 {
        for turn in 0..TURNS {
            core::hint::black_box(turn);
        }
        left -= 1;
        if flag.load(Relaxed) || TIMER.now() >= until {
            break;
        }
    }
    left
}
