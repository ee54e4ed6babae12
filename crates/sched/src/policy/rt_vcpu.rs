use super::{Displaced, Needs, Policy, Then};

/// For the real-time VM: one vCPU of another guest may rank above it, and it
/// moves to another core instead of waiting (vlk, section 4.3).
#[derive(Clone, Copy, Debug)]
pub struct RtVcpu;

impl Policy for RtVcpu {
    fn needs(&self) -> Needs {
        Needs { refuge: true, leaves_when_displaced: true, for_realtime: true, ..Needs::default() }
    }

    fn displaced(&self, _vcpu: Displaced) -> Then {
        Then::LeaveUntilFree
    }
}
