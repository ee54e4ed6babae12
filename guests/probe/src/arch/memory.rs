//! Guest memory outside the image.

use core::sync::atomic::{AtomicU32, AtomicU64};

unsafe extern "C" {
    // From aarch64-rt's linker script.
    static text_begin: u8;
    static dma_region: u8;
}

/// Where guest memory begins: so far below the image, which is linked there (`memory.ld`).
pub fn base() -> u64 {
    const GAP: u64 = 0x20_0000;
    image_begin() - GAP
}

/// Address of the image's first byte.
pub fn image_begin() -> u64 {
    &raw const text_begin as u64
}

/// Address behind the image, its data and its stacks.
pub fn image_end() -> u64 {
    &raw const dma_region as u64
}

/// Whether `address` lies in the image, its data or its stacks.
pub fn image_holds(address: u64) -> bool {
    (image_begin()..image_end()).contains(&address)
}

/// Returns `size` bytes that a loader left at `address`. They are not written before the
/// tests use all of memory, and not read any more by then.
pub fn bytes(address: u64, size: u64) -> &'static [u8] {
    assert!(!image_holds(address) && !image_holds(address + size));
    // SAFETY: Guest memory is mapped, any bytes are valid, and the image has
    // no object there (asserted).
    unsafe { core::slice::from_raw_parts(address as *const u8, size as usize) }
}

/// Guest memory from `begin` to `end`, before or behind the image, as words.
pub fn words(begin: u64, end: u64) -> &'static [AtomicU64] {
    assert!(begin >= image_end() || begin >= base() && end <= image_begin());
    assert!(begin.is_multiple_of(8) && begin <= end);
    let count = ((end - begin) / 8) as usize;
    // SAFETY: Guest memory is mapped, any bits are a valid atomic, and the
    // image has no object there (asserted); shared use is what atomics allow.
    unsafe { core::slice::from_raw_parts(begin as *const AtomicU64, count) }
}

/// As [`words`], as halves of them.
pub fn halves(begin: u64, end: u64) -> &'static [AtomicU32] {
    let words = words(begin, end);
    // SAFETY: The same memory, which is aligned for words; both kinds are atomics, for which any bits are valid.
    unsafe { core::slice::from_raw_parts(words.as_ptr().cast(), 2 * words.len()) }
}

/// Sets how upper addresses would be translated: TCR_EL1.T1SZ and TG1. They are not: EPD1 is set.
pub fn set_upper(t1sz: u64, granule: u64) {
    const T1SZ: u64 = 0x3f << 16;
    const EPD1: u64 = 1 << 23;
    const TG1: u64 = 3 << 30;
    // SAFETY: this program uses lower addresses only, and what concerns those stays.
    unsafe {
        let tcr: u64;
        core::arch::asm!("mrs {}, tcr_el1", out(reg) tcr, options(nomem, nostack));
        let tcr = tcr & !(T1SZ | TG1) | EPD1 | (t1sz << 16 & T1SZ) | (granule << 30 & TG1);
        core::arch::asm!("msr tcr_el1, {}", "isb", in(reg) tcr, options(nostack));
    }
}
