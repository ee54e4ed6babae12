//! Floating-point state: each vCPU keeps its own, however it is switched.

use crate::arch::fault::{self, class};
use crate::arch::fp::Registers;
use crate::arch::{cpu, sysreg::read, sysreg::write};
use crate::calls;
use crate::suite::{Check, Done, Test};
use crate::timer::{IMASK, Timer};
use crate::{cpus, ensure_eq, fail, gic, irq, pass, platform, wait};
use abi::service::psci;

/// The tests of this file.
pub const TESTS: &[Test] = &[
    Test { name: "fp.kept", body: kept },
    Test { name: "fp.mixed", body: mixed },
    Test { name: "fp.own_trap", body: own_trap },
];

/// `fmov d0, d0`
const FMOV_D0_D0: u32 = 0x1e60_4000;
const CPACR_FPEN: u64 = 0b11 << 20;

fn sleep_a_little() -> Check {
    let timer = Timer::Virtual;
    let seen = irq::seen(cpu::index());
    let before = seen.count(timer.intid());
    cpu::mask_irq();
    timer.arm(wait::us(50));
    wait::asleep(|| seen.count(timer.intid()) > before)
}

fn prepare() {
    gic::set(gic::offset::ISENABLER, Timer::Virtual.intid());
    irq::hook(|intid| {
        if Timer::of(intid).is_some() {
            Timer::Virtual.set_control(IMASK);
        }
    });
}

/// Loads a pattern, lets all sorts of things happen, and looks.
fn round(number: u64, seed: u64) -> Check {
    let pattern = Registers::pattern(seed << 32 | number);
    pattern.load();
    match number % 16 {
        0 => wait::spin(wait::us(200)),
        1 | 9 => sleep_a_little()?,
        2 => gic::send(1, [(cpu::index() + 1) % platform::get().vcpus.len()]),
        _ => drop(calls::hvc32(psci::VERSION, &[])),
    }
    if let Some((bank, n)) = pattern.difference(&Registers::store()) {
        fail!("{bank}{n} changed in round {number}");
    }
    Ok(())
}

fn rounds() -> Check {
    prepare();
    let seed = platform::get().number("seed", 1) << 4 | cpu::index() as u64;
    let rounds = platform::get().number("rounds.fp", 4000);
    (0..rounds).try_for_each(|number| round(number, seed))
}

fn kept() -> Check<Done> {
    cpus::together(rounds, rounds)?;
    pass!("{} rounds on each vCPU", platform::get().number("rounds.fp", 4000))
}

/// Odd vCPUs use no floating point at all while even ones do: a lazy switch
/// must not hand registers to the wrong one.
fn mixed() -> Check<Done> {
    fn idle() -> Check {
        prepare();
        (0..100).try_for_each(|_| sleep_a_little())
    }
    fn job() -> Check {
        if cpu::index() % 2 == 1 { idle() } else { rounds() }
    }
    cpus::together(job, job)?;
    pass!("")
}

/// The guest's own trap of floating point is the guest's: it gets it, at EL1,
/// and the registers are as they were before.
fn own_trap() -> Check<Done> {
    fn job() -> Check {
        prepare();
        let pattern = Registers::pattern(0x7 << 32 | cpu::index() as u64);
        for number in 0..100 {
            pattern.load();
            let cpacr = read::cpacr_el1();
            write::cpacr_el1(cpacr & !CPACR_FPEN);
            if number % 4 == 0 {
                sleep_a_little()?;
            }
            let trapped = fault::instruction(FMOV_D0_D0, 0);
            let kept = read::cpacr_el1();
            write::cpacr_el1(cpacr);
            ensure_eq!(kept, cpacr & !CPACR_FPEN, "CPACR_EL1 while FP is trapped");
            match trapped {
                Err(fault) => ensure_eq!(fault.class, class::FP, "exception class"),
                Ok(_) => fail!("floating point works although CPACR_EL1 traps it"),
            }
            if let Some((bank, n)) = pattern.difference(&Registers::store()) {
                fail!("{bank}{n} changed by a trap of the guest's own");
            }
        }
        Ok(())
    }
    cpus::together(job, job)?;
    pass!("")
}
