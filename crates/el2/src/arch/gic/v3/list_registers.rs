//! The registers that control a GICv3's virtual CPU interface (IHI 0069H, section 12.4).

use crate::arch::sysreg::{read_sysreg, write_sysreg};
use vgic::interface::ListRegister;

/// ICH_HCR_EL2.TC: registers that concern both groups trap, ICC_DIR_EL1 among them.
const HCR_TC: u64 = 1 << 10;
const HCR_TDIR: u64 = 1 << 14;

/// What an interface has more than the least: the bits below.
#[derive(Clone, Copy)]
pub struct Extras(usize);

impl Extras {
    /// Active priorities have a second register in each group.
    const SECOND_PRIORITIES: usize = 1 << 0;
    /// They have four; the second are set too.
    const ALL_PRIORITIES: usize = 1 << 1;
    /// Guests have a register of deferred virtual errors (FEAT_RAS).
    const DEFERRED_ERRORS: usize = 1 << 2;
    /// ICC_DIR_EL1 traps by itself (ICH_VTR_EL2.TDS), which it does not on Armv8.0 cores.
    const TRAPS_DIR: usize = 1 << 3;

    /// Asks the hardware; `has_ras`: whether guests have a register of deferred virtual errors.
    pub fn ask(has_ras: bool) -> Self {
        let vtr = read_sysreg!("ich_vtr_el2");
        let preemption_bits = (vtr >> 26 & 7) + 1;
        let extra = |there: bool, bit| if there { bit } else { 0 };
        Self(
            extra(preemption_bits > 5, Self::SECOND_PRIORITIES)
                | extra(preemption_bits > 6, Self::ALL_PRIORITIES)
                | extra(has_ras, Self::DEFERRED_ERRORS)
                | extra(vtr >> 19 & 1 == 1, Self::TRAPS_DIR),
        )
    }

    /// Returns true if guests have a register of deferred virtual errors.
    #[inline(always)]
    pub fn has_deferred_errors(self) -> bool {
        self.0 & Self::DEFERRED_ERRORS != 0
    }

    /// Returns what makes a guest's deactivations trap (ICH_HCR_EL2).
    #[inline(always)]
    pub fn deactivation_trap(self) -> u64 {
        if self.0 & Self::TRAPS_DIR != 0 { HCR_TDIR } else { HCR_TC }
    }
}

/// How many list registers there are.
pub fn count() -> usize {
    (read_sysreg!("ich_vtr_el2") & 0x1f) as usize + 1
}

/// The priorities of which a guest has an interrupt active, by group.
#[derive(Clone, Default)]
pub struct ActivePriorities([[u64; 4]; 2]);

impl ActivePriorities {
    /// Takes them off the hardware.
    #[inline(always)]
    pub fn save(&mut self, extras: Extras) {
        let [group0, group1] = &mut self.0;
        group0[0] = read_sysreg!("ich_ap0r0_el2");
        group1[0] = read_sysreg!("ich_ap1r0_el2");
        if extras.0 & Extras::SECOND_PRIORITIES != 0 {
            group0[1] = read_sysreg!("ich_ap0r1_el2");
            group1[1] = read_sysreg!("ich_ap1r1_el2");
            if extras.0 & Extras::ALL_PRIORITIES != 0 {
                group0[2] = read_sysreg!("ich_ap0r2_el2");
                group0[3] = read_sysreg!("ich_ap0r3_el2");
                group1[2] = read_sysreg!("ich_ap1r2_el2");
                group1[3] = read_sysreg!("ich_ap1r3_el2");
            }
        }
    }

    /// Puts them back.
    #[inline(always)]
    pub fn load(&self, extras: Extras) {
        let [group0, group1] = &self.0;
        // SAFETY: what the guest that runs next sees; EL2 takes no virtual
        // interrupts.
        unsafe {
            write_sysreg!("ich_ap0r0_el2", group0[0]);
            write_sysreg!("ich_ap1r0_el2", group1[0]);
            if extras.0 & Extras::SECOND_PRIORITIES != 0 {
                write_sysreg!("ich_ap0r1_el2", group0[1]);
                write_sysreg!("ich_ap1r1_el2", group1[1]);
                if extras.0 & Extras::ALL_PRIORITIES != 0 {
                    write_sysreg!("ich_ap0r2_el2", group0[2]);
                    write_sysreg!("ich_ap0r3_el2", group0[3]);
                    write_sysreg!("ich_ap1r2_el2", group1[2]);
                    write_sysreg!("ich_ap1r3_el2", group1[3]);
                }
            }
        }
    }
}

/// Returns what controls the interface (ICH_HCR_EL2).
#[inline(always)]
pub fn control() -> u64 {
    read_sysreg!("ich_hcr_el2")
}

/// Controls it.
#[inline(always)]
pub fn set_control(value: u64) {
    // SAFETY: which maintenance interrupts come, all of which EL2 handles, and what traps; EL2 takes no
    // virtual interrupts.
    unsafe { write_sysreg!("ich_hcr_el2", value) };
}

/// Returns what the guest has set (ICH_VMCR_EL2): masks and enables.
#[inline(always)]
pub fn guest_control() -> u64 {
    read_sysreg!("ich_vmcr_el2")
}

/// Sets that for the guest.
#[inline(always)]
pub fn set_guest_control(value: u64) {
    // SAFETY: what the guest that runs next sees.
    unsafe { write_sysreg!("ich_vmcr_el2", value) };
}

/// The list registers that hold nothing (ICH_ELRSR_EL2), as of the latest context synchronization
/// (DDI 0487, K1.2.1): one that was filled since would pass for one that the guest has emptied.
#[inline(always)]
pub fn empty() -> u32 {
    read_sysreg!("ich_elrsr_el2") as u32
}

macro_rules! list_registers {
    ($($index:literal = $name:literal),*) => {
        /// Reads a list register.
        pub fn read_list(index: usize) -> ListRegister {
            ListRegister(match index { $($index => read_sysreg!($name),)* _ => 0 })
        }

        /// Writes one.
        pub fn write_list(index: usize, value: ListRegister) {
            // SAFETY: an interrupt for the guest that is loaded.
            unsafe { match index { $($index => write_sysreg!($name, value.0),)* _ => {} } }
        }
    };
}

list_registers! {
    0 = "ich_lr0_el2", 1 = "ich_lr1_el2", 2 = "ich_lr2_el2", 3 = "ich_lr3_el2",
    4 = "ich_lr4_el2", 5 = "ich_lr5_el2", 6 = "ich_lr6_el2", 7 = "ich_lr7_el2",
    8 = "ich_lr8_el2", 9 = "ich_lr9_el2", 10 = "ich_lr10_el2", 11 = "ich_lr11_el2",
    12 = "ich_lr12_el2", 13 = "ich_lr13_el2", 14 = "ich_lr14_el2", 15 = "ich_lr15_el2"
}
