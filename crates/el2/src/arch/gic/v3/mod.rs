//! A GICv3 (Arm IHI 0069).
//!
//! The distributor is configured once by the boot core; afterwards each core
//! touches only its own redistributor and CPU interface, so nothing here needs
//! a lock. (That is also why this is not a driver crate: those own the whole
//! GIC through one exclusive reference.)
//!
//! Interrupts are dropped and deactivated separately (ICC_CTLR_EL1.EOImode): a
//! guest's end of interrupt deactivates the physical one through its list
//! register.

pub mod common_group;
pub mod cpu_interface;
pub mod distributor;
pub mod list_registers;
pub mod redistributor;

use crate::arch::sysreg::read_sysreg;
use abi::system::Board;

/// Says where the board has the registers: the cores have them.
pub fn place(_board: &Board) {}

/// Returns what a guest may find out of this core's interface, so that it has to be the same wherever it goes
/// (ICH_VTR_EL2).
#[inline(always)]
pub fn kind() -> u64 {
    read_sysreg!("ich_vtr_el2")
}

/// Everything is in group 1.
pub const GROUP: u32 = u32::MAX;

/// Takes this core's interrupt interface for EL2, by the core's index and affinity.
///
/// # Errors
/// Says in words why it cannot be had as EL2 needs it.
pub fn check(board: &Board, index: usize, affinity: u64) -> Result<(), &'static str> {
    if !redistributor::serves(redistributor::frame(board, index), affinity) {
        return Err("a redistributor (gicr_pa, gicr_stride) is that of another core");
    }
    if !cpu_interface::claim() {
        return Err("a guest could switch this core's interrupt interface off");
    }
    if !board.pcpu_mpidr.into_iter().all(cpu_interface::reaches) {
        return Err("the interrupt controller has no range selector for affinities above 15");
    }
    Ok(())
}
