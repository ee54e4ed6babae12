use super::{Displaced, Policy, Then};

/// A vCPU leaves when it is displaced, and comes back when its base is free
/// (PECCS 2012, section 4.2.3).
///
/// Sleeping vCPUs leave too, because their timers and interrupts would otherwise wait
/// for the real-time guest. In the thesis (section 4.3.1) it goes to one core that was set
/// beforehand, and is not recalled: it finds out that its base is free when it sleeps.
#[derive(Clone, Copy, Debug)]
pub struct OnDemand {
    /// True if it may go to any core of its affinity, and on from there; else to its fallback
    /// only.
    pub wanders: bool,
    /// True if its base recalls it; else it goes back by itself.
    pub is_recalled: bool,
}

impl Policy for OnDemand {
    fn displaced(&self, _vcpu: Displaced) -> Then {
        if self.is_recalled { Then::LeaveUntilFree } else { Then::Leave }
    }

    fn keeps_to_fallback(&self) -> bool {
        !self.wanders
    }

    fn returns_by_itself(&self) -> bool {
        !self.is_recalled
    }
}
