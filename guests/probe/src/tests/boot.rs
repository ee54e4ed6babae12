//! What a guest finds when it starts, and how it starts its other vCPUs.

use crate::arch::boot::secondary_entry_address;
use crate::arch::{cpu, sysreg::read};
use crate::gic::{self, FREE_SPIS, offset::*};
use crate::suite::{Check, Done, Test};
use crate::timer::Timer;
use crate::{calls, cpus, platform, wait};
use crate::{ensure, ensure_eq, fail, needs_cassata, needs_two_vcpus, pass};
use abi::service::psci;
use core::sync::atomic::{AtomicU64, Ordering::SeqCst};
use spin::Once;

/// The tests of this file.
pub const TESTS: &[Test] = &[
    Test { name: "boot.identity", body: identity },
    Test { name: "boot.start_all", body: start_all },
    Test { name: "boot.affinity_info", body: affinity_info },
    Test { name: "boot.on_errors", body: on_errors },
    Test { name: "boot.on_bad_entry", body: on_bad_entry },
    Test { name: "boot.on_off_loop", body: on_off_loop },
];

/// DAIF when `main` began; nothing changes it between reset and there.
static FIRST_DAIF: AtomicU64 = AtomicU64::new(0);
/// What was not as after a reset at the very beginning; [`gic::reset`] hides it.
static REMAINS: Once<Option<&'static str>> = Once::new();

/// Looks at the state right after the start.
pub fn look_at_start() {
    FIRST_DAIF.store(read::daif(), SeqCst);
    REMAINS.call_once(remains);
}

/// That the start was as after a reset.
pub fn fresh() -> Check {
    ensure_eq!(FIRST_DAIF.load(SeqCst), 0b1111 << 6, "DAIF at the first instruction");
    match REMAINS.get() {
        Some(Some(what)) => fail!("at the start {what}"),
        _ => Ok(()),
    }
}

fn remains() -> Option<&'static str> {
    let frame = gic::sgi_frame(cpu::index());
    let first = FREE_SPIS.start;
    let banks = [(ISENABLER, "enabled"), (ISPENDR, "pending"), (ISACTIVER, "active")];
    let spi = banks.iter().find(|(bank, _)| FREE_SPIS.into_iter().any(|spi| gic::bit(*bank, spi)));
    let checks = [
        (spi.is_some(), "an SPI is enabled, pending or active"),
        (frame.read32(ISPENDR) & 0xffff != 0, "an SGI is pending"),
        (frame.read32(ISENABLER) & !0xffff != 0, "a PPI is enabled"),
        (read::icc_ap1r0_el1() != 0, "ICC_AP1R0_EL1 is not 0"),
        (read::icc_igrpen1_el1() != 0, "ICC_IGRPEN1_EL1 is not 0"),
        (read::cntv_ctl_el0() & 1 != 0, "the virtual timer is enabled"),
        (
            Timer::Physical.is_there() && read::cntp_ctl_el0() & 1 != 0,
            "the physical timer is enabled",
        ),
        (gic::priority(first) != 0, "an SPI has a priority"),
    ];
    checks.into_iter().find_map(|(wrong, what)| wrong.then_some(what))
}

fn identity() -> Check<Done> {
    let platform = platform::get();
    ensure_eq!(read::currentel() >> 2, 1, "exception level");
    fresh()?;
    ensure_eq!(
        read::mpidr_el1() & 0xff_00ff_ffff,
        platform.vcpus[0],
        "MPIDR_EL1 affinity of the booting vCPU"
    );
    ensure!(read::mpidr_el1() & 1 << 31 != 0, "MPIDR_EL1 bit 31 (RES1) is clear");
    for (index, &affinity) in platform.vcpus.iter().enumerate() {
        ensure_eq!(affinity & 0xff, index as u64, "affinity 0 of vCPU {index} in the device tree");
    }
    let frequency = read::cntfrq_el0();
    ensure!(frequency >= 1_000_000, "CNTFRQ_EL0 is {frequency} Hz");
    pass!("{} vCPUs, counter {frequency} Hz", platform.vcpus.len())
}

/// Entry state is checked by each vCPU itself, see `cpus::check_entry`.
fn start_all() -> Check<Done> {
    static STARTED: AtomicU64 = AtomicU64::new(0);
    fn job() -> Check {
        STARTED.fetch_or(1 << cpu::index(), SeqCst);
        Ok(())
    }
    STARTED.store(0, SeqCst);
    let count = platform::get().vcpus.len();
    cpus::together(job, || Ok(()))?;
    ensure_eq!(STARTED.load(SeqCst), (1 << count) - 2, "vCPUs that started");
    pass!("{} secondary vCPUs", count - 1)
}

