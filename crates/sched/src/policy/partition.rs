use super::Policy;

/// A vCPU that would be displaced is at its fallback from the start.
///
/// No vCPU of another VM preempts a lock holder, and the VM never uses what the
/// real-time guest leaves of its core. The host places the vCPUs; at run time
/// this is [`super::None`].
#[derive(Clone, Copy, Debug)]
pub struct Partition;

impl Policy for Partition {
    fn lives_at_fallback(&self) -> bool {
        true
    }
}
