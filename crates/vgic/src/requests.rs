//! What a register write asks of the vCPU that holds an interrupt.
//!
//! GICD_ICPENDR and GICD_ICACTIVER may concern an interrupt that some vCPU has
//! listed or active. Only its owner knows how far the guest there has come, and
//! only the owner may say that it is over: so the writer leaves a request, and
//! the owner obeys when it has taken its list registers back.

use crate::Gic;
use crate::bank::Bank;
use core::sync::atomic::{Ordering, fence};

impl Gic {
    /// Asks the vCPUs that hold these interrupts to deactivate them. Returns the vCPUs
    /// to notify.
    pub(crate) fn request_deactivation(&self, vcpu: usize, word: usize, bits: u32) -> u8 {
        let bank = self.bank(vcpu, word);
        bank.drop_active.fetch_or(bits & bank.busy(), Ordering::AcqRel);
        self.notify_word(vcpu, word, bits).notify
    }

    /// Clears latches. What is listed, its owner clears; and the latch of a
    /// private interrupt with a physical counterpart, because only its core can
    /// deactivate that. Answers what the caller has to deactivate.
    pub(crate) fn clear_pending(
        &self,
        bank: &Bank,
        word: usize,
        value: u32,
    ) -> Option<(usize, u32)> {
        let linked = self.linked(word, value);
        let listed = bank.listed.load(Ordering::Acquire);
        let waiting = bank.pending.load(Ordering::Acquire) & !listed;
        let left = if word == 0 { linked & waiting } else { 0 };
        bank.drop_pending.fetch_or(value & listed | left, Ordering::AcqRel);
        let cleared = bank.pending.fetch_and(!(value & !left), Ordering::AcqRel) & value & !left;
        if word == 0 || cleared & linked == 0 {
            return None;
        }
        let idle = self.orphaned(bank, cleared & linked);
        (idle != 0).then_some((word, idle))
    }

    /// Of shared interrupts whose latch was cleared, those whose physical
    /// counterpart the caller has to deactivate. Where the interrupt is listed
    /// or active, only its owner can tell whether the physical one belongs to
    /// that or, the guest having ended it already, to the latch.
    fn orphaned(&self, bank: &Bank, cleared: u32) -> u32 {
        let held = cleared & bank.busy();
        if held == 0 {
            return cleared;
        }
        bank.drop_physical.fetch_or(held, Ordering::AcqRel);
        // Pairs with the fence in `release`: the owner sees the request, or we
        // see that it gave the interrupt up and will not look.
        fence(Ordering::SeqCst);
        let late = held & !bank.busy();
        cleared & !held | bank.drop_physical.fetch_and(!late, Ordering::AcqRel) & late
    }
}
