//! The registers a hypervisor must switch: each vCPU keeps its own, and sees no other's.

use crate::arch::{cpu, fault, sysreg::read, sysreg::write};
use crate::calls;
use crate::suite::{Check, Done, Test};
use crate::timer::Timer;
use crate::{cpus, ensure, ensure_eq, gic, irq, pass, platform, wait};
use abi::service::psci;
use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// The tests of this file.
pub const TESTS: &[Test] = &[Test { name: "context.system_registers", body: system_registers }];

/// A register that any value may be put into, and the bits that stick.
struct Register {
    name: &'static str,
    read: fn() -> u64,
    write: fn(u64),
    bits: u64,
}

macro_rules! registers {
    ($($name:ident $bits:expr;)*) => {
        &[$(Register {
            name: stringify!($name),
            read: read::$name,
            write: write::$name,
            bits: $bits,
        }),*]
    };
}

/// What EL1 software keeps its state in. FAR, ESR and PAR change by faults and
/// address translations only, which these loops have none of.
const REGISTERS: &[Register] = registers! {
    tpidr_el0 !0;
    tpidrro_el0 !0;
    tpidr_el1 !0;
    contextidr_el1 0xffff_ffff;
    far_el1 !0;
    esr_el1 0xffff_ffff;
    par_el1 0x0000_00ff_ffff_f000;
    ttbr1_el1 0x0000_00ff_ffff_f000;
    sp_el0 !0;
    cntkctl_el1 0b11_1111_0011;
    csselr_el1 0b11;
    cntv_cval_el0 !0;
    cntp_cval_el0 !0;
    icc_pmr_el1 0xf8;
};

fn value(register: usize, seed: u64) -> u64 {
    let mixed = (seed << 8 | register as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let value = (mixed ^ mixed >> 29) & REGISTERS[register].bits;
    match REGISTERS[register].name {
        // The calls below must not be caught by a stray event stream or mask;
        // timer interrupts are disabled, SGIs have priority 0xa0.
        "icc_pmr_el1" => value | 0xc0,
        "cntkctl_el1" => value & 0b11_0000_0011,
        _ => value,
    }
}

/// DISR_EL1, which the identification registers hide and a core may have nevertheless: it need
/// not keep a value, but must not show another guest's.
struct Deferred {
    own: u64,
}

impl Deferred {
    const READ: u32 = 0xd538_c120;
    const WRITE: u32 = 0xd518_c120;
    /// Bits that every core with this register keeps (DISR_EL1.ISS).
    const BITS: u64 = 0xff_ffff;

    /// Chooses a value that no other vCPU of any VM has.
    fn new() -> Self {
        Self { own: read::cntvct_el0() & Self::BITS | 1 }
    }

    fn write(&self) {
        // Undefined where there is no FEAT_RAS.
        let _ = fault::instruction(Self::WRITE, self.own);
    }

    fn check(&self, round: u64) -> Check {
        let found = fault::instruction(Self::READ, 0).unwrap_or(0) & Self::BITS;
        ensure!(
            found == 0 || found == self.own,
            "DISR_EL1 in round {round}: another's value {found:#x}"
        );
        Ok(())
    }
}

/// The registers that this machine has.
fn registers() -> impl Iterator<Item = (usize, &'static Register)> {
    let there = |name: &str| !name.starts_with("cntp_") || Timer::Physical.is_there();
    REGISTERS.iter().enumerate().filter(move |(_, register)| there(register.name))
}

static DONE: AtomicU64 = AtomicU64::new(0);
/// SGI that keeps all vCPUs busy.
const POKE: u32 = 14;

fn system_registers() -> Check<Done> {
    DONE.store(0, SeqCst);
    cpus::together(job, job)?;
    pass!("{} registers", registers().count())
}

fn job() -> Check {
    let mut saved = [0; REGISTERS.len()];
    registers().for_each(|(n, register)| saved[n] = (register.read)());
    Timer::there().for_each(|timer| timer.stop());
    let outcome = rounds();
    registers().for_each(|(n, register)| (register.write)(saved[n]));
    DONE.fetch_add(1, SeqCst);
    outcome
}

/// What may come between the setting of a vCPU's state and a look at it, by turns.
pub(super) fn happen(number: u64) -> Check {
    let (me, count) = (cpu::index(), platform::get().vcpus.len());
    match number % 4 {
        0 => wait::spin(wait::us(100)),
        1 => gic::send(POKE, [(me + 1) % count]),
        2 => drop(calls::hvc32(psci::VERSION, &[])),
        _ => {
            // Asleep, and awake by one's own SGI at the latest.
            let before = irq::seen(me).total();
            gic::send(POKE, [me]);
            wait::asleep(|| irq::seen(me).total() > before)?;
        }
    }
    Ok(())
}

fn rounds() -> Check {
    let me = cpu::index();
    let deferred = Deferred::new();
    for round in 0..platform::get().number("rounds.context", 200) {
        let seed = round << 4 | me as u64;
        for (n, register) in registers() {
            (register.write)(value(n, seed));
        }
        deferred.write();
        happen(round)?;
        deferred.check(round)?;
        for (n, register) in registers() {
            ensure_eq!((register.read)(), value(n, seed), "{} in round {round}", register.name);
        }
    }
    Ok(())
}
