//! Calls from guests: PSCI, SMCCC discovery, stolen time, our own service.
//!
//! HVC and SMC mean the same. Function identifier in W0, arguments in X1 to X3,
//! results in X0 to X3 (Arm DEN0028, section 2).

use crate::arch::{context, timer};
use crate::exits;
use crate::pcpu::Pcpu;
use crate::shared::POWER;
use crate::status;
use abi::service::{self, psci, smccc};
use abi::status::{Exit, VcpuStatus, vcpu_state};
use abi::{MAX_VCPUS_PER_VM, platform};
use el2::power::{Affinity, Entry, Refusal};
use sched::Message;

/// An HVC; the guest goes on behind it by itself.
pub fn hypervisor_call(core: &mut Pcpu) -> Exit {
    handle(core);
    Exit::Call
}

/// An SMC; it trapped, so the guest would execute it again.
pub fn secure_monitor_call(core: &mut Pcpu) -> Exit {
    context::skip_instruction();
    handle(core);
    Exit::Call
}

/// Who calls, and with what.
struct Call {
    function: u32,
    arguments: [u64; 3],
    vm: usize,
    index: usize,
}

fn handle(core: &mut Pcpu) {
    let Some(vcpu) = core.loaded.as_deref_mut() else { return };
    let x = &mut vcpu.general.x;
    let function = x[0] as u32;
    if function == service::NULL {
        x[0] = 0;
        return;
    }
    let call = Call { function, arguments: [x[1], x[2], x[3]], vm: vcpu.vm, index: vcpu.index };
    serve(core, &call);
}

#[inline(never)]
fn serve(core: &mut Pcpu, call: &Call) {
    if let Some(answer) = dispatch(core, call) {
        answer_with(core, answer);
    }
}

/// Up to four results.
enum Answer {
    One(i64),
    Two(u64, u64),
    Three(u64, u64, u64),
    Four([u32; 4]),
}

fn answer_with(core: &mut Pcpu, answer: Answer) {
    let Some(vcpu) = core.loaded.as_deref_mut() else { return };
    let x = &mut vcpu.general.x;
    match answer {
        Answer::One(value) => x[0] = value as u64,
        Answer::Two(a, b) => (x[0], x[1]) = (a, b),
        Answer::Three(a, b, c) => (x[0], x[1], x[2]) = (a, b, c),
        Answer::Four(words) => x[..4].copy_from_slice(&words.map(u64::from)),
    }
}

/// None: the caller does not go on, or its registers are what they should be.
fn dispatch(core: &mut Pcpu, call: &Call) -> Option<Answer> {
    let [first, second, third] = call.arguments;
    let answer = match call.function {
        psci::VERSION => i64::from(psci::VERSION_1_1),
        psci::FEATURES => psci_features(first as u32),
        psci::CPU_ON_64 => cpu_on(core, call, first, second, third),
        psci::CPU_ON_32 => {
            cpu_on(core, call, first & 0xffff_ffff, second & 0xffff_ffff, third & 0xffff_ffff)
        }
        psci::AFFINITY_INFO_64 => affinity_info(core, call, first, second),
        psci::AFFINITY_INFO_32 => affinity_info(core, call, first & 0xffff_ffff, second),
        psci::CPU_SUSPEND_32 | psci::CPU_SUSPEND_64 => return cpu_suspend(core),
        psci::CPU_OFF => return cpu_off(core),
        psci::SYSTEM_OFF => return leave_for_good(core, call.vm, Message::VmsOff),
        psci::SYSTEM_RESET => return leave_for_good(core, call.vm, Message::VmsReset),
        // No trusted OS that would have to migrate (DEN0022D, section 5.9).
        psci::MIGRATE_INFO_TYPE => 2,
        smccc::VERSION => i64::from(smccc::VERSION_1_1),
        smccc::ARCH_FEATURES => arch_features(first as u32),
        service::PV_TIME_FEATURES => pv_time_features(first as u32),
        service::PV_TIME_ST => {
            (platform::STOLEN_BASE + call.index as u64 * platform::STOLEN_STRIDE) as i64
        }
        service::CALL_UID => return Some(Answer::Four(service::UID)),
        service::CALL_REVISION => {
            let (major, minor) = service::REVISION;
            return Some(Answer::Two(u64::from(major), u64::from(minor)));
        }
        service::COUNTER => return Some(counter(core, call)),
        service::REPORT_AREA => return Some(report_area(core, call)),
        _ => service::NOT_SUPPORTED,
    };
    Some(Answer::One(answer))
}

