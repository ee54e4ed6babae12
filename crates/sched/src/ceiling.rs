//! Priorities inside and outside global critical sections.
//!
//! vMPCP (Kim, Wang, Rajkumar, RTSS 2014, Section III-A, rules 3 and 4) raises
//! whatever is in a global critical section (gcs) by a base level above every
//! normal priority: a task within its vCPU, and the vCPU within the system. The
//! order among the raised stays that of their own priorities. A pair that is
//! compared left to right says so without choosing a base level, which some
//! later priority could exceed.

use crate::Priority;

/// A priority, at its ceiling or not; greater is more urgent. For tasks it is
/// the task-level ceiling and is compared within a vCPU, for vCPUs the
/// vCPU-level one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ceiling {
    /// True while a global resource is held.
    pub gcs: bool,
    /// The priority outside critical sections.
    pub priority: Priority,
}

impl Ceiling {
    /// Makes the priority outside global critical sections.
    #[must_use]
    pub const fn normal(priority: Priority) -> Self {
        Self { gcs: false, priority }
    }

    /// Makes the priority inside a global critical section.
    #[must_use]
    pub const fn in_gcs(priority: Priority) -> Self {
        Self { gcs: true, priority }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The pair orders as the paper's sum, whatever base level above all
        /// priorities is taken.
        #[test]
        fn orders_as_base_level_plus_priority(
            a in any::<(bool, u16)>(), b in any::<(bool, u16)>(), above in 1u32..100,
        ) {
            let base = u32::from(u16::MAX) + above;
            let sum = |(gcs, priority)| u32::from(priority) + if gcs { base } else { 0 };
            let pair = |(gcs, priority)| Ceiling { gcs, priority: Priority(priority) };
            prop_assert_eq!(pair(a).cmp(&pair(b)), sum(a).cmp(&sum(b)));
        }
    }
}
