//! Recalling a vCPU that may be on its way from one core to another.

use crate::{VcpuId, Word};
use core::sync::atomic::{AtomicU64, Ordering};

/// The vCPUs that their bases recall.
///
/// A base that is free again sends a message to the core that owns its vCPU
/// ([`Message::Recalls`](crate::Message::Recalls)). That core may just have sent the vCPU on to
/// a third core, and then drops the message. So the base first sets a bit here, and only then
/// calls [`Location::find`](crate::Location::find). A core that receives a visitor reads the
/// bit after [`Location::arrived`](crate::Location::arrived). By the fences of those two,
/// either the base finds the new owner, or the new owner sees the bit.
///
/// | core | does |
/// | --- | --- |
/// | base | [`want`](Self::want), then finds each owner and sends it a message |
/// | core that receives a visitor | sends it back if it [is wanted](Self::is_wanted) |
/// | base | [`clear`](Self::clear) when it is back, or never left |
#[derive(Debug)]
pub struct Recalls<W = AtomicU64> {
    wanted: W,
}

impl Recalls {
    /// Makes an empty set.
    #[must_use]
    pub const fn new() -> Self {
        Self { wanted: AtomicU64::new(0) }
    }
}

impl Default for Recalls {
    fn default() -> Self {
        Self::new()
    }
}

impl<W: Word> Recalls<W> {
    /// Makes an empty set of a word that is 0.
    #[must_use]
    pub const fn within(wanted: W) -> Self {
        Self { wanted }
    }

    /// Records that these vCPUs (bit set by identifier) are recalled.
    pub fn want(&self, vcpus: u64) {
        self.wanted.fetch_or(vcpus, Ordering::AcqRel);
    }

    /// Returns true if this vCPU is recalled. Exact when called by the core that has just
    /// received it.
    #[must_use]
    pub fn is_wanted(&self, vcpu: VcpuId) -> bool {
        self.wanted.load(Ordering::Relaxed) >> vcpu.0 & 1 == 1
    }

    /// Records that a vCPU is at its base.
    pub fn clear(&self, vcpu: VcpuId) {
        self.wanted.fetch_and(!(1 << vcpu.0), Ordering::AcqRel);
    }
}
