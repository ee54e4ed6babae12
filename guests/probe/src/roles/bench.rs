//! Tight loops, for counting instructions at EL2 from outside.

use crate::arch::cpu;
use crate::gic::{self, offset::*};
use crate::suite::{Check, Done};
use crate::timer::{ENABLE, IMASK, Timer};
use crate::{calls, irq, needs_cassata, pass, platform, println, wait};
use abi::service;

fn repetitions() -> u64 {
    platform::get().number("repetitions", 10_000)
}

/// NULL calls, nothing else.
pub fn null() -> Check<Done> {
    needs_cassata!();
    let repetitions = repetitions();
    println!("BENCH null begin");
    let begin = wait::now();
    for _ in 0..repetitions {
        calls::hvc(service::NULL, &[]);
    }
    let ticks = wait::now() - begin;
    println!("BENCH null end");
    pass!("repetitions={repetitions} ticks={ticks}")
}

/// Virtual timer interrupts taken by a vCPU that spins: no switch is needed.
pub fn timer() -> Check<Done> {
    const TIMER: Timer = Timer::Virtual;
    let repetitions = repetitions();
    gic::set(ISENABLER, TIMER.intid());
    irq::hook(|_| TIMER.set_control(ENABLE | IMASK));
    let seen = irq::seen(cpu::index());
    println!("BENCH timer begin");
    let begin = wait::now();
    for number in 1..=repetitions {
        TIMER.arm(wait::us(20));
        wait::until("the timer", || u64::from(seen.count(TIMER.intid())) >= number)?;
    }
    let ticks = wait::now() - begin;
    TIMER.stop();
    println!("BENCH timer end");
    pass!("repetitions={repetitions} ticks={ticks}")
}
