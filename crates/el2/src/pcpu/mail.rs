//! Messages between cores.

use super::Pcpu;
use crate::arch::gic::{self, Doorbell};
use crate::arch::{cpu, timer};
use crate::parts::Mask;
use crate::shared::{BOARD, POWER, Sibling, SiblingSet, VMS, siblings};
use abi::MAX_PCPUS;
use notes::{Bounded, Rounds};
use sched::{CoreSet, Member, Members, Message, VcpuId, VcpuSet};
use vgic::Effects;

impl Pcpu {
    /// Reads the messages for this core, and does what they ask for. If interrupts come meanwhile,
    /// one that is no doorbell is taken, and doorbells are rung again: they might come before it
    /// for ever. The others are rung for, too, when a message has woken a vCPU that is to have the
    /// core. New messages are not taken before all that were taken earlier are dealt with, but for
    /// what may wake a real-time vCPU.
    pub fn read_mail(&mut self, doorbell: Doorbell) {
        let (left, pends) = self.read_until_interrupted();
        let mut ended = 0;
        let mut intid = if pends { gic::acknowledge() } else { gic::SPECIAL };
        let mut rounds = Rounds::<{ Doorbell::ALL.len() }>::begin();
        while Doorbell::with(intid).is_some() && ended >> intid & 1 == 0 {
            rounds.pass();
            self.end_doorbell(intid);
            ended |= 1 << intid;
            intid = gic::acknowledge();
        }
        if Doorbell::with(intid).is_some() {
            self.end_doorbell(intid);
        } else if intid < gic::SPECIAL {
            self.take(intid);
        }
        let again = ended | u64::from(left) << doorbell as u32;
        for doorbell in Members::of(again).at_most::<{ Doorbell::ALL.len() }>() {
            gic::ring(self.bells[self.index], doorbell as u32);
        }
    }

    /// Returns whether messages are left, or may be in the mailbox, and whether an interrupt
    /// pends.
    fn read_until_interrupted(&mut self) -> (bool, bool) {
        if self.unread.may_be_passed() && self.takes_out_of_turn() {
            // Next time it goes on: this is done once before something is read.
            return (true, true);
        }
        let (mut is_new, mut has_read) = (false, false);
        loop {
            if let Some((message, member)) = self.unread.pop() {
                has_read |= self.read(message, member);
            } else if is_new {
                return (false, false);
            } else {
                is_new = true;
                let realtime = self.precedence.realtime().bits();
                let waits = if self.mask.keeps_ordinary() { self.waiting().bits() } else { 0 };
                self.unread.take_from(BOARD.mailbox(self.index), realtime, waits);
                if let Some(member) = self.unread.first() {
                    has_read = self.reads_first(VcpuId::numbered(member));
                }
            }
            let pends = cpu::interrupt_pending();
            if pends | (self.need_resched && has_read) {
                return (!is_new || !self.unread.is_empty(), pends);
            }
        }
    }

    /// Takes messages to real-time vCPUs before those that were taken earlier are dealt with.
    /// Returns true if an interrupt pends and there is no such message: one would wait for a decision and
    /// a switch before the core reads again, beside a sender that rings without end.
    #[inline(never)]
    fn takes_out_of_turn(&mut self) -> bool {
        let realtime = self.precedence.realtime().bits();
        let pends = cpu::interrupt_pending();
        let comes_first = self.unread.take_first_from(BOARD.mailbox(self.index), realtime, pends);
        !comes_first && pends
    }

    /// Tells a real-time vCPU at once of new interrupts: beside a sender that rings without end an
    /// interrupt always pends, for which it would wait for a decision and a switch. Returns true if it is
    /// told; what takes longer waits for that interrupt.
    #[inline(never)]
    fn reads_first(&mut self, id: VcpuId) -> bool {
        if self.is_going_off(id) || !self.roster.get(id).is_some_and(|vcpu| vcpu.is_on()) {
            return false;
        }
        let _ = self.unread.pop();
        self.deliver_pending(id);
        true
    }

    /// Does what a message asks for, or has it come again when its doorbell is let through. Returns true
    /// if it was done.
    fn read(&mut self, message: Message, member: usize) -> bool {
        if self.mask.keeps_ordinary() && self.can_wait(message, member) {
            // It came with another message, for which the core was interrupted.
            self.leave(message, member);
            return false;
        }
        match message {
            Message::Arrivals => self.receive(VcpuId::numbered(member)),
            Message::Recalls => self.send_back(VcpuId::numbered(member)),
            Message::Coscheduled => self.follow_siblings(member),
            Message::HaltVms => self.halt(member),
            Message::HaltedVms => self.halted(member),
            Message::VmsFailed | Message::VmsReset | Message::VmsOff => self.stop(member, message),
            Message::Sections => self.read_sections(VcpuId::numbered(member)),
            Message::Vcpus => {
                let id = VcpuId::numbered(member);
                if self.is_going_off(id) {
                    let _ = self.offline(id);
                    // It may have been off before: a request to switch it on stays, and is
                    // accepted when all is given back.
                    self.offline_later(id);
                } else if self.roster.get(id).is_some_and(|vcpu| vcpu.is_on()) {
                    self.deliver_pending(id);
                } else {
                    // One that is switched on by this looks itself.
                    self.accept_power_on(id);
                }
            }
            Message::IdleCores => self.need_resched = true,
            Message::AwayCores => self.call_back(member),
            Message::Consoles => self.keep_carrying(),
        }
        true
    }

