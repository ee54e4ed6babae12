//! A vCPU leaves when it is displaced, and comes back when its base is free
//! (PECCS 2012, section 4.2.3).
//!
//! Sleeping vCPUs leave too, because their timers and interrupts would otherwise wait
//! for the real-time guest. In the thesis (section 4.3.1) it goes to one core that was set
//! beforehand, and is not recalled: it finds out that its base is free when it sleeps.

use super::{Answers, Policy, Then};

/// It may go to any core of its affinity, and on from there; its base recalls it.
pub const POLICY: Policy =
    Policy { displaced: Answers::always(Then::LeaveUntilFree), ..Policy::NONE };

/// It goes to its fallback only.
pub const FIXED: Policy = Policy { keeps_to_fallback: true, ..POLICY };

/// It goes to its fallback only, and back by itself.
pub const LAZY: Policy = Policy {
    displaced: Answers::always(Then::Leave),
    keeps_to_fallback: true,
    returns_by_itself: true,
    ..Policy::NONE
};
