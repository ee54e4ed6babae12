//! A vCPU that is displaced waits where it is.
//!
//! This costs nothing, and its siblings spin if it holds a lock.

use super::Policy;

pub const POLICY: Policy = Policy::NONE;
