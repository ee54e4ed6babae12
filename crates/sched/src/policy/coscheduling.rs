use super::{Displaced, Policy, Then};

/// The vCPUs of a VM run at the same time or not at all: when one that could run is
/// displaced, the others stop (Ousterhout, 1982; VMware ESX).
///
/// No sibling spins for a preempted lock holder, but none makes progress either.
#[derive(Clone, Copy, Debug)]
pub struct Coscheduling;

impl Policy for Coscheduling {
    fn displaced(&self, vcpu: Displaced) -> Then {
        if vcpu.ready { Then::StopOthers } else { Then::Stay }
    }
}
