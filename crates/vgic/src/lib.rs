//! The virtual interrupt controller, without hardware: a GICv3, or a GICv2 for guests of a board that has
//! one.
//!
//! Three ideas:
//!
//! - [`bank`]: the state of 32 interrupts as words of atomic bits. One [`Gic`]
//!   per VM holds a bank for each vCPU's private interrupts and eight for the
//!   shared ones. Any core may change bits; nothing ever waits.
//! - [`frames`]: a guest's loads and stores, translated into operations on banks
//!   (`guest_state`); and `requests` to the owner of a vCPU where only the owner
//!   may act.
//! - [`interface`]: what the owner of a vCPU does: choose the best pending
//!   interrupts, put them into list registers, take them back. `listing` is the long
//!   part of that, done in pieces; `exchange` is how a single interrupt changes over.
//!
//! A core that changes something that could concern a vCPU marks the bank's word in
//! that vCPU's *attention* set and then rings its core; the owner looks only at
//! the words so marked. Source: Arm IHI 0069H, chapters 4, 6 and 12; IHI 0048B,
//! chapters 4 and 5, for a GICv2.

#![cfg_attr(not(any(test, feature = "pausing")), no_std)]
#![forbid(unsafe_code)]

mod atomic;
pub mod bank;
mod best;
mod exchange;
pub mod frames;
mod guest_state;
pub mod interface;
mod list_register;
mod listing;
#[cfg(any(test, feature = "pausing"))]
mod pausing;
mod requests;
#[cfg(test)]
mod tests;

#[cfg(any(test, feature = "pausing"))]
pub use pausing::before_each_access;

use abi::MAX_VCPUS_PER_VM;
use abi::platform::{INTID_END, SPI_FIRST, ppi::GRANT};
use atomic::{AtomicU8, AtomicU16, AtomicU32};
use bank::Bank;
use core::sync::atomic::{Ordering, fence};
use guest_state::Field;
use interface::Hardware;
use notes::{Bounded, each};

/// Words of 32 interrupts: word 0 is private, the others are shared.
pub const WORDS: usize = INTID_END as usize / 32;
const SPIS: usize = (INTID_END - SPI_FIRST) as usize;

/// Priorities have this many implemented bits, the upper ones (IHI 0069H,
/// section 4.8; 5 is what the list registers of every GICv3 offer at least).
pub const PRIORITY_MASK: u8 = 0xf8;

/// GICD_CTLR.EnableGrp0.
pub const CTLR_GROUP0: u32 = 1 << 0;
/// GICD_CTLR.EnableGrp1.
pub const CTLR_GROUP1: u32 = 1 << 1;

/// In an attention set, beside the words: [`CpuInterface`](interface::CpuInterface) has stopped
/// in the middle of its work. So whatever looks for news finds that too.
const UNFINISHED: u32 = 1 << 31;

/// The SGIs in word 0; they are edge-triggered whatever a guest writes.
const SGIS: u32 = 0xffff;
/// What is edge-triggered in word 0 after a reset: SGIs, and the interrupt that tells of a grant,
/// behind which there is no line. The end of a level-sensitive one would have to be told to the
/// hypervisor.
const EDGE_AT_RESET: u32 = SGIS | 1 << GRANT;

/// A VM's interrupt controller, seen by all cores.
pub struct Gic {
    ctlr: AtomicU32,
    private: [Private; MAX_VCPUS_PER_VM],
    shared: [Bank; WORDS - 1],
    /// Affinity that each shared interrupt is routed to, which is the index of
    /// the vCPU; any larger number: none.
    route: [AtomicU32; SPIS],
    /// vCPU that has, or had last, each shared interrupt listed or active.
    holder: [AtomicU8; SPIS],
    /// Physical INTID behind each virtual one; 0: none.
    physical: [AtomicU16; INTID_END as usize],
    /// By word: the interrupts that have one.
    linked: [AtomicU32; WORDS],
}

/// What is one vCPU's own. It has cache lines for itself, as every switch of the vCPU reads it,
/// and its address takes a shift, no multiplication.
#[repr(align(128))]
struct Private {
    bank: Bank,
    /// Words that may hold something new for this vCPU.
    attention: AtomicU32,
    /// Not 0: it looks at its attention set before it runs again, so no core has to be told.
    waits: AtomicU32,
}

