//! Where guests come in: exceptions, by kind.

use crate::arch::context::{self, Fault, Syndrome};
use crate::arch::sysreg::{ec, read_sysreg};
use crate::arch::{cpu, gic, timer};
use crate::pcpu::Pcpu;
use crate::vcpu::Cause;
use crate::{calls, console, mmio, traps};
use abi::status::Exit;

/// A physical interrupt while a guest ran.
pub extern "C" fn interrupt(core: &mut Pcpu) {
    enter(core, Exit::Interrupt);
    let intid = gic::acknowledge();
    core.take(intid);
    leave(core);
}

/// An instruction of the guest.
pub extern "C" fn synchronous(core: &mut Pcpu) {
    core.entered = timer::now();
    let syndrome = Syndrome::read();
    let cause = match syndrome.class() {
        ec::HVC64 => calls::hypervisor_call(core),
        ec::SMC64 => calls::secure_monitor_call(core),
        ec::WFX => wait(core, syndrome),
        ec::SYSREG => traps::system_register(core, syndrome),
        ec::DATA_ABORT => mmio::data_abort(core, syndrome),
        ec::INSTRUCTION_ABORT if syndrome.is_refused_fetch() && core.cross() => {
            leave(core);
            return;
        }
        ec::INSTRUCTION_ABORT => {
            deliver(core, Fault::Instruction(context::fault_addresses().0));
            Exit::Abort
        }
        ec::FP => {
            core.switch_float();
            Exit::Float
        }
        _ => {
            deliver(core, Fault::Undefined);
            Exit::Abort
        }
    };
    count(core, cause);
    leave(core);
}

/// A system error: the guest made some device or bus report one.
pub extern "C" fn serror(core: &mut Pcpu) {
    enter(core, Exit::Abort);
    fail(core, "system error (SError)");
    leave(core);
}

/// An exception from AArch32, which is not offered at EL1.
pub extern "C" fn unsupported(core: &mut Pcpu) {
    enter(core, Exit::Abort);
    fail(core, "AArch32 state, which is not offered");
    leave(core);
}

/// An exception at EL2 itself: a bug of ours. Says what it knows and stops.
pub extern "C" fn fatal(kind: u64) -> ! {
    console::emergency(format_args!(
        "hypervisor fault: vector {kind} esr {:#x} elr {:#x} (image at {:#x}) far {:#x}\n",
        read_sysreg!("esr_el2"),
        read_sysreg!("elr_el2"),
        crate::arch::boot::image_pa(),
        read_sysreg!("far_el2"),
    ));
    cpu::halt()
}

fn enter(core: &mut Pcpu, cause: Exit) {
    core.entered = timer::now();
    count(core, cause);
}

fn count(core: &mut Pcpu, cause: Exit) {
    if let Some(vcpu) = core.loaded.as_deref_mut() {
        vcpu.status.exits[cause as usize] += 1;
    }
}

/// Before a guest runs again.
fn leave(core: &mut Pcpu) {
    if core.reschedule {
        core.settle();
    }
    let stay = timer::now().since(core.entered).0;
    if let Some(vcpu) = core.loaded.as_deref_mut()
        && stay > vcpu.status.longest_el2
    {
        vcpu.status.longest_el2 = stay;
    }
}

/// WFI: the guest waits for an interrupt, unless one is there. WFE, where it
/// traps: it waits for another core, which may be a sibling here.
fn wait(core: &mut Pcpu, syndrome: Syndrome) -> Exit {
    /// TI: WFE.
    const EVENT: u64 = 1;
    context::skip_instruction();
    if syndrome.iss() & EVENT != 0 {
        core.yield_to_lock_holder();
    } else {
        wait_for_interrupt(core);
    }
    Exit::Wait
}

/// Puts the loaded vCPU to sleep if nothing is there to wake it.
pub fn wait_for_interrupt(core: &mut Pcpu) {
    if core.loaded.as_deref().is_some_and(|vcpu| vcpu.has_unlisted()) {
        core.with_interface(|interface, gic, hw| interface.sync(gic, hw));
    }
    if core.loaded_has_interrupt() {
        return;
    }
    core.loaded_sleeps();
}

/// Lets the guest take an exception, or stops its VM when it cannot.
#[inline(never)]
pub fn deliver(core: &mut Pcpu, fault: Fault) {
    if !context::inject(fault) {
        fail(core, "a fault on fetching its own exception vector");
    }
}

#[inline(never)]
fn fail(core: &mut Pcpu, what: &'static str) {
    let cause = Cause { what, syndrome: read_sysreg!("esr_el2"), address: read_sysreg!("far_el2") };
    core.fail_loaded(cause);
}
