//! A device passed through: the board's PL031 real-time clock (Arm DDI 0224),
//! whose interrupt is a level.

use crate::arch::{cpu, mmio::Window};
use crate::gic::{self, offset::*};
use crate::suite::{Check, Done};
use crate::{
    cpus, ensure, ensure_eq, irq, needs_cassata, needs_two_vcpus, pass, platform, println, wait,
};
use core::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// Where QEMU's `virt` board has it, and its interrupt.
const RTC: Window = Window::new(0x0901_0000, 0x1000);
const INTID: u32 = 34;

/// Data: seconds.
const DR: u64 = 0x00;
/// Match: the interrupt is raised when the data equals it.
const MR: u64 = 0x04;
/// Interrupt mask: 1 lets it out.
const IMSC: u64 = 0x10;
/// Raw interrupt status.
const RIS: u64 = 0x14;
/// Interrupt clear.
const ICR: u64 = 0x1c;
/// The lowest byte of the part number, 0x031.
const PERIPH_ID0: u64 = 0xfe0;

/// Raises the interrupt, once.
fn raise() {
    RTC.write32(IMSC, 0);
    // The second may pass between the read and the write.
    while RTC.read32(RIS) == 0 {
        RTC.write32(MR, RTC.read32(DR));
    }
    RTC.write32(IMSC, 1);
}

/// Tells the device that its interrupt was seen, on which the line goes low.
fn clear(intid: u32) {
    if intid == INTID {
        RTC.write32(ICR, 1);
    }
}

static END: AtomicBool = AtomicBool::new(false);

/// Serves interrupts until the end, asleep in between.
fn serve() -> Check {
    irq::hook(clear);
    wait::asleep(|| END.load(SeqCst))
}

/// The device interrupts the vCPU that the guest says, running or asleep, once
/// each time; and a level that was not cleared comes again.
pub fn rtc() -> Check<Done> {
    needs_two_vcpus!();
    ensure_eq!(RTC.read32(PERIPH_ID0), 0x31, "what the device says it is");
    gic::set_edge(INTID, false);
    gic::set(ISENABLER, INTID);
    irq::hook(clear);
    RTC.write32(ICR, 1);
    for index in platform::get().others() {
        cpus::start(index, serve)?;
    }
    let rounds = platform::get().number("rounds", 500);
    let outcome = deliver(rounds).and_then(|()| again());
    RTC.write32(IMSC, 0);
    END.store(true, SeqCst);
    gic::broadcast(1);
    let mut joined = outcome;
    for index in platform::get().others() {
        joined = cpus::join_after(index, joined);
    }
    joined?;
    pass!("{rounds} rounds over {} vCPUs", platform::get().vcpus.len())
}

/// Interrupts of the device for a vCPU that spins, for counting instructions at EL2 from outside: no
/// access to the device is one to EL2.
pub fn bench() -> Check<Done> {
    needs_cassata!();
    let repetitions = platform::get().number("repetitions", 10_000);
    gic::set_edge(INTID, false);
    gic::route(INTID, cpu::index());
    gic::set(ISENABLER, INTID);
    irq::hook(clear);
    RTC.write32(ICR, 1);
    let seen = irq::seen(cpu::index());
    println!("BENCH device begin");
    for number in 1..=repetitions {
        raise();
        wait::until("the device's interrupt", || u64::from(seen.count(INTID)) >= number)?;
    }
    println!("BENCH device end");
    RTC.write32(IMSC, 0);
    pass!("repetitions={repetitions}")
}

fn deliver(rounds: u64) -> Check {
    let vcpus = platform::get().vcpus.len();
    for round in 0..rounds {
        let target = round as usize % vcpus;
        let taken = || (0..vcpus).map(|index| irq::seen(index).count(INTID)).sum::<u32>();
        let (before, of_target) = (taken(), irq::seen(target).count(INTID));
        gic::route(INTID, target);
        raise();
        wait::until("the device's interrupt", || irq::seen(target).count(INTID) > of_target)?;
        wait::until("its end", || !gic::bit(ISACTIVER, INTID))?;
        gic::let_in();
        ensure_eq!(taken(), before + 1, "interrupts taken in round {round}");
        ensure!(RTC.read32(RIS) == 0, "the handler cleared nothing in round {round}");
    }
    Ok(())
}

/// The line stays high over the end of the interrupt.
fn again() -> Check {
    let seen = irq::seen(cpu::index());
    gic::route(INTID, cpu::index());
    let before = seen.count(INTID);
    irq::hook(|intid| {
        static LEFT: core::sync::atomic::AtomicU32 = core::sync::atomic::AtomicU32::new(3);
        if LEFT.fetch_sub(1, SeqCst) == 1 {
            clear(intid);
        }
    });
    raise();
    wait::until("the level to be served", || seen.count(INTID) >= before + 3)?;
    gic::let_in();
    ensure_eq!(seen.count(INTID), before + 3, "interrupts of a level cleared the third time");
    Ok(())
}
