//! Bounds: which deadlines will be met, computed before anything runs.
//!
//! | module | story |
//! | --- | --- |
//! | [`model`] | vCPUs with budgets, tasks with critical sections, and their JSON |
//! | [`bounds`] | Equations 1 to 16 of vMPCP, and what they say of a system |
//! | [`overheads`] | what EL2 takes, which the equations may contain |
//! | [`answer`] | the same for programs, as JSON |
//! | [`misses`] | what does not hold, in words |
//! | [`budgets`] | the least budgets with which everything holds |
//! | [`random`] | small random systems, for tests of all that is computed |
//! | [`tasksets`] | the random tasksets of the paper's Figures 6 to 10, and what schedules them |
//!
//! All times are whole nanoseconds.

#![forbid(unsafe_code)]

pub mod answer;
pub mod bounds;
pub mod budgets;
pub mod misses;
pub mod model;
pub mod overheads;
pub mod random;
pub mod tasksets;
