use super::{Displaced, Policy, Then};

/// For the real-time VM itself: a vCPU of another VM may have a higher priority, and the
/// real-time vCPU goes to another core instead of waiting (vlk, section 4.3).
#[derive(Clone, Copy, Debug)]
pub struct RtVcpu;

impl Policy for RtVcpu {
    fn for_realtime(&self) -> bool {
        true
    }

    fn displaced(&self, _vcpu: Displaced) -> Then {
        Then::LeaveUntilFree
    }
}
