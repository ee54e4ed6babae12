//! Random tasksets as in the experiments of vMPCP (Kim, Wang and Rajkumar, RTSS 2014,
//! section V-A), and which of the paper's four schemes schedule them.
//!
//! | module | story |
//! | --- | --- |
//! | `setting` | Table I, and what we chose where the paper leaves something open |
//! | `draw` | a taskset for a setting and a seed |
//! | `scheme` | PSwO, DSwO, PSnO, DSnO: budgets, then Equation 6 |

mod draw;
mod scheme;
mod setting;

pub use draw::{draw, random};
pub use scheme::{Scheme, schedulable};
pub use setting::{Budgets, Choices, GRAIN_NS, Lockers, Order, Setting, Split};
