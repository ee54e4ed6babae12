//! Messages between cores: bits that cannot overflow.
//!
//! Every core has one [`Mailbox`]. Each kind of message is a 64-bit set, and a
//! message is a member of it (such as a vCPU or a VM), so sending twice before the
//! receiver looks is the same as sending once. No sender waits, and no message is
//! refused. The alternative, a queue for each pair of cores, can be full.
//!
//! What a message refers to must be written before the message is sent;
//! [`Mailbox::send`] and [`Mailbox::take`] order the two.

use core::sync::atomic::{AtomicU64, Ordering};
use notes::each;

/// The kinds of messages to a core, in the order in which it deals with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Message {
    /// The receiver owns these vCPUs from now on (to the core to which they migrate).
    Arrivals,
    /// The receiver sends these vCPUs back to their bases (to their owner).
    Recalls,
    /// These VMs' vCPUs may run, or may not any more (to every core).
    Coscheduled,
    /// The receiver switches its vCPUs of these VMs off, and reports that.
    HaltVms,
    /// A vCPU of each of these VMs is halted (to the VM's coordinator).
    HaltedVms,
    /// These VMs cannot go on (to the VM's coordinator).
    VmsFailed,
    /// These VMs asked to be reset (to the VM's coordinator).
    VmsReset,
    /// These VMs asked to be switched off (to the VM's coordinator).
    VmsOff,
    /// Something may have changed of what raises these vCPUs (to their base).
    Sections,
    /// These vCPUs have posted interrupts or were switched on.
    Vcpus,
    /// These cores have nothing to run (to cores that have visitors).
    IdleCores,
    /// The receiver, their consolidation target, switches these cores on again (to itself).
    AwayCores,
    /// These VMs' consoles have output (to the core that drives the UART).
    Consoles,
}

impl Message {
    /// How many kinds there are.
    pub const KINDS: usize = Self::Consoles as usize + 1;
    /// All of them.
    pub const IN_ORDER: [Self; Self::KINDS] = [
        Self::Arrivals,
        Self::Recalls,
        Self::Coscheduled,
        Self::HaltVms,
        Self::HaltedVms,
        Self::VmsFailed,
        Self::VmsReset,
        Self::VmsOff,
        Self::Sections,
        Self::Vcpus,
        Self::IdleCores,
        Self::AwayCores,
        Self::Consoles,
    ];

    /// How many kinds are [rare](Self::is_rare).
    pub const RARE_KINDS: usize = {
        let (mut kind, mut rare) = (0, 0);
        while kind < Self::KINDS {
            rare += Self::IN_ORDER[kind].is_rare() as usize;
            kind += 1;
        }
        rare
    };

    /// Returns true if such messages are sent seldom: a mailbox says which of these kinds it has, while
    /// a reader looks for the others each time.
    #[must_use]
    #[inline(always)]
    pub const fn is_rare(self) -> bool {
        !matches!(self, Self::Arrivals | Self::Recalls | Self::Vcpus)
    }
}

/// The atomic word that a mailbox is made of. There is one on hardware; a model checker has
/// another.
pub trait Word {
    /// Returns the value.
    fn load(&self, order: Ordering) -> u64;
    /// Exchanges the value.
    fn swap(&self, value: u64, order: Ordering) -> u64;
    /// Adds bits, and returns what was there.
    fn fetch_or(&self, bits: u64, order: Ordering) -> u64;
    /// Keeps these bits only, and returns what was there.
    fn fetch_and(&self, bits: u64, order: Ordering) -> u64;
}

impl Word for AtomicU64 {
    #[inline]
    fn load(&self, order: Ordering) -> u64 {
        self.load(order)
    }

    #[inline]
    fn swap(&self, value: u64, order: Ordering) -> u64 {
        self.swap(value, order)
    }

    #[inline]
    fn fetch_or(&self, bits: u64, order: Ordering) -> u64 {
        self.fetch_or(bits, order)
    }

    #[inline]
    fn fetch_and(&self, bits: u64, order: Ordering) -> u64 {
        self.fetch_and(bits, order)
    }
}

/// The messages that one core has not yet read. Each has cache lines for itself: cores write to
/// one while another core reads its own.
#[derive(Debug)]
#[repr(align(128))]
pub struct Mailbox<W = AtomicU64> {
    /// The rare kinds of which there may be messages, a bit each: it is added after the first message
    /// of a kind, so that a reader looks at few sets.
    rare: W,
    sets: [W; Message::KINDS],
}

impl Mailbox {
    /// Makes an empty mailbox.
    #[must_use]
    pub const fn new() -> Self {
        Self::within(AtomicU64::new(0), [const { AtomicU64::new(0) }; Message::KINDS])
    }
}

impl<W: Word> Mailbox<W> {
    /// Makes an empty mailbox of words that are 0.
    #[must_use]
    pub const fn within(rare: W, sets: [W; Message::KINDS]) -> Self {
        Self { rare, sets }
    }

    /// Adds `member` (0 to 63) to a kind. Returns true if it is new. Only then must the
    /// receiver be woken: else the sender that added it does so.
    #[inline]
    pub fn send(&self, kind: Message, member: usize) -> bool {
        debug_assert!(member < 64);
        self.send_all(kind, 1 << (member & 63))
    }

