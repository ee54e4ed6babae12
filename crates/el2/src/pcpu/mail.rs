//! Messages between cores.

use super::Pcpu;
use crate::arch::{cpu, gic};
use crate::parts::STOPS;
use crate::shared::{BOARD, POWER};
use abi::system::vcpu_flags;
use abi::{MAX_VCPUS, MAX_VCPUS_PER_VM, MAX_VMS};
use notes::{Bounded, Rounds, each};
use sched::{CoreSet, Member, Members, Message, Move, VcpuId};
use vgic::Effects;

impl Pcpu {
    /// Reads the messages for this core, and does what they ask for. If interrupts come meanwhile,
    /// the rest is read after them: `doorbell` is rung again.
    pub fn read_mail(&mut self, doorbell: u32) {
        if !self.read_all() {
            gic::ring(self.bells[self.index], doorbell);
        }
    }

    /// Returns false if not all messages are read.
    fn read_all(&mut self) -> bool {
        if !(self.make_moves()
            && self.read_each::<{ each::VM }, MAX_VMS>(Message::Coscheduled, Self::follow_siblings)
            && self.read_each::<{ each::VM }, MAX_VMS>(Message::HaltVms, Self::halt)
            && self.read_each::<{ each::VM }, MAX_VMS>(Message::HaltedVms, Self::halted))
        {
            return false;
        }
        for message in STOPS {
            if !self.read_each::<{ each::VM }, MAX_VMS>(message, |core, vm| core.stop(vm, message))
            {
                return false;
            }
        }
        if !(self.read_each::<{ each::VCPU }, MAX_VCPUS>(Message::Sections, |core, id| {
            core.follow_sections(VcpuId::numbered(id));
        }) && self.read_each::<{ each::VCPU }, MAX_VCPUS>(Message::Vcpus, |core, id| {
            core.accept_power_on(VcpuId::numbered(id));
            core.deliver_pending(VcpuId::numbered(id));
        })) {
            return false;
        }
        let mailbox = BOARD.mailbox(self.index);
        if mailbox.take(Message::IdleCores).next().is_some() {
            self.need_resched = true;
        }
        if mailbox.take(Message::Consoles).next().is_some() {
            if self.mask.keeps_lower_half() {
                // This came with another message, for which the core was interrupted; a
                // real-time vCPU does not wait for output that is not its own.
                self.tell(self.index, Message::Consoles, 0, false);
            } else {
                self.keep_carrying();
            }
        }
        true
    }

    /// Receives vCPUs and sends them back. Returns false if interrupts have come meanwhile: what
    /// is left waits.
    fn make_moves(&mut self) -> bool {
        let mailbox = BOARD.mailbox(self.index);
        let mut moves = mailbox.moves();
        while let Some(step) = moves.next() {
            match step {
                Move::Receive(id) => self.receive(id),
                Move::SendBack(id) => self.send_back(id),
            }
            if cpu::interrupt_pending() {
                mailbox.put_back_moves(moves);
                return false;
            }
        }
        true
    }

    /// Does what the messages of a kind ask for. Returns false if interrupts have come meanwhile:
    /// what is left waits.
    #[inline(always)]
    fn read_each<const OF: u32, const MOST: usize>(
        &mut self,
        message: Message,
        act: impl Fn(&mut Self, usize),
    ) -> bool {
        let mailbox = BOARD.mailbox(self.index);
        let mut members = mailbox.take(message);
        let mut rounds = Rounds::<MOST, OF>::begin();
        while let Some(member) = members.next() {
            rounds.pass();
            act(self, member);
            if cpu::interrupt_pending() {
                mailbox.put_back(message, members);
                return false;
            }
        }
        true
    }

    /// Sends a message to another core, and rings if the message is new. `urgent`: the core
    /// must read it while a real-time vCPU runs there.
    pub(super) fn tell(&self, core: usize, message: Message, member: usize, urgent: bool) {
        if BOARD.send(core, message, member) {
            self.ring(core, urgent);
        }
    }

    /// Sends a message about a VM to all other cores where vCPUs of it may be. Cores that share
    /// nothing with the VM are not interrupted, whatever it does.
    pub(super) fn tell_places(&self, message: Message, vm: usize, urgent: bool) {
        for core in self.places[vm] - CoreSet::of(self.index) {
            self.tell(core, message, vm, urgent);
        }
    }

    /// Rings a core's doorbell, whether or not a message is new.
    pub(super) fn ring(&self, core: usize, urgent: bool) {
        let doorbell = if urgent { gic::DOORBELL_REALTIME } else { gic::DOORBELL };
        gic::ring(self.bells[core], doorbell);
    }

    /// Delivers what was posted to those of these vCPUs of a VM that this core owns, and sends
    /// a message to the owners of the others.
    pub fn notify(&mut self, vm: usize, effects: Effects) {
        if effects.notify != 0
            && let Some(id) = self.notify_each(vm, effects.notify)
        {
            self.with_interface(|interface, gic, hw| interface.sync(gic, hw));
            self.deliver(id);
        }
    }

    /// Like [`Self::notify`], while list registers are being changed, or in the middle of other
    /// work: those of the loaded vCPU are left for when it goes on, or changing them could come back
    /// to itself.
    pub(super) fn notify_siblings(&mut self, vm: usize, notify: u8) {
        if notify != 0
            && let Some(id) = self.notify_each(vm, notify)
        {
            self.jobs.list_later(id);
            self.need_resched = true;
            self.deliver(id);
        }
    }

    /// Wakes those of these vCPUs of a VM that this core owns, and sends a message to the owners of
    /// the others. Returns the loaded one, if it is among them and on.
    fn notify_each(&mut self, vm: usize, notify: u8) -> Option<VcpuId> {
        let table = &self.system.vms[vm];
        let count = usize::from(table.vcpu_count);
        let mut loaded = None;
        let notified =
            Members::of(u64::from(notify)).one_for::<{ each::SIBLING }, MAX_VCPUS_PER_VM>();
        for index in notified.take_while(|&index| index < count) {
            let id = VcpuId::numbered(usize::from(table.vcpu_first) + index);
            let owner = BOARD.find(id);
            if owner != self.index {
                self.tell(owner, Message::Vcpus, id.number(), self.is_urgent(id));
            } else if !self.roster.get(id).is_some_and(|vcpu| vcpu.is_on()) {
                // It is switched on with what was posted.
            } else if self.roster.is_loaded(id) {
                loaded = Some(id);
            } else {
                self.deliver(id);
            }
        }
        loaded
    }

    /// Returns true if messages for a vCPU must be read while a real-time vCPU runs. A vCPU
    /// that is off or has failed needs none: a sibling could otherwise take time from the
    /// real-time vCPU for ever.
    pub(super) fn is_urgent(&self, id: VcpuId) -> bool {
        let table = &self.system.vcpus[id.number()];
        table.flags & vcpu_flags::URGENT != 0 && POWER[id.number()].hears()
    }

    /// Lists, or wakes for, new interrupts of a vCPU of this core, if it is on.
    pub(super) fn deliver_pending(&mut self, id: VcpuId) {
        if !self.roster.get(id).is_some_and(|vcpu| vcpu.is_on()) {
            return;
        }
        if self.roster.is_loaded(id) {
            self.with_interface(|interface, gic, hw| interface.sync(gic, hw));
        }
        self.deliver(id);
    }

    /// Wakes a vCPU for new interrupts, and applies the rules for siblings.
    fn deliver(&mut self, id: VcpuId) {
        self.wake(id);
        if self.visitors.candidates().has(id) {
            self.interrupted(id);
        }
        self.yield_to(id);
    }
}
