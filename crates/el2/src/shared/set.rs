//! Sets that several cores change.
//!
//! An [`AtomicSet`] is the shared word of a [`Set`] of cores, VMs or siblings: code that asks or
//! changes one names members. Ranks, of which a mutex has more, are bits of its own words.

use crate::arch::atomic::AtomicU32;
use abi::{MAX_PCPUS, MAX_VCPUS_PER_VM, MAX_VMS};
use core::marker::PhantomData;
use core::sync::atomic::Ordering;
use notes::each;
use sched::{Member, Set};

const _: () = assert!(MAX_PCPUS <= 32 && MAX_VCPUS_PER_VM <= 32 && MAX_VMS <= 32);

/// A vCPU of a VM, by its index there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sibling(pub usize);

/// vCPUs of one VM.
pub type SiblingSet = Set<Sibling>;

/// Returns the vCPUs for which a VM's interrupt controller has set bits
/// ([`vgic::Effects::notify`]).
#[must_use]
#[inline(always)]
pub fn siblings(bits: u8) -> SiblingSet {
    SiblingSet::from_bits(bits.into())
}

/// A VM, by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VmIndex(pub usize);

/// VMs.
pub type VmSet = Set<VmIndex>;

impl Member for Sibling {
    #[inline(always)]
    fn number(self) -> usize {
        self.0
    }

    #[inline(always)]
    fn numbered(number: usize) -> Self {
        Self(number)
    }

    #[inline(always)]
    fn loop_begins() {
        notes::begins::<MAX_VCPUS_PER_VM, { each::SIBLING }>();
    }

    #[inline(always)]
    fn loop_passes() {
        notes::passes::<MAX_VCPUS_PER_VM, { each::SIBLING }>();
    }
}

impl Member for VmIndex {
    #[inline(always)]
    fn number(self) -> usize {
        self.0
    }

    #[inline(always)]
    fn numbered(number: usize) -> Self {
        Self(number)
    }

    #[inline(always)]
    fn loop_begins() {
        notes::begins::<MAX_VMS, { each::VM }>();
    }

    #[inline(always)]
    fn loop_passes() {
        notes::passes::<MAX_VMS, { each::VM }>();
    }
}

/// See the module.
pub struct AtomicSet<M> {
    bits: AtomicU32,
    members: PhantomData<M>,
}

impl<M: Member> AtomicSet<M> {
    /// Makes an empty set.
    #[must_use]
    pub const fn new() -> Self {
        Self { bits: AtomicU32::new(0), members: PhantomData }
    }

    /// Returns its members.
    #[inline(always)]
    pub fn load(&self, order: Ordering) -> Set<M> {
        Set::from_bits(self.bits.load(order).into())
    }

    /// Replaces all members.
    #[inline(always)]
    pub fn store(&self, members: Set<M>, order: Ordering) {
        self.bits.store(members.bits() as u32, order);
    }

    /// Adds a member. Returns those from before.
    #[inline(always)]
    pub fn insert(&self, member: M, order: Ordering) -> Set<M> {
        let bits = Set::of(member).bits() as u32;
        Set::from_bits(self.bits.fetch_or(bits, order).into())
    }

    /// Removes a member, if it is there. Returns those from before.
    #[inline(always)]
    pub fn remove(&self, member: M, order: Ordering) -> Set<M> {
        let bits = Set::of(member).bits() as u32;
        Set::from_bits(self.bits.fetch_and(!bits, order).into())
    }
}

impl<M: Member> Default for AtomicSet<M> {
    fn default() -> Self {
        Self::new()
    }
}
