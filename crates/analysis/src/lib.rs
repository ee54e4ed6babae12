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
//!
//! All times are whole nanoseconds.

#![forbid(unsafe_code)]

pub mod answer;
pub mod bounds;
pub mod budgets;
pub mod misses;
pub mod model;
pub mod overheads;
