//! Guests: the files they boot from, and what they say on their consoles, each understood in
//! one place.

mod hypervisor;
mod images;
mod linux;
mod probe;
mod sharing;
mod transcript;
mod words;

pub use hypervisor::Hypervisor;
pub use images::Images;
pub use linux::{LinuxProgress, LinuxWork};
pub use probe::ProbeProgress;
pub use sharing::{RanTask, SharedPage, Sharing};
pub use transcript::{Guest, Transcript};
