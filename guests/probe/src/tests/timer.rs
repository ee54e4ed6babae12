//! The two EL1 timers: never early, never lost, a level.

use crate::arch::{cpu, sysreg::read};
use crate::gic::{self, offset::*};
use crate::suite::{Check, Done, Test};
use crate::timer::{ENABLE, IMASK, ISTATUS, Timer};
use crate::{cpus, ensure, ensure_eq, irq, pass, platform, wait};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    Test { name: "timer.physical_is_there", body: physical_is_there },
    Test { name: "timer.fires", body: fires },
    Test { name: "timer.compare_and_remaining", body: compare_and_remaining },
    Test { name: "timer.masked", body: masked },
    Test { name: "timer.disabled", body: disabled },
    Test { name: "timer.level", body: level },
    Test { name: "timer.rearm", body: rearm },
    Test { name: "timer.both", body: both },
    Test { name: "timer.wakes", body: wakes },
    Test { name: "timer.everywhere", body: everywhere },
    Test { name: "timer.monotonic", body: monotonic },
];

/// Enables both timers' interrupts on this vCPU and stops the timers.
fn prepare() {
    for timer in Timer::there() {
        timer.stop();
        gic::set(ISENABLER, timer.intid());
    }
    irq::hook(note_and_stop);
}

/// Interrupts that came before their time, over all vCPUs.
static EARLY: AtomicU32 = AtomicU32::new(0);

fn note_and_stop(intid: u32) {
    let Some(timer) = Timer::of(intid) else { return };
    if timer.now() < timer.compare() {
        EARLY.fetch_add(1, SeqCst);
    }
    timer.set_control(ENABLE | IMASK);
}

/// The architecture has it at EL1 (DDI 0487, D11.2), and so does the virtual
/// platform.
fn physical_is_there() -> Check<Done> {
    ensure!(Timer::Physical.is_there(), "the registers of the EL1 physical timer are undefined");
    pass!("")
}

fn fires() -> Check<Done> {
    prepare();
    let seen = irq::seen(cpu::index());
    for timer in Timer::there() {
        EARLY.store(0, SeqCst);
        for round in 1..=200 {
            // From the past to some milliseconds ahead.
            let ticks = if round % 10 == 0 { 0 } else { wait::us(round * 13 % 1500) };
            timer.arm(ticks);
            wait::until("the timer", || seen.count(timer.intid()) >= round as u32)?;
            ensure_eq!(timer.control(), ENABLE | IMASK | ISTATUS, "CTL after it fired");
        }
        timer.stop();
        gic::let_in();
        ensure_eq!(seen.count(timer.intid()), 200, "{timer:?} timer interrupts");
        ensure_eq!(EARLY.load(SeqCst), 0, "{timer:?} timer interrupts before their time");
    }
    pass!("200 of each of {} timers", Timer::there().count())
}

fn compare_and_remaining() -> Check<Done> {
    for timer in Timer::there() {
        timer.stop();
        for value in [0, 1, 1 << 33 | 5, u64::MAX] {
            timer.set_compare(value);
            ensure_eq!(timer.compare(), value, "{timer:?} CVAL");
        }
        for remaining in [1_000_000, -1_000_000, i32::MAX, i32::MIN] {
            let before = timer.now();
            timer.set_remaining(remaining);
            let after = timer.now();
            let offset = i64::from(remaining) as u64;
            let range = before.wrapping_add(offset)..=after.wrapping_add(offset);
            ensure!(range.contains(&timer.compare()), "{timer:?} CVAL after TVAL {remaining}");
            ensure!(timer.remaining() <= remaining || remaining == i32::MIN, "{timer:?} TVAL");
        }
        // TVAL in the past: the condition holds at once.
        timer.set_remaining(-1);
        timer.set_control(ENABLE | IMASK);
        ensure!(timer.control() & ISTATUS != 0, "{timer:?} ISTATUS with TVAL -1");
        timer.stop();
    }
    pass!("")
}

/// IMASK holds the interrupt back, not the condition.
fn masked() -> Check<Done> {
    prepare();
    let seen = irq::seen(cpu::index());
    for timer in Timer::there() {
        timer.set_compare(timer.now() + wait::us(500));
        timer.set_control(ENABLE | IMASK);
        wait::until("ISTATUS", || timer.control() & ISTATUS != 0)?;
        ensure!(timer.now() >= timer.compare(), "{timer:?} ISTATUS before its time");
        gic::let_in();
        ensure_eq!(seen.count(timer.intid()), 0, "{timer:?} timer interrupts with IMASK");
        ensure!(!gic::bit(ISPENDR, timer.intid()), "{timer:?} timer is pending with IMASK");
        timer.set_control(ENABLE);
        wait::until("the timer", || seen.count(timer.intid()) == 1)?;
        timer.stop();
    }
    gic::expect_total(Timer::there().count())?;
    pass!("")
}

fn disabled() -> Check<Done> {
    prepare();
    for timer in Timer::there() {
        // An attempt in which this core was without a processor of the host's for so long
        // that the timer fired before it was stopped says nothing.
        loop {
            let when = timer.now() + wait::us(300);
            irq::reset(cpu::index());
            irq::hook(note_and_stop);
            timer.set_compare(when);
            timer.set_control(ENABLE);
            timer.stop();
            if timer.now() < when {
                break;
            }
        }
        wait::spin(wait::us(1000));
        gic::expect_total(0)?;
    }
    pass!("")
}

