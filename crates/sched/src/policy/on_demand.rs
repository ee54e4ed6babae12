use super::{Displaced, Policy, Then};

/// A vCPU leaves when it is displaced, and comes back when its base is free
/// (PECCS 2012, section 4.2.3).
///
/// Sleeping vCPUs leave too, because their timers and interrupts would otherwise wait
/// for the real-time guest.
#[derive(Clone, Copy, Debug)]
pub struct OnDemand;

impl Policy for OnDemand {
    fn displaced(&self, _vcpu: Displaced) -> Then {
        Then::LeaveUntilFree
    }
}
