//! When other cores are told that this one idles.

use sched::Instant;

/// Cores with visitors are told once in each rest that this core idles, and not again
/// before it had something to run: two cores with sleeping visitors would keep each
/// other awake.
pub struct IdleNews {
    /// A vCPU that could come here asks.
    wanted: bool,
    /// When the rest began of which others were told.
    told: Instant,
}

impl IdleNews {
    /// `wanted`: a vCPU may come to this core that has a choice.
    #[must_use]
    pub const fn new(wanted: bool) -> Self {
        Self { wanted, told: Instant(u64::MAX) }
    }

    /// Returns true if other cores have to know when this one idles.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.wanted
    }

    /// The core rests since then. Returns true if others have to be told.
    #[must_use]
    pub fn rests_since(&mut self, since: Instant) -> bool {
        let is_new = self.told != since;
        self.told = since;
        is_new
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
    }
}
