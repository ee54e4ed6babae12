//! When other cores are told that this one idles.

use sched::Instant;

/// When this core idles, it sends a message to cores with visitors, and no second one before
/// it had something to run: two cores with sleeping visitors would otherwise wake each
/// other for ever.
pub struct IdleNews {
    /// Some vCPU could come here that has a choice of cores.
    wanted: bool,
    /// When the idle time began for which messages were sent.
    told: Instant,
}

impl IdleNews {
    /// Makes the part. `wanted`: a vCPU may come to this core that has a choice of cores.
    #[must_use]
    pub const fn new(wanted: bool) -> Self {
        Self { wanted, told: Instant(u64::MAX) }
    }

    /// Returns true if other cores have to know when this one idles.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.wanted
    }

    /// Records that the core idles since then. Returns true if messages have to be sent.
    #[must_use]
    pub fn rests_since(&mut self, since: Instant) -> bool {
        let is_new = self.told != since;
        self.told = since;
        is_new
    }

    /// Stops if it has told of an idle time that has not begun. `since`: when the present turn or
    /// idle time began.
    #[cfg(any(test, feature = "checked"))]
    pub fn check(&self, since: Instant) {
        let nothing = self.told == Instant(u64::MAX);
        assert!(nothing || self.wanted, "other cores are told of an idle time for nothing");
        assert!(nothing || self.told <= since, "other cores are told of an idle time to come");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rest_is_told_once() {
        let mut news = IdleNews::new(true);
        assert!(news.rests_since(Instant(0)));
        assert!(!news.rests_since(Instant(0)), "an interrupt came, and nothing ran");
        assert!(news.rests_since(Instant(9)));
        news.check(Instant(9));
    }
}
