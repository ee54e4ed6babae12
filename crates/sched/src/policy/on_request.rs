//! A vCPU goes where it is asked to go, and stays there until it is asked again (migration on
//! request; PECCS 2012, section 4.2.1).
//!
//! The guest asks by a call, or an operator from outside. The description says to which cores it
//! may go. When another vCPU takes its core, it waits.

use super::Policy;

pub const POLICY: Policy = Policy { moves_on_request: true, ..Policy::NONE };
