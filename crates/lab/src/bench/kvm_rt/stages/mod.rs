//! The way of an interrupt to its guest, stage by stage (Section 3.1 of the paper).
//!
//! | module | story |
//! | --- | --- |
//! | [`case`] | one run, all of them |
//! | [`machine`] | what boots |
//! | [`marks`] | where stages begin and end |
//! | [`fold`] | the way of one interrupt |
//! | [`mod@run`] | running it |
//! | [`report`], [`checks`] | what was found, and what the paper says of it |
//! | [`smoke`] | some runs as a test |

mod case;
mod checks;
mod fold;
mod machine;
mod marks;
mod report;
mod run;
mod smoke;

pub use case::{Case, cases};
pub use run::{Seen, run};
pub use smoke::scenarios;

use crate::bench::campaign::Findings;

/// Everything that was measured.
pub type All = Findings<Seen>;
