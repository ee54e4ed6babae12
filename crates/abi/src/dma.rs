//! DMA that an SMMU has refused, as the SMMU notes it in memory (SMMUv3, Arm IHI 0070, section 7.3).
//!
//! EL2 only says where the SMMU may write: it takes no interrupt of it, and reads nothing. So no device
//! can keep EL2 from anything, however often it tries. When the memory is full, the SMMU drops what
//! comes: the first faults are kept, and a full queue says "at least so many".

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// How many faults are kept, as a power of two.
pub const KEPT_LOG2: u32 = 6;
/// How many faults are kept: the first since power-on.
pub const KEPT: usize = 1 << KEPT_LOG2;

/// What the SMMU has noted.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Debug)]
#[repr(C)]
pub struct Faults {
    /// By when they came; zero where none has come yet.
    pub records: [Fault; KEPT],
}

/// A record of the SMMU.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Fault {
    /// What it is; see [`Fault::kind`] and [`Fault::stream`].
    pub what: u64,
    /// How it was accessed; see [`Fault::is_read`].
    pub how: u64,
    /// The address that the device gave: guest-physical.
    pub address: u64,
    /// Unused here.
    pub rest: u64,
}

impl Fault {
    /// Returns the number of its kind, such as 0x10, a translation fault, or 0x04, a bad stream table entry; 0:
    /// this is none.
    #[must_use]
    pub const fn kind(&self) -> u8 {
        self.what as u8
    }

    /// Returns the stream that it came by.
    #[must_use]
    pub const fn stream(&self) -> u32 {
        (self.what >> 32) as u32
    }

    /// Returns true if the device has tried to read, false if it has tried to write.
    #[must_use]
    pub const fn is_read(&self) -> bool {
        self.how >> 35 & 1 == 1
    }
}
