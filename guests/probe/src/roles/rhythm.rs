//! A real-time guest: a timer interrupt every period, sleep in between.

use crate::gic::{self, offset::*};
use crate::platform;
use crate::roles::report::Report;
use crate::suite::{Check, Done};
use crate::timer::{ENABLE, Timer};
use crate::{ensure_eq, irq, pass, wait};
use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

static DUE: AtomicU64 = AtomicU64::new(0);
static PERIOD: AtomicU64 = AtomicU64::new(0);
static RESPONSE: AtomicU64 = AtomicU64::new(0);
static ACTIVATIONS: AtomicU64 = AtomicU64::new(0);
static EARLY: AtomicU64 = AtomicU64::new(0);
static MISSED: AtomicU64 = AtomicU64::new(0);

const TIMER: Timer = Timer::Virtual;

/// One activation: when it came, and when the next is due. Whole periods that
/// have gone by are missed, not made up for.
fn activate(_intid: u32) {
    let (now, due, period) = (TIMER.now(), DUE.load(SeqCst), PERIOD.load(SeqCst));
    if now < due {
        EARLY.fetch_add(1, SeqCst);
    }
    let late = now.saturating_sub(due);
    RESPONSE.store(late, SeqCst);
    MISSED.fetch_add(late / period, SeqCst);
    let next = due + (late / period + 1) * period;
    DUE.store(next, SeqCst);
    TIMER.set_compare(next);
    ACTIVATIONS.fetch_add(1, SeqCst);
}

/// `probe.activations` (2000) activations, `probe.period_us` (1000) apart. That
/// every one comes, and none early, is asserted; how late is reported. After
/// each it works for `probe.burn_us` (0). The first is not due before `probe.begin_ms` (0) of the
/// counter: until then neighbours may be started.
pub fn rhythm() -> Check<Done> {
    beat(|_| Ok(()))
}

/// As [`rhythm()`], with `work` in each activation before what is reported as its dispatch.
pub fn beat(work: impl Fn(u64) -> Check) -> Check<Done> {
    let platform = platform::get();
    let wanted = platform.number("activations", 2000);
    let period = wait::us(platform.number("period_us", 1000));
    let burn = wait::us(platform.number("burn_us", 0));
    PERIOD.store(period, SeqCst);
    let report = Report::open(period);
    gic::set_priority(TIMER.intid(), 0x40);
    gic::set(ISENABLER, TIMER.intid());
    irq::hook(activate);
    let begin = wait::us(1_000 * platform.number("begin_ms", 0));
    DUE.store((TIMER.now() + period).max(begin), SeqCst);
    TIMER.set_compare(DUE.load(SeqCst));
    TIMER.set_control(ENABLE);
    let mut worst = 0;
    for number in 0..wanted {
        wait::asleep(|| ACTIVATIONS.load(SeqCst) > number)?;
        let (response, due) = (RESPONSE.load(SeqCst), DUE.load(SeqCst) - period);
        work(number)?;
        let dispatch = TIMER.now().saturating_sub(due);
        worst = worst.max(response);
        if let Some(report) = &report {
            report.sample(number, MISSED.load(SeqCst), due, response, dispatch);
        }
        wait::spin(burn);
    }
    TIMER.stop();
    ensure_eq!(EARLY.load(SeqCst), 0, "activations before their time");
    let worst_us = worst * 1_000_000 / crate::arch::sysreg::read::cntfrq_el0();
    pass!("activations={wanted} missed={} worst_response_us={worst_us}", MISSED.load(SeqCst))
}
