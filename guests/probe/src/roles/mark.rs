//! A guest that is less urgent than a real-time VM on its core, and marks itself as more urgent for
//! some time: what its timer starts is late until then, and again afterwards.

use crate::suite::{Check, Done};
use crate::timer::{ENABLE, Timer};
use crate::{calls, ensure, ensure_eq, irq, needs_cassata, pass, platform, wait};
use abi::service;
use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

const TIMER: Timer = Timer::Virtual;
/// How often its timer starts something in each part, and how far apart.
const WAKES: u64 = 200;
const PERIOD_US: u64 = 173;

/// When the next interrupt is due, and how many there were.
static DUE: AtomicU64 = AtomicU64::new(0);
static WOKEN: AtomicU64 = AtomicU64::new(0);
/// The greatest lateness of them, ticks.
static WORST: AtomicU64 = AtomicU64::new(0);

fn wake(_intid: u32) {
    let due = DUE.load(SeqCst);
    WORST.fetch_max(TIMER.now().saturating_sub(due), SeqCst);
    WOKEN.fetch_add(1, SeqCst);
    let next = TIMER.now() + wait::us(PERIOD_US);
    DUE.store(next, SeqCst);
    TIMER.set_compare(next);
}

/// Returns how late the timer's interrupts are at worst, ticks.
fn worst() -> Check<u64> {
    WORST.store(0, SeqCst);
    let before = WOKEN.load(SeqCst);
    wait::asleep(|| WOKEN.load(SeqCst) >= before + WAKES)?;
    Ok(WORST.load(SeqCst))
}

/// It is never later while it is marked than a tenth of what the real-time VM works at a stretch
/// (`probe.burn_us`), and otherwise later than half of that. All of this twice:
/// the first time ends with a reset while it is marked, after which it is not.
pub fn mark() -> Check<Done> {
    needs_cassata!();
    let burn = wait::us(platform::get().number("burn_us", 0));
    irq::hook(wake);
    crate::gic::set(crate::gic::offset::ISENABLER, TIMER.intid());
    DUE.store(TIMER.now() + wait::us(PERIOD_US), SeqCst);
    TIMER.set_compare(DUE.load(SeqCst));
    TIMER.set_control(ENABLE);
    ensure_eq!(calls::mark(2), service::INVALID_PARAMETER, "MARK_RT of 2");
    let before = worst()?;
    ensure_eq!(calls::mark(1), 0, "MARK_RT of 1");
    ensure_eq!(calls::mark(1), 0, "MARK_RT of 1, again");
    let marked = worst()?;
    ensure_eq!(calls::mark(0), 0, "MARK_RT of 0");
    let after = worst()?;
    let late = |ticks: u64| ticks > burn / 2;
    ensure!(late(before) && late(after), "not marked: late by {before} and {after} ticks only");
    ensure!(marked < burn / 10, "marked: late by {marked} ticks, {before} before");
    if super::reset::starts_before() == 0 {
        super::reset::note_start(1);
        ensure_eq!(calls::mark(1), 0, "MARK_RT before the reset");
        calls::system_reset();
    }
    TIMER.stop();
    pass!("late by {marked} ticks while it is marked, by {before} and {after} otherwise")
}
