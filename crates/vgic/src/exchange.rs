//! How a single interrupt changes over between bank and list register.
//!
//! A private interrupt has one vCPU that may list it. A shared one may be
//! routed away at any time, so its bit in [`Bank::listed`] is a claim: the core
//! that sets it may put the interrupt into a list register, and says so in
//! `Gic::holder`. The claim is given up only after everything else was written
//! to the bank, and then the present target is told, if there is something for
//! it: it may have looked in vain meanwhile.

use crate::bank::Bank;
use crate::best::Choice;
use crate::interface::{CpuInterface, Hardware, ListRegister, MAX_LIST_REGISTERS};
use crate::{Bits, Gic};
use core::sync::atomic::{Ordering, fence};
use notes::{Bounded, each};

impl CpuInterface {
    /// A private interrupt that just arrived, idle so far.
    pub(crate) fn list_arrived(
        &mut self,
        gic: &Gic,
        hw: &mut impl Hardware,
        index: usize,
        intid: u32,
        physical: u32,
    ) {
        let bank = &gic.private(self.vcpu).bank;
        let bit = 1u32 << intid;
        bank.listed.fetch_or(bit, Ordering::AcqRel);
        let choice = Choice::new(gic, self.vcpu, intid);
        let register = describe(
            bank,
            choice,
            ListRegister::PENDING,
            Some(physical),
            /* tell_eoi */ false,
        );
        self.occupy(hw, index, choice.intid(), register);
        self.latched |= 1 << index;
    }

    /// Answers false when it is no longer for this vCPU to take.
    pub(crate) fn list_pending(
        &mut self,
        gic: &Gic,
        hw: &mut impl Hardware,
        index: usize,
        choice: Choice,
    ) -> bool {
        let word = choice.intid() as usize / 32;
        let bank = gic.bank(self.vcpu, word);
        let bit = 1u32 << (choice.intid() % 32);
        if bank.listed.fetch_or(bit, Ordering::AcqRel) & bit != 0 {
            return false;
        }
        if word > 0 && bank.is_active(choice.intid()) {
            self.release(gic, hw, choice.intid());
            return false;
        }
        // The acknowledge clears the latch, whatever the trigger, and not what
        // is latched later: so the list register takes it along.
        let latched = bank.pending.fetch_and(!bit, Ordering::AcqRel) & bit != 0;
        let level = bank.edge.load(Ordering::Relaxed) & bit == 0;
        if word > 0 {
            // What made it a candidate may have changed before it was claimed.
            gic.hold(self.vcpu, choice.intid());
            fence(Ordering::SeqCst);
            let high = level && bank.level.load(Ordering::Relaxed) & bit != 0;
            if gic.target(choice.intid()) != Some(self.vcpu) || !(latched || high) {
                if latched {
                    bank.pending.fetch_or(bit, Ordering::AcqRel);
                }
                self.release(gic, hw, choice.intid());
                return false;
            }
        }
        bank.forget_requests(bit);
        let physical = gic.physical(choice.intid());
        let register = describe(bank, choice, ListRegister::PENDING, physical, level);
        self.occupy(hw, index, choice.intid(), register);
        self.latched |= u32::from(latched) << index;
        true
    }

    /// An interrupt that the guest is dealing with.
    pub(crate) fn list_active(
        &mut self,
        gic: &Gic,
        hw: &mut impl Hardware,
        index: usize,
        choice: Choice,
    ) {
        let bank = gic.bank(self.vcpu, choice.intid() as usize / 32);
        let bit = 1u32 << (choice.intid() % 32);
        bank.listed.fetch_or(bit, Ordering::AcqRel);
        // Pending again: to be listed as such as soon as the guest has ended
        // it. Active and pending at once would not do: a list register with a
        // physical interrupt must not be both, and no other core could see the
        // latch in it.
        let again = bank.pending_bits() & bit != 0;
        let level = bank.edge.load(Ordering::Relaxed) & bit == 0;
        let physical = gic.physical(choice.intid());
        let by_hand = again && physical.is_some();
        let physical = physical.filter(|_| !again);
        let register = describe(bank, choice, ListRegister::ACTIVE, physical, level || again);
        self.occupy(hw, index, choice.intid(), register);
        self.active |= 1 << index;
        self.by_hand |= u32::from(by_hand) << index;
    }

    /// Takes note of the interrupts that the guest has dealt with: their
    /// registers are empty.
    pub fn retire(&mut self, gic: &Gic, hw: &mut impl Hardware) {
        for index in Bits::of(self.used & hw.empty())
            .one_for::<{ each::LIST_REGISTER }, MAX_LIST_REGISTERS>()
        {
            self.used &= !(1 << index);
            self.unlist(gic, hw, index as usize, ListRegister(0));
        }
    }

    /// Updates the bank after an interrupt left its register in this state.
    pub(crate) fn unlist(
        &mut self,
        gic: &Gic,
        hw: &mut impl Hardware,
        index: usize,
        register: ListRegister,
    ) {
        let intid = u32::from(self.intids[index]);
        let bit = 1u32 << (intid % 32);
        let bank = gic.bank(self.vcpu, intid as usize / 32);
        let was = |set: u32| set >> index & 1 != 0;
        let dropped = bank.take_request(&bank.drop_pending, bit);
        if register.is_pending() && was(self.latched) {
            if dropped {
                register.physical().into_iter().for_each(|physical| hw.deactivate(physical));
            } else {
                bank.pending.fetch_or(bit, Ordering::AcqRel);
            }
        }
        if register.is_active() {
            if !was(self.active) {
                bank.running[intid as usize % 32].store(register.priority(), Ordering::Relaxed);
                bank.active.fetch_or(bit, Ordering::AcqRel);
            }
            bank.listed.fetch_and(!bit, Ordering::AcqRel);
            return;
        }
        if was(self.active) {
            bank.active.fetch_and(!bit, Ordering::AcqRel);
            if was(self.by_hand) {
                gic.physical(intid).into_iter().for_each(|physical| hw.deactivate(physical));
            }
        }
        self.release(gic, hw, intid);
    }

