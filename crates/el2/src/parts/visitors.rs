//! vCPUs that are here and are based elsewhere.

use sched::{VcpuId, VcpuSet};

/// The visitors of a core: vCPUs that it owns, that are based elsewhere and may move on. They
/// and the [residents](super::Displacement) are the migration candidates: a switch on this
/// core may make them leave.
pub struct Visitors {
    residents: VcpuSet,
    present: VcpuSet,
    /// `residents` and `present`: every switch asks.
    candidates: VcpuSet,
}

impl Visitors {
    /// Makes the part of a core that has no visitors yet, and these residents.
    #[must_use]
    pub const fn new(residents: VcpuSet) -> Self {
        Self { residents, present: VcpuSet::EMPTY, candidates: residents }
    }

    /// Returns the vCPUs that may leave because of a switch on this core.
    #[must_use]
    #[inline]
    pub fn candidates(&self) -> VcpuSet {
        self.candidates
    }

    /// Returns the visitors.
    #[must_use]
    #[inline]
    pub fn present(&self) -> VcpuSet {
        self.present
    }

    /// Records that a visitor has arrived.
    pub fn came(&mut self, id: VcpuId) {
        self.present.insert(id);
        self.candidates.insert(id);
    }

    /// Records that a visitor has left. Returns true if it was the last.
    #[must_use]
    pub fn left(&mut self, id: VcpuId) -> bool {
        self.present.remove(id);
        self.candidates = self.residents | self.present;
        self.present.is_empty()
    }

    /// Asserts what stands at the type. `owned`: the vCPUs of this core.
    #[cfg(any(test, feature = "checked"))]
    pub fn check(&self, owned: VcpuSet) {
        assert_eq!(self.candidates, self.residents | self.present, "the migration candidates");
        assert!(!self.present.meets(self.residents), "a vCPU visits the core it belongs to");
        assert!(self.present.is_within(owned), "a visitor has left unnoticed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESIDENT: VcpuId = VcpuId(1);
    const VISITOR: VcpuId = VcpuId(5);

    #[test]
    fn residents_and_visitors_are_candidates() {
        let mut visitors = Visitors::new(VcpuSet::of(RESIDENT));
        assert!(visitors.candidates().has(RESIDENT) && visitors.present().is_empty());
        visitors.came(VISITOR);
        visitors.came(VcpuId(6));
        visitors.check(VcpuSet::of(VISITOR) | VcpuSet::of(VcpuId(6)));
        assert!(visitors.candidates().has(VISITOR));
        assert!(!visitors.left(VISITOR), "another one is here");
        assert!(visitors.left(VcpuId(6)), "that was the last");
        assert_eq!(visitors.candidates(), VcpuSet::of(RESIDENT));
        visitors.check(VcpuSet::EMPTY);
    }
}
