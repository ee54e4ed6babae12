use super::Policy;

/// A vCPU that is displaced waits where it is.
///
/// Costs nothing, and leaves lock holders behind.
#[derive(Clone, Copy, Debug)]
pub struct None;

impl Policy for None {}