    /// Returns the vCPUs that wait, with their messages, until the real-time vCPU that was chosen sleeps.
    #[inline(never)]
    fn waiting(&self) -> VcpuSet {
        match self.mask.keeps() {
            Mask::Nothing => VcpuSet::EMPTY,
            Mask::Ordinary => self.precedence.patient(),
            Mask::LowerRealtime => self.precedence.patient() | self.precedence.lower(),
        }
    }

    /// Has a message that can wait come again when its doorbell is let through. With one to a
    /// vCPU all others to such vCPUs go back, too: if each was read, with a look for interrupts after it,
    /// a real-time vCPU that was woken just now would wait the longer the more vCPUs there are.
    #[inline(never)]
    fn leave(&mut self, message: Message, member: usize) {
        self.go_on_later(message, member, Doorbell::Ordinary);
        if message == Message::Vcpus {
            let waiting = self.waiting();
            if self.unread.give_back(BOARD.mailbox(self.index), waiting.bits()) {
                self.ring(self.index, Doorbell::Ordinary);
            }
            if waiting.meets(self.precedence.lower()) {
                // Some may be to these, which wait for less.
                self.ring(self.index, Doorbell::LowerRealtime);
            }
        }
    }

    /// Returns true if the real-time vCPU that was chosen does not wait for what a message asks for:
    /// output that is not its own, a vCPU that need not be reached while it runs, or what a VM needs
    /// all of whose vCPUs here are below it.
    #[inline(never)]
    fn can_wait(&self, message: Message, member: usize) -> bool {
        match message {
            Message::Consoles => true,
            Message::Vcpus => self.waiting().has(VcpuId::numbered(member)),
            Message::HaltVms
            | Message::HaltedVms
            | Message::VmsFailed
            | Message::VmsReset
            | Message::VmsOff => self.scheduler.chosen().is_some_and(|id| {
                self.precedence.waits(member, id, self.system.vcpu(id.number()).priority)
            }),
            _ => false,
        }
    }

    /// Sends a message to another core, and rings if the message is new. Out of line: most messages are
    /// rare.
    #[inline(never)]
    pub(super) fn tell(&self, core: usize, message: Message, member: usize, doorbell: Doorbell) {
        self.tell_at_once(core, message, member, doorbell);
    }

    /// Does what [`Self::tell`] does, where a guest may wait for it.
    #[inline(always)]
    fn tell_at_once(&self, core: usize, message: Message, member: usize, doorbell: Doorbell) {
        if BOARD.send(core, message, member) {
            self.ring(core, doorbell);
        }
    }

    /// Sends this core a message, to go on with something after the interrupts that pend. Out of
    /// line: this is not done often.
    #[inline(never)]
    pub(super) fn go_on_later(&self, message: Message, member: usize, doorbell: Doorbell) {
        self.tell(self.index, message, member, doorbell);
    }

    /// Sends a message about a VM to all other cores where vCPUs of it may be. Cores that share
    /// nothing with the VM are not interrupted, whatever it does.
    pub(super) fn tell_places(&self, message: Message, vm: usize, doorbell: Doorbell) {
        for core in self.places[vm] - CoreSet::of(self.index) {
            self.tell(core, message, vm, doorbell);
        }
    }

    /// Rings a core's doorbell, whether or not a message is new.
    pub(super) fn ring(&self, core: usize, doorbell: Doorbell) {
        // There are no other cores; the mask spares a comparison.
        gic::ring(self.bells[core & (MAX_PCPUS - 1)], doorbell as u32);
    }

    /// Has what was posted to these vCPUs of a VM delivered: to the loaded one at once, to others
    /// that this core owns before any guest runs. The owners of the others get a message.
    pub fn notify(&mut self, vm: usize, effects: Effects) {
        if effects.notify != 0
            && let Some(id) = self.notify_each(vm, siblings(effects.notify))
        {
            self.deliver_or_list_later(id);
        }
    }

    /// Lists new interrupts of the loaded vCPU, now or after those that pend for this core and what is
    /// unread: either may be for a vCPU that does not wait for this.
    #[inline(always)]
    pub fn deliver_or_list_later(&mut self, id: VcpuId) {
        if cpu::interrupt_pending() | !self.unread.is_empty() {
            self.list_later(id);
        } else {
            self.deliver_to_loaded(id);
        }
    }

    /// Lists new interrupts of the loaded vCPU.
    #[inline(never)]
    pub(super) fn deliver_to_loaded(&mut self, id: VcpuId) {
        self.with_interface(|interface, gic, hw| interface.sync(gic, hw));
        self.wake(id);
    }

