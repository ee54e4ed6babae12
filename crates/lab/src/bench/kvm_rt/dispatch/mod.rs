//! How late a real-time process of Linux's is (Section 5.3 of the paper, Figures 4 to 7): `cyclictest` in stock and
//! in PREEMPT_RT Linux, alone on the board, and as a guest beside another Linux that sleeps or works.
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
pub use machine::CYCLICTEST;
pub use run::{Seen, run};
pub use smoke::scenario;

use crate::bench::campaign::Findings;

/// Everything that was measured.
pub type All = Findings<Seen>;
