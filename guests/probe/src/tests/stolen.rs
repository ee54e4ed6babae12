//! Stolen time (Arm DEN0057A).

use crate::platform::{self, STOLEN};
use crate::suite::{Check, Done, Test};
use crate::{calls, cpus, ensure, ensure_eq, needs_cassata, pass, wait};
use abi::platform as p;
use abi::service::{self, PV_TIME_FEATURES, PV_TIME_ST};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    Test { name: "stolen.discovery", body: discovery },
    Test { name: "stolen.grows", body: grows },
];

/// This vCPU's structure, as an offset in the page.
fn structure() -> Check<u64> {
    let address = calls::hvc(PV_TIME_ST, &[]) as u64;
    let page = p::STOLEN_BASE..p::STOLEN_BASE + p::STOLEN_SIZE;
    ensure!(page.contains(&address), "PV_TIME_ST answers {address:#x}");
    ensure!(address.is_multiple_of(64), "PV_TIME_ST answers {address:#x}, not aligned to 64");
    Ok(address - p::STOLEN_BASE)
}

/// Nanoseconds stolen from this vCPU.
pub fn stolen_ns() -> Check<u64> {
    Ok(STOLEN.read64(structure()? + 8))
}

fn discovery() -> Check<Done> {
    needs_cassata!();
    for function in [PV_TIME_FEATURES, PV_TIME_ST] {
        let answer = calls::hvc(PV_TIME_FEATURES, &[function.into()]);
        ensure_eq!(answer, 0, "PV_TIME_FEATURES({function:#x})");
    }
    let unknown = calls::hvc(PV_TIME_FEATURES, &[0x1234]);
    ensure_eq!(unknown, service::NOT_SUPPORTED, "PV_TIME_FEATURES of an unknown function");
    let smccc = calls::hvc32(service::smccc::ARCH_FEATURES, &[PV_TIME_FEATURES.into()]);
    ensure_eq!(smccc, 0, "SMCCC_ARCH_FEATURES(PV_TIME_FEATURES)");
    fn job() -> Check {
        let offset = structure()?;
        ensure_eq!(STOLEN.read32(offset), 0, "revision");
        ensure_eq!(STOLEN.read32(offset + 4), 0, "attributes");
        let expected = crate::arch::cpu::index() as u64 * p::STOLEN_STRIDE;
        ensure_eq!(offset, expected, "place of this vCPU's structure");
        Ok(())
    }
    cpus::together(job, job)?;
    pass!("")
}

/// With a busy neighbour on the core (`probe.shared=1`) stolen time grows while
/// this vCPU wants to run; without (`probe.shared=0`) it stays nearly as it is.
fn grows() -> Check<Done> {
    needs_cassata!();
    const WATCHED_US: u64 = 300_000;
    let before = stolen_ns()?;
    let (mut last, end) = (before, wait::now() + wait::us(WATCHED_US));
    while wait::now() < end {
        let now = stolen_ns()?;
        ensure!(now >= last, "stolen time went from {last} to {now} ns");
        last = now;
    }
    let permille = (last - before) / WATCHED_US;
    match platform::get().argument("shared") {
        Some("1") => ensure!(permille >= 200, "only {permille} per mille stolen on a shared core"),
        Some("0") => ensure!(permille <= 50, "{permille} per mille stolen on a core of its own"),
        _ => {}
    }
    pass!("{permille} per mille")
}
