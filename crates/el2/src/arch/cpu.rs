//! The core itself: its MMU, its controls, waiting.

use super::machine::instructions;
pub use super::machine::instructions::{forget_instructions, wait_for_interrupt};
use super::sysreg::{CNTHCTL_COUNTER_ONLY, MDCR_TRAP_ALL, cptr, hcr, read_sysreg, write_sysreg};
use abi::system::stage1;

/// SCTLR_EL2: RES1 bits, MMU, caches, stack alignment check, write implies XN.
const SCTLR: u64 = 0x30c5_0830 | 1 << 0 | 1 << 2 | 1 << 3 | 1 << 12 | 1 << 19;
/// Walks are inner shareable and write-back cacheable.
const WALK_ATTRIBUTES: u64 = 1 << 8 | 1 << 10 | 3 << 12;
const TCR_RES1: u64 = 1 << 31 | 1 << 23;
const VTCR_RES1: u64 = 1 << 31;
/// Stage 2 starts at level 1.
const VTCR_SL0_LEVEL1: u64 = 1 << 6;

/// Turns the MMU on with the tables the host built.
///
/// # Safety
/// `root` is a valid stage-1 table that maps the running code, its stack and
/// its data at their own addresses.
pub unsafe fn enable_mmu(root: u64) {
    let size = physical_address_size();
    // SAFETY: by contract the mapping is an identity one, so nothing moves; the
    // barriers order the change before the next access.
    unsafe {
        write_sysreg!("mair_el2", stage1::MAIR);
        write_sysreg!("tcr_el2", TCR_RES1 | stage1::T0SZ | WALK_ATTRIBUTES | size << 16);
        write_sysreg!("ttbr0_el2", root);
        instructions::forget_own_translations();
        write_sysreg!("sctlr_el2", SCTLR);
    }
    instructions::synchronize();
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
        write_sysreg!("cnthctl_el2", CNTHCTL_COUNTER_ONLY);
        write_sysreg!("cntvoff_el2", 0);
        write_sysreg!("vpidr_el2", midr);
        write_sysreg!(
            "vtcr_el2",
            VTCR_RES1
                | stage1::T0SZ
                | VTCR_SL0_LEVEL1
                | WALK_ATTRIBUTES
                | physical_address_size() << 16
        );
    }
    // What an earlier owner of these VMIDs may have left.
    instructions::forget_guest_translations();
}

/// From now on WFE traps on this core, as long as no event is there.
pub fn trap_wait_for_event() {
    // SAFETY: a trap control.
    unsafe { write_sysreg!("hcr_el2", hcr::GUEST | hcr::TWE) };
}

/// ID_AA64MMFR0_EL1.PARange, which TCR_EL2.PS and VTCR_EL2.PS take; 48 bits at
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

/// Whether stage 2 tells EL0 from EL1 (FEAT_XNX: ID_AA64MMFR1_EL1.XNX).
pub fn has_xnx() -> bool {
    read_sysreg!("id_aa64mmfr1_el1") >> 28 & 0xf != 0
}

/// Whether a physical interrupt waits to be taken (ISR_EL1.I or F).
pub fn interrupt_pending() -> bool {
    read_sysreg!("isr_el1") & 0xc0 != 0
}

/// Stops this core for good.
pub fn halt() -> ! {
    loop {
        wait_for_interrupt();
    }
}