    /// Like [`Self::notify`], while list registers are being changed: those of the loaded vCPU are
    /// left for when it goes on, or changing them could come back to itself.
    pub(super) fn notify_siblings(&mut self, vm: usize, notify: SiblingSet) {
        if !notify.is_empty()
            && let Some(id) = self.notify_each(vm, notify)
        {
            self.list_later(id);
        }
    }

    /// Has the interrupts of the loaded vCPU listed, and the vCPU told of them, before any guest
    /// runs.
    pub(super) fn list_later(&mut self, id: VcpuId) {
        self.jobs.list_later(id);
        self.deliver_later(id);
    }

    /// Has those of these vCPUs of a VM told that this core owns, and sends a message to the owners
    /// of the others. Returns the loaded one, if it is among them and on.
    pub(super) fn notify_each(&mut self, vm: usize, notify: SiblingSet) -> Option<VcpuId> {
        let table = self.table(vm);
        let count = usize::from(table.vcpu_count);
        let mut loaded = None;
        for Sibling(index) in notify.iter().take_while(|&Sibling(index)| index < count) {
            let id = VcpuId::numbered(usize::from(table.vcpu_first) + index);
            let owner = BOARD.find(id);
            if owner != self.index {
                // It may wait for its core and find what is new when it has that, or be off: a core that
                // runs others would be interrupted for nothing, as often as a guest likes.
                if !VMS[vm].gic.must_tell(index) {
                    continue;
                }
                self.tell_at_once(owner, Message::Vcpus, id.number(), self.doorbell_for(id));
            } else if !self.roster.get(id).is_some_and(|vcpu| vcpu.is_on()) {
                // It is switched on with what was posted.
            } else if self.roster.is_loaded(id) {
                loaded = Some(id);
            } else {
                self.deliver_later(id);
            }
        }
        loaded
    }

    /// Has a vCPU told of new interrupts before any guest runs, in a piece of its own.
    fn deliver_later(&mut self, id: VcpuId) {
        self.jobs.tell_later(id);
        self.need_resched = true;
    }

    /// Tells one of these vCPUs for which that was left, looks at timers of theirs that may be due,
    /// or has one depart, of those that do.
    #[inline(never)]
    pub(super) fn do_next_piece(&mut self, of: VcpuSet) {
        if let Some(id) = self.jobs.next_untold(of) {
            // It may have left with its news, or been switched off.
            if self.roster.get(id).is_some_and(|vcpu| vcpu.is_on()) {
                self.deliver(id);
            }
            return;
        }
        let due = self.jobs.take_due(of);
        if !due.is_empty() {
            let now = timer::now();
            if self.consolidation.is_due(now) {
                // EL2's timer has left that, too, and fires for it until it is done, before the
                // interrupt for which it was left.
                self.jobs.look_later(due);
                self.look_at_load(now);
            } else {
                self.look_at_timers(due, now);
            }
            return;
        }
        // Those that are left have jobs, which come first.
        let Some(id) = self.jobs.next_departing() else { return };
        if self.timer_advance.early().has(id) {
            // Its timer was about to fire before this piece.
            self.fall_asleep_again(id);
            self.depart_later(id);
            return;
        }
        match self.consolidation.target() {
            Some(target) if self.consolidation.is_leaving() => self.depart(id, target),
            // The interrupt for which this was left may have come before it was unloaded.
            _ if self.take_off(id) => self.cross(id),
            _ => self.depart_later(id),
        }
    }

    /// Returns the doorbell that says that there is a message for a vCPU. One that is off or has failed
    /// is never urgent: a sibling could otherwise take time from the real-time vCPU for ever.
    pub(super) fn doorbell_for(&self, id: VcpuId) -> Doorbell {
        let table = self.system.vcpu(id.number());
        if !table.is_urgent() || !POWER[id.number()].hears() {
            Doorbell::Ordinary
        } else if table.is_lower() {
            Doorbell::LowerRealtime
        } else {
            Doorbell::Realtime
        }
    }

    /// Lists, or wakes for, new interrupts of a vCPU of this core, if it is on.
    #[inline(never)]
    pub(super) fn deliver_pending(&mut self, id: VcpuId) {
        if !self.roster.get(id).is_some_and(|vcpu| vcpu.is_on()) {
            return;
        }
        if self.roster.is_loaded(id) {
            self.deliver_or_list_later(id);
            return;
        }
        self.deliver(id);
        // Unless it has left for this, it can run now.
        if let Some(vcpu) = self.roster.parked(id) {
            vcpu.begin_wait();
        }
    }

    /// Does [`Self::deliver_pending`] for a vCPU that is not loaded, now or after the interrupts that
    /// pend.
    pub(super) fn deliver_after_a_look(&mut self, id: VcpuId) {
        if cpu::interrupt_pending() {
            self.deliver_later(id);
        } else {
            self.deliver_pending(id);
        }
    }

    /// Wakes a vCPU for new interrupts, and applies the rules for siblings.
    #[inline(never)]
    fn deliver(&mut self, id: VcpuId) {
        self.wake(id);
        if !(self.visitors.candidates().has(id) && self.interrupted(id)) {
            self.yield_to(id);
        }
    }
}
