//! Memory by physical address: what a guest will see with its caches off,
//! checksums, device registers.

use super::instructions;
use super::registers::read_sysreg;
use notes::Rounds;
use zerocopy::FromBytes;

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

/// Continues a CRC-32 over `bytes` by the CRC32 instructions (DDI 0487,
/// C6.2.74), which every core since Armv8.1 has; the same function as
/// [`abi::crc::update`].
pub fn crc32(crc: u32, bytes: &[u8]) -> u32 {
    /// ID_AA64ISAR0_EL1.CRC32.
    const CRC32: u64 = 0xf << 16;
    if read_sysreg!("id_aa64isar0_el1") & CRC32 == 0 {
        return abi::crc::update(crc, bytes);
    }
    // Whole words, if the bytes begin at one: unaligned access is forbidden, and
    // a word put together from bytes takes eight times as long.
    let words = bytes.len() / size_of::<u64>() * size_of::<u64>();
    let (words, rest) = match <[u64]>::ref_from_bytes(&bytes[..words]) {
        Ok(aligned) => (aligned, &bytes[words..]),
        Err(_) => (&[][..], bytes),
    };
    let mut state = !crc;
    for &word in words {
        // SAFETY: computes on registers; the instruction was found to exist.
        unsafe {
            core::arch::asm!(
                ".arch_extension crc", "crc32x {0:w}, {0:w}, {1}",
                inout(reg) state, in(reg) word, options(pure, nomem, nostack, preserves_flags)
            );
        }
    }
    for &byte in rest {
        // SAFETY: as above.
        unsafe {
            core::arch::asm!(
                ".arch_extension crc", "crc32b {0:w}, {0:w}, {1:w}",
                inout(reg) state, in(reg) u32::from(byte), options(pure, nomem, nostack, preserves_flags)
            );
        }
    }
    !state
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
