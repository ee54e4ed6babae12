use super::{Displaced, Policy, Then};

/// The vCPUs of a VM run together or not at all: when one that could run is
/// displaced, the others stop (Ousterhout, 1982; VMware ESX).
///
/// Nobody spins for who does not run, and nobody works meanwhile either.
#[derive(Clone, Copy, Debug)]
pub struct Coscheduling;

impl Policy for Coscheduling {
    fn displaced(&self, vcpu: Displaced) -> Then {
        if vcpu.ready { Then::StopOthers } else { Then::Stay }
    }
}
