//! Tight loops, for counting instructions at EL2 from outside.

use crate::arch::cpu;
use crate::gic::{self, offset::*};
use crate::platform::GICD;
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

/// Does something over and over, nothing else.
fn repeat(name: &str, act: impl Fn()) -> Check<Done> {
    needs_cassata!();
    let repetitions = repetitions();
    println!("BENCH {name} begin");
    let begin = wait::now();
    for _ in 0..repetitions {
        act();
    }
    let ticks = wait::now() - begin;
    println!("BENCH {name} end");
    pass!("repetitions={repetitions} ticks={ticks}")
}

/// NULL calls.
pub fn null() -> Check<Done> {
    repeat("null", || {
        calls::hvc(service::NULL, &[]);
    })
}

/// Global critical sections of this vCPU.
pub fn gcs() -> Check<Done> {
    repeat("gcs", || {
        calls::hvc(service::START_GCS, &[0]);
        calls::hvc(service::FINISH_GCS, &[0]);
    })
}

/// A mutex that no other vCPU wants, locked and unlocked.
pub fn mutex() -> Check<Done> {
    needs_cassata!();
    let [answer, handle, ..] = calls::raw(
        calls::Conduit::Hvc,
        service::MUTEX_OPEN,
        &[service::hash(b"R"), service::hash(b"task")],
    );
    ensure_eq!(answer, 0, "MUTEX_OPEN");
    repeat("mutex", || {
        calls::hvc(service::MUTEX_LOCK, &[handle]);
        calls::hvc(service::MUTEX_UNLOCK, &[handle]);
    })
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

/// Words of the distributor that enable an interrupt of no device, and disable it: two accesses
/// each time.
pub fn gic_write() -> Check<Done> {
    let done = repeat("gic-write", || {
        for bank in [ISENABLER, ICENABLER] {
            GICD.write32(bank + FREE_WORD, FREE_BIT);
        }
    });
    ensure_eq!(GICD.read32(ISENABLER + FREE_WORD) & FREE_BIT, 0, "it is disabled");
    done
}

/// Reads of the same word.
pub fn gic_read() -> Check<Done> {
    repeat("gic-read", || {
        GICD.read32(ISENABLER + FREE_WORD);
    })
}

/// Where an interrupt that no device has stands in a bank of bits.
const FREE_WORD: u64 = (gic::FREE_SPIS.start / 32 * 4) as u64;
const FREE_BIT: u32 = 1 << (gic::FREE_SPIS.start % 32);

/// Lines of 32 bytes, each written while the core that drives the UART does not run. Cores take
/// turns, and the trial has them take long ones.
pub fn console() -> Check<Done> {
    const TURN_US: u64 = 100;
    needs_cassata!();
    let (repetitions, turn) = (repetitions(), wait::us(TURN_US));
    println!("BENCH console begin");
    wait::spin(2 * turn);
    for number in 0..repetitions {
        while wait::now() % turn > turn / 10 {}
        println!("BENCH console burst {number:>11}");
        // The bytes are sent in the other core's turn.
        wait::spin(2 * turn);
    }
    println!("BENCH console end");
    pass!("repetitions={repetitions}")
}
