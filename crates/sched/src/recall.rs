//! Wanting a vCPU back that may be on its way from one core to another.

use crate::{VcpuId, Word};
use core::sync::atomic::{AtomicU64, Ordering};

/// vCPUs that their bases want back.
///
/// A base that is free again tells the core that owns its vCPU
/// ([`Message::Recalls`](crate::Message::Recalls)). That core may just have sent the vCPU on to
/// a third core, and then drops the message. So the base first leaves a bit here, and only
/// then asks [`Location::find`](crate::Location::find) which core to tell. A core that receives
/// a visitor looks here after [`Location::arrived`](crate::Location::arrived). By the fences of
/// those two, either the base tells the new owner, or the new owner sees the bit.
///
/// | core | does |
/// | --- | --- |
/// | base | [`want`](Self::want), then finds and tells each one's owner |
/// | core that takes a visitor in | sends it back if it [is wanted](Self::is_wanted) |
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

    /// Says that these vCPUs (bit set by identifier) are to come back.
    pub fn want(&self, vcpus: u64) {
        self.wanted.fetch_or(vcpus, Ordering::AcqRel);
    }

    /// Returns true if this vCPU is to come back. Exact when called by the core that has just
    /// received it.
    #[must_use]
    pub fn is_wanted(&self, vcpu: VcpuId) -> bool {
        self.wanted.load(Ordering::Relaxed) >> vcpu.0 & 1 == 1
    }

    /// Says that a vCPU is where it is wanted.
    pub fn clear(&self, vcpu: VcpuId) {
        self.wanted.fetch_and(!(1 << vcpu.0), Ordering::AcqRel);
    }
}
