//! Messages that a core has taken and not dealt with yet.
//!
//! A core deals with one message after the other, and may stop between two. It takes no new ones
//! before it has dealt with all that it has: a sender without end delays no message of others.

use crate::mailbox::{Mailbox, Members, Message, Word};
use notes::Bounded;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unread {
    /// Which kinds there are, by number.
    kinds: u16,
    /// The members of each kind that there is.
    sets: [u64; Message::KINDS],
}

impl Unread {
    /// There are none.
    #[must_use]
    pub const fn new() -> Self {
        Self { kinds: 0, sets: [0; Message::KINDS] }
    }

    /// Returns true if there are none.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.kinds == 0
    }

    /// Takes what is in a mailbox, once there are none from before.
    #[inline(never)]
    pub fn take_from<W: Word>(&mut self, mailbox: &Mailbox<W>) {
        if !self.is_empty() {
            return;
        }
        let [arrived, recalled] = mailbox.take_moves();
        self.has(Message::Arrivals, arrived);
        self.has(Message::Recalls, recalled);
        for kind in Message::IN_ORDER.into_iter().skip(2).at_most::<{ Message::KINDS }>() {
            self.has(kind, mailbox.take(kind));
        }
    }

    #[inline(always)]
    fn has(&mut self, kind: Message, members: Members) {
        if members.0 != 0 {
            self.sets[kind as usize] = members.0;
            self.kinds |= 1 << kind as usize;
        }
    }

    /// Returns the next message: a kind and a member.
    #[inline]
    pub fn pop(&mut self) -> Option<(Message, usize)> {
        let kind = *Message::IN_ORDER.get(self.kinds.trailing_zeros() as usize)?;
        let set = &mut self.sets[kind as usize];
        let member = set.trailing_zeros() as usize & 63;
        *set &= set.wrapping_sub(1);
        if *set == 0 {
            self.kinds &= !(1 << kind as usize);
        }
        Some((kind, member))
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    fn all(unread: &mut Unread) -> Vec<(Message, usize)> {
        core::iter::from_fn(|| unread.pop()).collect()
    }

    #[test]
    fn messages_come_in_the_order_of_their_kinds() {
        let (mailbox, mut unread) = (Mailbox::new(), Unread::new());
        let sent = [
            (Message::Vcpus, 63),
            (Message::Arrivals, 5),
            (Message::Recalls, 0),
            (Message::Vcpus, 0),
            (Message::VmsOff, 7),
        ];
        sent.iter().for_each(|&(kind, member)| assert!(mailbox.send(kind, member)));
        unread.take_from(&mailbox);
        assert_eq!(all(&mut unread), [sent[1], sent[2], sent[4], sent[3], sent[0]]);
        assert!(unread.is_empty());
        assert_eq!(unread, Unread::new());
    }

    /// One that is dealt with may be sent again at once, for ever.
    #[test]
    fn what_is_sent_again_delays_nothing() {
        let (mailbox, mut unread) = (Mailbox::new(), Unread::new());
        mailbox.send(Message::Sections, 1);
        mailbox.send(Message::Vcpus, 9);
        unread.take_from(&mailbox);
        assert_eq!(unread.pop(), Some((Message::Sections, 1)));
        assert!(mailbox.send(Message::Sections, 1), "it was taken, so this is new");
        unread.take_from(&mailbox);
        assert_eq!(unread.pop(), Some((Message::Vcpus, 9)));
        assert_eq!(unread.pop(), None);
        unread.take_from(&mailbox);
        assert_eq!(all(&mut unread), [(Message::Sections, 1)]);
    }
}
