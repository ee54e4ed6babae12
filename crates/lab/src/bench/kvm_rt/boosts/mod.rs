//! Soft real-time work beside a guest that uses what is left (Sections 4, 5.4 and 5.5 of the paper): what a
//! priority, a core of one's own, and [boosts](sched::Boost) each bring and cost.
//!
//! | module | story |
//! | --- | --- |
//! | [`case`] | one run, all of them |
//! | [`machine`] | what boots |
//! | [`mod@run`] | running it |
//! | [`report`], [`checks`] | what was found, and what the paper says of it |
//! | [`smoke`] | one run as a test |

mod case;
mod checks;
mod machine;
mod report;
mod run;
mod smoke;

pub use case::{Case, cases};
pub use run::{Seen, run};
pub use smoke::scenarios;

use crate::bench::campaign::Findings;

/// Everything that was measured.
pub type All = Findings<Seen>;
