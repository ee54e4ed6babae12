//! Single instructions that have no memory-safety consequence.

use core::arch::asm;

macro_rules! instructions {
    ($($(#[$doc:meta])* $name:ident = $($text:literal),+;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub fn $name() {
            // SAFETY: The instruction changes no memory and no register that
            // Rust relies on; without `nomem` it also orders memory accesses
            // for the compiler.
            unsafe { asm!($($text),+, options(nostack, preserves_flags)) }
        }
    )*};
}

instructions! {
    /// Sleeps until an interrupt is pending, masked or not.
    wfi = "dsb sy", "wfi";
    /// Waits for an event.
    wfe = "wfe";
    /// Sends an event.
    sev = "sev";
    /// Tells that this is a spin loop.
    yield_hint = "yield";
    /// Masks IRQ.
    mask_irq = "msr daifset, #2";
    /// Unmasks IRQ, and lets a pending one in.
    unmask_irq = "msr daifclr, #2", "isb";
    /// Masks breakpoints, watchpoints and steps.
    mask_debug = "msr daifset, #8";
    /// Unmasks breakpoints, watchpoints and steps.
    unmask_debug = "msr daifclr, #8", "isb";
    /// Masks everything that can be masked.
    mask_all = "msr daifset, #15";
    /// Waits until all memory accesses before it are complete.
    dsb = "dsb sy";
    /// Makes changes to the context visible to what follows.
    isb = "isb";
    /// Invalidates this vCPU's stage-1 translations.
    tlbi_vmalle1 = "dsb sy", "tlbi vmalle1", "dsb sy", "isb";
    /// Invalidates the instruction caches.
    ic_iallu = "ic iallu", "dsb sy", "isb";
}

/// This vCPU's index: affinity level 0, see [`abi::system::Vcpu::index`].
#[inline(always)]
pub fn index() -> usize {
    (super::sysreg::read::mpidr_el1() & 0xff) as usize
}

/// Whether an IRQ is pending at this vCPU, masked or not.
#[inline(always)]
pub fn irq_pending() -> bool {
    super::sysreg::read::isr_el1() & 1 << 7 != 0
}

/// Runs `body` with IRQ masked and restores the mask.
pub fn without_irq<T>(body: impl FnOnce() -> T) -> T {
    let daif = super::sysreg::read::daif();
    mask_irq();
    let result = body();
    if daif & 1 << 7 == 0 {
        unmask_irq();
    }
    result
}

/// Cleans and invalidates a data cache line by set and way; a hypervisor may
/// trap it.
pub fn dc_cisw(set_way: u64) {
    // SAFETY: Clean and invalidate loses no data.
    unsafe { asm!("dc cisw, {0}", "dsb sy", in(reg) set_way, options(nostack, preserves_flags)) }
}

/// Makes a line of memory visible to instruction fetch, once the instruction caches are empty.
pub fn clean_to_unification(address: u64) {
    // SAFETY: Cleaning changes no memory.
    unsafe { asm!("dc cvau, {0}", in(reg) address, options(nostack, preserves_flags)) }
}

/// Ends interrupt `intid` 31 times, as fast as it goes: without a barrier between them.
#[cfg(feature = "gic-v2")]
pub fn end_in_a_burst(intid: u64) {
    (0..31).for_each(|_| super::sysreg::write::icc_eoir1_el1(intid));
}

/// Ends interrupt `intid` 31 times, as fast as it goes: without a barrier between them.
#[cfg(not(feature = "gic-v2"))]
pub fn end_in_a_burst(intid: u64) {
    // SAFETY: No interrupt is in service that this program would have to end.
    unsafe {
        asm!(
            ".rept 31",
            "msr icc_eoir1_el1, {0}",
            ".endr",
            "isb",
            in(reg) intid,
            options(nostack, preserves_flags)
        );
    }
}
