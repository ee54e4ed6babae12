//! The registers that control a GICv2's virtual CPU interface (IHI 0048B, section 5.3). The guest's own
//! (GICV) are in its memory, all but GICV_DIR: what a guest deactivates is counted nowhere and does
//! not trap by itself, so the page with that register is left out, and emulated.

use super::gich;
use crate::arch::memory::device::{read32, write32};
use vgic::interface::{ListRegister, MAX_LIST_REGISTERS};

const HCR: u64 = 0x000;
const VTR: u64 = 0x004;
const VMCR: u64 = 0x008;
const ELRSR: u64 = 0x030;
const APR: u64 = 0x0f0;
const LR: u64 = 0x100;

/// What an interface has more than the least.
#[derive(Clone, Copy)]
pub struct Extras {
    has_deferred_errors: bool,
}

impl Extras {
    /// `has_ras`: whether guests have a register of deferred virtual errors (FEAT_RAS).
    pub fn ask(has_ras: bool) -> Self {
        Self { has_deferred_errors: has_ras }
    }

    /// Returns true if guests have a register of deferred virtual errors.
    #[inline(always)]
    pub fn has_deferred_errors(self) -> bool {
        self.has_deferred_errors
    }

    /// Returns what makes a guest's deactivations trap: they always do.
    #[inline(always)]
    pub fn deactivation_trap(self) -> u64 {
        0
    }
}

/// How many list registers there are; of more than a GICv3 may have, as many.
pub fn count() -> usize {
    ((read32(gich(VTR)) & 0x3f) as usize + 1).min(MAX_LIST_REGISTERS)
}

/// The priorities of which a guest has an interrupt active: 32, of both groups.
#[derive(Clone, Default)]
pub struct ActivePriorities(u32);

impl ActivePriorities {
    /// Takes them off the hardware.
    #[inline(always)]
    pub fn save(&mut self, _extras: Extras) {
        self.0 = read32(gich(APR));
    }

    /// Puts them back.
    #[inline(always)]
    pub fn load(&self, _extras: Extras) {
        write32(gich(APR), self.0);
    }
}

/// Returns what controls the interface (GICH_HCR), which has what it has in common with
/// ICH_HCR_EL2 at the same places.
#[inline(always)]
pub fn control() -> u64 {
    read32(gich(HCR)).into()
}

/// Controls it.
#[inline(always)]
pub fn set_control(value: u64) {
    write32(gich(HCR), value as u32);
}

/// Returns what the guest has set (GICH_VMCR): masks and enables.
#[inline(always)]
pub fn guest_control() -> u64 {
    read32(gich(VMCR)).into()
}

/// Sets that for the guest.
#[inline(always)]
pub fn set_guest_control(value: u64) {
    write32(gich(VMCR), value as u32);
}

/// The list registers that hold nothing (GICH_ELRSR0).
#[inline(always)]
pub fn empty() -> u32 {
    read32(gich(ELRSR))
}

/// Reads a list register.
pub fn read_list(index: usize) -> ListRegister {
    ListRegister::from_v2(read32(gich(LR + 4 * index as u64)))
}

/// Writes one.
pub fn write_list(index: usize, value: ListRegister) {
    write32(gich(LR + 4 * index as u64), value.to_v2());
}