/// The output is a level: it comes again until the condition is gone, it can be
/// withdrawn while pending, and it is seen in ISPENDR.
fn level() -> Check<Done> {
    const AGAIN: u32 = 5;
    static LEFT: AtomicU32 = AtomicU32::new(0);
    prepare();
    for timer in Timer::there() {
        irq::reset(cpu::index());
        LEFT.store(AGAIN, SeqCst);
        irq::hook(|intid| {
            if LEFT.fetch_sub(1, SeqCst) == 1 {
                note_and_stop(intid);
            }
        });
        timer.arm(0);
        gic::expect_total(AGAIN as usize)?;
        cpu::mask_irq();
        timer.arm(0);
        wait::until("ISR_EL1.I", cpu::irq_pending)?;
        ensure!(gic::bit(ISPENDR, timer.intid()), "{timer:?} timer fired and is not pending");
        timer.stop();
        gic::let_in();
        ensure!(!gic::bit(ISPENDR, timer.intid()), "{timer:?} timer stopped and is pending");
        cpu::unmask_irq();
        gic::expect_total(AGAIN as usize)?;
    }
    pass!("")
}

/// The last value written counts.
fn rearm() -> Check<Done> {
    prepare();
    let seen = irq::seen(cpu::index());
    for timer in Timer::there() {
        EARLY.store(0, SeqCst);
        // Earlier than first armed, then later than first armed.
        timer.arm(wait::us(100_000_000));
        timer.arm(wait::us(200));
        wait::until("the timer", || seen.count(timer.intid()) == 1)?;
        cpu::mask_irq();
        timer.arm(wait::us(200));
        let compare = timer.arm(wait::us(3000));
        cpu::unmask_irq();
        wait::until("the timer", || seen.count(timer.intid()) == 2)?;
        ensure!(timer.now() >= compare, "{timer:?} timer came at its old time");
        ensure_eq!(EARLY.load(SeqCst), 0, "{timer:?} timer interrupts before their time");
        timer.stop();
    }
    gic::expect_total(2 * Timer::there().count())?;
    pass!("")
}

fn both() -> Check<Done> {
    prepare();
    let seen = irq::seen(cpu::index());
    EARLY.store(0, SeqCst);
    for round in 1..=100 {
        for (timer, factor) in Timer::there().zip([7, 11]) {
            timer.arm(wait::us(round * factor % 400));
        }
        let all = || Timer::there().all(|timer| u64::from(seen.count(timer.intid())) >= round);
        wait::until("both timers", all)?;
    }
    Timer::there().for_each(|timer| timer.stop());
    gic::expect_total(100 * Timer::there().count())?;
    ensure_eq!(EARLY.load(SeqCst), 0, "timer interrupts before their time");
    pass!("")
}

fn wakes() -> Check<Done> {
    EARLY.store(0, SeqCst);
    sleep_rounds(platform::get().number("rounds.wakes", 1000) as u32)?;
    ensure_eq!(EARLY.load(SeqCst), 0, "timer interrupts before their time");
    pass!("")
}

fn sleep_rounds(rounds: u32) -> Check {
    prepare();
    let seen = irq::seen(cpu::index());
    for timer in Timer::there() {
        for round in 1..=rounds {
            cpu::mask_irq();
            let compare = timer.arm(wait::us(u64::from(round) * 17 % 300));
            wait::asleep(|| seen.count(timer.intid()) >= round)?;
            ensure!(timer.now() >= compare, "woken before the time");
        }
        timer.stop();
        ensure_eq!(seen.count(timer.intid()), rounds, "{timer:?} timer interrupts");
    }
    Ok(())
}

/// Every vCPU has its own timers; half of the time it spins, so that on a
/// shared pCPU others' timers run out while they are descheduled.
fn everywhere() -> Check<Done> {
    fn job() -> Check {
        sleep_rounds(100)?;
        irq::reset(cpu::index());
        prepare();
        let seen = irq::seen(cpu::index());
        for round in 1..=20 {
            for timer in Timer::there() {
                timer.arm(wait::us(500 + 100 * cpu::index() as u64));
                let fired = || seen.count(timer.intid()) >= round;
                wait::until("the timer", fired)?;
            }
        }
        Timer::there().for_each(|timer| timer.stop());
        gic::expect_total(20 * Timer::there().count())
    }
    EARLY.store(0, SeqCst);
    cpus::together(job, job)?;
    ensure_eq!(EARLY.load(SeqCst), 0, "timer interrupts before their time");
    pass!("")
}

/// Neither counter goes back, on one vCPU or from one to another, where cores
/// may differ by `probe.skew` ticks (virtual time: its quantum).
fn monotonic() -> Check<Done> {
    static LATEST: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
    fn job() -> Check {
        let skew = platform::get().number("skew", 0);
        for _ in 0..20_000 {
            for (timer, latest) in Timer::ALL.into_iter().zip(&LATEST) {
                let before = latest.load(SeqCst);
                cpu::dsb();
                let now = timer.now();
                ensure!(now + skew >= before, "{timer:?} counter went from {before} to {now}");
                latest.fetch_max(now, SeqCst);
            }
        }
        Ok(())
    }
    LATEST.iter().for_each(|latest| latest.store(0, SeqCst));
    cpus::together(job, job)?;
    let frequency = read::cntfrq_el0();
    pass!("counter at {} ms", LATEST[0].load(SeqCst) * 1000 / frequency)
}
