//! Barriers, waiting, TLB and instruction cache maintenance.

use core::arch::asm;

/// Orders what comes before for the instructions that come after.
#[inline(always)]
pub fn synchronize() {
    // SAFETY: a barrier.
    unsafe { asm!("isb", options(nostack, preserves_flags)) };
}

/// Waits until what comes before is complete: memory accesses, cache
/// maintenance, reads of the interrupt controller's registers.
#[inline(always)]
pub fn complete() {
    // SAFETY: a barrier.
    unsafe { asm!("dsb sy", options(nostack, preserves_flags)) };
}

/// Waits until what comes before is complete, and takes a system error that it has caused, or that
/// pended before (DDI 0487, D1.3.6: ESB, which does nothing without FEAT_RAS). Returns true if there was
/// one. A write that is answered early, as Device-nGnRE memory allows, causes none later: the answer is
/// what would tell of it.
///
/// Errors are masked at EL2 but for these instructions, so their exception vector has nothing to do but
/// to mask them again. As they are not masked here, ESB defers none.
#[inline(always)]
pub fn complete_and_take_error() -> bool {
    let taken: u64;
    // SAFETY: the vector changes X0, to what is not zero; the registers of the guest's exception are
    // put back.
    unsafe {
        asm!(
            "mrs {elr}, elr_el2", "mrs {spsr}, spsr_el2", "mov x0, xzr",
            "msr daifclr, #4", "dsb sy", "hint #16", "isb", "msr daifset, #4",
            "msr elr_el2, {elr}", "msr spsr_el2, {spsr}",
            elr = out(reg) _, spsr = out(reg) _, out("x0") taken,
            options(nostack, preserves_flags)
        );
    }
    taken != 0
}

/// Makes earlier writes visible to the other cores.
#[inline(always)]
pub fn publish() {
    // SAFETY: a barrier.
    unsafe { asm!("dsb ishst", options(nostack, preserves_flags)) };
}

/// Lets cores go on that wait for an event.
#[cfg(feature = "spin-table")]
pub fn send_event() {
    // SAFETY: it changes nothing.
    unsafe { asm!("sev", options(nostack, preserves_flags)) };
}

/// Waits until an interrupt is pending, masked or not. Registers that are read afterwards show
/// what was written before.
#[inline(always)]
pub fn wait_for_interrupt() {
    // SAFETY: no memory is touched; the barrier lets others see what we wrote.
    unsafe { asm!("dsb sy", "wfi", "isb", options(nostack)) };
}

/// Forgets all instructions, on every core.
#[inline(always)]
pub fn forget_instructions() {
    // SAFETY: dropping cached instructions is always sound.
    unsafe { asm!("ic ialluis", "dsb ish", "isb", options(nostack)) };
}

/// Forgets what this core's TLB holds for EL2, and what it has by the root of before.
#[inline(always)]
pub fn forget_root() {
    // The first barrier: from there on no walk begins at that root, the TLB is filled by none.
    // SAFETY: dropping translations is always sound.
    unsafe { asm!("isb", "tlbi alle2", "dsb nsh", "isb", options(nostack)) };
}

/// Forgets what this core's TLB holds for guests.
#[inline(always)]
pub fn forget_guest_translations() {
    // SAFETY: dropping translations is always sound.
    unsafe { asm!("isb", "tlbi alle1", "dsb nsh", "isb", options(nostack)) };
}

/// Forgets the present guest's stage-1 translations on this core.
#[inline(always)]
pub fn forget_stage1() {
    // SAFETY: dropping translations is always sound.
    unsafe { asm!("isb", "tlbi vmalle1", "dsb nsh", "isb", options(nostack)) };
}

/// Forgets the present guest's translations of both stages on this core.
#[inline(always)]
pub fn forget_both_stages() {
    // SAFETY: dropping translations is always sound.
    unsafe { asm!("isb", "tlbi vmalls12e1", "dsb nsh", "isb", options(nostack)) };
}

/// Forgets the present guest's translations of both stages, on every core.
#[inline(always)]
pub fn forget_both_stages_everywhere() {
    // SAFETY: dropping translations is always sound.
    unsafe { asm!("isb", "tlbi vmalls12e1is", "dsb ish", "isb", options(nostack)) };
}

/// Clears what a guest reads as DISR_EL1 (VDISR_EL2), which only cores with FEAT_RAS have.
#[inline(always)]
pub fn clear_deferred_error() {
    // SAFETY: a guest's own register; no memory is touched.
    unsafe { asm!("msr s3_4_c12_c1_1, xzr", options(nomem, nostack, preserves_flags)) };
}
