//! The protocol by which vCPUs move between cores, and messages reach them.
//!
//! The [`Switchboard`] has what the cores of a machine share for that: one mailbox for each
//! core, the [`Location`] of each vCPU, the vCPUs that are recalled ([`Recalls`]), and which
//! cores are powered down ([`Presence`]). Its methods are the steps of the protocol. Each
//! makes its accesses in the order on which the other steps rely; between the steps, a core
//! decides what it does with its own vCPUs. EL2 takes these steps on the hardware's atomics,
//! and a model checker on its own (`switchboard/interleavings.rs`).
//!
//! | a core that | does | and then |
//! | --- | --- | --- |
//! | has something for a vCPU | writes it where the vCPU's owner finds it, [`find`](Switchboard::find)s the owner | [`send`](Switchboard::send)s it [`Message::Vcpus`] |
//! | hands a vCPU over | puts the reference where the next owner takes it | [`hand_over`](Switchboard::hand_over) |
//! | reads its [`mailbox`](Switchboard::mailbox) | [`moves`](Mailbox::take_moves) | [`received`](Switchboard::received) for each vCPU that came, then reads what was written for it |
//! | recalls a vCPU | [`want`](Switchboard::want), unless the vCPU is on the consolidation target | [`recall`](Switchboard::recall) |
//! | is sent a recall | [`may_return`](Switchboard::may_return) | [`hand_over`](Switchboard::hand_over) |
//!
//! `send`, `hand_over` and `recall` return true if the receiver has to be woken; the caller
//! does that.

use crate::consolidation::Presence;
use crate::{AtomicCell, Location, Mailbox, Members, Message, Recalls, VcpuId, VcpuSet, Word};
use core::sync::atomic::{AtomicU8, AtomicU64};

/// See the module: for so many cores and vCPUs, made of these atomics.
#[derive(Debug)]
pub struct Switchboard<const CORES: usize, const VCPUS: usize, W = AtomicU64, S = AtomicU8> {
    mailboxes: [Mailbox<W>; CORES],
    locations: [Location<S>; VCPUS],
    recalls: Recalls<W>,
    presence: [Presence<S>; CORES],
}

/// Why a vCPU is on the core that has received it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// The core is its base.
    AtBase,
    /// It is a visitor, and may move on.
    Visitor {
        /// The base has recalled it meanwhile: it is sent back.
        wanted: bool,
    },
    /// The base is powered down: it stays until it is recalled.
    Consolidated,
}

/// What a recall has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recall {
    /// The vCPU is here, or on its way here, already.
    Here,
    /// The core that owns the vCPU was sent a message.
    Asked {
        /// The core that owns the vCPU.
        core: usize,
        /// The core has to be woken.
        wake: bool,
    },
}

impl<W: Word> Mailbox<W> {
    /// Takes the vCPUs that have arrived, and those that are recalled; arrivals come first.
    #[must_use]
    #[inline]
    pub fn take_moves(&self) -> [Members; 2] {
        // Recalls first: a vCPU is handed over before it is recalled, so each of these is
        // here already or among the arrivals that are taken next.
        let recalled = self.take(Message::Recalls);
        [self.take(Message::Arrivals), recalled]
    }
}

impl<const CORES: usize, const VCPUS: usize, W: Word, S: AtomicCell>
    Switchboard<CORES, VCPUS, W, S>
{
    /// Makes a switchboard: no messages, each vCPU where its location says, all cores on.
    #[must_use]
    pub const fn within(
        mailboxes: [Mailbox<W>; CORES],
        locations: [Location<S>; VCPUS],
        recalls: Recalls<W>,
        presence: [Presence<S>; CORES],
    ) -> Self {
        Self { mailboxes, locations, recalls, presence }
    }

    /// Sets where a vCPU is, before several cores run.
    #[inline(never)]
    pub fn place(&self, id: VcpuId, core: usize) {
        self.location(id).set(core);
    }

    #[inline]
    fn location(&self, id: VcpuId) -> &Location<S> {
        &self.locations[usize::from(id.0) % VCPUS]
    }

    /// Sends a message to a core. Returns true if the core has to be woken.
    #[must_use]
    #[inline]
    pub fn send(&self, core: usize, message: Message, member: usize) -> bool {
        self.mailbox(core).send(message, member)
    }

    /// Returns a core's mailbox, for the core to read.
    #[must_use]
    #[inline]
    pub fn mailbox(&self, core: usize) -> &Mailbox<W> {
        debug_assert!(core < CORES);
        &self.mailboxes[core % CORES]
    }

    /// Returns the core to which to send a message, after something was written for the vCPU.
    #[must_use]
    #[inline]
    pub fn find(&self, id: VcpuId) -> usize {
        self.location(id).find()
    }

    /// Hands a vCPU over to another core; its reference is where that core takes it. Returns
    /// true if that core has to be woken.
    #[must_use]
    #[inline]
    pub fn hand_over(&self, id: VcpuId, to: usize) -> bool {
        self.location(id).set(to);
        self.send(to, Message::Arrivals, id.0.into())
    }

    /// Records that the core `at` has received a vCPU with this base; `relocatable`: it may move on
    /// from a core that is not its base. Next, the core reads what was written for the vCPU:
    /// cores that write something from now on find this core.
    #[must_use]
    #[inline]
    pub fn received(&self, id: VcpuId, at: usize, base: usize, relocatable: bool) -> Received {
        self.location(id).arrived();
        match (at == base, relocatable) {
            (true, _) => {
                if relocatable {
                    self.recalls.clear(id);
                }
                Received::AtBase
            }
            // The base's message may have gone to the core where the vCPU was before.
            (false, true) => Received::Visitor { wanted: self.recalls.is_wanted(id) },
            (false, false) => Received::Consolidated,
        }
    }

    /// Records that these vCPUs are recalled. Next, their base calls [`recall`](Self::recall)
    /// for each of them.
    #[inline]
    pub fn want(&self, ids: VcpuSet) {
        // A core that receives one of them after this point sees that it is recalled.
        self.recalls.want(ids.bits());
    }

    /// Returns true if a vCPU is recalled. Exact when called by the core that owns it.
    #[must_use]
    #[inline]
    pub fn is_recalled(&self, id: VcpuId) -> bool {
        self.recalls.is_wanted(id)
    }

    /// Recalls a vCPU, on the core that is its base.
    #[must_use]
    #[inline]
    pub fn recall(&self, id: VcpuId, base: usize) -> Recall {
        let core = self.find(id);
        if core == base {
            self.recalls.clear(id);
            return Recall::Here;
        }
        Recall::Asked { core, wake: self.send(core, Message::Recalls, id.0.into()) }
    }

    /// Returns true if a vCPU at a core goes to its base when the base recalls it. Exact when
    /// called by the core that owns the vCPU.
    #[must_use]
    #[inline]
    pub fn may_return(&self, at: usize, base: usize) -> bool {
        base != at && !self.presence[base].is_away()
    }

    /// Records that a core leaves. Called before it hands the first of its vCPUs over.
    pub fn depart(&self, core: usize) {
        self.presence[core].depart();
    }

    /// Records that a core is back. Called before it recalls the first of its vCPUs.
    pub fn come_back(&self, core: usize) {
        self.presence[core].come_back();
    }

    /// Returns true if a core has left. Exact when called by the core that owns one of its
    /// vCPUs.
    #[must_use]
    pub fn is_away(&self, core: usize) -> bool {
        self.presence[core].is_away()
    }
}

#[cfg(test)]
mod interleavings;
