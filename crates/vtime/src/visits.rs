//! Instructions in an address range, visit by visit.
//!
//! A visit begins with the first block inside the range and ends with the first
//! one outside, or with a return from an exception: an interrupt may be taken before
//! any instruction outside. Visits are told apart by where they enter: for code behind an
//! exception vector that is the cause.
//!
//! In between, the code may *look* whether an interrupt is pending
//! ([`is_look`](crate::aarch64::is_look)). How far it goes without is counted, too: from the entry
//! to the first look, from one to the next, from the last to the end.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Visits longer than this are counted in the histogram by the power of two
/// below their length.
const EXACT: u64 = 8_192;

/// The visits through one entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// How many.
    pub visits: u64,
    /// Instructions in all of them.
    pub instructions: u64,
    /// Instructions in the longest.
    pub longest: u64,
    /// Instructions in the longest stretch without a look.
    #[serde(default)]
    pub stretch: u64,
    /// Pairs of length in instructions and visits of that length, ascending.
    /// Lengths above 8192 are rounded down to a power of two.
    #[serde(with = "pairs")]
    pub histogram: BTreeMap<u64, u64>,
}

impl Tally {
    fn record(&mut self, instructions: u64, stretch: u64) {
        self.visits += 1;
        self.stretch = self.stretch.max(stretch);
        self.instructions += instructions;
        self.longest = self.longest.max(instructions);
        let bin = if instructions <= EXACT { instructions } else { 1 << instructions.ilog2() };
        *self.histogram.entry(bin).or_default() += 1;
    }
}

/// One core's visits.
#[derive(Clone, Debug, Default)]
pub struct Visits {
    current: Option<Current>,
    by_entry: BTreeMap<u64, Tally>,
}

/// The visit that goes on. Counts are of instructions in the range.
#[derive(Clone, Copy, Debug)]
struct Current {
    entry: u64,
    /// The count when it began.
    began: u64,
    /// The count at the latest look, or when it began.
    looked: u64,
    /// The longest stretch without a look that has ended.
    stretch: u64,
}

impl Current {
    fn look(&mut self, count: u64) {
        self.stretch = self.stretch.max(count - self.looked);
        self.looked = count;
    }
}

impl Visits {
    /// The core enters the range at address `entry`, having executed `count`
    /// instructions in it so far.
    pub fn enter(&mut self, entry: u64, count: u64) {
        self.current.get_or_insert(Current { entry, began: count, looked: count, stretch: 0 });
    }

    /// The core looks whether an interrupt is pending; `count` as above, this instruction
    /// included.
    pub fn look(&mut self, count: u64) {
        if let Some(visit) = &mut self.current {
            visit.look(count);
        }
    }

    /// The core leaves the range; `count` as above.
    pub fn leave(&mut self, count: u64) {
        if let Some(mut visit) = self.current.take() {
            visit.look(count);
            let tally = self.by_entry.entry(visit.entry).or_default();
            tally.record(count - visit.began, visit.stretch);
        }
    }

    /// The visits that have ended, by entry address.
    #[must_use]
    pub fn by_entry(&self) -> &BTreeMap<u64, Tally> {
        &self.by_entry
    }
}

/// A map as pairs: JSON's keys would be text.
mod pairs {
    use serde::{Deserialize, Deserializer, Serializer};
    use std::collections::BTreeMap;

    pub(super) fn serialize<S: Serializer>(
        map: &BTreeMap<u64, u64>,
        out: S,
    ) -> Result<S::Ok, S::Error> {
        out.collect_seq(map)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<BTreeMap<u64, u64>, D::Error> {
        Ok(Vec::<(u64, u64)>::deserialize(from)?.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_each_visit_under_its_entry() {
        let mut visits = Visits::default();
        for (entry, from, to) in
            [(0x480, 0, 150), (0x400, 150, 180), (0x480, 180, 330), (0x480, 330, 10_330)]
        {
            visits.enter(entry, from);
            visits.enter(entry + 8, from + 1); // still the same visit
            visits.leave(to);
            visits.leave(to); // already outside
        }
        let irq = &visits.by_entry()[&0x480];
        assert_eq!((irq.visits, irq.instructions, irq.longest), (3, 10_300, 10_000));
        assert_eq!(irq.histogram, BTreeMap::from([(150, 2), (8192, 1)]));
        assert_eq!(visits.by_entry()[&0x400].visits, 1);
    }

    #[test]
    fn the_longest_stretch_begins_or_ends_at_a_look_or_at_the_visit() {
        for (looks, longest) in
            [(&[][..], 100), (&[170], 70), (&[110, 190], 80), (&[120, 140, 141], 59)]
        {
            let mut visits = Visits::default();
            visits.look(90); // outside of any visit
            visits.enter(0x400, 100);
            looks.iter().for_each(|&count| visits.look(count));
            visits.leave(200);
            let tally = &visits.by_entry()[&0x400];
            assert_eq!((tally.longest, tally.stretch), (100, longest), "{looks:?}");
        }
    }

    #[test]
    fn a_tally_survives_json() {
        let mut tally = Tally::default();
        for length in [3, 3, 9] {
            tally.record(length, length);
        }
        let json = serde_json::to_string(&tally).unwrap();
        assert!(json.contains("[[3,2],[9,1]]"), "{json}");
        assert_eq!(serde_json::from_str::<Tally>(&json).unwrap(), tally);
    }
}
