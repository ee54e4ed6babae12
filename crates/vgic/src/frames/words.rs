//! The registers with a bit, a byte or two bits for each interrupt.
//!
//! GICD_IGROUPR to GICD_ICFGR stand at the same offsets in every version of the
//! architecture, and again in the redistributors' SGI frames (IHI 0069H,
//! sections 12.9.1 and 12.11.1). Bit registers are taken by whole 32-bit words,
//! priorities by bytes too; any other access reads as zero and is ignored.

use crate::{Bits, Effects, Field, Gic};
use core::ops::Range;

/// Registers that tell which interrupts are pending or active, which may depend on what is in list
/// registers; all else is in the banks, whatever those hold.
pub(super) const STATE: Range<u64> = 0x200..0x400;

/// Reads `size` bytes at `offset` of a frame that has these `words`, on behalf
/// of a vCPU, where that is no [`STATE`].
pub(super) fn peek(gic: &Gic, vcpu: usize, offset: u64, size: u8, words: Range<usize>) -> u64 {
    match Register::decode(offset, size, &words) {
        None => 0,
        Some(Register::Priority { first }) => gic.priorities(vcpu, first, size),
        Some(Register::Bits { field, word }) => gic.configuration(vcpu, word, field).into(),
        Some(Register::Config { word, upper }) => {
            spread(gic.triggers(vcpu, word) >> if upper { 16 } else { 0 }).into()
        }
    }
}

/// Reads what is [`STATE`].
pub(super) fn read_state(
    gic: &Gic,
    vcpu: usize,
    offset: u64,
    size: u8,
    words: Range<usize>,
) -> (u64, Effects) {
    match Register::decode(offset, size, &words) {
        Some(Register::Bits { field, word }) => {
            let (value, effects) = gic.state(vcpu, word, field);
            (value.into(), effects)
        }
        _ => (0, Effects::default()),
    }
}

/// Writes, as a guest reads.
pub(super) fn write(
    gic: &Gic,
    vcpu: usize,
    offset: u64,
    size: u8,
    value: u64,
    words: Range<usize>,
) -> Effects {
    match Register::decode(offset, size, &words) {
        None => Effects::default(),
        Some(Register::Priority { first }) => gic.set_priorities(vcpu, first, size, value),
        Some(Register::Bits { field, word }) => gic.write(vcpu, word, field, value as u32),
        Some(Register::Config { word, upper }) => {
            let shift = if upper { 16 } else { 0 };
            gic.set_triggers(vcpu, word, gather(value as u32) << shift, 0xffff << shift)
        }
    }
}

enum Register {
    Bits {
        field: Field,
        word: usize,
    },
    Priority {
        first: usize,
    },
    /// Two bits for each interrupt: registers for the lower and upper 16.
    Config {
        word: usize,
        upper: bool,
    },
}

impl Register {
    /// Finds the register at this offset; none when it is not one of these, does
    /// not belong to the frame's `words`, or must not be accessed so.
    fn decode(offset: u64, size: u8, words: &Range<usize>) -> Option<Self> {
        let whole = size == 4 && offset.is_multiple_of(4);
        let bits = |field, base: u64| {
            let word = (offset - base) as usize / 4;
            (whole && words.contains(&word)).then_some(Self::Bits { field, word })
        };
        match offset {
            0x080..0x100 => bits(Field::Group, 0x080),
            0x100..0x180 => bits(Field::SetEnable, 0x100),
            0x180..0x200 => bits(Field::ClearEnable, 0x180),
            0x200..0x280 => bits(Field::SetPending, 0x200),
            0x280..0x300 => bits(Field::ClearPending, 0x280),
            0x300..0x380 => bits(Field::SetActive, 0x300),
            0x380..0x400 => bits(Field::ClearActive, 0x380),
            0x400..0x800 => {
                let first = (offset - 0x400) as usize;
                let aligned = size <= 4 && first.is_multiple_of(usize::from(size.max(1)));
                (aligned && words.contains(&(first / 32))).then_some(Self::Priority { first })
            }
            0xc00..0xd00 => {
                let half = (offset - 0xc00) as usize / 4;
                let (word, upper) = (half / 2, half % 2 == 1);
                (whole && words.contains(&word)).then_some(Self::Config { word, upper })
            }
            _ => None,
        }
    }
}

/// Moves bit n of the lower half to bit 2n + 1, as GICD_ICFGR has it.
fn spread(bits: u32) -> u32 {
    Bits::of(bits & 0xffff).fold(0, |value, bit| value | 2 << (2 * bit))
}

/// Reverses [`spread`].
fn gather(value: u32) -> u32 {
    Bits::of(value & 0xaaaa_aaaa).fold(0, |bits, bit| bits | 1 << (bit / 2))
}
