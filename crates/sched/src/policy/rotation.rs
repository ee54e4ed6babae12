//! Rotation: a visitor that finds every core busy takes turns on its siblings' cores.
//!
//! A visitor and the vCPU that is based at a core have half of it each, while their
//! siblings have all of theirs. A guest that spreads its work evenly, as Linux does, then
//! waits for those two. So when its turn on a core is over, the visitor leaves for the next
//! core of its *rotation*: those of its affinity at which siblings of its own priority are
//! based.

use crate::Duration;

/// How long a visitor has run on the core where it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stay {
    ran_before: Duration,
}

impl Stay {
    /// Begins the stay of a vCPU that arrives now, and `ran` this long in all.
    #[must_use]
    pub const fn begin(ran: Duration) -> Self {
        Self { ran_before: ran }
    }

    /// Returns true once the vCPU, which `ran` this long in all and now waits, has run half a
    /// quantum on this core. Half, because it may have arrived with a quantum partly used. A
    /// vCPU that has had less was interrupted in its turn, or waits for it. It would gain
    /// nothing by going on, and busy cores could send it round for ever.
    #[must_use]
    pub const fn is_over(self, ran: Duration, quantum: Duration) -> bool {
        ran.0.saturating_sub(self.ran_before.0) >= quantum.0 / 2
    }
}

/// Returns the core to which a visitor goes from the core `here` (0 to 15): the next of its
/// rotation (a bit for each core), after the last one the first; none if there is no other.
#[must_use]
pub const fn next_in_rotation(rotation: u16, here: usize) -> Option<usize> {
    let others = rotation & !(1 << here);
    let above = others & (u16::MAX << here);
    let next = if above == 0 { others } else { above };
    if next == 0 { None } else { Some(next.trailing_zeros() as usize) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUANTUM: Duration = Duration(50);

    /// Four vCPUs, the base of the first of which is taken for good.
    #[test]
    fn siblings_bear_a_visitor_equally() {
        let (rotation, mut here, mut ran, mut borne) = (0b1110, 1, 0, [0; 4]);
        for _ in 0..3_000 {
            let stay = Stay::begin(Duration(ran));
            while !stay.is_over(Duration(ran), QUANTUM) {
                ran += QUANTUM.0;
                borne[here] += QUANTUM.0;
            }
            here = next_in_rotation(rotation, here).unwrap();
        }
        assert_eq!(borne, [0, 50_000, 50_000, 50_000]);
    }

    #[test]
    fn a_visitor_that_waits_for_a_turn_stays() {
        let stay = Stay::begin(Duration(1_000));
        assert!(!stay.is_over(Duration(1_000), QUANTUM), "it has only come");
        assert!(!stay.is_over(Duration(1_010), QUANTUM), "the core yielded to another one");
        assert!(stay.is_over(Duration(1_050), QUANTUM));
    }

    #[test]
    fn a_rotation_begins_anew_behind_its_last_core() {
        assert_eq!(next_in_rotation(0b1010, 1), Some(3));
        assert_eq!(next_in_rotation(0b1010, 3), Some(1));
        assert_eq!(next_in_rotation(0b1010, 2), Some(3), "from a core beside the rotation, too");
        assert_eq!(next_in_rotation(1 << 15 | 1, 15), Some(0));
    }

    #[test]
    fn a_rotation_of_one_core_leads_nowhere() {
        assert_eq!(next_in_rotation(0b10, 1), None);
        assert_eq!(next_in_rotation(0, 1), None);
    }
}