    /// Adds some members, a bit each, to a kind. Returns true if one of them is new.
    #[inline]
    pub fn send_all(&self, kind: Message, members: u64) -> bool {
        let is_new = members & !self.sets[kind as usize].fetch_or(members, Ordering::AcqRel) != 0;
        if is_new && kind.is_rare() {
            self.rare.fetch_or(1 << kind as usize, Ordering::AcqRel);
        }
        is_new
    }

    /// Returns the [rare](Message::is_rare) kinds of which there may be messages, a bit each. All of
    /// these have to be [taken](Self::take) then: a sender that adds to one does not say so again.
    #[inline]
    #[must_use]
    pub fn take_rare(&self) -> Members {
        // Most looks find none; a load is cheaper than an exchange.
        if self.rare.load(Ordering::Relaxed) == 0 {
            return Members::of(0);
        }
        Members::of(self.rare.swap(0, Ordering::AcqRel))
    }

    /// Takes all members of a kind, leaving it empty.
    pub fn take(&self, kind: Message) -> Members {
        let set = &self.sets[kind as usize];
        // Most looks find nothing; a load is cheaper than an exchange.
        if set.load(Ordering::Relaxed) == 0 {
            return Members::of(0);
        }
        Members::of(set.swap(0, Ordering::AcqRel))
    }

    /// Takes those of these members of a kind, a bit each, that it has.
    pub fn take_of(&self, kind: Message, of: u64) -> Members {
        let set = &self.sets[kind as usize];
        if set.load(Ordering::Relaxed) & of == 0 {
            return Members::of(0);
        }
        Members::of(set.fetch_and(!of, Ordering::AcqRel) & of)
    }
}

impl Default for Mailbox {
    fn default() -> Self {
        Self::new()
    }
}

/// The members of a set, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Members(pub u64);

impl Members {
    /// Returns the members of the set that a word of bits stands for.
    #[inline(always)]
    #[must_use]
    pub fn of(bits: u64) -> Self {
        notes::begins::<64, { each::ANYTHING }>();
        Self(bits)
    }
}

impl Iterator for Members {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        // A bit less each time.
        notes::passes::<64, { each::ANYTHING }>();
        let member = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        Some(member)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    #[test]
    fn sending_twice_is_sending_once() {
        let mailbox = Mailbox::new();
        assert!(mailbox.send(Message::Vcpus, 3));
        assert!(!mailbox.send(Message::Vcpus, 3));
        assert!(mailbox.send(Message::Vcpus, 63));
        assert_eq!(mailbox.take(Message::Vcpus).collect::<Vec<_>>(), [3, 63]);
        assert_eq!(mailbox.take(Message::Vcpus).count(), 0);
        assert!(mailbox.send(Message::Vcpus, 3), "a member taken is new again");
    }

    #[test]
    fn each_kind_stands_where_its_number_says() {
        let numbers = Message::IN_ORDER.map(|kind| kind as usize);
        assert!(numbers.into_iter().eq(0..Message::KINDS));
    }

    #[test]
    fn kinds_do_not_mix() {
        let mailbox = Mailbox::new();
        mailbox.send(Message::VmsReset, 1);
        assert_eq!(mailbox.take(Message::VmsOff).count(), 0);
        assert_eq!(mailbox.take(Message::VmsReset).count(), 1);
    }

    /// Each message beside each other one: 832 of them, sent, sent again and taken.
    #[test]
    fn every_pair_of_messages_is_two() {
        let all = || Message::IN_ORDER.into_iter().flat_map(|kind| (0..64).map(move |m| (kind, m)));
        for one in all() {
            for other in all() {
                let mailbox = Mailbox::new();
                assert!(mailbox.send(one.0, one.1));
                assert_eq!(mailbox.send(other.0, other.1), one != other, "{one:?} {other:?}");
                assert!(!mailbox.send(one.0, one.1), "{one:?} {other:?}");
                for kind in Message::IN_ORDER {
                    let sent = |message: &(Message, usize)| message.0 == kind;
                    let mut left: Vec<usize> =
                        [one, other].into_iter().filter(sent).map(|message| message.1).collect();
                    left.sort_unstable();
                    left.dedup();
                    assert!(mailbox.take(kind).eq(left), "{one:?} {other:?}");
                }
            }
        }
    }

    /// Protects the only ordering the protocol relies on: data written before a
    /// send is seen after the take, and no send that answered "new" is lost.
    #[test]
    fn nothing_is_lost_between_threads() {
        use core::sync::atomic::AtomicUsize;
        const ROUNDS: usize = 20_000;
        let mailbox = Mailbox::new();
        let posted: [AtomicUsize; 4] = [const { AtomicUsize::new(0) }; 4];
        std::thread::scope(|scope| {
            for (member, count) in posted.iter().enumerate() {
                let mailbox = &mailbox;
                scope.spawn(move || {
                    for _ in 0..ROUNDS {
                        count.fetch_add(1, Ordering::Relaxed);
                        mailbox.send(Message::Vcpus, member);
                    }
                });
            }
            let mut received = 0;
            while received < 4 * ROUNDS {
                for member in mailbox.take(Message::Vcpus) {
                    received += posted[member].swap(0, Ordering::Relaxed);
                }
            }
            assert_eq!(received, 4 * ROUNDS);
        });
    }
}
