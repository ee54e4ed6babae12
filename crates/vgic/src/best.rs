//! Which interrupts come first.

use crate::interface::MAX_LIST_REGISTERS;
use crate::{Gic, PRIORITY_MASK};
use core::sync::atomic::Ordering;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Choice {
    pub(crate) priority: u8,
    pub(crate) intid: u32,
}

impl Choice {
    pub(crate) fn new(gic: &Gic, vcpu: usize, intid: u32) -> Self {
        let bank = gic.bank(vcpu, intid as usize / 32);
        let priority = bank.priority[intid as usize % 32].load(Ordering::Relaxed) & PRIORITY_MASK;
        Self { priority, intid }
    }

    /// By the priority with which the guest took it.
    pub(crate) fn active(gic: &Gic, vcpu: usize, intid: u32) -> Self {
        let bank = gic.bank(vcpu, intid as usize / 32);
        Self { priority: bank.running[intid as usize % 32].load(Ordering::Relaxed), intid }
    }

    fn urgency(self) -> (u8, u32) {
        (self.priority, self.intid)
    }
}

/// The most urgent few of many, in order, found in one pass.
pub(crate) struct Best {
    chosen: [Choice; MAX_LIST_REGISTERS],
    pub(crate) count: usize,
    limit: usize,
    /// Words of those that were offered and not chosen.
    pub(crate) left_out: u32,
}

impl Best {
    pub(crate) fn new(limit: usize) -> Self {
        Self { chosen: [Choice::default(); MAX_LIST_REGISTERS], count: 0, limit, left_out: 0 }
    }

    pub(crate) fn offer(&mut self, choice: Choice) {
        let mut at = self.count;
        while at > 0 && self.chosen[at - 1].urgency() > choice.urgency() {
            at -= 1;
        }
        let dropped = if self.count < self.limit {
            self.count += 1;
            None
        } else if at == self.limit {
            Some(choice)
        } else {
            Some(self.chosen[self.limit - 1])
        };
        if let Some(dropped) = dropped {
            self.left_out |= 1 << (dropped.intid / 32);
        }
        if at < self.count {
            self.chosen.copy_within(at..self.count - 1, at + 1);
            self.chosen[at] = choice;
        }
    }

    pub(crate) fn chosen(&self) -> &[Choice] {
        &self.chosen[..self.count]
    }
}
