//! Messages that a core has taken and not dealt with yet.
//!
//! A core deals with one message after the other, and may stop between two. It takes no new ones
//! before it has dealt with all that it has: a sender without end delays no message of others.
//! But what was sent to some vCPUs comes before everything else, or their neighbours could delay it
//! by any number of messages.

use crate::mailbox::{Mailbox, Message, Word};
use notes::Bounded;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unread {
    /// Which of the sets have members, a bit each.
    kinds: u16,
    /// [`Message::Vcpus`] to the vCPUs that come first; then the members of each kind.
    sets: [u64; 1 + Message::KINDS],
    /// The others have waited for what comes first: it is their turn.
    passed: bool,
    /// The vCPUs that come even before others that come first, a bit each.
    top: u64,
}

/// The kinds of the sets, in the order in which a core deals with them.
const KINDS: [Message; 1 + Message::KINDS] = {
    let mut kinds = [Message::Vcpus; 1 + Message::KINDS];
    let mut kind = 0;
    while kind < Message::KINDS {
        kinds[1 + kind] = Message::IN_ORDER[kind];
        kind += 1;
    }
    kinds
};
/// The set of what comes first.
const FIRST: usize = 0;

impl Unread {
    /// There are none. `top`: the vCPUs that come even before others that come first, a bit each.
    #[must_use]
    pub const fn new(top: u64) -> Self {
        Self { kinds: 0, sets: [0; 1 + Message::KINDS], passed: false, top }
    }