fn affinity_info() -> Check<Done> {
    static GO_OFF: AtomicU64 = AtomicU64::new(0);
    fn job() -> Check {
        wait::until("leave to go off", || GO_OFF.load(SeqCst) == 1)
    }
    GO_OFF.store(0, SeqCst);
    ensure_eq!(cpus::affinity_info(0), 0, "AFFINITY_INFO of the calling vCPU");
    for index in platform::get().others() {
        ensure_eq!(cpus::affinity_info(index), 1, "AFFINITY_INFO of a vCPU never started");
    }
    let unknown = calls::hvc(psci::AFFINITY_INFO_64, &[0x7f, 0]);
    ensure_eq!(unknown, psci::INVALID_PARAMETERS, "AFFINITY_INFO of an unknown vCPU");
    let narrow = calls::hvc32(psci::AFFINITY_INFO_32, &[0, 0]);
    ensure_eq!(narrow, 0, "AFFINITY_INFO (SMC32)");
    let during = cpus::together(job, || {
        let here = platform::get().others().try_for_each(|index| {
            wait::until("a vCPU to be on", || cpus::affinity_info(index) == 0)
        });
        GO_OFF.store(1, SeqCst);
        here
    });
    during?;
    pass!("")
}

fn on_errors() -> Check<Done> {
    needs_two_vcpus!();
    static GO_OFF: AtomicU64 = AtomicU64::new(0);
    fn job() -> Check {
        wait::until("leave to go off", || GO_OFF.load(SeqCst) == 1)
    }
    GO_OFF.store(0, SeqCst);
    let vcpus = &platform::get().vcpus;
    let on = |target: u64| calls::hvc(psci::CPU_ON_64, &[target, secondary_entry_address(), 0]);
    ensure_eq!(on(vcpus[0]), psci::ALREADY_ON, "CPU_ON of the calling vCPU");
    for unknown in [vcpus.len() as u64, 0x100, 0x1_0000, 0x7f, 1 << 32] {
        ensure_eq!(on(unknown), psci::INVALID_PARAMETERS, "CPU_ON of unknown vCPU {unknown:#x}");
    }
    cpus::launch(1, job)?;
    // At once, so that the first start may still be under way. The reference
    // machine (QEMU 10) would start it a second time, with the new context.
    let at_once = if platform::get().cassata { on(vcpus[1]) } else { psci::ON_PENDING };
    let tolerated = [psci::ALREADY_ON, psci::ON_PENDING];
    let outcome = wait::until("vCPU 1 to be on", || cpus::affinity_info(1) == 0);
    let later = on(vcpus[1]);
    let narrow = calls::hvc32(psci::CPU_ON_32, &[vcpus[1], secondary_entry_address(), 0]);
    GO_OFF.store(1, SeqCst);
    cpus::join_after(1, outcome)?;
    ensure!(tolerated.contains(&at_once), "CPU_ON right after CPU_ON answers {at_once}");
    ensure_eq!(later, psci::ALREADY_ON, "CPU_ON of a vCPU that is on");
    ensure_eq!(narrow, psci::ALREADY_ON, "CPU_ON (SMC32) of a vCPU that is on");
    pass!("second CPU_ON at once answers {at_once}")
}

fn on_bad_entry() -> Check<Done> {
    needs_cassata!();
    needs_two_vcpus!();
    let platform = platform::get();
    for entry in [0, platform.ram_base - 4, platform.ram_end(), 1 << 39, u64::MAX - 3] {
        let answer = calls::hvc(psci::CPU_ON_64, &[platform.vcpus[1], entry, 0]);
        ensure_eq!(answer, psci::INVALID_ADDRESS, "CPU_ON with entry {entry:#x}");
    }
    ensure_eq!(cpus::affinity_info(1), 1, "AFFINITY_INFO after refused starts");
    pass!("")
}

fn on_off_loop() -> Check<Done> {
    needs_two_vcpus!();
    static ROUNDS: AtomicU64 = AtomicU64::new(0);
    fn job() -> Check {
        ROUNDS.fetch_add(1, SeqCst);
        Ok(())
    }
    ROUNDS.store(0, SeqCst);
    let platform = platform::get();
    let rounds = platform.number("rounds.on_off", 300);
    for _ in 0..rounds {
        cpus::together(job, || Ok(()))?;
    }
    let expected = rounds * (platform.vcpus.len() as u64 - 1);
    ensure_eq!(ROUNDS.load(SeqCst), expected, "jobs done");
    pass!("{expected} starts")
}
