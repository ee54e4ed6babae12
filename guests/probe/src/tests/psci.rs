//! PSCI and SMCCC besides starting vCPUs.

use crate::arch::cpu;
use crate::calls::{self, Conduit};
use crate::suite::{Check, Done, Test};
use crate::timer::{self, Timer};
use crate::{ensure, ensure_eq, gic, irq, needs_cassata, pass, platform};
use abi::service::{self, psci, smccc};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    Test { name: "psci.version", body: version },
    Test { name: "psci.features", body: features },
    Test { name: "psci.smccc", body: smccc_discovery },
    Test { name: "psci.unknown", body: unknown },
    Test { name: "psci.registers", body: registers },
    Test { name: "psci.smc", body: smc },
    Test { name: "psci.hvc_immediate", body: hvc_immediate },
    Test { name: "psci.migrate_info", body: migrate_info },
    Test { name: "psci.suspend_masked", body: suspend_masked },
    Test { name: "psci.suspend_taken", body: suspend_taken },
];

/// Functions that PSCI 1.1 demands, and those that each firmware has.
const PRESENT: [u32; 11] = [
    psci::VERSION,
    psci::CPU_SUSPEND_32,
    psci::CPU_SUSPEND_64,
    psci::CPU_OFF,
    psci::CPU_ON_32,
    psci::CPU_ON_64,
    psci::AFFINITY_INFO_32,
    psci::AFFINITY_INFO_64,
    psci::SYSTEM_OFF,
    psci::SYSTEM_RESET,
    psci::FEATURES,
];

/// Function identifiers of every range, none of them implemented.
const UNKNOWN: [u32; 7] = [
    0x8400_001f, // PSCI range, unassigned
    0xc400_001f, // the same, SMC64
    0x8000_7abc, // Arm architecture service
    0x8100_0000, // CPU service
    0x8200_0000, // SiP service
    0xc600_7fff, // vendor-specific hypervisor service
    0xbf00_1234, // trusted OS
];

fn version() -> Check<Done> {
    let version = calls::hvc32(psci::VERSION, &[]) as u32;
    if platform::get().cassata {
        ensure_eq!(version, psci::VERSION_1_1, "PSCI_VERSION");
    }
    ensure!(version >> 16 == 1, "PSCI_VERSION is {version:#x}");
    pass!("{}.{}", version >> 16, version & 0xffff)
}

fn features() -> Check<Done> {
    for function in PRESENT {
        let answer = calls::hvc32(psci::FEATURES, &[function.into()]);
        ensure!(answer >= 0, "PSCI_FEATURES({function:#x}) answers {answer}");
    }
    for function in &UNKNOWN[..2] {
        let answer = calls::hvc32(psci::FEATURES, &[(*function).into()]);
        ensure_eq!(answer, psci::NOT_SUPPORTED, "PSCI_FEATURES({function:#x})");
    }
    pass!("{} functions", PRESENT.len())
}

fn smccc_discovery() -> Check<Done> {
    // Arm DEN0028, appendix B: only a PSCI that knows SMCCC_VERSION has it.
    if calls::hvc32(psci::FEATURES, &[smccc::VERSION.into()]) == psci::NOT_SUPPORTED {
        ensure!(!platform::get().cassata, "PSCI_FEATURES does not know SMCCC_VERSION");
        return Ok(Done::Skipped("the reference machine has no SMCCC_VERSION"));
    }
    let version = calls::hvc32(smccc::VERSION, &[]);
    ensure!(version >= i64::from(smccc::VERSION_1_1), "SMCCC_VERSION is {version:#x}");
    let itself = calls::hvc32(smccc::ARCH_FEATURES, &[smccc::VERSION.into()]);
    ensure!(itself >= 0, "SMCCC_ARCH_FEATURES(SMCCC_VERSION) answers {itself}");
    let none = calls::hvc32(smccc::ARCH_FEATURES, &[0x8000_7abc]);
    ensure_eq!(none, service::NOT_SUPPORTED, "SMCCC_ARCH_FEATURES of an unknown function");
    pass!("SMCCC {}.{}", version >> 16, version & 0xffff)
}

fn unknown() -> Check<Done> {
    for function in UNKNOWN {
        let answer = calls::hvc32(function, &[1, 2, 3]);
        ensure_eq!(answer, service::NOT_SUPPORTED, "call {function:#x} by HVC");
    }
    pass!("{} functions answer NOT_SUPPORTED", UNKNOWN.len())
}

