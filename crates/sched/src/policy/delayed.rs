//! A vCPU that displaces one whose guest asks not to be preempted waits until the guest has
//! stopped asking, or sleeps, up to a limit (delayed preemption).
//!
//! The guest asks while it holds a lock for which others would spin: by a call (PECCS 2012,
//! section 4.1), or in memory that it shares with EL2 (Uhlig and others, VM 2004; thesis,
//! section 2.2.2). Or it knows nothing of that, and its kernel counts such locks anyway. So no lock
//! holder is preempted within the limit, and the real-time guest pays with its latency.
//!
//! A guest that masks its interrupts may count as one that asks, too: what a core does that has no
//! interrupt priorities to separate guests by (vlk, section 4.1.1).

use super::{Policy, Request};

/// The guest asks in this way.
pub const fn by(request: Request) -> Policy {
    Policy { request, ..Policy::NONE }
}
