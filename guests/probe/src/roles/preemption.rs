//! What a guest says about preemption: YIELD, and that it holds a lock.

use crate::platform::{self, LINES};
use crate::suite::{Check, Done};
use crate::{calls, cpus, ensure, ensure_eq, needs_cassata, needs_two_vcpus, pass, wait};
use abi::platform as p;
use abi::service::{NOT_SUPPORTED, PREEMPT_DISABLE, PREEMPT_ENABLE, PREEMPTION_LINE, YIELD};
use abi::status::VcpuStatus;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Turns of each vCPU.
const TURNS: u64 = 200;
/// How often it holds a lock.
pub(super) const SECTIONS: u64 = 300;

/// Offsets in a line.
const DESIRE: u64 = 0;
const CANCELLED: u64 = 4;
const GRACE_NS: u64 = 8;
const OVERCOMMITTED: u64 = 12;
pub(super) const TASK: u64 = 16;

/// Two vCPUs share a pCPU, with a quantum that is longer than all of this: each has a turn whenever
/// the other one gives its own up.
pub fn yields() -> Check<Done> {
    needs_cassata!();
    needs_two_vcpus!();
    static COUNT: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
    fn alternate(me: usize) -> Check {
        for turn in 1..=TURNS {
            COUNT[me].store(turn, SeqCst);
            let theirs = COUNT[1 - me].load(SeqCst);
            ensure_eq!(calls::hvc(YIELD, &[]), 0, "YIELD of vCPU {me}");
            let after = COUNT[1 - me].load(SeqCst);
            ensure!(after > theirs || after == TURNS, "vCPU {me}: YIELD {turn} found {after}");
            ensure!(after <= theirs + 1, "vCPU {me}: the other one had {theirs}, now {after}");
        }
        Ok(())
    }
    let line = line()?;
    ensure_eq!(LINES.read32(line + OVERCOMMITTED), 1, "a sibling is here, though it is off");
    ensure_eq!(calls::hvc(YIELD, &[]), 0, "YIELD beside a sibling that is off");
    // It starts when this one has given up its turn.
    cpus::launch(1, || alternate(1))?;
    let outcome = alternate(0);
    // It ends in its own turn.
    while outcome.is_ok() && cpus::affinity_info(1) != 1 {
        let _ = calls::hvc(YIELD, &[]);
    }
    cpus::join_after(1, outcome)?;
    ensure_eq!(calls::hvc(YIELD, &[]), 0, "YIELD after all");
    ensure_eq!(calls::hvc(PREEMPT_DISABLE, &[]), NOT_SUPPORTED, "PREEMPT_DISABLE");
    pass!("{TURNS} turns of each")
}

/// Returns the line of this vCPU, as an offset in the page.
pub(super) fn line() -> Check<u64> {
    let answer = calls::raw(calls::Conduit::Hvc, PREEMPTION_LINE, &[]);
    ensure_eq!(answer[0], 0, "PREEMPTION_LINE");
    let page = p::LINES_BASE..p::LINES_BASE + p::LINES_SIZE;
    ensure!(page.contains(&answer[1]), "PREEMPTION_LINE answers {:#x}", answer[1]);
    ensure!(answer[1].is_multiple_of(64), "PREEMPTION_LINE answers {:#x}", answer[1]);
    Ok(answer[1] - p::LINES_BASE)
}

/// Returns a word of what the hypervisor counts of this vCPU.
pub(super) fn counted(offset: usize) -> Check<u64> {
    match calls::counter(0, offset as u64 / 8) {
        Ok(value) => Ok(value),
        Err(code) => crate::fail!("COUNTER answers {code}"),
    }
}

pub(super) fn spin_us(us: u64) {
    let end = wait::now() + wait::us(us);
    while wait::now() < end {
        core::hint::spin_loop();
    }
}

/// How a guest says that it holds a lock.
#[derive(Clone, Copy)]
struct Lock {
    /// Where this vCPU's line is; none: by calls.
    line: Option<u64>,
}

impl Lock {
    fn take(self) -> Check {
        match self.line {
            Some(line) => LINES.write32(line + DESIRE, 1),
            None => ensure_eq!(calls::hvc(PREEMPT_DISABLE, &[]), 0, "PREEMPT_DISABLE"),
        }
        Ok(())
    }

    /// Returns true if another vCPU has waited, as far as this one is told.
    fn release(self) -> Check<bool> {
        let Some(line) = self.line else {
            ensure_eq!(calls::hvc(PREEMPT_ENABLE, &[]), 0, "PREEMPT_ENABLE");
            return Ok(false);
        };
        LINES.write32(line + DESIRE, 0);
        let cancelled = LINES.read32(line + CANCELLED);
        if cancelled != 0 {
            LINES.write32(line + CANCELLED, 0);
            ensure_eq!(calls::hvc(YIELD, &[]), 0, "YIELD");
        }
        Ok(cancelled != 0)
    }
}

/// A real-time VM takes this pCPU all the time: never while this guest holds a lock for
/// `probe.hold_us` (60), which is shorter than `probe.grace_us`; but it does while the lock is held for
/// longer than that. `probe.by_page`: the guest says so in memory, else by calls.
pub fn holds_off() -> Check<Done> {
    needs_cassata!();
    const STOLEN: usize = offset_of!(VcpuStatus, stolen);
    let platform = platform::get();
    let hold_us = platform.number("hold_us", 60);
    let grace_us = platform.number("grace_us", 200);
    let by_page = platform.number("by_page", 0) != 0;
    // A line that a guest has only because it may yield makes no vCPU wait, and says so.
    let line = line()?;
    let lock = Lock { line: by_page.then_some(line) };
    let grace_ns = if by_page { 1_000 * grace_us } else { 0 };
    ensure_eq!(u64::from(LINES.read32(line + GRACE_NS)), grace_ns, "grace_ns");
    ensure_eq!(LINES.read32(line + OVERCOMMITTED), 0, "it has no sibling");
    if by_page {
        ensure_eq!(calls::hvc(PREEMPT_DISABLE, &[]), NOT_SUPPORTED, "PREEMPT_DISABLE");
    }
    let (mut waited, mut gave_way) = (0, 0);
    for section in 0..SECTIONS {
        lock.take()?;
        let before = counted(STOLEN)?;
        spin_us(hold_us);
        let after = counted(STOLEN)?;
        ensure_eq!(after, before, "time was stolen in section {section}");
        waited += u64::from(lock.release()?);
        // At once: nothing is executed in between that could be preempted but a few instructions.
        gave_way += u64::from(counted(STOLEN)? > after);
        spin_us(7);
    }
    let least = SECTIONS / 4;
    ensure!(
        gave_way >= least,
        "in {SECTIONS} sections, {gave_way} ended with another vCPU waiting"
    );
    ensure!(!by_page || waited >= least, "told {waited} times that another vCPU waits");
    lock.take()?;
    let before = counted(STOLEN)?;
    spin_us(20 * grace_us);
    ensure!(counted(STOLEN)? > before, "nothing was stolen in {} us", 20 * grace_us);
    let _ = lock.release()?;
    pass!("{gave_way} of {SECTIONS} sections were waited for")
}