/// SMCCC 1.1 and later: a call leaves X4 to X17 alone (DEN0028, section 2.6).
fn registers() -> Check<Done> {
    let arguments: [u64; 17] = core::array::from_fn(|n| 0x1234_5678_9abc_de00 | n as u64);
    for function in [psci::VERSION, UNKNOWN[0], psci::AFFINITY_INFO_64] {
        let after = calls::raw(Conduit::Hvc, function, &arguments);
        for n in 4..18 {
            ensure_eq!(after[n], arguments[n - 1], "x{n} after call {function:#x}");
        }
    }
    pass!("")
}

fn smc() -> Check<Done> {
    needs_cassata!();
    let arguments: [u64; 17] = core::array::from_fn(|n| 0xfeed_0000 | n as u64);
    let answer = calls::raw(Conduit::Smc, psci::VERSION, &arguments);
    ensure_eq!(answer[0] as u32, psci::VERSION_1_1, "PSCI_VERSION by SMC");
    ensure_eq!(&answer[4..], &arguments[3..], "X4 to X17 after SMC");
    for function in UNKNOWN {
        let answer = calls::raw(Conduit::Smc, function, &[])[0] as i32;
        ensure_eq!(i64::from(answer), service::NOT_SUPPORTED, "call {function:#x} by SMC");
    }
    let uid = calls::raw(Conduit::Smc, service::CALL_UID, &[]);
    ensure_eq!(uid[0] as u32, service::UID[0], "CALL_UID by SMC");
    pass!("")
}

/// The immediate says nothing to SMCCC; whatever the answer, the guest lives.
fn hvc_immediate() -> Check<Done> {
    needs_cassata!();
    const HVC_1: u32 = 0xd400_0022;
    const SMC_1: u32 = 0xd400_0023;
    let (hvc, smc) = (
        crate::arch::fault::instruction(HVC_1, UNKNOWN[0].into()),
        crate::arch::fault::instruction(SMC_1, UNKNOWN[0].into()),
    );
    pass!("hvc #1: {:?}, smc #1: {:?}", hvc.is_ok(), smc.is_ok())
}

fn migrate_info() -> Check<Done> {
    const NO_TRUSTED_OS: i64 = 2;
    let answer = calls::hvc32(psci::MIGRATE_INFO_TYPE, &[]);
    ensure!([NO_TRUSTED_OS, psci::NOT_SUPPORTED].contains(&answer), "answers {answer}");
    pass!("answers {answer}")
}

/// CPU_SUSPEND to standby: power state 0.
fn suspend() -> i64 {
    calls::hvc32(psci::CPU_SUSPEND_64, &[0, 0, 0])
}

/// A masked interrupt wakes; it is taken only when unmasked.
fn suspend_masked() -> Check<Done> {
    let timer = Timer::Virtual;
    gic::set(gic::offset::ISENABLER, timer.intid());
    irq::hook(stop_timer);
    for round in 1..=200 {
        cpu::mask_irq();
        let compare = timer.arm(crate::wait::us(200));
        let mut calls = 0;
        while timer.now() < compare || !cpu::irq_pending() {
            ensure_eq!(suspend(), psci::SUCCESS, "CPU_SUSPEND");
            calls += 1;
            ensure!(calls < 1_000_000, "CPU_SUSPEND does not wait");
        }
        cpu::unmask_irq();
        gic::expect_total(round)?;
    }
    pass!("200 rounds")
}

fn suspend_taken() -> Check<Done> {
    let timer = Timer::Virtual;
    gic::set(gic::offset::ISENABLER, timer.intid());
    irq::hook(stop_timer);
    let seen = irq::seen(cpu::index());
    for round in 1..=200 {
        // Masked from the look to the call, so that no wake-up is lost.
        cpu::mask_irq();
        let compare = timer.arm(crate::wait::us(200));
        while seen.total() < round {
            ensure_eq!(suspend(), psci::SUCCESS, "CPU_SUSPEND");
            cpu::unmask_irq();
            cpu::mask_irq();
        }
        cpu::unmask_irq();
        ensure!(timer.now() >= compare, "woken before the timer's time");
    }
    pass!("200 rounds")
}

fn stop_timer(intid: u32) {
    if let Some(timer) = Timer::of(intid) {
        timer.set_control(timer::IMASK);
    }
}
