use super::{Displaced, Policy, Then};

/// A vCPU that is displaced leaves only for a core that has nothing to run, so that two
/// vCPUs of a VM seldom take turns on one core (Sukwong and Kim, EuroSys 2011).
///
/// When every core is busy, it waits as under [`super::None`].
#[derive(Clone, Copy, Debug)]
pub struct Balance;

impl Policy for Balance {
    fn displaced(&self, vcpu: Displaced) -> Then {
        if vcpu.ready && vcpu.idle_core { Then::LeaveForIdle } else { Then::Stay }
    }
}