impl Private {
    const fn new() -> Self {
        Self { bank: Bank::new(), attention: AtomicU32::new(0), waits: AtomicU32::new(0) }
    }
}

/// What a change asks of the rest of the hypervisor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Effects {
    /// vCPUs (bit set by index) that have to look at their attention set.
    pub notify: u8,
    /// A word and bits of shared interrupts that are neither pending nor active
    /// any more, and have a physical counterpart that has to be deactivated.
    pub deactivate: Option<(usize, u32)>,
}

impl Gic {
    /// As after reset.
    #[must_use]
    pub fn new() -> Self {
        let gic = Self::before_reset();
        gic.reset();
        gic
    }

    /// Memory for one, which is of use after a [`Self::reset`]. All bytes are
    /// zero, so that a static one takes no room in the image.
    #[must_use]
    pub const fn before_reset() -> Self {
        Self {
            ctlr: AtomicU32::new(0),
            private: [const { Private::new() }; MAX_VCPUS_PER_VM],
            shared: [const { Bank::new() }; WORDS - 1],
            route: [const { AtomicU32::new(0) }; SPIS],
            holder: [const { AtomicU8::new(0) }; SPIS],
            physical: [const { AtomicU16::new(0) }; INTID_END as usize],
            linked: [const { AtomicU32::new(0) }; WORDS],
        }
    }

    /// Back to the state after reset; which physical interrupts stand behind
    /// virtual ones stays. The VM must have no running vCPU.
    pub fn reset(&self) {
        self.ctlr.store(0, Ordering::Relaxed);
        for private in self.private.iter().one_for::<{ each::SIBLING }, MAX_VCPUS_PER_VM>() {
            private.bank.reset(EDGE_AT_RESET);
            private.attention.store(0, Ordering::Relaxed);
            private.waits.store(1, Ordering::Relaxed);
        }
        self.shared.iter().at_most::<WORDS>().for_each(|bank| bank.reset(0));
        for (route, holder) in self.route.iter().zip(&self.holder).at_most::<SPIS>() {
            route.store(0, Ordering::Relaxed);
            holder.store(0, Ordering::Relaxed);
        }
    }

