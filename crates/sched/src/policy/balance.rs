use super::{Displaced, Policy, Then};

/// Two vCPUs of a VM never take turns on one core: one that is displaced leaves
/// only for a core that has nothing to run (Sukwong and Kim, EuroSys 2011).
///
/// They then run at the same time as often as cores permit, without being made
/// to. When every core is busy, it waits as under [`super::None`].
#[derive(Clone, Copy, Debug)]
pub struct Balance;

impl Policy for Balance {
    fn displaced(&self, vcpu: Displaced) -> Then {
        if vcpu.ready && vcpu.idle_core { Then::LeaveForIdle } else { Then::Stay }
    }
}
