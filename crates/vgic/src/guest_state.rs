//! The state of interrupts as guests read and write it, whatever register frame
//! they use.

use crate::{Bits, CTLR_GROUP0, CTLR_GROUP1, Effects, Gic, PRIORITY_MASK, WORDS};
use abi::platform::SPI_FIRST;
use core::sync::atomic::Ordering;
use notes::Bounded;

/// What a guest may read or write of 32 interrupts at once, a bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    Group,
    SetEnable,
    ClearEnable,
    SetPending,
    ClearPending,
    SetActive,
    ClearActive,
}

impl Gic {
    /// Returns which groups are enabled.
    pub(crate) fn control(&self) -> u32 {
        self.ctlr.load(Ordering::Relaxed)
    }

    /// Enables these groups.
    pub(crate) fn set_control(&self, groups: u32) -> Effects {
        self.ctlr.store(groups & (CTLR_GROUP0 | CTLR_GROUP1), Ordering::Release);
        self.mark(u8::MAX, (1 << WORDS) - 1);
        Effects { notify: u8::MAX, deactivate: None }
    }

    /// Reads the group or the enable bits of a word of interrupts, on behalf of a vCPU.
    pub(crate) fn configuration(&self, vcpu: usize, word: usize, field: Field) -> u32 {
        let bank = self.bank(vcpu, word);
        match field {
            Field::Group => bank.group.load(Ordering::Relaxed),
            _ => bank.enabled.load(Ordering::Relaxed),
        }
    }

    /// Reads which interrupts of a word are pending or active, on behalf of a vCPU.
    pub(crate) fn state(&self, vcpu: usize, word: usize, field: Field) -> (u32, Effects) {
        let bank = self.bank(vcpu, word);
        let listed = bank.listed.load(Ordering::Relaxed);
        let effects = self.refresh(vcpu, word, listed);
        let value = match field {
            Field::SetPending | Field::ClearPending => {
                bank.pending_bits() | (listed & !bank.active.load(Ordering::Relaxed))
            }
            _ => bank.active.load(Ordering::Relaxed) & !bank.drop_active.load(Ordering::Relaxed),
        };
        (value, effects)
    }

    /// Writes a field of a word of interrupts, on behalf of a vCPU.
    pub(crate) fn write(&self, vcpu: usize, word: usize, field: Field, value: u32) -> Effects {
        let bank = self.bank(vcpu, word);
        let (mut changed, mut deactivate) = (value, None);
        match field {
            Field::Group => {
                changed = bank.group.swap(value, Ordering::Relaxed) ^ value;
            }
            Field::SetEnable => {
                changed &= !bank.enabled.fetch_or(value, Ordering::AcqRel);
            }
            Field::ClearEnable => {
                changed &= bank.enabled.fetch_and(!value, Ordering::AcqRel);
            }
            Field::SetPending => {
                bank.pending.fetch_or(value, Ordering::AcqRel);
            }
            Field::ClearPending => deactivate = self.clear_pending(bank, word, value),
            Field::SetActive => self.set_active(vcpu, word, value),
            Field::ClearActive => {
                let notify = self.request_deactivation(vcpu, word, value);
                return Effects { notify, deactivate: None };
            }
        }
        Effects { deactivate, ..self.notify_word(vcpu, word, changed) }
    }

    fn set_active(&self, vcpu: usize, word: usize, value: u32) {
        let bank = self.bank(vcpu, word);
        for bit in Bits::of(value & !bank.busy()) {
            // No guest took it, so its end comes after all that were.
            bank.running[bit as usize].store(u8::MAX, Ordering::Relaxed);
            if word > 0 {
                let intid = word as u32 * 32 + bit;
                self.hold(self.target(intid).unwrap_or(vcpu), intid);
            }
        }
        bank.active.fetch_or(value, Ordering::AcqRel);
    }

    /// Asks the vCPUs that have these interrupts listed to take them back, so
    /// that a later read sees what the guest has done with them meanwhile.
    fn refresh(&self, vcpu: usize, word: usize, listed: u32) -> Effects {
        if listed == 0 { Effects::default() } else { self.notify_word(vcpu, word, listed) }
    }

    /// Returns which interrupts of a word are edge-triggered.
    pub(crate) fn triggers(&self, vcpu: usize, word: usize) -> u32 {
        self.bank(vcpu, word).edge.load(Ordering::Relaxed)
    }

    /// Makes those of these interrupts edge-triggered that are in `edge`, the
    /// others level-sensitive. SGIs are edge-triggered whatever is written.
    pub(crate) fn set_triggers(
        &self,
        vcpu: usize,
        word: usize,
        edge: u32,
        interrupts: u32,
    ) -> Effects {
        let bank = self.bank(vcpu, word);
        let writable = if word == 0 { interrupts & !crate::SGIS } else { interrupts };
        let wanted = edge & writable;
        // In two steps: another vCPU may write the other half.
        bank.edge.fetch_or(wanted, Ordering::Relaxed);
        bank.edge.fetch_and(wanted | !writable, Ordering::Relaxed);
        self.notify_word(vcpu, word, writable)
    }

    /// Reads the priorities of `count` interrupts, a byte each.
    pub(crate) fn priorities(&self, vcpu: usize, first: usize, count: u8) -> u64 {
        (0..usize::from(count)).rev().at_most::<8>().fold(0, |value, at| {
            let intid = first + at;
            let priority = &self.bank(vcpu, intid / 32).priority[intid % 32];
            value << 8 | u64::from(priority.load(Ordering::Relaxed))
        })
    }

    /// Writes the priorities of `count` interrupts, a byte each.
    pub(crate) fn set_priorities(
        &self,
        vcpu: usize,
        first: usize,
        count: u8,
        value: u64,
    ) -> Effects {
        let bank = self.bank(vcpu, first / 32);
        let mut changed = 0;
        for at in (0..usize::from(count)).at_most::<8>() {
            let bit = (first + at) % 32;
            let priority = (value >> (8 * at)) as u8 & PRIORITY_MASK;
            if bank.priority[bit].swap(priority, Ordering::Relaxed) != priority {
                changed |= 1 << bit;
            }
        }
        // What is pending already comes in the new order.
        self.notify_word(vcpu, first / 32, changed)
    }

    /// Returns the affinity that a shared interrupt is routed to.
    pub(crate) fn route(&self, intid: u32) -> u32 {
        self.route[(intid - SPI_FIRST) as usize].load(Ordering::Relaxed)
    }

    /// Routes a shared interrupt to an affinity.
    pub(crate) fn set_route(&self, intid: u32, affinity: u32) -> Effects {
        self.route[(intid - SPI_FIRST) as usize].store(affinity, Ordering::Release);
        self.notify_one(0, intid)
    }
}
