//! Tight loops, for counting instructions at EL2 from outside.

use crate::arch::cpu;
use crate::gic::{self, offset::*};
use crate::suite::{Check, Done};
use crate::timer::{ENABLE, IMASK, Timer};
use crate::{
    calls, cpus, ensure_eq, irq, needs_cassata, needs_two_vcpus, pass, platform, println, wait,
};
use abi::service;
use core::sync::atomic::{AtomicBool, Ordering::SeqCst};

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

/// Global critical sections of this vCPU, nothing else.
pub fn gcs() -> Check<Done> {
    needs_cassata!();
    let repetitions = repetitions();
    println!("BENCH gcs begin");
    for _ in 0..repetitions {
        calls::hvc(service::START_GCS, &[0]);
        calls::hvc(service::FINISH_GCS, &[0]);
    }
    println!("BENCH gcs end");
    pass!("repetitions={repetitions}")
}

/// A mutex that no other vCPU wants, locked and unlocked.
pub fn mutex() -> Check<Done> {
    needs_cassata!();
    let repetitions = repetitions();
    let [answer, handle, ..] = calls::raw(
        calls::Conduit::Hvc,
        service::MUTEX_OPEN,
        &[service::hash(b"R"), service::hash(b"task")],
    );
    ensure_eq!(answer, 0, "MUTEX_OPEN");
    println!("BENCH mutex begin");
    for _ in 0..repetitions {
        calls::hvc(service::MUTEX_LOCK, &[handle]);
        calls::hvc(service::MUTEX_UNLOCK, &[handle]);
    }
    println!("BENCH mutex end");
    pass!("repetitions={repetitions}")
}

/// Computes for so many periods of 100 us, in each of which its budget is replenished.
pub fn replenish() -> Check<Done> {
    const PERIOD_US: u64 = 100;
    needs_cassata!();
    let repetitions = repetitions();
    let end = wait::now() + repetitions * wait::us(PERIOD_US);
    println!("BENCH replenish begin");
    while wait::now() < end {}
    println!("BENCH replenish end");
    pass!("repetitions={repetitions}")
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

/// Interrupts for a sibling that spins on another core: the doorbell there needs no switch.
pub fn doorbell() -> Check<Done> {
    const SGI: u32 = 3;
    static OVER: AtomicBool = AtomicBool::new(false);
    needs_two_vcpus!();
    let repetitions = repetitions();
    gic::set(ISENABLER, SGI);
    cpus::start(1, || {
        gic::set(ISENABLER, SGI);
        while !OVER.load(SeqCst) {
            core::hint::spin_loop();
        }
        Ok(())
    })?;
    let seen = irq::seen(1);
    println!("BENCH doorbell begin");
    for number in 1..=repetitions {
        gic::send(SGI, [1]);
        wait::until("the interrupt", || u64::from(seen.count(SGI)) >= number)?;
    }
    println!("BENCH doorbell end");
    OVER.store(true, SeqCst);
    cpus::join(1)?;
    pass!("repetitions={repetitions}")
}
