//! Siblings that go off and are switched on again, for ever a different way.

use crate::arch::cpu;
use crate::gic::{self, offset::*};
use crate::suite::{Check, Done};
use crate::timer::{IMASK, Timer};
use crate::{cpus, ensure_eq, irq, needs_two_vcpus, pass, platform, wait};
use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Ways to spend the time until CPU_OFF.
const WAYS: u64 = 4;
/// SGI that nothing waits for.
const POKE: u32 = 6;
const TIMER: Timer = Timer::Virtual;
/// Rounds from one rest to the next.
const ROUNDS_AWAKE: u64 = 500;

static ROUND: AtomicU64 = AtomicU64::new(0);
/// Sum of the rounds that each job was part of.
static SUM: AtomicU64 = AtomicU64::new(0);

/// Silences the timer when it fires.
fn listen() {
    gic::set(ISENABLER, TIMER.intid());
    irq::hook(|intid| {
        if intid == TIMER.intid() {
            TIMER.set_control(IMASK);
        }
    });
}

/// Sleeps, while all siblings are off.
fn rest(us: u64) -> Check {
    listen();
    let seen = irq::seen(cpu::index());
    let before = seen.count(TIMER.intid());
    cpu::mask_irq();
    TIMER.arm(wait::us(us));
    wait::asleep(|| seen.count(TIMER.intid()) > before)
}

/// At once, after work, after a sleep, or with a timer running and an SGI to
/// all vCPUs under way, which those that are off never see.
fn job() -> Check {
    listen();
    let round = ROUND.load(SeqCst);
    let seen = irq::seen(cpu::index());
    match (round + cpu::index() as u64) % WAYS {
        0 => {}
        1 => wait::spin(wait::us(round % 30)),
        2 => {
            cpu::mask_irq();
            TIMER.arm(wait::us(round % 30));
            wait::asleep(|| seen.count(TIMER.intid()) > 0)?;
        }
        _ => {
            TIMER.arm(wait::us(5));
            gic::broadcast(POKE);
        }
    }
    SUM.fetch_add(round, SeqCst);
    Ok(())
}

/// `probe.rounds.power` (1000) times all siblings are switched on and go off by
/// themselves. Each does so once every time. If `probe.rest_us.power` (0) is not 0, the
/// VM rests for so long before some of these times, with one vCPU asleep and all
/// others off.
pub fn power() -> Check<Done> {
    needs_two_vcpus!();
    let rounds = platform::get().number("rounds.power", 1000);
    let rest_us = platform::get().number("rest_us.power", 0);
    let others = platform::get().others();
    for round in 1..=rounds {
        if rest_us > 0 && round % ROUNDS_AWAKE == 0 {
            rest(rest_us)?;
        }
        ROUND.store(round, SeqCst);
        for index in others.clone() {
            cpus::launch(index, job)?;
        }
        for index in others.clone() {
            cpus::join(index)?;
        }
    }
    let jobs = others.count() as u64;
    ensure_eq!(SUM.load(SeqCst), jobs * rounds * (rounds + 1) / 2, "the sum of all jobs' rounds");
    pass!("{jobs} vCPUs on and off {rounds} times")
}
