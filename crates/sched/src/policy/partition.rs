//! A vCPU that would be displaced is at its fallback from the start.
//!
//! No vCPU of another VM preempts a lock holder, and the VM never uses what the
//! real-time guest leaves of its core. The host places the vCPUs; at run time
//! this is [`super::none`].

use super::Policy;

pub const POLICY: Policy = Policy { lives_at_fallback: true, ..Policy::NONE };
