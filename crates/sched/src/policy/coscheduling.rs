//! The vCPUs of a VM run at the same time or not at all: when one that could run is
//! displaced, the others stop (Ousterhout, 1982; VMware ESX).
//!
//! No sibling spins for a preempted lock holder, but none makes progress either.

use super::{Answers, Policy, Then};

pub const POLICY: Policy =
    Policy { displaced: Answers::if_ready(Then::StopOthers), ..Policy::NONE };
