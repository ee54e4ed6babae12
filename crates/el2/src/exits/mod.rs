//! Exits: exceptions from guests, by kind.

mod hypercall;
mod mmio;
mod sysreg;

pub use sysreg::identification;

use crate::arch::context::{self, Fault, Syndrome};
#[cfg(any(test, feature = "smmu"))]
use crate::arch::smmu;
use crate::arch::sysreg::{ec, read_sysreg};
use crate::arch::{gic, vectors};
use crate::parts::Cause;
use crate::pcpu::Pcpu;
use crate::pcpu::console;
#[cfg(any(test, feature = "smmu"))]
use crate::tables;
use abi::status::Exit;

vectors::vectors! {
    for Pcpu,
    synchronous: synchronous,
    interrupt: interrupt,
    serror: serror,
    unsupported: unsupported,
    fatal: fatal,
}

/// Handles a physical interrupt that came while a guest ran.
pub extern "C-unwind" fn interrupt(core: &mut Pcpu) {
    enter(core, Exit::Interrupt);
    let intid = gic::acknowledge();
    core.take(intid);
    core.end_stay();
}

/// Handles an exception that an instruction of the guest caused.
pub extern "C-unwind" fn synchronous(core: &mut Pcpu) {
    core.begin_stay();
    let syndrome = Syndrome::read();
    let cause = match syndrome.class() {
        ec::HVC64 => hypercall::hypervisor_call(core),
        ec::SMC64 => hypercall::secure_monitor_call(core, syndrome),
        ec::WFX => wait(core, syndrome),
        ec::SYSREG => sysreg::system_register(core, syndrome),
        ec::DATA_ABORT => mmio::data_abort(core, syndrome),
        ec::INSTRUCTION_ABORT if syndrome.is_refused_fetch() && core.view_fault() => {
            core.end_stay();
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
    core.count_exit(cause);
    core.end_stay();
}

/// Handles a system error, which is taken to be the guest's.
pub extern "C-unwind" fn serror(core: &mut Pcpu) {
    enter(core, Exit::Abort);
    fail(core, "system error (SError)");
    core.end_stay();
}

/// Handles an exception from AArch32, which is not offered at EL1.
pub extern "C-unwind" fn unsupported(core: &mut Pcpu) {
    enter(core, Exit::Abort);
    fail(core, "AArch32 state, which is not offered");
    core.end_stay();
}

/// Reports an exception at EL2 itself, which is a bug, and stops; but for that with which the first access to
/// an SMMU ends that is not there.
pub extern "C-unwind" fn fatal(kind: u64) -> ! {
    #[cfg(any(test, feature = "smmu"))]
    if smmu::has(tables::find(), read_sysreg!("far_el2")) {
        console::refuse(format_args!("{}", console::Text::new(smmu::SILENT)));
    }
    console::stop(format_args!(
        "vector {kind} esr {:#x} elr {:#x} (image at {:#x}) far {:#x}",
        read_sysreg!("esr_el2"),
        read_sysreg!("elr_el2"),
        crate::arch::boot::image_pa(),
        read_sysreg!("far_el2"),
    ))
}

fn enter(core: &mut Pcpu, cause: Exit) {
    core.begin_stay();
    core.count_exit(cause);
}

/// Handles WFI: the guest sleeps until there is an interrupt. Handles WFE, where it traps:
/// the guest waits for another core, which may be a sibling on this core.
fn wait(core: &mut Pcpu, syndrome: Syndrome) -> Exit {
    /// TI: WFE.
    const EVENT: u64 = 1;
    context::skip_instruction(syndrome);
    if syndrome.iss() & EVENT != 0 {
        core.yield_to_lock_holder();
    } else {
        core.wait_for_interrupt();
    }
    Exit::Wait
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
