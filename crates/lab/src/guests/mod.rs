//! Guests: the files they boot from, and what they say on their consoles and in traces, each
//! understood in one place.

mod calibration;
mod calls;
mod cyclictest;
mod debian;
mod freertos;
mod gaps;
mod hypervisor;
mod images;
mod linux;
mod marks;
mod metronome;
mod probe;
mod selftests;
mod sharing;
mod tail;
mod transcript;
mod u_boot;
mod verdicts;
mod waker;
pub(crate) mod words;

#[cfg(test)]
pub(crate) use calibration::tests::lines as calibration_lines;

pub(crate) use calibration::summed;
pub use calibration::{Cache, CalibrationProgress, Measurement, Times};
pub use calls::TimedCall;
pub use cyclictest::{CyclictestProgress, missed_periods};
pub use debian::{DebianProgress, SAY};
pub use freertos::{FreertosProgress, Lateness, Rounds, Spread};
pub use gaps::{GapsProgress, Watched};
pub use hypervisor::Hypervisor;
pub use images::Images;
pub use linux::{Build, Cycles, LinuxProgress, LinuxWork, Locks, Wakes};
pub use marks::Mark;
pub use metronome::MetronomeProgress;
pub use probe::{Beat, ProbeProgress};
pub use selftests::SelftestsProgress;
pub use sharing::{RanTask, SharedPage, Sharing};
pub use tail::Tail;
pub use transcript::{Guest, Transcript};
pub use u_boot::UBootProgress;
pub use verdicts::{Verdict, Verdicts};
pub use waker::WakerProgress;
