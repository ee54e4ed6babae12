//! Where a core begins, and its stack.

use super::machine;
use super::registers::{Register, TTBR0_EL2};
use crate::arch::cpu;

/// `boot!(start)`: where each core begins.
macro_rules! boot {
    ($start:path) => {
        const _: extern "C-unwind" fn(usize) -> ! = $start;
    };
}
pub(crate) use boot;

const TCR: Register = Register::named("tcr_el2");
const SCTLR: Register = Register::named("sctlr_el2");

/// Where the hypervisor would lie.
pub fn image_pa() -> u64 {
    machine::with(|machine| machine.board.hypervisor_pa)
}

/// Turns the MMU of the core on that executes.
///
/// # Safety
/// As on hardware; here, none is needed.
pub unsafe fn enable_mmu(root: u64) {
    machine::with(|machine| {
        machine.core_mut().registers[TTBR0_EL2.0] = root;
        machine.core_mut().registers[TCR.0] = cpu::TCR;
        machine.core_mut().registers[SCTLR.0] = cpu::SCTLR;
    });
}

/// The word on top of a core's stack.
pub fn stack_top(index: usize) -> *mut u64 {
    machine::with(|machine| &raw mut machine.cores[index].stack_top)
}
