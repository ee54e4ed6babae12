//! Bad neighbours: they never end of themselves.

use crate::arch::fp::Registers;
use crate::arch::{boot, cpu};
use crate::gic::{self, offset::*};
use crate::suite::{Check, Done};
use crate::timer::Timer;
use crate::{calls, cpus, fail, irq, needs_two_vcpus, platform, println, wait};
use core::mem::offset_of;

/// Starts `job` everywhere, and here; `job` never ends.
fn everywhere(job: cpus::Job) -> Check<Done> {
    for index in platform::get().others() {
        cpus::start(index, job)?;
    }
    job()?;
    fail!("an endless job ended")
}

/// Loads the floating-point registers for ever, so that they have to be saved whenever the vCPU leaves.
pub fn spin_float() -> Check<Done> {
    let pattern = Registers::pattern(1);
    loop {
        pattern.load();
    }
}

/// Burns all the time it is given, on every vCPU. The first one counts in the
/// report area (`load_units`), so that the host sees it run.
pub fn spin() -> Check<Done> {
    println!("spinning");
    everywhere(|| {
        const UNITS: u64 = offset_of!(abi::report::Header, load_units) as u64;
        let area = calls::report_area().filter(|_| cpu::index() == 0);
        let mut units = 0_u64;
        loop {
            units += 1;
            if let Some((_, size)) = area {
                platform::report_window(size).write64(UNITS, units);
            }
        }
    })
}

/// As [`spin()`], with everything masked that can be masked.
///
/// No hint that this is a spin loop: on AArch64 that is an ISB, which costs an
/// emulator thirty times what plain work does.
pub fn mask() -> Check<Done> {
    println!("masking");
    everywhere(|| {
        cpu::mask_all();
        let mut units = 0_u64;
        loop {
            units = core::hint::black_box(units + 1);
        }
    })
}

/// Cannot go on: takes an exception, and its vectors are where nothing is.
pub fn crash() -> Check<Done> {
    println!("crashing");
    boot::crash()
}

/// Sends SGIs to its sibling, which is off, for ever.
pub fn pester() -> Check<Done> {
    const POKE: u32 = 6;
    needs_two_vcpus!();
    println!("pestering");
    loop {
        gic::send(POKE, [1]);
    }
}

/// Sends SGIs to its sibling for ever, which takes them and would never sleep.
pub fn flood() -> Check<Done> {
    const POKE: u32 = 6;
    needs_two_vcpus!();
    println!("flooding");
    cpus::start(1, || {
        gic::set(ISENABLER, POKE);
        irq::hook(|_| ());
        let mut turns = 0_u64;
        loop {
            turns = core::hint::black_box(turns + 1);
        }
    })?;
    loop {
        gic::send(POKE, [1]);
    }
}

/// As [`crash`], but it is the second vCPU, after a rest of some milliseconds.
pub fn crash_sibling() -> Check<Done> {
    const TIMER: Timer = Timer::Virtual;
    const REST_US: u64 = 3_000;
    needs_two_vcpus!();
    println!("resting");
    cpus::start(1, || {
        gic::set(ISENABLER, TIMER.intid());
        irq::hook(|_| TIMER.stop());
        TIMER.arm(wait::us(REST_US));
        wait::asleep(|| irq::seen(1).count(TIMER.intid()) > 0)?;
        boot::crash()
    })?;
    wait::asleep(|| false)?;
    fail!("an endless sleep ended")
}
