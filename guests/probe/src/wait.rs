//! Waiting for what another vCPU or a device does.
//!
//! The bound is a failsafe: it turns a hang into a message. Nothing is
//! concluded from how long anything took.

use crate::arch::{cpu, sysreg};
use crate::suite::Check;
use crate::{fail, gic};
use core::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// Failsafe for one wait, in seconds of the counter. Far longer than any wait
/// on a loaded machine that emulates eight vCPUs on one core.
const LIMIT_S: u64 = 60;

/// The physical counter, in ticks.
pub fn now() -> u64 {
    cpu::isb();
    sysreg::read::cntpct_el0()
}

/// Set when a vCPU has failed: the others, which may wait for it, give up.
static GIVE_UP: AtomicBool = AtomicBool::new(false);
/// SGI that ends the sleep of vCPUs that should give up.
const GIVE_UP_SGI: u32 = 15;

/// Ends all waiting, here and on the other vCPUs. Answers whether the caller
/// was the first to give up.
pub fn give_up() -> bool {
    let first = !GIVE_UP.swap(true, SeqCst);
    gic::broadcast(GIVE_UP_SGI);
    first
}

/// Lets vCPUs wait again, when all that failed are off.
pub fn begin() {
    GIVE_UP.store(false, SeqCst);
}

/// Spins until `condition` holds.
pub fn until(what: &str, mut condition: impl FnMut() -> bool) -> Check {
    let limit = now() + LIMIT_S * sysreg::read::cntfrq_el0();
    while !condition() {
        if now() > limit {
            fail!("waited {LIMIT_S} s in vain for {what}");
        }
        if GIVE_UP.load(SeqCst) && !condition() {
            fail!("gave up waiting for {what} because another vCPU failed");
        }
        idle_away();
    }
    Ok(())
}

/// Sleeps (WFI) until `condition` holds; interrupts are served as they come.
/// Whatever makes it hold must also raise an interrupt here; a hang here is a
/// lost interrupt, and the test that runs the probe ends it.
pub fn asleep(mut condition: impl FnMut() -> bool) -> Check {
    cpu::mask_irq();
    while !condition() && !GIVE_UP.load(SeqCst) {
        cpu::wfi();
        cpu::unmask_irq();
        cpu::mask_irq();
    }
    cpu::unmask_irq();
    if !condition() {
        fail!("gave up sleeping because another vCPU failed");
    }
    Ok(())
}

/// Lets `ticks` of the counter pass, spinning.
pub fn spin(ticks: u64) {
    let end = now() + ticks;
    while now() < end {
        idle_away();
    }
}

/// A few plain instructions between two looks: reading the counter costs an
/// emulator as much as a hundred of them.
fn idle_away() {
    for turn in 0..50 {
        core::hint::black_box(turn);
    }
}

/// Returns so many microseconds in ticks.
pub fn us(us: u64) -> u64 {
    scaled(us, 1_000_000, sysreg::read::cntfrq_el0())
}

/// Returns so many nanoseconds in ticks.
pub fn ns(ns: u64) -> u64 {
    scaled(ns, 1_000_000_000, sysreg::read::cntfrq_el0())
}

/// Returns so many ticks in nanoseconds.
pub fn nanoseconds(ticks: u64) -> u64 {
    scaled(ticks, sysreg::read::cntfrq_el0(), 1_000_000_000)
}

/// Returns what `value` of the units of which `from` are a second is in those of which `to` are.
/// At a counter of 1 GHz the product of a time and its frequency has no room after 18.4 s.
fn scaled(value: u64, from: u64, to: u64) -> u64 {
    value / from * to + value % from * to / from
}
