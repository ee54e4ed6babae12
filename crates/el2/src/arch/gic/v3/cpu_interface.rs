//! A core's physical CPU interface: taking interrupts, masking them, ringing.

use crate::arch::gic::MASK_NOTHING;
use crate::arch::machine::instructions;
use crate::arch::sysreg::{read_sysreg, write_sysreg};

/// Makes the interface one of system registers, for EL2 and for guests. Returns false if a
/// guest could undo that, for all guests of this core: its accesses to ICC_SRE_EL1 do not trap,
/// and SRE can be cleared there, as on cores that have a GICv2's interface too (IHI 0069,
/// section 12.7, ICC_SRE_EL1 and ICC_SRE_EL2). Interrupts must be masked.
#[must_use]
pub fn claim() -> bool {
    /// ICC_SRE_ELx: SRE, DFB, DIB. In ICC_SRE_EL2, Enable stays clear: EL1's accesses trap.
    const SRE: u64 = 0x7;
    /// ICC_SRE_EL2.Enable, which some cores have fixed at one.
    const ENABLE: u64 = 1 << 3;
    let enable = |sre: u64| {
        // SAFETY: this core's physical CPU interface, which nothing uses meanwhile, as
        // interrupts are masked.
        unsafe { write_sysreg!("icc_sre_el1", sre) };
        instructions::synchronize();
        read_sysreg!("icc_sre_el1") & 1 == 1
    };
    // SAFETY: as above.
    unsafe { write_sysreg!("icc_sre_el2", SRE) };
    instructions::synchronize();
    let traps = read_sysreg!("icc_sre_el2") & ENABLE == 0;
    let stays = traps || enable(0);
    enable(SRE) && stays
}

/// Switches the interface on, which was [claimed](claim): everything comes, priority drop and
/// deactivation are two steps.
pub fn start() {
    const EOI_MODE: u64 = 1 << 1;
    /// Priority bits that are implemented, less one.
    const PRIORITY_BITS: u64 = 0b111;
    let bits = read_sysreg!("icc_ctlr_el1") >> 8 & PRIORITY_BITS;
    // SAFETY: this core's physical CPU interface, which guests cannot reach.
    unsafe {
        // What a boot loader has taken and not ended would keep the rest waiting.
        write_sysreg!("icc_ap1r0_el1", 0);
        if bits > 4 {
            write_sysreg!("icc_ap1r1_el1", 0);
        }
        if bits > 5 {
            write_sysreg!("icc_ap1r2_el1", 0);
            write_sysreg!("icc_ap1r3_el1", 0);
        }
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

/// Returns true if [`ring`] reaches the core of this affinity: those above 15 of a cluster only
/// with a range selector (ICC_CTLR_EL1.RSS).
pub fn reaches(affinity: u64) -> bool {
    const RANGE_SELECTOR: u64 = 1 << 18;
    affinity & 0xf0 == 0 || read_sysreg!("icc_ctlr_el1") & RANGE_SELECTOR != 0
}

/// Interrupts another core, or this one.
pub fn ring(bell: u64, doorbell: u32) {
    instructions::publish();
    // SAFETY: raises an interrupt that every core of ours handles.
    unsafe { write_sysreg!("icc_sgi1r_el1", bell | u64::from(doorbell) << 24) };
    instructions::synchronize();
}
