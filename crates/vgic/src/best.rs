//! Which interrupts come first.

use crate::interface::MAX_LIST_REGISTERS;
use crate::{Gic, PRIORITY_MASK};
use core::sync::atomic::Ordering;
use notes::{Rounds, each};

/// An interrupt and its priority as one number, so that the more urgent of two is the smaller:
/// the priority above the INTID.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Choice(u32);

impl Choice {
    const PRIORITY_SHIFT: u32 = 16;

    const fn with(priority: u8, intid: u32) -> Self {
        Self((priority as u32) << Self::PRIORITY_SHIFT | intid)
    }

    pub(crate) fn new(gic: &Gic, vcpu: usize, intid: u32) -> Self {
        let bank = gic.bank(vcpu, intid as usize / 32);
        let priority = bank.priority[intid as usize % 32].load(Ordering::Relaxed) & PRIORITY_MASK;
        Self::with(priority, intid)
    }

    /// By the priority with which the guest took it.
    pub(crate) fn active(gic: &Gic, vcpu: usize, intid: u32) -> Self {
        let bank = gic.bank(vcpu, intid as usize / 32);
        Self::with(bank.running[intid as usize % 32].load(Ordering::Relaxed), intid)
    }

    pub(crate) const fn priority(self) -> u8 {
        (self.0 >> Self::PRIORITY_SHIFT) as u8
    }

    pub(crate) const fn intid(self) -> u32 {
        self.0 & ((1 << Self::PRIORITY_SHIFT) - 1)
    }

    const fn word(self) -> u32 {
        1 << (self.intid() / 32)
    }
}

/// The most urgent few of many, in order, found in one pass.
pub(crate) struct Best {
    chosen: [Choice; MAX_LIST_REGISTERS],
    count: u8,
    limit: u8,
    /// Words of those that were offered and not chosen.
    pub(crate) left_out: u32,
}

impl Best {
    /// Keeps none, before [`Self::restart`].
    pub(crate) const NONE: Self =
        Self { chosen: [Choice(0); MAX_LIST_REGISTERS], count: 0, limit: 0, left_out: 0 };

    /// Begins anew, keeping `limit`, at most [`MAX_LIST_REGISTERS`]. What stood there is not
    /// cleared: nothing reads beyond the count.
    pub(crate) fn restart(&mut self, limit: usize) {
        self.limit = limit.min(MAX_LIST_REGISTERS) as u8;
        (self.count, self.left_out) = (0, 0);
    }

    pub(crate) fn offer(&mut self, choice: Choice) {
        let mut at = usize::from(self.count);
        if self.count < self.limit {
            self.count += 1;
        } else {
            let Some(last) = at.checked_sub(1).map(|last| self.chosen[last]) else {
                self.left_out |= choice.word();
                return;
            };
            if last < choice {
                self.left_out |= choice.word();
                return;
            }
            self.left_out |= last.word();
            at -= 1;
        }
        let mut rounds = Rounds::<MAX_LIST_REGISTERS, { each::LIST_REGISTER }>::begin();
        while at > 0 && self.chosen[at - 1] > choice {
            rounds.pass();
            self.chosen[at] = self.chosen[at - 1];
            at -= 1;
        }
        self.chosen[at] = choice;
    }

    pub(crate) fn chosen(&self) -> &[Choice] {
        &self.chosen[..usize::from(self.count)]
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// As many were chosen as were wanted.
    pub(crate) const fn is_full(&self) -> bool {
        self.count == self.limit
    }
}
