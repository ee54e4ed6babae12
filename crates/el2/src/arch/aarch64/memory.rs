//! Memory by physical address: what a guest will see with its caches off,
//! checksums, device registers.

use super::instructions;
use super::registers::read_sysreg;
use notes::Rounds;

/// Returns where the memory at a physical address is: EL2's mapping is an
/// identity.
#[inline(always)]
pub fn at<T>(pa: u64) -> *mut T {
    pa as *mut T
}

/// Cleans and invalidates `size` bytes from `pa` to the point of coherency: a
/// guest starts with its MMU off and must find what was written with ours on.
///
/// There are `MOST` lines at most, each of 16 bytes or more (CTR_EL0.DminLine).
pub fn clean_to_memory<const MOST: usize>(pa: u64, size: u64) {
    let line = 4u64 << (read_sysreg!("ctr_el0") >> 16 & 0xf);
    let mut at = pa & !(line - 1);
    let mut rounds = Rounds::<MOST>::begin();
    while at < pa + size {
        rounds.pass();
        // SAFETY: cache maintenance changes no contents.
        unsafe { core::arch::asm!("dc civac, {}", in(reg) at, options(nostack, preserves_flags)) };
        at += line;
    }
    instructions::complete();
}

/// Copies `size` bytes, by 64 as long as there are so many: the compiler's own
/// copy takes bytes one by one where unaligned access is forbidden.
///
/// # Safety
/// Both ranges are mapped, 64-byte aligned, and do not overlap; nothing else
/// accesses the destination.
pub unsafe fn copy(src: u64, dst: u64, size: u64) {
    let lines = size & !63;
    if lines > 0 {
        // SAFETY: by contract.
        unsafe {
            core::arch::asm!(
                "2:",
                "ldp {a}, {b}, [{src}]", "ldp {c}, {d}, [{src}, #16]",
                "stp {a}, {b}, [{dst}]", "stp {c}, {d}, [{dst}, #16]",
                "ldp {a}, {b}, [{src}, #32]", "ldp {c}, {d}, [{src}, #48]",
                "stp {a}, {b}, [{dst}, #32]", "stp {c}, {d}, [{dst}, #48]",
                "add {src}, {src}, #64", "add {dst}, {dst}, #64",
                "cmp {src}, {end}", "b.ne 2b",
                src = inout(reg) src => _, dst = inout(reg) dst => _, end = in(reg) src + lines,
                a = out(reg) _, b = out(reg) _, c = out(reg) _, d = out(reg) _,
                options(nostack)
            );
        }
    }
    let mut rounds = Rounds::<63>::begin();
    for at in lines..size {
        rounds.pass();
        // SAFETY: by contract. Volatile, or the compiler would call its own copy, whose bound is
        // that of the largest value.
        unsafe { ((dst + at) as *mut u8).write_volatile(((src + at) as *const u8).read()) };
    }
}

/// Fills `size` bytes with zero.
///
/// # Safety
/// The range is mapped, and nothing else accesses it.
pub unsafe fn clear(dst: u64, size: u64) {
    // SAFETY: by contract.
    unsafe { core::ptr::write_bytes(dst as *mut u8, 0, size as usize) };
}

/// Returns the word at `pa`, which a guest may write meanwhile.
///
/// # Safety
/// It is mapped, and 8-byte aligned.
pub unsafe fn word(pa: u64) -> u64 {
    // SAFETY: by contract; volatile, so that it is read once.
    unsafe { (pa as *const u64).read_volatile() }
}

/// The register of an interrupt controller, or of another device of EL2's own.
pub mod device {
    /// Reads the 32-bit register at `address`.
    #[inline(always)]
    pub fn read32(address: u64) -> u32 {
        // SAFETY: only called with addresses of device registers, which the host
        // mapped as such.
        unsafe { (address as *const u32).read_volatile() }
    }

    /// Writes the 8-bit register at `address`.
    #[inline(always)]
    pub fn write8(address: u64, value: u8) {
        // SAFETY: as `read32`.
        unsafe { (address as *mut u8).write_volatile(value) }
    }

    /// Writes the 32-bit register at `address`.
    #[inline(always)]
    pub fn write32(address: u64, value: u32) {
        // SAFETY: as `read32`.
        unsafe { (address as *mut u32).write_volatile(value) }
    }

    /// Writes the 64-bit register at `address`.
    #[inline(always)]
    pub fn write64(address: u64, value: u64) {
        // SAFETY: as `read32`.
        unsafe { (address as *mut u64).write_volatile(value) }
    }
}
