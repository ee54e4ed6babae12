use super::Policy;

/// A vCPU that is displaced waits where it is.
///
/// This costs nothing, and its siblings spin if it holds a lock.
#[derive(Clone, Copy, Debug)]
pub struct None;

impl Policy for None {}
