use super::Policy;

/// A vCPU that would be displaced lives at its fallback from the start.
///
/// Never preempts a lock holder for another VM's sake, and never uses what the
/// real-time guest leaves of its core. The host moves the vCPUs; at run time
/// this is [`super::None`].
#[derive(Clone, Copy, Debug)]
pub struct Partition;

impl Policy for Partition {
    fn lives_at_fallback(&self) -> bool {
        true
    }
}
