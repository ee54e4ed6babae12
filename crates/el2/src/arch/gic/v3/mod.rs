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

/// What [`claim`](cpu_interface::claim) refuses.
pub const UNCLAIMED: &str = "a guest could switch this core's interrupt interface off";
/// What [`reaches`](cpu_interface::reaches) refuses.
pub const UNREACHED: &str =
    "the interrupt controller has no range selector for affinities above 15";
/// What [`serves`](redistributor::Redistributor::serves) refuses.
pub const ANOTHERS: &str = "a redistributor (gicr_pa, gicr_stride) is that of another core";

/// Offsets that the distributor and the redistributors' SGI frames have alike.
mod offset {
    pub const IGROUPR: u64 = 0x0080;
    pub const ISENABLER: u64 = 0x0100;
    pub const ICENABLER: u64 = 0x0180;
    pub const ICPENDR: u64 = 0x0280;
    pub const ISACTIVER: u64 = 0x0300;
    pub const ICACTIVER: u64 = 0x0380;
    pub const IPRIORITYR: u64 = 0x0400;
    pub const ICFGR: u64 = 0x0c00;
}