fn psci_features(function: u32) -> i64 {
    match function {
        psci::VERSION
        | psci::FEATURES
        | psci::CPU_ON_32
        | psci::CPU_ON_64
        | psci::AFFINITY_INFO_32
        | psci::AFFINITY_INFO_64
        | psci::CPU_OFF
        | psci::SYSTEM_OFF
        | psci::SYSTEM_RESET
        | psci::MIGRATE_INFO_TYPE
        | smccc::VERSION => psci::SUCCESS,
        // Original format of the power state, platform-coordinated.
        psci::CPU_SUSPEND_32 | psci::CPU_SUSPEND_64 => 0,
        _ => psci::NOT_SUPPORTED,
    }
}

fn arch_features(function: u32) -> i64 {
    match function {
        smccc::VERSION | smccc::ARCH_FEATURES | service::PV_TIME_FEATURES => 0,
        _ => service::NOT_SUPPORTED,
    }
}

fn pv_time_features(function: u32) -> i64 {
    match function {
        service::PV_TIME_FEATURES | service::PV_TIME_ST => 0,
        _ => service::NOT_SUPPORTED,
    }
}

/// The sibling with this affinity: its index in the VM.
fn sibling(core: &Pcpu, call: &Call, affinity: u64) -> Option<usize> {
    let count = u64::from(core.system.vms[call.vm].vcpu_count);
    (affinity < count.min(MAX_VCPUS_PER_VM as u64)).then_some(affinity as usize)
}

fn cpu_on(core: &mut Pcpu, call: &Call, affinity: u64, pc: u64, x0: u64) -> i64 {
    let Some(index) = sibling(core, call, affinity) else { return psci::INVALID_PARAMETERS };
    let table = &core.system.vms[call.vm];
    if !(table.ram_ipa..table.ram_ipa + table.ram_size).contains(&pc) {
        return psci::INVALID_ADDRESS;
    }
    let id = usize::from(table.vcpu_first) + index;
    // The caller's: one that is about to be halted starts nobody who would live on.
    let Some(epoch) = core.loaded.as_deref().map(|vcpu| vcpu.epoch) else {
        return psci::INTERNAL_FAILURE;
    };
    match POWER[id].request(Entry { pc, x0 }, epoch) {
        Err(Refusal::AlreadyOn) => psci::ALREADY_ON,
        Err(Refusal::OnPending) => psci::ON_PENDING,
        Ok(()) => {
            core.power_requested(id);
            psci::SUCCESS
        }
    }
}

fn affinity_info(core: &Pcpu, call: &Call, affinity: u64, level: u64) -> i64 {
    let Some(index) = sibling(core, call, affinity) else { return psci::INVALID_PARAMETERS };
    // Levels above 0 are optional since PSCI 1.0, and mean nothing here.
    if level != 0 {
        return psci::INVALID_PARAMETERS;
    }
    match POWER[usize::from(core.system.vms[call.vm].vcpu_first) + index].affinity() {
        Affinity::On => 0,
        Affinity::Off => 1,
        Affinity::OnPending => 2,
    }
}

/// Every power state is a standby: the caller goes on behind the call when an
/// interrupt comes (DEN0022D, section 5.4.5).
fn cpu_suspend(core: &mut Pcpu) -> Option<Answer> {
    answer_with(core, Answer::One(psci::SUCCESS));
    exits::wait_for_interrupt(core);
    None
}

fn cpu_off(core: &mut Pcpu) -> Option<Answer> {
    let id = core.loaded.as_ref()?.id;
    core.retire(id);
    None
}

fn leave_for_good(core: &mut Pcpu, vm: usize, message: Message) -> Option<Answer> {
    let id = core.loaded.as_ref()?.id;
    core.sleep(id, vcpu_state::SLEEPING);
    // Nothing may wake it while its VM is being stopped.
    core.unload();
    POWER[usize::from(id.0)].deafen();
    if let Some(vcpu) = core.vcpu(id) {
        vcpu.switch_off();
    }
    core.ask_home(vm, message);
    None
}

fn counter(core: &mut Pcpu, call: &Call) -> Answer {
    let [index, word, _] = call.arguments;
    let table = &core.system.vms[call.vm];
    if index >= u64::from(table.vcpu_count) || word >= VcpuStatus::WORDS as u64 {
        return Answer::One(service::INVALID_PARAMETER);
    }
    let id = usize::from(table.vcpu_first) + index as usize;
    let now = timer::now().0;
    Answer::Two(0, status::current_word(core.system, id, word as usize, now))
}

fn report_area(core: &Pcpu, call: &Call) -> Answer {
    match core.system.vms[call.vm].report_size {
        0 => Answer::One(service::NOT_SUPPORTED),
        size => Answer::Three(0, platform::REPORT_BASE, size),
    }
}
