//! How cores reach each other, and each vCPU wherever it is.
//!
//! The [`Switchboard`] is all that the cores of a machine must agree on for vCPUs to move
//! between them: one mailbox for each core, the [`Location`] of each vCPU, the vCPUs that
//! are wanted back ([`Recalls`]), and which cores are powered down ([`Presence`]). Its
//! methods are the steps of the protocol between cores. Each makes its accesses in the
//! order on which the other steps rely; a core decides between the steps what it does with
//! its own vCPUs. EL2 takes these steps on the hardware's atomics, and the model checker
//! on its own (`switchboard/interleavings.rs`).
//!
//! | a core that | does | and then |
//! | --- | --- | --- |
//! | has something for a vCPU | leaves it where the vCPU's owner finds it, [`find`](Switchboard::find)s the owner | [`send`](Switchboard::send)s it [`Message::Vcpus`] |
//! | gives a vCPU away | leaves the vCPU where its next owner takes it | [`hand_over`](Switchboard::hand_over) |
//! | reads its mail | [`moves`](Switchboard::moves) | [`received`](Switchboard::received) for each vCPU that came, then looks at what was left for it |
//! | wants a vCPU back | [`want`](Switchboard::want), unless the vCPU stays where it was sheltered | [`recall`](Switchboard::recall) |
//! | is asked for a vCPU | [`may_return`](Switchboard::may_return) | [`hand_over`](Switchboard::hand_over) |
//!
//! `send`, `hand_over` and `recall` return true if the receiver has to be woken, which is
//! the caller's matter.

use crate::consolidation::Presence;
use crate::{AtomicCell, Location, Mailbox, Members, Message, Recalls, VcpuId, VcpuSet, Word};
use core::sync::atomic::{AtomicU8, AtomicU64};

/// See the module. For so many cores and vCPUs, of these atomics.
#[derive(Debug)]
pub struct Switchboard<const CORES: usize, const VCPUS: usize, W = AtomicU64, S = AtomicU8> {
    mailboxes: [Mailbox<W>; CORES],
    locations: [Location<S>; VCPUS],
    recalls: Recalls<W>,
    presence: [Presence<S>; CORES],
}

/// What a core is asked to do with a vCPU that moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// The vCPU was given to this core: take it.
    Receive(VcpuId),
    /// The vCPU's base wants it back: give it away, if it is here.
    SendBack(VcpuId),
}

/// The moves that a core was told of, in the order in which it has to make them.
#[derive(Clone, Copy, Debug)]
pub struct Moves {
    arrived: Members,
    recalled: Members,
}

impl Iterator for Moves {
    type Item = Move;

    #[inline]
    fn next(&mut self) -> Option<Move> {
        let id = |member| VcpuId(member as u8);
        if let Some(member) = self.arrived.next() {
            return Some(Move::Receive(id(member)));
        }
        self.recalled.next().map(|member| Move::SendBack(id(member)))
    }
}

/// Why a vCPU is on the core that has received it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// It belongs there.
    Home,
    /// It visits, and may go on.
    Visitor {
        /// Its base has asked for it meanwhile: it is sent back.
        wanted: bool,
    },
    /// Its base is powered down: it stays until it is asked for.
    Sheltered,
}

/// What became of asking for a vCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recall {
    /// The vCPU is here, or on its way here, already.
    Here,
    /// This core was asked for it.
    Asked {
        /// The core that owns the vCPU.
        core: usize,
        /// The core has to be woken.
        wake: bool,
    },
}

impl<const CORES: usize, const VCPUS: usize, W: Word, S: AtomicCell>
    Switchboard<CORES, VCPUS, W, S>
{
    /// Makes a switchboard: no mail, each vCPU where its location says, all cores there.
    #[must_use]
    pub const fn within(
        mailboxes: [Mailbox<W>; CORES],
        locations: [Location<S>; VCPUS],
        recalls: Recalls<W>,
        presence: [Presence<S>; CORES],
    ) -> Self {
        Self { mailboxes, locations, recalls, presence }
    }

    /// Says where a vCPU belongs, before there are several cores.
    pub fn place(&self, id: VcpuId, core: usize) {
        self.location(id).set(core);
    }

    #[inline]
    fn location(&self, id: VcpuId) -> &Location<S> {
        &self.locations[usize::from(id.0)]
    }

    /// Sends a message to a core. Returns true if the core has to be woken.
    #[must_use]
    #[inline]
    pub fn send(&self, core: usize, message: Message, member: usize) -> bool {
        self.mailboxes[core].send(message, member)
    }

    /// Takes what was sent to a core, of one kind. Arrivals and recalls are taken by
    /// [`moves`](Self::moves).
    #[inline]
    pub fn take(&self, core: usize, message: Message) -> Members {
        self.mailboxes[core].take(message)
    }

    /// Takes one member of a kind, if it is there: it was sent for what is over.
    pub fn discard(&self, core: usize, message: Message, member: usize) {
        self.mailboxes[core].discard(message, member);
    }

    /// Returns the core to tell, after something was left for the vCPU.
    #[must_use]
    #[inline]
    pub fn find(&self, id: VcpuId) -> usize {
        self.location(id).find()
    }

    /// Gives a vCPU, which was left where its next owner takes it, to another core. Returns
    /// true if that core has to be woken.
    #[must_use]
    #[inline]
    pub fn hand_over(&self, id: VcpuId, to: usize) -> bool {
        self.location(id).set(to);
        self.send(to, Message::Arrivals, id.0.into())
    }

    /// Takes the moves that this core was told of.
    #[must_use]
    #[inline]
    pub fn moves(&self, core: usize) -> Moves {
        // Recalls first: a recall is sent after the vCPU that it names, so each of those is
        // here already or among the arrivals that are taken next.
        let recalled = self.take(core, Message::Recalls);
        Moves { arrived: self.take(core, Message::Arrivals), recalled }
    }

    /// Says that a core has taken a vCPU whose base is this; `wanders`: it may go on from a
    /// core that is not its base. Next the core looks at what was left for the vCPU: cores
    /// that leave something from now on find this core.
    #[must_use]
    #[inline]
    pub fn received(&self, id: VcpuId, at: usize, base: usize, wanders: bool) -> Received {
        self.location(id).arrived();
        match (at == base, wanders) {
            (true, _) => {
                if wanders {
                    self.recalls.clear(id);
                }
                Received::Home
            }
            // The base may have asked the core that the vCPU was on before.
            (false, true) => Received::Visitor { wanted: self.recalls.is_wanted(id) },
            (false, false) => Received::Sheltered,
        }
    }

    /// Says that these vCPUs are to come back to their base, which asks for each of them
    /// next ([`recall`](Self::recall)).
    #[inline]
    pub fn want(&self, ids: VcpuSet) {
        // A core that receives one of them after this point sees that it is wanted.
        self.recalls.want(ids.bits());
    }

    /// Asks for a vCPU that belongs to this core.
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

    /// Returns true if a vCPU that is at a core goes from there to its base when that asks.
    /// Exact when called by the core that owns the vCPU.
    #[must_use]
    #[inline]
    pub fn may_return(&self, at: usize, base: usize) -> bool {
        base != at && !self.presence[base].is_away()
    }

    /// Says that a core leaves. Called before the first of its vCPUs is given away.
    pub fn depart(&self, core: usize) {
        self.presence[core].depart();
    }

    /// Says that a core is there again. Called before the first of its vCPUs is asked for.
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
