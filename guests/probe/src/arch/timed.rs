//! Single instructions that EL2 may be entered by, between two reads of the counter.
//!
//! In assembly, so that nothing of the compiler's stands between the reads.

use super::mmio::Window;
use core::arch::asm;

/// When the counter was read, in ticks: before an instruction and behind it.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// Before.
    pub begin: u64,
    /// Behind.
    pub end: u64,
}

impl Span {
    /// Ticks from the first read to the second.
    pub fn ticks(self) -> u64 {
        self.end - self.begin
    }
}

/// Reads the counter twice, with an instruction between that does nothing.
#[inline(never)]
pub fn nothing() -> Span {
    let (begin, end);
    // SAFETY: Only the counter is read.
    unsafe {
        asm!(
            "isb", "mrs {begin}, cntpct_el0", "nop", "isb", "mrs {end}, cntpct_el0",
            begin = out(reg) begin,
            end = out(reg) end,
            options(nostack, preserves_flags)
        );
    }
    Span { begin, end }
}

/// Sleeps until an interrupt is pending, masked or not.
#[inline(never)]
pub fn sleep() -> Span {
    let (begin, end);
    // SAFETY: As `cpu::wfi`.
    unsafe {
        asm!(
            "dsb sy", "isb", "mrs {begin}, cntpct_el0", "wfi", "isb", "mrs {end}, cntpct_el0",
            begin = out(reg) begin,
            end = out(reg) end,
            options(nostack, preserves_flags)
        );
    }
    Span { begin, end }
}

/// Calls the hypervisor with X1; answers X0 too.
#[inline(never)]
pub fn call(function: u32, argument: u64) -> (Span, i64) {
    let (begin, end);
    let answer: u64;
    // SAFETY: The calls that this program times change no memory that Rust knows of, and no registers but
    // X0 to X17 (DEN0028, section 2.6).
    unsafe {
        asm!(
            "isb", "mrs {begin}, cntpct_el0", "hvc #0", "isb", "mrs {end}, cntpct_el0",
            begin = out(reg) begin,
            end = out(reg) end,
            inout("x0") u64::from(function) => answer,
            inout("x1") argument => _,
            inout("x2") 0_u64 => _,
            inout("x3") 0_u64 => _,
            lateout("x4") _, lateout("x5") _, lateout("x6") _, lateout("x7") _,
            lateout("x8") _, lateout("x9") _, lateout("x10") _, lateout("x11") _,
            lateout("x12") _, lateout("x13") _, lateout("x14") _, lateout("x15") _,
            lateout("x16") _, lateout("x17") _,
            options(nostack)
        );
    }
    (Span { begin, end }, answer as i64)
}

/// Reads a word of a device's registers.
#[inline(never)]
pub fn load(window: Window, offset: u64) -> Span {
    let address = window.address(offset, 4);
    let (begin, end);
    // SAFETY: As `Window::read32`.
    unsafe {
        asm!(
            "isb", "mrs {begin}, cntpct_el0", "ldr {value:w}, [{address}]", "isb",
            "mrs {end}, cntpct_el0",
            begin = out(reg) begin,
            end = out(reg) end,
            value = out(reg) _,
            address = in(reg) address,
            options(nostack, preserves_flags)
        );
    }
    Span { begin, end }
}

/// Writes a word of a device's registers.
#[inline(never)]
pub fn store(window: Window, offset: u64, value: u32) -> Span {
    let address = window.address(offset, 4);
    let (begin, end);
    // SAFETY: As `Window::write32`.
    unsafe {
        asm!(
            "isb", "mrs {begin}, cntpct_el0", "str {value:w}, [{address}]", "isb",
            "mrs {end}, cntpct_el0",
            begin = out(reg) begin,
            end = out(reg) end,
            value = in(reg) value,
            address = in(reg) address,
            options(nostack, preserves_flags)
        );
    }
    Span { begin, end }
}

/// Writes ICC_SGI1R_EL1.
#[cfg(not(feature = "gic-v2"))]
#[inline(never)]
pub fn send(value: u64) -> Span {
    let (begin, end);
    // SAFETY: An interrupt for a vCPU of this program, which takes any.
    unsafe {
        asm!(
            "isb", "mrs {begin}, cntpct_el0", "msr icc_sgi1r_el1, {value}", "isb",
            "mrs {end}, cntpct_el0",
            begin = out(reg) begin,
            end = out(reg) end,
            value = in(reg) value,
            options(nostack, preserves_flags)
        );
    }
    Span { begin, end }
}