    /// Says that a physical interrupt stands behind a virtual one: its list
    /// register deactivates both. 0: none does any more.
    pub fn link(&self, intid: u32, physical: u32) {
        self.physical[intid as usize].store(physical as u16, Ordering::Relaxed);
        let (linked, bit) = (&self.linked[intid as usize / 32], 1 << (intid % 32));
        if physical == 0 {
            linked.fetch_and(!bit, Ordering::Relaxed);
        } else {
            linked.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// The physical interrupt behind a virtual one.
    #[must_use]
    pub fn physical(&self, intid: u32) -> Option<u32> {
        match self.physical[intid as usize].load(Ordering::Relaxed) {
            0 => None,
            physical => Some(u32::from(physical)),
        }
    }

    /// Makes an interrupt pending until it is taken: an SGI, a PPI or an SPI
    /// that arrived. `vcpu` matters to private interrupts only.
    pub fn post(&self, vcpu: usize, intid: u32) -> Effects {
        let word = intid as usize / 32;
        let bit = 1 << (intid % 32);
        self.bank(vcpu, word).pending.fetch_or(bit, Ordering::Release);
        self.notify_one(vcpu, intid)
    }

    /// Sets the level of an emulated device's interrupt line. `vcpu` matters to
    /// private interrupts only.
    pub fn set_level(&self, vcpu: usize, intid: u32, high: bool) -> Effects {
        if self.set_line(vcpu, intid, high) {
            self.notify_one(vcpu, intid)
        } else {
            Effects::default()
        }
    }

    /// Like [`Self::set_level`], several times: as long as `level`, which other cores change, is
    /// another one than what was set; at most `TIMES`.
    #[inline(never)]
    pub fn follow_level<const OF: u32, const TIMES: usize>(
        &self,
        vcpu: usize,
        intid: u32,
        level: impl Fn() -> bool,
    ) -> Effects {
        let (mut high, mut changed) = (level(), false);
        for _ in (0..TIMES).one_for::<OF, TIMES>() {
            changed |= self.set_line(vcpu, intid, high);
            fence(Ordering::SeqCst);
            let now = level();
            if now == high {
                break;
            }
            high = now;
        }
        if changed { self.notify_one(vcpu, intid) } else { Effects::default() }
    }

    /// Sets the level of an emulated device's interrupt line. Returns true if it was another one;
    /// then those that it concerns have to be told.
    #[inline(never)]
    fn set_line(&self, vcpu: usize, intid: u32, high: bool) -> bool {
        let word = intid as usize / 32;
        let bit = 1 << (intid % 32);
        let level = &self.bank(vcpu, word).level;
        let before = if high {
            level.fetch_or(bit, Ordering::AcqRel)
        } else {
            level.fetch_and(!bit, Ordering::AcqRel)
        };
        let was_high = before & bit != 0;
        if was_high == high {
            return false;
        }
        // A rising edge latches, if the guest configured the line so.
        let bank = self.bank(vcpu, word);
        if high && bank.edge.load(Ordering::Relaxed) & bit != 0 {
            bank.pending.fetch_or(bit, Ordering::Release);
        }
        true
    }

    /// Returns true if an interrupt is in group 1. `vcpu` matters to private interrupts
    /// only.
    #[must_use]
    pub fn is_group1(&self, vcpu: usize, intid: u32) -> bool {
        let bank = self.bank(vcpu, intid as usize / 32);
        bank.group.load(Ordering::Relaxed) >> (intid % 32) & 1 == 1
    }

    /// A private interrupt's line has fallen before its guest took it: it is
    /// pending no more. Answers whether it was. Its vCPU must have taken its
    /// list registers back.
    pub fn retract(&self, vcpu: usize, intid: u32) -> bool {
        let bit = 1u32 << intid;
        self.private(vcpu).bank.pending.fetch_and(!bit, Ordering::AcqRel) & bit != 0
    }

    /// The vCPU a shared interrupt goes to.
    #[must_use]
    pub fn target(&self, intid: u32) -> Option<usize> {
        let route = self.route.get(intid.checked_sub(SPI_FIRST)? as usize)?;
        let vcpu = route.load(Ordering::Relaxed) as usize;
        (vcpu < MAX_VCPUS_PER_VM).then_some(vcpu)
    }

    fn bank(&self, vcpu: usize, word: usize) -> &Bank {
        if word == 0 { &self.private(vcpu).bank } else { &self.shared[word - 1] }
    }

    /// What is a vCPU's own, by its index in the VM. An index is below the number of vCPUs by
    /// construction; the remainder is in range without a branch.
    #[inline(always)]
    fn private(&self, vcpu: usize) -> &Private {
        debug_assert!(vcpu < MAX_VCPUS_PER_VM);
        &self.private[vcpu % MAX_VCPUS_PER_VM]
    }

    /// Returns true if an interrupt that is listed or active is so on this vCPU.
    fn is_held(&self, vcpu: usize, intid: u32) -> bool {
        intid < SPI_FIRST || self.holder(intid) == vcpu
    }

    fn holder(&self, intid: u32) -> usize {
        self.holder[(intid - SPI_FIRST) as usize].load(Ordering::Relaxed).into()
    }

    fn hold(&self, vcpu: usize, intid: u32) {
        self.holder[(intid - SPI_FIRST) as usize].store(vcpu as u8, Ordering::Release);
    }

    /// Which of these interrupts of a word are this vCPU's, if they are listed or active.
    fn held(&self, vcpu: usize, word: usize, bits: u32) -> u32 {
        if word == 0 {
            return bits;
        }
        let mine = |bit: &u32| self.holder(word as u32 * 32 + bit) == vcpu;
        Bits::of(bits).filter(mine).fold(0, |held, bit| held | 1 << bit)
    }

    /// Which interrupts of a word are active, as far as was seen: on this vCPU, or on any if they
    /// are shared.
    fn active(&self, vcpu: usize, word: usize) -> u32 {
        self.bank(vcpu, word).active.load(Ordering::Acquire)
    }

    /// Which of these interrupts have a physical counterpart.
    fn linked(&self, word: usize, bits: u32) -> u32 {
        bits & self.linked[word].load(Ordering::Relaxed)
    }

    /// Deactivates the physical counterparts of these interrupts.
    pub fn deactivate_linked(&self, hw: &mut impl Hardware, word: usize, bits: u32) {
        for bit in Bits::of(self.linked(word, bits)) {
            self.physical(word as u32 * 32 + bit).into_iter().for_each(|it| hw.deactivate(it));
        }
    }

    /// Marks a word for every vCPU that one of these interrupts goes to, or that
    /// has it listed or active.
    fn notify_word(&self, vcpu: usize, word: usize, bits: u32) -> Effects {
        let mut notify = 0;
        if word == 0 {
            notify = 1u8 << vcpu;
        } else {
            // Pairs with the fence of a core that claims one of them: either it sees
            // the change, or we see its claim.
            fence(Ordering::SeqCst);
            let busy = self.bank(vcpu, word).busy();
            for bit in Bits::of(bits) {
                notify |= self.concerned(word as u32 * 32 + bit, busy);
            }
        }
        self.mark(notify, 1 << word);
        Effects { notify, deactivate: None }
    }

    /// Like [`Self::notify_word`], for one interrupt.
    fn notify_one(&self, vcpu: usize, intid: u32) -> Effects {
        let word = intid as usize / 32;
        let mut notify = 1u8 << vcpu;
        if word == 0 {
            self.mark_one(vcpu, 1);
        } else {
            fence(Ordering::SeqCst);
            notify = self.concerned(intid, self.bank(vcpu, word).busy());
            // The one to which it goes, and the one that has it.
            for vcpu in Bits::of(notify.into()).at_most::<2>() {
                self.mark_one(vcpu as usize, 1 << word);
            }
        }
        Effects { notify, deactivate: None }
    }

    /// The vCPUs that a shared interrupt goes to, or that have it; `busy` is what those of its word
    /// are that any vCPU has.
    fn concerned(&self, intid: u32, busy: u32) -> u8 {
        let mut vcpus = self.target(intid).map_or(0, |target| 1u8 << target);
        if busy >> (intid % 32) & 1 != 0 {
            vcpus |= 1 << self.holder(intid);
        }
        vcpus
    }

    fn mark(&self, vcpus: u8, words: u32) {
        for vcpu in Bits::of(u32::from(vcpus)).at_most::<{ u8::BITS as usize }>() {
            self.mark_one(vcpu as usize, words);
        }
    }

    /// Records that a vCPU is off, or can run and waits for its core: it will look at its attention set when
    /// it has that, so until [`Self::end_wait`] its core need not be told. So it is after a reset.
    pub fn begin_wait(&self, vcpu: usize) {
        self.private(vcpu).waits.store(1, Ordering::Relaxed);
    }

    /// Records that a vCPU is switched on, has its core, or sleeps. Next, its core looks at the attention set: what
    /// was posted before is found there, and a core that posts something from now on finds that
    /// the vCPU's core has to be told.
    #[inline(always)]
    pub fn end_wait(&self, vcpu: usize) {
        self.private(vcpu).waits.store(0, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Returns true if a vCPU's core has to be told of what was posted. A fence, sequentially consistent,
    /// must lie between that and this.
    #[must_use]
    pub fn must_tell(&self, vcpu: usize) -> bool {
        self.private(vcpu).waits.load(Ordering::Relaxed) == 0
    }

    fn mark_one(&self, vcpu: usize, words: u32) {
        self.private(vcpu).attention.fetch_or(words, Ordering::Release);
    }

    /// Which interrupts of a word may be delivered to a vCPU now.
    fn candidates(&self, vcpu: usize, word: usize) -> u32 {
        let bank = self.bank(vcpu, word);
        let mut ready = bank.deliverable(self.ctlr.load(Ordering::Relaxed));
        if word > 0 {
            for bit in Bits::of(ready) {
                if self.target(word as u32 * 32 + bit) != Some(vcpu) {
                    ready &= !(1 << bit);
                }
            }
        }
        ready
    }
}

impl Default for Gic {
    fn default() -> Self {
        Self::new()
    }
}

/// The numbers of the bits that are set, lowest first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bits(pub u32);

impl Bits {
    #[inline(always)]
    pub fn of(bits: u32) -> Self {
        notes::begins::<32, { each::ANYTHING }>();
        Self(bits)
    }
}

impl Iterator for Bits {
    type Item = u32;

    #[inline(always)]
    fn next(&mut self) -> Option<u32> {
        if self.0 == 0 {
            return None;
        }
        // A bit less each time.
        notes::passes::<32, { each::ANYTHING }>();
        let bit = self.0.trailing_zeros();
        self.0 &= self.0 - 1;
        Some(bit)
    }
}
