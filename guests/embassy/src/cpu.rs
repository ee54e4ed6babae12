//! The core: its counter, its timer, its interrupt mask.

use core::arch::asm;

/// CNTV_CTL_EL0.ENABLE.
const ENABLE: u64 = 1;

/// Reads the virtual counter, in ticks; no earlier than the instructions before.
pub fn counter() -> u64 {
    let ticks;
    // SAFETY: it reads a register that may be read at EL1.
    unsafe { asm!("isb", "mrs {}, cntvct_el0", out(reg) ticks, options(nostack)) };
    ticks
}

/// Reads how many ticks a second has.
pub fn counter_hz() -> u64 {
    let hz;
    // SAFETY: it reads a register that may be read at EL1.
    unsafe { asm!("mrs {}, cntfrq_el0", out(reg) hz, options(nomem, nostack, preserves_flags)) };
    hz
}

/// Lets the virtual timer fire when the counter is at `ticks`, or never.
pub fn set_timer(ticks: Option<u64>) {
    let (compare, control) = ticks.map_or((u64::MAX, 0), |ticks| (ticks, ENABLE));
    // SAFETY: the timer is this program's own, and its interrupt has a handler.
    unsafe {
        asm!(
            "msr cntv_cval_el0, {}",
            "msr cntv_ctl_el0, {}",
            "isb",
            in(reg) compare,
            in(reg) control,
            options(nostack, preserves_flags)
        );
    }
}

/// Takes interrupts, or no longer. Returns whether it did before.
pub fn take_interrupts(takes: bool) -> bool {
    const IRQ: u64 = 1 << 7;
    let daif: u64;
    // SAFETY: it changes the interrupt mask, and the vectors are set.
    unsafe {
        asm!("mrs {}, daif", out(reg) daif, options(nostack, preserves_flags));
        if takes {
            asm!("msr daifclr, #2", options(nostack, preserves_flags));
        } else {
            asm!("msr daifset, #2", options(nostack, preserves_flags));
        }
    }
    daif & IRQ == 0
}

/// Sleeps until an interrupt is pending, also one that is masked.
pub fn wait() {
    // SAFETY: it waits, and changes nothing.
    unsafe { asm!("dsb sy", "wfi", options(nostack, preserves_flags)) };
}

/// Embassy's critical section: there is one core, so a mask is enough.
struct Masked;
critical_section::set_impl!(Masked);

// SAFETY: between the two calls no interrupt is taken, and there is no other core.
unsafe impl critical_section::Impl for Masked {
    unsafe fn acquire() -> bool {
        take_interrupts(false)
    }

    unsafe fn release(takes: bool) {
        if takes {
            take_interrupts(true);
        }
    }
}
