//! Wanting a vCPU back that may be on its way from one core to another.

use crate::{VcpuId, Word};
use core::sync::atomic::AtomicU64;

/// vCPUs that their bases want back.
///
/// A base that is free again tells the owner of its vCPU ([`Message::Recalls`]
/// (crate::Message::Recalls)). That one may just have sent it on to a third core, and
/// drops the message then. So the base first leaves a bit here, and only then asks
/// [`Place::find`](crate::Place::find) whom to tell; who takes a visitor in looks here
/// behind [`Place::arrived`](crate::Place::arrived). By the fences of those two either
/// the base tells the new owner, or the new owner sees the bit.
///
/// | who | |
/// | --- | --- |
/// | base | [`want`](Self::want), then finds and tells each one's owner |
/// | core that takes a visitor in | sends it back if it [is wanted](Self::is_wanted) |
/// | base | [`settle`](Self::settle) when it is back, or never left |
#[derive(Debug)]
pub struct Recalls<W = AtomicU64> {
    wanted: W,
}

impl Recalls {
    /// None.
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
    /// In a word that is 0.
    #[must_use]
    pub const fn within(wanted: W) -> Self {
        Self { wanted }
    }

    /// These (bit set by identifier) are to come back.
    pub fn want(&self, vcpus: u64) {
        self.wanted.add(vcpus);
    }

    /// Whether this one is to come back; exact to who has just taken it in.
    #[must_use]
    pub fn is_wanted(&self, vcpu: VcpuId) -> bool {
        self.wanted.peek() >> vcpu.0 & 1 == 1
    }

    /// It is where it is wanted.
    pub fn settle(&self, vcpu: VcpuId) {
        self.wanted.remove(1 << vcpu.0);
    }
}
