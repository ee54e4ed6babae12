//! Cassata's own service: discovery, counters, errors.

use crate::arch::cpu;
use crate::calls::{self, counter};
use crate::suite::{Check, Done, Test};
use crate::{cpus, ensure, ensure_eq, gic, irq, needs_cassata, pass, platform, wait};
use abi::service;
use abi::status::{Exit, VcpuStatus, vcpu_state};
use core::mem::offset_of;
use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    Test { name: "counters.discovery", body: discovery },
    Test { name: "counters.bad_arguments", body: bad_arguments },
    Test { name: "counters.no_sections", body: no_sections },
    Test { name: "counters.calls", body: count_calls },
    Test { name: "counters.injected", body: injected },
    Test { name: "counters.states", body: states },
];

const STATE: u64 = offset_of!(VcpuStatus, state) as u64 / 8;
const RUN: u64 = offset_of!(VcpuStatus, run) as u64 / 8;
const SWITCHES: u64 = offset_of!(VcpuStatus, switches) as u64 / 8;
const INJECTED: u64 = offset_of!(VcpuStatus, injected) as u64 / 8;
const PCPU: u64 = offset_of!(VcpuStatus, pcpu) as u64 / 8;
const EXITS: u64 = offset_of!(VcpuStatus, exits) as u64 / 8;

fn read(vcpu: usize, word: u64) -> Check<u64> {
    match counter(vcpu as u64, word) {
        Ok(value) => Ok(value),
        Err(code) => crate::fail!("COUNTER of vCPU {vcpu}, word {word}, answers {code}"),
    }
}

fn discovery() -> Check<Done> {
    needs_cassata!();
    let revision = calls::raw(calls::Conduit::Hvc, service::CALL_REVISION, &[]);
    let revision = (revision[0] as u32, revision[1] as u32);
    ensure_eq!(revision, service::REVISION, "CALL_REVISION");
    ensure_eq!(calls::hvc(service::NULL, &[]), 0, "NULL");
    let area = calls::report_area();
    if let Some((base, size)) = area {
        ensure_eq!(base, abi::platform::REPORT_BASE, "REPORT_AREA address");
        ensure!(size >= 0x1000 && size.is_multiple_of(0x1000), "REPORT_AREA size {size:#x}");
    } else {
        let answer = calls::hvc(service::REPORT_AREA, &[]);
        ensure_eq!(answer, service::NOT_SUPPORTED, "REPORT_AREA without one");
    }
    pass!("revision {}.{}, report area {}", revision.0, revision.1, area.is_some())
}

/// The description gives this vCPU no global critical sections, and nothing to say about preemption: the calls for them are not there.
fn no_sections() -> Check<Done> {
    needs_cassata!();
    for function in service::START_GCS..=service::MUTEX_ABANDON {
        for argument in [0, 1, u64::MAX] {
            let answer = calls::hvc(function, &[argument, 0]);
            ensure_eq!(answer, service::NOT_SUPPORTED, "call {function:#x}({argument:#x})");
        }
    }
    for function in service::PREEMPT_DISABLE..=service::PREEMPTION_LINE {
        ensure_eq!(calls::hvc(function, &[]), service::NOT_SUPPORTED, "call {function:#x}");
    }
    pass!("no call for them")
}

fn bad_arguments() -> Check<Done> {
    needs_cassata!();
    let vcpus = platform::get().vcpus.len() as u64;
    let words = VcpuStatus::WORDS as u64;
    let bad = [(vcpus, 0), (u64::MAX, 0), (0, words), (0, u64::MAX), (1 << 32, 0), (0, 1 << 61)];
    for (vcpu, word) in bad {
        let answer = counter(vcpu, word);
        ensure_eq!(answer, Err(service::INVALID_PARAMETER), "COUNTER({vcpu:#x}, {word:#x})");
    }
    for word in 0..words {
        read(0, word)?;
    }
    pass!("")
}

fn count_calls() -> Check<Done> {
    needs_cassata!();
    const CALLS: u64 = 1000;
    let word = EXITS + Exit::Call as u64;
    let before = read(0, word)?;
    for _ in 0..CALLS {
        ensure_eq!(calls::hvc(service::NULL, &[]), 0, "NULL");
    }
    let counted = read(0, word)? - before;
    // The reading calls count as well.
    ensure!((CALLS..=CALLS + 2).contains(&counted), "{CALLS} calls are counted as {counted}");
    pass!("")
}

fn injected() -> Check<Done> {
    needs_cassata!();
    const SENT: usize = 200;
    let before = read(0, INJECTED)?;
    for round in 1..=SENT {
        gic::send(3, [0]);
        gic::expect_total(round)?;
    }
    let counted = read(0, INJECTED)? - before;
    ensure!(counted >= SENT as u64, "{SENT} interrupts are counted as {counted}");
    pass!("{counted} for {SENT}")
}

fn states() -> Check<Done> {
    needs_cassata!();
    ensure_eq!(read(0, STATE)?, vcpu_state::RUNNING, "state of the calling vCPU");
    ensure!(read(0, PCPU)? < abi::MAX_PCPUS as u64, "pCPU of the calling vCPU");
    for index in platform::get().others() {
        ensure_eq!(read(index, STATE)?, vcpu_state::OFF, "state of vCPU {index}, off");
    }
    if platform::get().vcpus.len() < 2 {
        return pass!("one vCPU");
    }
    static GO_OFF: AtomicU64 = AtomicU64::new(0);
    fn job() -> Check {
        wait::asleep(|| irq::seen(cpu::index()).total() >= 1)?;
        wait::until("leave to go off", || GO_OFF.load(SeqCst) == 1)
    }
    GO_OFF.store(0, SeqCst);
    let switches = read(1, SWITCHES)?;
    cpus::start(1, job)?;
    let watch = || {
        wait::until("the state SLEEPING", || counter(1, STATE) == Ok(vcpu_state::SLEEPING))?;
        let run = read(1, RUN)?;
        gic::send(2, [1]);
        let awake = [vcpu_state::RUNNING, vcpu_state::SUSPENDED];
        wait::until("a state of being awake", || {
            counter(1, STATE).is_ok_and(|state| awake.contains(&state))
        })?;
        GO_OFF.store(1, SeqCst);
        wait::until("the state OFF", || counter(1, STATE) == Ok(vcpu_state::OFF))?;
        // A turn that ends just now may be missed for a moment.
        wait::until("a run time that has grown", || counter(1, RUN).is_ok_and(|now| now > run))?;
        ensure!(read(1, SWITCHES)? > switches, "the switches of vCPU 1 do not grow");
        Ok(())
    };
    let outcome: Check = watch();
    GO_OFF.store(1, SeqCst);
    cpus::join_after(1, outcome)?;
    pass!("")
}
