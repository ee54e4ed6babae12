//! How large a system is: a loop that goes round for each vCPU, say, is shorter where there are few.

use crate::notes::Times;
use notes::each;
use std::collections::BTreeMap;

/// How many there are of what loops go round for, where that is known; else as many as there may
/// be anywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sizes(BTreeMap<u32, u64>);

impl Sizes {
    /// Says that there are at most so many `of` something (a constant of [`notes::each`]).
    #[must_use]
    pub fn with(mut self, of: u32, count: usize) -> Self {
        self.0.insert(of, count as u64);
        self
    }

    /// Returns true if there may be something of everything, so that no code is left out.
    #[must_use]
    pub fn have_all(&self) -> bool {
        self.0.values().all(|&count| count > 0)
    }

    /// Returns how often a loop goes round.
    #[must_use]
    pub fn times(&self, times: Times) -> u64 {
        let (of, more) = (times.of & 0xff, times.of >> 8);
        let here = self.0.get(&of).filter(|_| of != each::ANYTHING);
        here.map_or(times.most, |here| times.most.min(here + u64::from(more)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_is_as_long_as_there_is_something_to_go_round_for() {
        let sizes = Sizes::default().with(each::VCPU, 3);
        for (most, of, expected) in [
            (64, each::VCPU, 3),
            (65, each::and(each::VCPU, 1), 4),
            (2, each::VCPU, 2),
            (64, each::VM, 64),
            (64, each::ANYTHING, 64),
        ] {
            assert_eq!(sizes.times(Times { most, of }), expected, "{of}");
        }
    }
}
