//! Bounds: which deadlines will be met, computed before anything runs.
//!
//! | module | story |
//! | --- | --- |
//! | [`model`] | vCPUs with budgets, tasks with critical sections, and their JSON |
//!
//! All times are whole nanoseconds.

#![forbid(unsafe_code)]

pub mod model;
