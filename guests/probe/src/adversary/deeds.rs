//! How many operations an adversary has done, in its report area, so that the host knows that it
//! did something. Resets of the VM do not change it.

use crate::arch::cpu;
use crate::platform::report_window;
use crate::roles::reset::starts_before;
use crate::{calls, roles::report::Report};
use core::mem::offset_of;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The word of the header that counts them.
const UNITS: u64 = offset_of!(abi::report::Header, load_units) as u64;

/// The word of the header that counts complaints.
const MISSED: u64 = offset_of!(abi::report::Header, missed) as u64;

/// Size of the report area, 0 without one.
static SIZE: AtomicU64 = AtomicU64::new(0);
/// Operations in all lives of this VM.
static DONE: AtomicU64 = AtomicU64::new(0);

/// Finds the report area, and what earlier lives have done. The first life is the one that has
/// counted one start.
pub fn open() {
    let Some((_, size)) = calls::report_area() else { return };
    let area = report_window(size);
    if starts_before() == 1 {
        area.write64(UNITS, 0);
        cpu::dsb();
        // No samples: it only makes the area one that the host reads.
        let _ = Report::open(0);
    }
    DONE.store(area.read64(UNITS), Relaxed);
    SIZE.store(size, Relaxed);
}

/// Counts.
pub fn count(operations: u64) {
    let done = DONE.fetch_add(operations, Relaxed) + operations;
    let size = SIZE.load(Relaxed);
    if size > 0 {
        // Another vCPU may have counted on meanwhile: its next count mends that.
        report_window(size).write64(UNITS, done);
    }
}

/// Operations so far.
pub fn done() -> u64 {
    DONE.load(Relaxed)
}

/// Counts something that is not as it must be: the console may be beyond use.
pub fn complain() {
    let size = SIZE.load(Relaxed);
    if size > 0 {
        let area = report_window(size);
        area.write64(MISSED, area.read64(MISSED) + 1);
    }
}
