//! Calls from guests: PSCI, SMCCC discovery, stolen time, the Cassata service.
//!
//! HVC and SMC mean the same. Function identifier in W0, arguments in X1 to X3,
//! results in X0 to X3 (Arm DEN0028, section 2).

use crate::arch::context::{self, Syndrome};
use crate::arch::timer;
use crate::bug::bug;
use crate::pcpu::{Pcpu, sections};
use crate::shared::power::{Affinity, Entry, Refusal};
use crate::shared::{BOARD, POWER};
use crate::status;
use abi::service::{self, psci, smccc};
use abi::status::{Exit, VcpuStatus};
use abi::{MAX_VCPUS_PER_VM, platform};
use notes::Bounded;
use sched::{Member, Message, VcpuId};

/// Handles an HVC. Its return address is the next instruction already.
pub fn hypervisor_call(core: &mut Pcpu) -> Exit {
    handle(core);
    Exit::Call
}

/// Handles an SMC. It has trapped, so the guest would execute it again if it were not skipped.
pub fn secure_monitor_call(core: &mut Pcpu, syndrome: Syndrome) -> Exit {
    context::skip_instruction(syndrome);
    handle(core);
    Exit::Call
}

/// A call's function and its arguments.
struct Call {
    function: u32,
    arguments: [u64; 3],
    vm: usize,
    index: usize,
}

fn handle(core: &mut Pcpu) {
    let Some(vcpu) = core.loaded_mut() else { return bug!("a call without a loaded vCPU") };
    let function = vcpu.register(0) as u32;
    if function == service::NULL {
        vcpu.set_register(0, 0);
        return;
    }
    other_call(core, function);
}

/// Tells calls apart. Those that must be short come first; the others have functions of their
/// own, so that this one needs no stack.
#[inline(never)]
fn other_call(core: &mut Pcpu, function: u32) {
    const FINISH: u32 = service::FINISH_GCS - service::START_GCS;
    const LAST: u32 = service::MUTEX_ABANDON - service::START_GCS;
    const DISABLE: u32 = service::PREEMPT_DISABLE - service::START_GCS;
    const YIELD: u32 = service::YIELD - service::START_GCS;
    let Some(vcpu) = core.loaded_mut() else { return bug!("a call without a loaded vCPU") };
    let argument = vcpu.register(1);
    match function.wrapping_sub(service::START_GCS) {
        0..=LAST if !sections::BUILT => serve(core, function),
        0 => {
            vcpu.set_register(0, 0);
            core.start_gcs(argument);
        }
        FINISH => {
            vcpu.set_register(0, 0);
            core.finish_gcs(argument);
        }
        2..=LAST => mutex(core, function, argument),
        DISABLE..=YIELD => preemption(core, function),
        _ => serve(core, function),
    }
}

/// Carries out what a guest says about preemption.
#[inline(never)]
fn preemption(core: &mut Pcpu, function: u32) {
    let answer = match function {
        service::YIELD => core.give_up_turn(),
        _ => core.hold_off(function == service::PREEMPT_DISABLE),
    };
    if let Some(vcpu) = core.loaded_mut() {
        vcpu.set_register(0, answer as u64);
    }
}

/// Carries a call about a mutex out.
#[inline(never)]
fn mutex(core: &mut Pcpu, function: u32, argument: u64) {
    let answer = match function {
        service::MUTEX_UNLOCK | service::MUTEX_ABANDON => {
            core.unlock_mutex(argument, function == service::MUTEX_ABANDON)
        }
        service::MUTEX_LOCK => core.lock_mutex(argument),
        service::MUTEX_TRYLOCK => core.try_lock_mutex(argument),
        service::MUTEX_CLOSE => core.close_mutex(argument),
        _ => return open_mutex(core, argument),
    };
    if let Some(vcpu) = core.loaded_mut() {
        vcpu.set_register(0, answer as u64);
    }
}

/// Lets a task of the caller use a mutex.
#[inline(never)]
fn open_mutex(core: &mut Pcpu, name: u64) {
    let Some(vcpu) = core.loaded() else { return bug!("a call without a loaded vCPU") };
    let (task, index) = (vcpu.register(2), vcpu.index() as u64);
    let answer = match core.open_mutex(name, task) {
        None => Answer::One(service::NOT_SUPPORTED),
        Some((shared, handle)) => {
            let structure = platform::STOLEN_BASE + index * platform::STOLEN_STRIDE;
            let byte = structure + platform::HOLDS_OFFSET + (handle & 0xff);
            Answer::Three(u64::from(shared), handle, byte)
        }
    };
    answer_with(core, answer);
}

