//! Messages between cores.

use super::Pcpu;
use crate::arch::gic;
use crate::parts::STOPS;
use crate::shared::{BOARD, POWER};
use abi::system::vcpu_flags;
use sched::{Member, Members, Message, Move, VcpuId};
use vgic::Effects;

impl Pcpu {
    /// Reads all messages for this core, and does what they ask for.
    pub fn read_mail(&mut self) {
        let mailbox = BOARD.mailbox(self.index);
        for step in mailbox.moves() {
            match step {
                Move::Receive(id) => self.receive(id),
                Move::SendBack(id) => self.send_back(id),
            }
        }
        for vm in mailbox.take(Message::Coscheduled) {
            self.follow_siblings(vm);
        }
        for vm in mailbox.take(Message::HaltVms) {
            self.halt(vm);
        }
        for vm in mailbox.take(Message::HaltedVms) {
            self.halted(vm);
        }
        for message in STOPS {
            for vm in mailbox.take(message) {
                self.stop(vm, message);
            }
        }
        for id in mailbox.take(Message::Sections).map(VcpuId::numbered) {
            self.follow_sections(id);
        }
        for id in mailbox.take(Message::Vcpus).map(VcpuId::numbered) {
            self.accept_power_on(id);
            self.deliver_pending(id);
        }
        if mailbox.take(Message::IdleCores).next().is_some() {
            self.need_resched = true;
        }
        if mailbox.take(Message::Consoles).next().is_some() {
            self.keep_carrying();
        }
    }

    /// Sends a message to another core, and rings if the message is new. `urgent`: the core
    /// must read it while a real-time vCPU runs there.
    pub(super) fn tell(&self, core: usize, message: Message, member: usize, urgent: bool) {
        if BOARD.send(core, message, member) {
            self.ring(core, urgent);
        }
    }

    /// Sends a message to all other cores.
    pub(super) fn tell_others(&self, message: Message, member: usize, urgent: bool) {
        for core in (0..self.system.board.pcpu_count as usize).filter(|&core| core != self.index) {
            self.tell(core, message, member, urgent);
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
        if effects.notify == 0 {
            return;
        }
        let table = &self.system.vms[vm];
        let count = usize::from(table.vcpu_count);
        for index in Members(u64::from(effects.notify)).take_while(|&index| index < count) {
            let id = VcpuId::numbered(usize::from(table.vcpu_first) + index);
            let owner = BOARD.find(id);
            if owner == self.index {
                self.deliver_pending(id);
            } else {
                self.tell(owner, Message::Vcpus, id.number(), self.is_urgent(id));
            }
        }
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
        self.wake(id);
        if self.visitors.candidates().has(id) {
            self.interrupted(id);
        }
        self.yield_to(id);
    }
}
