//! A core's physical CPU interface: taking interrupts, masking them, ringing.

use crate::arch::gic::MASK_NOTHING;
use crate::arch::machine::instructions;
use crate::arch::sysreg::{read_sysreg, write_sysreg};

/// Switches the interface on: everything comes, priority drop and deactivation
/// are two steps.
pub(super) fn start() {
    /// SRE, DFB, DIB, and EL1 may use it too.
    const SRE: u64 = 0xf;
    const EOI_MODE: u64 = 1 << 1;
    // SAFETY: this core's physical CPU interface, which guests cannot reach.
    unsafe {
        write_sysreg!("icc_sre_el2", SRE);
        instructions::synchronize();
        write_sysreg!("icc_sre_el1", 0x7);
        write_sysreg!("icc_pmr_el1", MASK_NOTHING);
        write_sysreg!("icc_bpr1_el1", 0);
        write_sysreg!("icc_ctlr_el1", EOI_MODE);
        write_sysreg!("icc_igrpen1_el1", 1);
    }
    instructions::synchronize();
}

/// Acknowledges the most urgent interrupt; [`super::super::SPECIAL`] and above:
/// none.
pub fn acknowledge() -> u32 {
    let intid = read_sysreg!("icc_iar1_el1");
    // What a doorbell's sender wrote before it is read after this, which the read of a
    // register alone does not promise (Arm IHI 0069, section 4.4.1, of ICC_IAR1_EL1).
    instructions::complete();
    intid as u32 & 0xff_ffff
}

/// Lets interrupts of its priority come again.
pub fn drop_priority(intid: u32) {
    // SAFETY: ends what `acknowledge` began.
    unsafe { write_sysreg!("icc_eoir1_el1", u64::from(intid)) };
}

/// Lets this interrupt come again.
pub fn deactivate(intid: u32) {
    // SAFETY: ends what `acknowledge` began.
    unsafe { write_sysreg!("icc_dir_el1", u64::from(intid)) };
}

/// Chooses which interrupts stay pending.
pub fn set_mask(mask: u64) {
    // SAFETY: this core's physical priority mask.
    unsafe { write_sysreg!("icc_pmr_el1", mask) };
}

/// Returns how [`ring`] names the core of this affinity (ICC_SGI1R_EL1).
pub const fn bell(affinity: u64) -> u64 {
    let (aff0, aff1) = (affinity & 0xff, affinity >> 8 & 0xff);
    let (aff2, aff3) = (affinity >> 16 & 0xff, affinity >> 32 & 0xff);
    aff3 << 48 | aff2 << 32 | aff1 << 16 | (aff0 >> 4) << 44 | 1 << (aff0 & 0xf)
}

/// Interrupts another core, or this one.
pub fn ring(bell: u64, doorbell: u32) {
    instructions::publish();
    // SAFETY: raises an interrupt that every core of ours handles.
    unsafe { write_sysreg!("icc_sgi1r_el1", bell | u64::from(doorbell) << 24) };
    instructions::synchronize();
}
