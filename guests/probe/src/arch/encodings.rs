//! Every instruction that reads or writes a system register, or is encoded as one: 65,536 of
//! each, by number, laid out in memory once so that a sweep need not write code each time.

use super::fault::{self, Fault};
use super::{cpu, memory};
use core::sync::atomic::Ordering::Relaxed;

/// How many encodings there are: op0, op1, CRn, CRm and op2 have 16 bits together.
pub const COUNT: u64 = 1 << 16;
/// Bytes that a [`Table`] takes.
pub const TABLE_SIZE: u64 = 2 * COUNT * SLOT;
/// An instruction and a return, bytes.
const SLOT: u64 = 8;
/// `RET`
const RETURN: u64 = 0xd65f_03c0;
/// `MSR`/`SYS` with X0 (DDI 0487, C4.1.94); bit 21 makes it `MRS`/`SYSL`.
const WRITE: u32 = 0xd500_0000;
/// See [`WRITE`].
const READ: u32 = WRITE | 1 << 21;

/// The encoding of a system register or instruction: op0, op1, CRn, CRm, op2 from the highest bit
/// to the lowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoding(pub u16);

impl Encoding {
    /// Makes one of its fields.
    pub const fn new(op0: u16, op1: u16, crn: u16, crm: u16, op2: u16) -> Self {
        Self(op0 << 14 | op1 << 11 | crn << 7 | crm << 3 | op2)
    }

    /// Returns all encodings with these `op0` and `op1`.
    pub fn all(op0: u16, op1: u16) -> impl Iterator<Item = Self> {
        (0..16 * 16 * 8).map(move |n| Self(op0 << 14 | op1 << 11 | n))
    }

    /// Returns op0.
    pub const fn op0(self) -> u16 {
        self.0 >> 14
    }

    /// Returns CRn.
    pub const fn crn(self) -> u16 {
        self.0 >> 7 & 15
    }

    /// Returns CRm.
    pub const fn crm(self) -> u16 {
        self.0 >> 3 & 15
    }

    /// Reads: `MRS` or `SYSL` to X0.
    pub fn read(self) -> Result<u64, Fault> {
        fault::instruction(READ | self.bits(), 0)
    }

    /// Writes: `MSR` or `SYS` with `value` in X0.
    pub fn write(self, value: u64) -> Result<u64, Fault> {
        fault::instruction(WRITE | self.bits(), value)
    }

    /// Returns its bits of an instruction.
    fn bits(self) -> u32 {
        u32::from(self.0) << 5
    }
}

impl core::fmt::Display for Encoding {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        let Self(bits) = self;
        let (op1, crn, crm) = (bits >> 11 & 7, self.crn(), self.crm());
        write!(f, "S{}_{op1}_C{crn}_C{crm}_{}", self.op0(), bits & 7)
    }
}

/// All instructions, in guest memory.
#[derive(Clone, Copy)]
pub struct Table {
    base: u64,
}

impl Table {
    /// Lays them out at `base`: [`TABLE_SIZE`] bytes behind the image that nothing else uses.
    pub fn at(base: u64) -> Self {
        let slots = memory::words(base, base + TABLE_SIZE);
        for (number, slot) in slots.iter().enumerate() {
            let kind = if (number as u64) < COUNT { READ } else { WRITE };
            let instruction = kind | Encoding(number as u16).bits();
            slot.store(RETURN << 32 | u64::from(instruction), Relaxed);
        }
        for line in (base..base + TABLE_SIZE).step_by(64) {
            cpu::clean_to_unification(line);
        }
        cpu::ic_iallu();
        Self { base }
    }

    /// Returns the addresses that it takes.
    pub fn range(self) -> core::ops::Range<u64> {
        self.base..self.base + TABLE_SIZE
    }

    /// As [`Encoding::read`].
    pub fn read(self, of: Encoding) -> Result<u64, Fault> {
        fault::call(self.base + u64::from(of.0) * SLOT, 0)
    }

    /// As [`Encoding::write`].
    pub fn write(self, to: Encoding, value: u64) -> Result<u64, Fault> {
        fault::call(self.base + (COUNT + u64::from(to.0)) * SLOT, value)
    }
}
