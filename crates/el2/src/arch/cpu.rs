//! The core itself: its MMU, its controls, waiting.

use super::machine::instructions;
pub use super::machine::instructions::{forget_instructions, synchronize, wait_for_interrupt};
use super::sysreg::{CNTHCTL_COUNTER_ONLY, MDCR_TRAP_ALL, cptr, hcr, read_sysreg, write_sysreg};
use abi::system::stage1;

/// CurrentEL at EL2.
pub const CURRENT_EL2: u64 = 2 << 2;
/// SCTLR_EL2: RES1 bits, all else off.
pub const SCTLR_RES1: u64 = 0x30c5_0830;
/// SCTLR_EL2: MMU, caches, stack alignment check, write implies XN.
pub const SCTLR: u64 = SCTLR_RES1 | 1 << 0 | 1 << 2 | 1 << 3 | 1 << 12 | 1 << 19;
/// Walks are inner shareable and write-back cacheable.
const WALK_ATTRIBUTES: u64 = 1 << 8 | 1 << 10 | 3 << 12;
const TCR_RES1: u64 = 1 << 31 | 1 << 23;
/// TCR_EL2 without the size of physical addresses (PS).
pub const TCR: u64 = TCR_RES1 | stage1::T0SZ | WALK_ATTRIBUTES;
const VTCR_RES1: u64 = 1 << 31;
/// Stage 2 starts at level 1.
const VTCR_SL0_LEVEL1: u64 = 1 << 6;

/// Does something while this core translates EL2's addresses by another root, `other`.
///
/// EL2's regime has no ASIDs (HCR_EL2.E2H = 0), so nothing in the TLB says which root it is from.
/// On the way there nothing has to be forgotten, on the way back all is, before anything else is
/// done. No other core sees this one's entries (TTBR0_EL2.CnP = 0).
///
/// # Safety
/// As for `boot::enable_mmu`, for both. What `common`, the present root, maps, `other` maps by the same
/// tables; what `other` maps beyond that lies where `common` has invalid descriptors in the root
/// itself, of which TLBs hold nothing (DDI 0487, D8.16). `act` leaves with no access outstanding.
pub unsafe fn with_root(other: u64, common: u64, act: impl FnOnce()) {
    // SAFETY: by contract.
    unsafe { write_sysreg!("ttbr0_el2", other) };
    instructions::synchronize();
    act();
    // SAFETY: by contract.
    unsafe { write_sysreg!("ttbr0_el2", common) };
    instructions::forget_root();
}

/// Returns true if this core is at EL2 with its MMU on: elsewhere it cannot ask, and says only that.
#[must_use]
pub fn mmu_is_on() -> bool {
    const M: u64 = 1;
    is_at_el2() && read_sysreg!("sctlr_el2") & M != 0
}

/// Sets what stays the same for all guests of this core.
pub fn configure() {
    /// MDCR_EL2.HPMN: how many event counters EL1 has; none would be enough.
    const HPMN: u64 = 0x1f;
    let (counters, midr) = (read_sysreg!("mdcr_el2") & HPMN, read_sysreg!("midr_el1"));
    // SAFETY: these control what guests may do; EL2 itself is not affected.
    unsafe {
        write_sysreg!("hcr_el2", hcr::GUEST);
        write_sysreg!("cptr_el2", cptr::FP_TRAPPED);
        write_sysreg!("mdcr_el2", MDCR_TRAP_ALL | counters);
        write_sysreg!("hstr_el2", 0);
        // Guests are shown the OS lock as open, and only while it is do they step and hit breakpoints.
        write_sysreg!("oslar_el1", 0);
        write_sysreg!("cnthctl_el2", CNTHCTL_COUNTER_ONLY);
        write_sysreg!("cntvoff_el2", 0);
        write_sysreg!("vpidr_el2", midr);
        write_sysreg!("vtcr_el2", stage2_control());
    }
    super::monitors::configure();
    trap_newer_features();
    // What an earlier owner of these VMIDs may have left.
    instructions::forget_guest_translations();
}

/// Sets the controls that only newer cores have, where what stands there is the firmware's
/// otherwise: no guest reaches a register that EL2 does not switch. Features that are younger
/// than such a control are let through by a one in it, so zero traps them.
fn trap_newer_features() {
    /// MPAM2_EL2: EL1's accesses to MPAM1_EL1 and MPAM0_EL1 trap (DDI 0598, section 7.2.6).
    const MPAM_TRAPPED: u64 = 1 << 48 | 1 << 49;
    /// MPAMIDR_EL1.HAS_HCR.
    const HAS_HCR: u64 = 1 << 17;
    let (mmfr0, mmfr1) = (read_sysreg!("id_aa64mmfr0_el1"), read_sysreg!("id_aa64mmfr1_el1"));
    let (pfr0, pfr1) = (read_sysreg!("id_aa64pfr0_el1"), read_sysreg!("id_aa64pfr1_el1"));
    let fine_grained = field(mmfr0, 14);
    // MPAM, MPAM_frac.
    let partitions = field(pfr0, 10) | field(pfr1, 4) > 0;
    let virtual_partitions = partitions && read_sysreg!("s3_0_c10_c4_4") & HAS_HCR != 0;
    // SAFETY: these control what guests may do, and are written only where they exist.
    unsafe {
        // HCX.
        if field(mmfr1, 10) > 0 {
            write_sysreg!("s3_4_c1_c2_2", 0); // HCRX_EL2
        }
        // FGT.
        if fine_grained > 0 {
            write_sysreg!("s3_4_c1_c1_4", 0); // HFGRTR_EL2
            write_sysreg!("s3_4_c1_c1_5", 0); // HFGWTR_EL2
            write_sysreg!("s3_4_c1_c1_6", 0); // HFGITR_EL2
            write_sysreg!("s3_4_c3_c1_4", 0); // HDFGRTR_EL2
            write_sysreg!("s3_4_c3_c1_5", 0); // HDFGWTR_EL2
        }
        // FGT2.
        if fine_grained > 1 {
            write_sysreg!("s3_4_c3_c1_2", 0); // HFGRTR2_EL2
            write_sysreg!("s3_4_c3_c1_3", 0); // HFGWTR2_EL2
            write_sysreg!("s3_4_c3_c1_7", 0); // HFGITR2_EL2
            write_sysreg!("s3_4_c3_c1_0", 0); // HDFGRTR2_EL2
            write_sysreg!("s3_4_c3_c1_1", 0); // HDFGWTR2_EL2
        }
        if partitions {
            write_sysreg!("s3_4_c10_c5_0", MPAM_TRAPPED); // MPAM2_EL2
        }
        if virtual_partitions {
            write_sysreg!("s3_4_c10_c4_0", 0); // MPAMHCR_EL2
        }
    }
}

