//! Traces: what EL2 recorded of a run ([`abi::trace`]), kept in a file and read again.
//!
//! | module | story |
//! | --- | --- |
//! | `subject` | names and budgets of what is traced |
//! | `ring` | one pCPU's ring, followed while the machine runs |
//! | `events` | what a guest records of itself, followed while the machine runs |
//! | `latest` | the latest turns of each core, while the machine runs |
//! | `recorder` | all of them, and guests' samples, into a file |
//! | `file` | that file, read |
//! | `history` | what the records mean: which vCPU had which core when, and which held what |
//! | `guests` | what guests' own events mean: which task had which vCPU when, and what was marked |
//! | `tally` | how often each kind of record occurs, to be compared with counters |
//! | `drawing` | the history as a timeline |
//! | `perfetto` | the history as Perfetto reads it |

mod drawing;
mod events;
mod file;
mod guests;
mod history;
mod latest;
mod perfetto;
mod recorder;
mod ring;
mod subject;
mod tally;

pub use file::{Events, FILE, Samples, Trace};
pub use guests::{Guests, Marker, TaskTurn};
pub use history::{Flow, History, Hold, Mark, Phase, State, Turn};
pub use latest::{Latest, LatestTurn};
pub use recorder::{Recorder, Sources};
#[cfg(test)]
pub(crate) use subject::tests::vcpu;
pub use subject::{Subject, Vcpu};
pub use tally::{GuestTally, Tally};
