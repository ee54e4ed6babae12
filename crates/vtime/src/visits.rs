//! Instructions in an address range, visit by visit.
//!
//! A visit begins with the first block inside the range and ends with the first
//! one outside. Visits are told apart by where they enter: for code behind an
//! exception vector that is the cause.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Visits longer than this are counted in the histogram by the power of two
/// below their length.
const EXACT: u64 = 4096;

/// The visits through one entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// How many.
    pub visits: u64,
    /// Instructions in all of them.
    pub instructions: u64,
    /// Instructions in the longest.
    pub longest: u64,
    /// Pairs of length in instructions and visits of that length, ascending.
    /// Lengths above 4096 are rounded down to a power of two.
    #[serde(with = "pairs")]
    pub histogram: BTreeMap<u64, u64>,
}

impl Tally {
    fn record(&mut self, instructions: u64) {
        self.visits += 1;
        self.instructions += instructions;
        self.longest = self.longest.max(instructions);
        let bin = if instructions <= EXACT { instructions } else { 1 << instructions.ilog2() };
        *self.histogram.entry(bin).or_default() += 1;
    }
}

/// One core's visits.
#[derive(Clone, Debug, Default)]
pub struct Visits {
    /// Entry and range count of the visit that goes on.
    current: Option<(u64, u64)>,
    by_entry: BTreeMap<u64, Tally>,
}

impl Visits {
    /// The core enters the range at address `entry`, having executed `count`
    /// instructions in it so far.
    pub fn enter(&mut self, entry: u64, count: u64) {
        self.current.get_or_insert((entry, count));
    }

    /// The core leaves the range; `count` as above.
    pub fn leave(&mut self, count: u64) {
        if let Some((entry, before)) = self.current.take() {
            self.by_entry.entry(entry).or_default().record(count - before);
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
    fn a_tally_survives_json() {
        let mut tally = Tally::default();
        for length in [3, 3, 9] {
            tally.record(length);
        }
        let json = serde_json::to_string(&tally).unwrap();
        assert!(json.contains("[[3,2],[9,1]]"), "{json}");
        assert_eq!(serde_json::from_str::<Tally>(&json).unwrap(), tally);
    }
}
