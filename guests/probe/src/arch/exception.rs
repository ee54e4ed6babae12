//! What happens on an exception: an interrupt is served, a fault that a test
//! provoked is noted, anything else ends the run with a register report.

use super::{fault, loads, sysreg};
use aarch64_rt::{ExceptionHandlers, RegisterStateRef, exception_handlers};

struct Handlers;
exception_handlers!(Handlers);

impl ExceptionHandlers for Handlers {
    extern "C" fn sync_current(mut state: RegisterStateRef) {
        let Some(resume) = fault::caught(state.elr as u64, state.sp) else {
            unexpected("synchronous exception", &state);
        };
        // SAFETY: A test armed the trap right before this very instruction and
        // says where it goes on; no other register changes.
        unsafe { state.get_mut().elr = resume as usize };
    }

    extern "C" fn irq_current(mut state: RegisterStateRef) {
        crate::irq::serve();
        if let Some(resume) = loads::given_up(state.elr as u64) {
            // SAFETY: What called the instruction expects it to have any effect, or none; a return follows it.
            unsafe { state.get_mut().elr = resume as usize };
        }
    }

    extern "C" fn fiq_current(state: RegisterStateRef) {
        unexpected("FIQ", &state);
    }

    extern "C" fn serror_current(state: RegisterStateRef) {
        unexpected("SError", &state);
    }

    extern "C" fn sync_lower(state: RegisterStateRef) {
        unexpected("synchronous exception from EL0", &state);
    }

    extern "C" fn irq_lower(state: RegisterStateRef) {
        unexpected("IRQ from EL0", &state);
    }

    extern "C" fn fiq_lower(state: RegisterStateRef) {
        unexpected("FIQ from EL0", &state);
    }

    extern "C" fn serror_lower(state: RegisterStateRef) {
        unexpected("SError from EL0", &state);
    }
}

fn unexpected(what: &str, state: &RegisterStateRef) -> ! {
    let (esr, far) = (sysreg::read::esr_el1(), sysreg::read::far_el1());
    crate::console::force(format_args!(
        "EXCEPTION {what} on vCPU {}: ESR {esr:#x} FAR {far:#x} ELR {:#x} SPSR {:#x}\n",
        super::cpu::index(),
        state.elr,
        state.spsr
    ));
    for (number, value) in state.registers.iter().enumerate() {
        crate::console::force(format_args!("  x{number:<2} {value:#018x}\n"));
    }
    crate::console::force(format_args!("  x29 {:#018x}\n  x30 {:#018x}\n", state.fp, state.sp));
    crate::suite::abort(format_args!("unexpected {what}, ESR {esr:#x}"))
}
