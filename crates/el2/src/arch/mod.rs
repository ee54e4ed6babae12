//! The machine: registers, exception entry, the interrupt controller, timers.
//!
//! Everything above this module is written in terms of it and names no
//! register; it imports nothing from above. Two layers:
//!
//! | module | what it is |
//! | --- | --- |
//! | `aarch64` | instructions: assembly, nothing else |
//! | `fake` | the same over a machine made of memory, for tests on the host |
//! | `sysreg`, `cpu`, `context`, `debug`, `digest`, `monitors`, `timer`, [`gic`], [`uart`], `smmu` | what registers mean |

#[cfg(target_os = "none")]
mod aarch64;
pub mod context;
pub mod cpu;
pub mod debug;
pub mod digest;
#[cfg(test)]
pub mod fake;
pub mod gic;
pub mod monitors;
#[cfg(any(test, feature = "smmu"))]
pub mod smmu;
pub mod sysreg;
pub mod timer;
pub mod uart;

#[cfg(target_os = "none")]
use aarch64 as machine;
#[cfg(test)]
use fake as machine;
pub(crate) use machine::statics::statics;
pub use machine::{atomic, boot, firmware, memory, vectors};

/// What came of switching a core on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Started {
    /// It begins.
    Yes,
    /// It is on: on its way up, or still on its way down.
    IsOn,
    /// The firmware refuses.
    No,
}