    /// Returns true if there are none.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.kinds == 0
    }

    /// Takes what is in a mailbox, once there are none from before. `first`: the vCPUs that come
    /// first, a bit each; `waits`: those that wait, whose messages stay there.
    #[inline(never)]
    pub fn take_from<W: Word>(&mut self, mailbox: &Mailbox<W>, first: u64, waits: u64) {
        if !self.is_empty() {
            return;
        }
        let [arrived, recalled] = mailbox.take_moves();
        self.has(1 + Message::Arrivals as usize, arrived.0);
        self.has(1 + Message::Recalls as usize, recalled.0);
        self.has(1 + Message::Vcpus as usize, mailbox.take(Message::Vcpus).0);
        for kind in mailbox.take_rare().at_most::<{ Message::RARE_KINDS }>() {
            let Some(&kind) = Message::IN_ORDER.get(kind) else { break };
            self.has(1 + kind as usize, mailbox.take(kind).0);
        }
        if waits != 0 {
            let _ = self.give_back(mailbox, waits);
        }
        let set = 1 + Message::Vcpus as usize;
        let first = self.sets[set] & first;
        if first != 0 {
            self.has(FIRST, first);
            self.sets[set] &= !first;
            self.kinds &= !(u16::from(self.sets[set] == 0) << set);
        }
    }

    /// Returns true if there are some, and what comes first may pass them: unless they
    /// [have waited](Self::take_first_from) for that the last time, so that they are dealt with, too.
    #[must_use]
    #[inline(always)]
    pub fn may_be_passed(&mut self) -> bool {
        let has_waited = core::mem::take(&mut self.passed);
        !self.is_empty() && !has_waited
    }

    /// Takes what comes first of a mailbox though there are others from before. Returns true if there is
    /// something that comes first. `passed`: the others wait in any case, for something else.
    #[inline(never)]
    pub fn take_first_from<W: Word>(
        &mut self,
        mailbox: &Mailbox<W>,
        first: u64,
        passed: bool,
    ) -> bool {
        let members = self.sets[FIRST] | mailbox.take_of(Message::Vcpus, first).0;
        self.has(FIRST, members);
        self.passed = members != 0 || passed;
        members != 0
    }

    /// Puts what was sent to these vCPUs, a bit each, back into a mailbox. Returns true if something of
    /// that is new there.
    #[inline(never)]
    pub fn give_back<W: Word>(&mut self, mailbox: &Mailbox<W>, of: u64) -> bool {
        let mut back = 0;
        for set in [FIRST, 1 + Message::Vcpus as usize] {
            back |= self.sets[set] & of;
            self.sets[set] &= !of;
            self.kinds &= !(u16::from(self.sets[set] == 0) << set);
        }
        mailbox.send_all(Message::Vcpus, back)
    }

    #[inline(always)]
    fn has(&mut self, set: usize, members: u64) {
        if members != 0 {
            self.sets[set] = members;
            self.kinds |= 1 << set;
        }
    }

    /// Returns the next message's vCPU, if that is one that comes first.
    #[must_use]
    #[inline]
    pub fn first(&self) -> Option<usize> {
        let set = self.sets[FIRST];
        (set != 0).then(|| self.first_of(set))
    }

    /// Returns the vCPU of a set of those that come first with which a core deals next.
    #[inline(always)]
    fn first_of(&self, set: u64) -> usize {
        let top = set & self.top;
        (if top != 0 { top } else { set }).trailing_zeros() as usize & 63
    }

    /// Returns the next message: a kind and a member.
    #[inline]
    pub fn pop(&mut self) -> Option<(Message, usize)> {
        let first = self.kinds.trailing_zeros() as usize;
        let kind = *KINDS.get(first)?;
        let set = self.sets[first];
        let member =
            if first == FIRST { self.first_of(set) } else { set.trailing_zeros() as usize & 63 };
        self.sets[first] = set & !(1 << member);
        if self.sets[first] == 0 {
            self.kinds &= !(1 << first);
        }
        Some((kind, member))
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    /// vCPU 62 comes before others that come first.
    const TOP: u64 = 1 << 62;

    fn all(unread: &mut Unread) -> Vec<(Message, usize)> {
        core::iter::from_fn(|| unread.pop()).collect()
    }

    #[test]
    fn messages_come_in_the_order_of_their_kinds() {
        let (mailbox, mut unread) = (Mailbox::new(), Unread::new(TOP));
        let sent = [
            (Message::Vcpus, 63),
            (Message::Arrivals, 5),
            (Message::Recalls, 0),
            (Message::Vcpus, 0),
            (Message::VmsOff, 7),
        ];
        sent.iter().for_each(|&(kind, member)| assert!(mailbox.send(kind, member)));
        unread.take_from(&mailbox, 0, 0);
        assert_eq!(all(&mut unread), [sent[1], sent[2], sent[4], sent[3], sent[0]]);
        assert!(unread.is_empty());
        assert_eq!(unread, Unread::new(TOP));
    }

    #[test]
    fn what_is_sent_to_some_vcpus_comes_first() {
        let (mailbox, mut unread) = (Mailbox::new(), Unread::new(TOP));
        let (kind, first) = (Message::Vcpus, 1 << 63 | 1 << 9);
        mailbox.send(Message::Arrivals, 1);
        [0, 9, 10, 63].iter().for_each(|&member| assert!(mailbox.send(kind, member)));
        unread.take_from(&mailbox, first, 0);
        assert_eq!(unread.pop(), Some((kind, 9)));
        assert_eq!(unread.pop(), Some((kind, 63)));
        assert_eq!(unread.pop(), Some((Message::Arrivals, 1)));
        // It is sent again, for ever.
        let mut after = Vec::new();
        for _ in 0..5 {
            for member in [1, 9] {
                mailbox.send(kind, member);
            }
            if unread.may_be_passed() {
                assert!(unread.take_first_from(&mailbox, first, false));
            }
            after.extend(unread.pop());
        }
        assert_eq!(after, [(kind, 9), (kind, 0), (kind, 9), (kind, 10)]);
        unread.take_from(&mailbox, first, 0);
        assert_eq!(
            all(&mut unread),
            [(kind, 9), (kind, 1)],
            "others stay in the mailbox until then"
        );
    }

    #[test]
    fn of_those_that_come_first_some_come_before_the_others() {
        let (mailbox, mut unread) = (Mailbox::new(), Unread::new(TOP));
        let (kind, first) = (Message::Vcpus, TOP | 1 << 9 | 1 << 63);
        [0, 9, 62, 63].iter().for_each(|&member| assert!(mailbox.send(kind, member)));
        unread.take_from(&mailbox, first, 0);
        assert_eq!(unread.first(), Some(62));
        assert_eq!(all(&mut unread), [62, 9, 63, 0].map(|member| (kind, member)));
    }

    #[test]
    fn looking_for_what_has_not_come_takes_no_turn() {
        let (mailbox, mut unread) = (Mailbox::new(), Unread::new(TOP));
        let (kind, first) = (Message::Vcpus, 1 << 9);
        mailbox.send(kind, 0);
        unread.take_from(&mailbox, first, 0);
        assert!(unread.may_be_passed() && !unread.take_first_from(&mailbox, first, false));
        mailbox.send(kind, 9);
        assert!(unread.may_be_passed() && unread.take_first_from(&mailbox, first, false));
        assert_eq!(
            (unread.first(), unread.pop(), unread.first()),
            (Some(9), Some((kind, 9)), None)
        );
        assert!(!unread.may_be_passed(), "it is the others' turn");
        assert!(unread.may_be_passed() && !unread.take_first_from(&mailbox, first, true));
        assert!(!unread.may_be_passed(), "they have waited for something else");
        assert_eq!(all(&mut unread), [(kind, 0)]);
        assert!(!unread.may_be_passed(), "there are none");
    }

    #[test]
    fn what_is_given_back_comes_again() {
        let (mailbox, mut unread) = (Mailbox::new(), Unread::new(TOP));
        let kind = Message::Vcpus;
        [1, 2, 3, 9].iter().for_each(|&member| assert!(mailbox.send(kind, member)));
        unread.take_from(&mailbox, 1 << 9, 0);
        mailbox.send(kind, 2);
        assert!(!unread.give_back(&mailbox, 1 << 2), "it was sent again meanwhile");
        assert!(unread.give_back(&mailbox, 1 << 1 | 1 << 9), "both are new");
        assert_eq!(all(&mut unread), [(kind, 3)]);
        unread.take_from(&mailbox, 0, 0);
        assert!(unread.give_back(&mailbox, !0));
        assert_eq!(unread, Unread::new(TOP), "nothing is left");
        unread.take_from(&mailbox, 0, 1 << 2);
        assert_eq!(all(&mut unread), [(kind, 1), (kind, 9)], "what waits stays in the mailbox");
        unread.take_from(&mailbox, 0, 0);
        assert_eq!(all(&mut unread), [(kind, 2)]);
    }

    /// One that is dealt with may be sent again at once, for ever.
    #[test]
    fn what_is_sent_again_delays_nothing() {
        let (mailbox, mut unread) = (Mailbox::new(), Unread::new(TOP));
        mailbox.send(Message::Sections, 1);
        mailbox.send(Message::Vcpus, 9);
        unread.take_from(&mailbox, 0, 0);
        assert_eq!(unread.pop(), Some((Message::Sections, 1)));
        assert!(mailbox.send(Message::Sections, 1), "it was taken, so this is new");
        unread.take_from(&mailbox, 0, 0);
        assert_eq!(unread.pop(), Some((Message::Vcpus, 9)));
        assert_eq!(unread.pop(), None);
        unread.take_from(&mailbox, 0, 0);
        assert_eq!(all(&mut unread), [(Message::Sections, 1)]);
    }
}