    /// Ends active interrupts of a word that are this vCPU's and not listed.
    pub(crate) fn end(&self, gic: &Gic, hw: &mut impl Hardware, word: usize, bits: u32) {
        if bits == 0 {
            return;
        }
        gic.bank(self.vcpu, word).active.fetch_and(!bits, Ordering::AcqRel);
        gic.deactivate_linked(hw, word, bits);
        if word > 0 {
            fence(Ordering::SeqCst);
            for bit in Bits::of(bits & gic.bank(self.vcpu, word).pending_bits()) {
                self.pass_on(gic, hw, word as u32 * 32 + bit);
            }
        }
    }

    /// Ends one active interrupt that is this vCPU's and not listed.
    pub(crate) fn end_one(&self, gic: &Gic, hw: &mut impl Hardware, intid: u32) {
        let bank = gic.bank(self.vcpu, intid as usize / 32);
        bank.active.fetch_and(!(1 << (intid % 32)), Ordering::AcqRel);
        gic.physical(intid).into_iter().for_each(|physical| hw.deactivate(physical));
        self.pass_on_pending(gic, hw, intid);
    }

    /// Ends interrupts of a word that this vCPU held, where register writes have asked for that.
    /// Nothing is listed now. Answers whether there were any.
    pub(crate) fn obey_ends(&self, gic: &Gic, hw: &mut impl Hardware, word: usize) -> bool {
        let bank = gic.bank(self.vcpu, word);
        let asked = gic.held(self.vcpu, word, bank.drop_active.load(Ordering::Acquire));
        if asked == 0 {
            return false;
        }
        let ended = Bank::take_requests(&bank.drop_active, asked);
        self.end(gic, hw, word, ended & bank.active.load(Ordering::Acquire));
        true
    }

    /// Clears what register writes asked to clear of interrupts of a word that this vCPU held.
    /// Nothing is listed now.
    pub(crate) fn obey_clears(&self, gic: &Gic, hw: &mut impl Hardware, word: usize) {
        let bank = gic.bank(self.vcpu, word);
        if word > 0 {
            let asked = gic.held(self.vcpu, word, bank.drop_physical.load(Ordering::Acquire));
            let dropped = Bank::take_requests(&bank.drop_physical, asked);
            gic.deactivate_linked(hw, word, dropped & !bank.active.load(Ordering::Acquire));
            return;
        }
        let asked = bank.drop_pending.load(Ordering::Acquire);
        // For an interrupt that is not linked, it came too late for what was listed.
        let linked = gic.linked(word, Bank::take_requests(&bank.drop_pending, asked));
        if linked != 0 {
            let before = bank.pending.fetch_and(!linked, Ordering::AcqRel) & linked;
            gic.deactivate_linked(hw, word, before & !bank.active.load(Ordering::Acquire));
        }
    }

    /// Gives an inactive interrupt up that was listed. If it is another vCPU's to take, that one has
    /// to look again. Inlined, as the longest way of a doorbell comes by four times.
    #[inline(always)]
    fn release(&self, gic: &Gic, hw: &mut impl Hardware, intid: u32) {
        let bank = gic.bank(self.vcpu, intid as usize / 32);
        bank.listed.fetch_and(!(1 << (intid % 32)), Ordering::AcqRel);
        self.pass_on_pending(gic, hw, intid);
    }

    /// Passes a shared interrupt on that this vCPU has given up, if it is pending.
    fn pass_on_pending(&self, gic: &Gic, hw: &mut impl Hardware, intid: u32) {
        let (word, bit) = (intid as usize / 32, 1 << (intid % 32));
        if word == 0 {
            return;
        }
        fence(Ordering::SeqCst);
        if gic.bank(self.vcpu, word).pending_bits() & bit != 0 {
            self.pass_on(gic, hw, intid);
        }
    }

    /// Has the vCPU to which a pending shared interrupt goes look again, if that is another one.
    fn pass_on(&self, gic: &Gic, hw: &mut impl Hardware, intid: u32) {
        match gic.target(intid) {
            Some(target) if target != self.vcpu => {
                gic.mark_one(target, 1 << (intid / 32));
                hw.notify(1 << target);
            }
            _ => {}
        }
    }

    fn occupy(&mut self, hw: &mut impl Hardware, index: usize, intid: u32, register: ListRegister) {
        hw.write(index, register);
        self.intids[index] = intid as u16;
        let bit = 1 << index;
        self.used |= bit;
        self.latched &= !bit;
        self.active &= !bit;
        self.by_hand &= !bit;
    }
}

fn describe(
    bank: &Bank,
    choice: Choice,
    state: u64,
    physical: Option<u32>,
    tell_eoi: bool,
) -> ListRegister {
    let group1 = bank.group.load(Ordering::Relaxed) >> (choice.intid() % 32) & 1 != 0;
    ListRegister::new(state, choice.intid(), choice.priority(), group1, physical, tell_eoi)
}
