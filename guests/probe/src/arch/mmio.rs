//! Device accesses of a chosen width.
//!
//! In assembly, because a compiler may choose an addressing mode (with
//! write-back, or a pair) for which the architecture gives a hypervisor no
//! syndrome to emulate by.

use core::arch::asm;

/// A device's registers: guest-physical address and size in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    base: u64,
    size: u64,
}

macro_rules! accessors {
    ($($read:ident $write:ident $type:ty, $load:literal, $store:literal, $modifier:literal;)*) => {$(
        #[doc = concat!("Reads a ", stringify!($type), " at `offset`.")]
        #[inline(always)]
        pub fn $read(self, offset: u64) -> $type {
            let address = self.address(offset, size_of::<$type>() as u64);
            let value: u64;
            // SAFETY: `address` lies in a device's registers, which are
            // mapped and which no Rust object occupies.
            unsafe {
                asm!(
                    concat!($load, " {value:", $modifier, "}, [{address}]"),
                    value = out(reg) value,
                    address = in(reg) address,
                    options(nostack, preserves_flags)
                );
            }
            value as $type
        }

        #[doc = concat!("Writes a ", stringify!($type), " at `offset`.")]
        #[inline(always)]
        pub fn $write(self, offset: u64, value: $type) {
            let address = self.address(offset, size_of::<$type>() as u64);
            // SAFETY: As for reading; no register of these devices makes
            // memory change under Rust's feet (no DMA).
            unsafe {
                asm!(
                    concat!($store, " {value:", $modifier, "}, [{address}]"),
                    value = in(reg) u64::from(value),
                    address = in(reg) address,
                    options(nostack, preserves_flags)
                );
            }
        }
    )*};
}

impl Window {
    /// The registers at `base`; only this crate's description of the virtual
    /// platform makes windows, see [`crate::platform`].
    pub const fn new(base: u64, size: u64) -> Self {
        assert!(base + size <= abi::platform::RAM_BASE, "devices lie below memory");
        Self { base, size }
    }

    /// Address of `offset`.
    ///
    /// # Panics
    /// When an access of `width` bytes there is misaligned or outside.
    #[inline(always)]
    pub(super) fn address(self, offset: u64, width: u64) -> u64 {
        assert!(offset + width <= self.size && offset.is_multiple_of(width));
        self.base + offset
    }

    /// A part of the window.
    pub fn part(self, offset: u64, size: u64) -> Self {
        assert!(offset + size <= self.size);
        Self { base: self.base + offset, size }
    }

    accessors! {
        read8 write8 u8, "ldrb", "strb", "w";
        read32 write32 u32, "ldr", "str", "w";
        read64 write64 u64, "ldr", "str", "x";
    }
}