/// Returns the field of an identification register, of four bits each, with this number.
fn field(register: u64, number: u32) -> u64 {
    register >> (4 * number) & 0xf
}

/// Returns true if the core is at EL2.
pub fn is_at_el2() -> bool {
    read_sysreg!("currentel") == CURRENT_EL2
}

/// Returns true if HCR_EL2.E2H is set: registers of EL1 would be EL2's.
pub fn is_host() -> bool {
    const E2H: u64 = 1 << 34;
    read_sysreg!("hcr_el2") & E2H != 0
}

/// Returns the core's affinity, as MPIDR_EL1 has it.
pub fn affinity() -> u64 {
    read_sysreg!("mpidr_el1") & 0xff_00ff_ffff
}

/// Returns what a guest finds out about the core without EL2, and how much EL2 has to save of it.
pub fn own_properties() -> [u64; 5] {
    [
        read_sysreg!("midr_el1"),
        read_sysreg!("ctr_el0"),
        read_sysreg!("dczid_el0"),
        read_sysreg!("cntfrq_el0"),
        super::gic::kind(),
    ]
}

/// Returns true if the core has FEAT_RAS (ID_AA64PFR0_EL1.RAS).
pub fn has_ras() -> bool {
    field(read_sysreg!("id_aa64pfr0_el1"), 7) > 0
}

/// Controls the guests of this core from now on. `events`: WFE traps as long as no event is
/// there. `broadcast`: maintenance of caches and TLBs that guests mean for their core reaches all
/// cores, as it must where a vCPU finds on one core what it has left there before it was on
/// another one. Elsewhere no guest can disturb other cores so.
pub fn control_guests(events: bool, broadcast: bool) {
    let events = if events { hcr::TWE } else { 0 };
    let broadcast = if broadcast { hcr::BROADCAST } else { 0 };
    // SAFETY: these control what guests may do; EL2 itself is not affected.
    unsafe { write_sysreg!("hcr_el2", hcr::GUEST | events | broadcast) };
}

/// Returns how stage 2 translates: what VTCR_EL2 is, on every core.
#[inline(always)]
pub fn stage2_control() -> u64 {
    VTCR_RES1 | stage1::T0SZ | VTCR_SL0_LEVEL1 | WALK_ATTRIBUTES | physical_address_size() << 16
}

/// ID_AA64MMFR0_EL1.PARange, which VTCR_EL2.PS takes; 48 bits at
/// most, as larger needs another granule.
fn physical_address_size() -> u64 {
    (read_sysreg!("id_aa64mmfr0_el1") & 0xf).min(5)
}

/// Forgets the TLB entries of the current VMID on this core: two vCPUs of one
/// VM may use one ASID for different things (DDI 0487, D8.16).
pub fn flush_guest_tlb() {
    instructions::forget_stage1();
}

/// As [`flush_guest_tlb`], and what stage 2 said.
pub fn flush_guest_tlb_and_stage2() {
    instructions::forget_both_stages();
}

/// Returns true if stage 2 tells EL0 from EL1 (FEAT_XNX: ID_AA64MMFR1_EL1.XNX).
pub fn has_xnx() -> bool {
    field(read_sysreg!("id_aa64mmfr1_el1"), 7) > 0
}

/// Returns true if the core has instructions for SHA-256 (FEAT_SHA256: ID_AA64ISAR0_EL1.SHA2).
pub fn has_sha256() -> bool {
    field(read_sysreg!("id_aa64isar0_el1"), 3) > 0
}

/// Returns true if a physical interrupt waits to be taken (ISR_EL1.I or F).
pub fn interrupt_pending() -> bool {
    read_sysreg!("isr_el1") & 0xc0 != 0
}

/// Returns true if a system error waits to be taken (ISR_EL1.A). To be asked right after
/// [`interrupt_pending`] only: whatever reads that register passes for a look for interrupts where
/// paths are computed and measured.
pub fn error_pending() -> bool {
    read_sysreg!("isr_el1") & 1 << 8 != 0
}

/// Completes what this core has executed so far. Returns true if that has caused a system error,
/// which is over then; else the next guest would take it.
#[must_use]
pub fn ends_error() -> bool {
    instructions::complete_and_take_error()
}

/// Stops this core for good.
pub fn halt() -> ! {
    loop {
        wait_for_interrupt();
    }
}
