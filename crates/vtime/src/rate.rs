//! How many instructions a core retires in a unit of virtual time.

use std::num::NonZeroU32;

/// The clock rate of every emulated core, one instruction per tick.
///
/// At 1000 MHz, the default, one instruction is one nanosecond and no
/// conversion rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockRate {
    mhz: NonZeroU32,
}

impl ClockRate {
    /// The highest rate accepted, in MHz: the products below stay in 64 bits
    /// for a century of virtual time.
    pub const MAX_MHZ: u32 = 10_000;

    /// One instruction, one nanosecond.
    pub const DEFAULT: Self = Self { mhz: NonZeroU32::new(1000).unwrap() };

    /// A rate of `mhz` million instructions per virtual second; `None` unless
    /// it lies in `1..=MAX_MHZ`.
    #[must_use]
    pub fn from_mhz(mhz: u32) -> Option<Self> {
        (mhz <= Self::MAX_MHZ).then(|| NonZeroU32::new(mhz)).flatten().map(|mhz| Self { mhz })
    }

    /// The rate in MHz.
    #[must_use]
    pub fn mhz(self) -> u32 {
        self.mhz.get()
    }

    /// The time `instructions` take, in nanoseconds, rounded down: a core
    /// never reads a time it has not reached.
    #[must_use]
    pub fn nanoseconds(self, instructions: u64) -> u64 {
        scale(instructions, 1000, u64::from(self.mhz.get()), 0)
    }

    /// The fewest instructions that take at least `ns` nanoseconds.
    #[must_use]
    pub fn instructions(self, ns: u64) -> u64 {
        let mhz = u64::from(self.mhz.get());
        scale(ns, mhz, 1000, 999)
    }
}

impl Default for ClockRate {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// `value * numerator / denominator`, after adding `round` to the product,
/// saturating at the greatest `u64`.
fn scale(value: u64, numerator: u64, denominator: u64, round: u64) -> u64 {
    if numerator == denominator {
        return value;
    }
    let product = u128::from(value) * u128::from(numerator) + u128::from(round);
    u64::try_from(product / u128::from(denominator)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_instruction_is_one_nanosecond_by_default() {
        assert_eq!(ClockRate::DEFAULT.nanoseconds(12_345), 12_345);
        assert_eq!(ClockRate::DEFAULT.instructions(12_345), 12_345);
    }

    #[test]
    fn refuses_rates_out_of_range() {
        assert_eq!(ClockRate::from_mhz(0), None);
        assert_eq!(ClockRate::from_mhz(ClockRate::MAX_MHZ + 1), None);
        assert_eq!(ClockRate::from_mhz(1500).unwrap().mhz(), 1500);
    }

    proptest! {
        #[test]
        fn a_budget_is_enough_and_not_more(mhz in 1..=ClockRate::MAX_MHZ, ns in 1..1_u64 << 50) {
            let rate = ClockRate::from_mhz(mhz).unwrap();
            let budget = rate.instructions(ns);
            prop_assert!(rate.nanoseconds(budget) >= ns);
            prop_assert!(rate.nanoseconds(budget - 1) < ns);
        }
    }
}
