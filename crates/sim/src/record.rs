//! What became of the tasks.

/// Of one task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Jobs that arrived.
    pub arrived: u64,
    /// Jobs that completed.
    pub completed: u64,
    /// The longest response time, from arrival to completion, ns.
    pub longest: u64,
    /// The shortest, ns; `u64::MAX` before the first.
    pub shortest: u64,
    /// All response times, ns.
    pub sum: u128,
    /// Jobs that completed after their deadline, the end of their period.
    pub late: u64,
}

impl Record {
    pub(crate) const fn new() -> Self {
        Self { arrived: 0, completed: 0, longest: 0, shortest: u64::MAX, sum: 0, late: 0 }
    }

    pub(crate) fn complete(&mut self, response: u64, deadline: Option<u64>) {
        self.completed += 1;
        self.longest = self.longest.max(response);
        self.shortest = self.shortest.min(response);
        self.sum += u128::from(response);
        self.late += u64::from(deadline.is_some_and(|deadline| response > deadline));
    }

    /// The mean response time, ns; none before the first completion.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // a mean is rounded anyway
    pub fn mean(&self) -> Option<f64> {
        (self.completed > 0).then(|| self.sum as f64 / self.completed as f64)
    }
}
