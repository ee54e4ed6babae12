//! How often each value occurred: exact, and no larger than the number of
//! different values.
//!
//! A counter's ticks are coarse (16 ns at 62.5 MHz), so hours of latencies fit
//! in a few thousand entries, and percentiles need no approximation.

use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A multiset of values in ticks. Stored, it is a map from each value to how often it
/// occurred.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "BTreeMap<u32, u64>", into = "BTreeMap<u32, u64>")]
pub struct Distribution {
    counts: BTreeMap<u32, u64>,
    count: u64,
    sum: u128,
}

impl Distribution {
    /// Adds one value.
    pub fn record(&mut self, value: u32) {
        self.record_many(value, 1);
    }

    /// Adds `count` times the same value.
    pub fn record_many(&mut self, value: u32, count: u64) {
        if count > 0 {
            // Guests say how often: they may say anything.
            let known = self.counts.entry(value).or_default();
            *known = known.saturating_add(count);
            self.count = self.count.saturating_add(count);
            let sum = u128::from(value) * u128::from(count);
            self.sum = self.sum.saturating_add(sum);
        }
    }

    /// How many values there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The smallest.
    #[must_use]
    pub fn min(&self) -> Option<u32> {
        self.counts.first_key_value().map(|(&value, _)| value)
    }

    /// The greatest.
    #[must_use]
    pub fn max(&self) -> Option<u32> {
        self.counts.last_key_value().map(|(&value, _)| value)
    }

    /// The value that occurred most often; the smallest of several.
    #[must_use]
    pub fn mode(&self) -> Option<u32> {
        let often = self.counts.iter().max_by_key(|&(value, count)| (count, Reverse(value)));
        often.map(|(&value, _)| value)
    }

    /// The arithmetic mean.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The smallest value that at least `permille` thousandths of all values
    /// do not exceed (nearest rank); `permille` from 1 to 1000.
    #[must_use]
    pub fn percentile(&self, permille: u64) -> Option<u32> {
        nearest_rank(self.iter(), self.count, permille)
    }

    /// Like [`percentile`](Self::percentile), but `None` where there are too few values to tell it, as
    /// [`is_told`] says.
    #[must_use]
    pub fn told_percentile(&self, permille: u64) -> Option<u32> {
        self.percentile(permille).filter(|_| is_told(self.count, permille))
    }

    /// The median of the largest of each `each_time` values, where as many of them are made together, each
    /// time alike.
    #[must_use]
    pub fn largest_of(&self, each_time: u64) -> Option<u32> {
        self.percentile(1_000 - 500 / each_time)
    }

    /// All values with their counts, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.counts.iter().map(|(&value, &count)| (value, count))
    }
}

/// Returns true if so many values tell their percentile: with fewer than 1,000 the nearest rank of the 99.9th is the
/// greatest of them, as with fewer than 100 that of the 99th is. Any number of values tells what lies at the median
/// or below.
pub(crate) const fn is_told(values: u64, permille: u64) -> bool {
    permille <= 500 || values.saturating_mul(1_000 - permille) >= 1_000
}

/// Returns the smallest value that at least `permille` thousandths of `all` values do not exceed;
/// the values come ascending, each with how often it occurred.
pub(crate) fn nearest_rank<V>(
    mut counts: impl Iterator<Item = (V, u64)>,
    all: u64,
    permille: u64,
) -> Option<V> {
    let rank = (u128::from(all) * u128::from(permille)).div_ceil(1_000).max(1);
    let mut seen = 0;
    counts.find_map(|(value, count)| {
        seen += u128::from(count);
        (seen >= rank).then_some(value)
    })
}

impl From<BTreeMap<u32, u64>> for Distribution {
    fn from(counts: BTreeMap<u32, u64>) -> Self {
        let mut distribution = Self::default();
        counts.into_iter().for_each(|(value, count)| distribution.record_many(value, count));
        distribution
    }
}

impl From<Distribution> for BTreeMap<u32, u64> {
    fn from(distribution: Distribution) -> Self {
        distribution.counts
    }
}

impl Extend<u32> for Distribution {
    fn extend<T: IntoIterator<Item = u32>>(&mut self, values: T) {
        values.into_iter().for_each(|value| self.record(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_sorting(mut values in proptest::collection::vec(0_u32..500, 1..300)) {
            let mut distribution = Distribution::default();
            distribution.extend(values.iter().copied());
            values.sort_unstable();
            for permille in [1, 10, 500, 900, 990, 999, 1000_u64] {
                let at_least = |v: u32| values.iter().filter(|&&x| x <= v).count() as u64 * 1000;
                let naive = values.iter().copied().find(|&v| at_least(v) >= permille * values.len() as u64);
                prop_assert_eq!(distribution.percentile(permille), naive);
            }
            prop_assert_eq!(distribution.min(), values.first().copied());
            prop_assert_eq!(distribution.max(), values.last().copied());
            prop_assert_eq!(distribution.count(), values.len() as u64);
            let mean = values.iter().map(|&v| f64::from(v)).sum::<f64>() / values.len() as f64;
            prop_assert!((distribution.mean().unwrap() - mean).abs() < 1e-9);
        }
    }

    #[test]
    fn the_largest_of_each_time_is_told_where_all_times_are_alike() {
        let mut distribution = Distribution::default();
        assert_eq!(distribution.largest_of(2), None);
        distribution.extend([300, 500, 300, 501, 300, 502, 299, 501]);
        assert_eq!(distribution.largest_of(2), Some(501));
        assert_eq!(distribution.largest_of(1), Some(300));
    }

    #[test]
    fn what_is_stored_is_how_often_each_value_occurred() {
        let distribution = Distribution::from(BTreeMap::from([(900, 1), (700, 3), (800, 0)]));
        let stored = serde_json::to_string(&distribution).unwrap();
        assert_eq!(stored, r#"{"700":3,"900":1}"#);
        assert_eq!(serde_json::from_str::<Distribution>(&stored).unwrap(), distribution);
        assert_eq!((distribution.count(), distribution.mean()), (4, Some(750.0)));
    }

    #[test]
    fn a_percentile_that_is_only_the_greatest_value_is_not_told() {
        for (permille, enough) in [(990, 100), (999, 1_000)] {
            let mut all = Distribution::default();
            all.record(9);
            all.record_many(5, enough - 2);
            assert_eq!((all.percentile(permille), all.told_percentile(permille)), (Some(9), None));
            all.record(5);
            assert_eq!(all.told_percentile(permille), Some(5));
        }
        let mut one = Distribution::default();
        one.record(9);
        assert_eq!((one.told_percentile(500), one.told_percentile(501)), (Some(9), None));
        assert_eq!(Distribution::default().told_percentile(500), None);
    }

    #[test]
    fn nothing_has_no_percentile() {
        let empty = Distribution::default();
        assert_eq!((empty.percentile(500), empty.min(), empty.mean()), (None, None, None));
        assert_eq!(empty.mode(), None);
    }

    #[test]
    fn many_of_one_value_count_as_so_many() {
        let mut distribution = Distribution::default();
        for (value, count) in [(9, 2), (5, 3), (7, 3), (6, 0)] {
            distribution.record_many(value, count);
        }
        assert_eq!(
            (distribution.count(), distribution.min(), distribution.mode()),
            (8, Some(5), Some(5))
        );
        assert_eq!((distribution.percentile(500), distribution.mean()), (Some(7), Some(6.75)));
    }
}