/// Carries any other call out.
#[inline(never)]
fn serve(core: &mut Pcpu, function: u32) {
    let Some(vcpu) = core.loaded() else { return bug!("a call without a loaded vCPU") };
    let arguments = [1, 2, 3].map(|argument| vcpu.register(argument));
    let call = Call { function, arguments, vm: vcpu.vm(), index: vcpu.index() };
    if let Some(answer) = dispatch(core, &call) {
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
    let Some(vcpu) = core.loaded_mut() else { return bug!("an answer without a loaded vCPU") };
    let (results, count) = match answer {
        Answer::One(value) => ([value as u64, 0, 0, 0], 1),
        Answer::Two(a, b) => ([a, b, 0, 0], 2),
        Answer::Three(a, b, c) => ([a, b, c, 0], 3),
        Answer::Four(words) => (words.map(u64::from), 4),
    };
    for (register, &result) in results[..count].iter().enumerate().at_most::<4>() {
        vcpu.set_register(register, result);
    }
}

/// Carries a call out. Returns none if the caller does not go on, or has its results already.
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
        psci::SYSTEM_OFF => return stop_vm(core, call.vm, Message::VmsOff),
        psci::SYSTEM_RESET => return stop_vm(core, call.vm, Message::VmsReset),
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
        service::MARK_RT => core.mark_loaded(first),
        service::BOOST => core.boost(first, second, third),
        service::DEBOOST => core.boost(first, service::boost::NORMAL, 0),
        service::PREEMPTION_LINE => return Some(preemption_line(core, call)),
        service::MIGRATE | service::WHERE => return Some(placement(core, call)),
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

/// Returns the index in the VM of the sibling with this affinity.
fn sibling(core: &Pcpu, call: &Call, affinity: u64) -> Option<usize> {
    let count = u64::from(core.system().vm(call.vm).vcpu_count);
    (affinity < count.min(MAX_VCPUS_PER_VM as u64)).then_some(affinity as usize)
}

/// Returns the number in the system of the sibling with this index.
fn sibling_id(core: &Pcpu, call: &Call, index: usize) -> VcpuId {
    VcpuId::numbered(usize::from(core.system().vm(call.vm).vcpu_first) + index)
}

/// Answers where a vCPU is, or has it go elsewhere.
fn placement(core: &Pcpu, call: &Call) -> Answer {
    let [index, to, _] = call.arguments;
    if !core.moves_on_request(call.vm) {
        return Answer::One(service::NOT_SUPPORTED);
    }
    let Some(index) = sibling(core, call, index) else {
        return Answer::One(service::INVALID_PARAMETER);
    };
    let id = sibling_id(core, call, index);
    if call.function == service::WHERE {
        return Answer::Two(0, BOARD.find(id) as u64);
    }
    Answer::One(core.request_move(id, to))
}

fn cpu_on(core: &mut Pcpu, call: &Call, affinity: u64, pc: u64, x0: u64) -> i64 {
    let Some(index) = sibling(core, call, affinity) else { return psci::INVALID_PARAMETERS };
    let table = core.system().vm(call.vm);
    if !(table.ram_ipa..table.ram_ipa + table.ram_size).contains(&pc) {
        return psci::INVALID_ADDRESS;
    }
    let id = sibling_id(core, call, index);
    // Use the caller's epoch, not the VM's current one: a CPU_ON from before a reset must not
    // switch a vCPU on after it.
    let Some(epoch) = core.loaded().map(|vcpu| vcpu.epoch()) else {
        bug!("a CPU_ON without a loaded vCPU");
        return psci::INTERNAL_FAILURE;
    };
    match POWER[id.number()].request(Entry { pc, x0 }, epoch) {
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
    match POWER[sibling_id(core, call, index).number()].affinity() {
        Affinity::On => 0,
        Affinity::Off => 1,
        Affinity::OnPending => 2,
    }
}

/// Suspends the caller: every power state is a standby, so it goes on after the call when an
/// interrupt comes (DEN0022D, section 5.4.5).
fn cpu_suspend(core: &mut Pcpu) -> Option<Answer> {
    answer_with(core, Answer::One(psci::SUCCESS));
    core.wait_for_interrupt();
    None
}

fn cpu_off(core: &mut Pcpu) -> Option<Answer> {
    core.offline_loaded();
    None
}

fn stop_vm(core: &mut Pcpu, vm: usize, message: Message) -> Option<Answer> {
    core.stop_vm_of_loaded(vm, message);
    None
}

fn counter(core: &mut Pcpu, call: &Call) -> Answer {
    let [index, word, _] = call.arguments;
    let table = core.system().vm(call.vm);
    if index >= u64::from(table.vcpu_count) || word >= VcpuStatus::WORDS as u64 {
        return Answer::One(service::INVALID_PARAMETER);
    }
    let id = usize::from(table.vcpu_first) + index as usize;
    let now = timer::now().0;
    Answer::Two(0, status::current_word(core.system(), id, word as usize, now))
}

fn report_area(core: &Pcpu, call: &Call) -> Answer {
    match core.system().vm(call.vm).report_size {
        0 => Answer::One(service::NOT_SUPPORTED),
        size => Answer::Three(0, platform::REPORT_BASE, size),
    }
}

fn preemption_line(core: &Pcpu, call: &Call) -> Answer {
    match core.system().vm(call.vm).lines_pa {
        0 => Answer::One(service::NOT_SUPPORTED),
        _ => Answer::Two(0, platform::LINES_BASE + call.index as u64 * platform::LINE_STRIDE),
    }
}
