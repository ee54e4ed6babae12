//! The largest of the first so many values.

use serde::{Deserialize, Serialize};

/// After how many values the largest one rose, and to what: no more entries than that happened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rises {
    /// How many values there were.
    count: u64,
    /// How many with the one that was larger than all before, and that one.
    all: Vec<(u64, u64)>,
}

impl Rises {
    /// Adds one value.
    pub fn record(&mut self, value: u64) {
        self.record_many(1, value);
    }

    /// Adds `count` values of which only the largest is known.
    pub fn record_many(&mut self, count: u64, largest: u64) {
        // Guests say how often: they may say anything.
        self.count = self.count.saturating_add(count);
        if count > 0 && self.all.last().is_none_or(|&(_, before)| before < largest) {
            self.all.push((self.count, largest));
        }
    }

    /// How many values there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The largest of the first `count` values. Of those that were added together it knows when it has all.
    #[must_use]
    pub fn largest_of_first(&self, count: u64) -> Option<u64> {
        let risen = self.all.partition_point(|&(after, _)| after <= count);
        self.all[..risen].last().map(|&(_, largest)| largest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_of_the_first_is_known_of_each_number() {
        let mut rises = Rises::default();
        let values = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5];
        values.iter().for_each(|&value| rises.record(value));
        assert_eq!((rises.count(), rises.all.len()), (11, 4));
        assert_eq!(rises.largest_of_first(0), None);
        for count in 1..=values.len() {
            let largest = values[..count].iter().max().copied();
            assert_eq!(rises.largest_of_first(count as u64), largest);
        }
        assert_eq!(rises.largest_of_first(1_000), Some(9));
    }

    #[test]
    fn values_that_come_together_count_when_all_are_there() {
        let mut rises = Rises::default();
        for largest in [20, 10, 30] {
            rises.record_many(250, largest);
        }
        rises.record_many(0, 99);
        assert_eq!(rises.count(), 750);
        let largest = [249, 250, 500, 749, 750].map(|count| rises.largest_of_first(count));
        assert_eq!(largest, [None, Some(20), Some(20), Some(20), Some(30)]);
    }
}
