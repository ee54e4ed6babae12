//! Physical interrupts, by number.

use crate::arch::{gic, ich, timer};
use crate::lifecycle::STOPS;
use crate::pcpu::Pcpu;
use crate::shared::{MAILBOXES, VMS};
use sched::{Message, VcpuId};

impl Pcpu {
    /// Deals with an interrupt that was acknowledged.
    pub fn take(&mut self, intid: u32) {
        match intid {
            timer::VIRTUAL_INTID => self.virtual_timer(),
            timer::EL2_INTID => {
                finish(intid);
                self.timer_fired();
            }
            gic::DOORBELL | gic::DOORBELL_REALTIME => {
                finish(intid);
                self.status.doorbells += 1;
                self.read_mail();
            }
            gic::MAINTENANCE => {
                self.with_interface(|interface, gic, hw| interface.sync(gic, hw));
                finish(intid);
                self.wake_loaded();
            }
            gic::SPECIAL.. => {}
            _ if intid == self.system.board.uart_intid => {
                self.console_interrupt();
                finish(intid);
            }
            _ => self.pass_through(intid),
        }
    }

    /// The loaded guest's own timer: from here to the guest nothing is looked
    /// up, as this happens more often than anything else.
    fn virtual_timer(&mut self) {
        let intid = timer::VIRTUAL_INTID;
        gic::drop_priority(intid);
        if !timer::loaded_is_asserted() {
            // It was reprogrammed, or unloaded, between asserting and now.
            gic::deactivate(intid);
            return;
        }
        self.with_interface(|interface, gic, hw| interface.inject(gic, hw, intid, intid));
        self.wake_loaded();
    }

    /// The loaded vCPU has got an interrupt: if it slept, it is awake.
    fn wake_loaded(&mut self) {
        if !self.loaded_is_current()
            && let Some(id) = self.loaded.as_ref().filter(|vcpu| vcpu.on).map(|vcpu| vcpu.id)
        {
            self.wake(id);
        }
    }

    /// A device's interrupt: its guest gets it, and ends it.
    fn pass_through(&mut self, intid: u32) {
        gic::drop_priority(intid);
        let spis = &self.system.spis[..self.system.header.spi_count as usize];
        let Some(spi) = spis.iter().find(|spi| spi.physical == intid) else {
            self.status.spurious += 1;
            gic::deactivate(intid);
            return;
        };
        let vm = spi.vm as usize;
        let effects = VMS[vm].gic.post(0, spi.virtual_);
        self.notify(vm, effects);
    }

    /// What other cores have to say.
    pub fn read_mail(&mut self) {
        let mailbox = &MAILBOXES[self.index];
        // Before the arrivals: who is recalled was sent here before.
        let recalled = mailbox.take(Message::Recalls);
        for vcpu in mailbox.take(Message::Arrivals) {
            self.take_in(VcpuId(vcpu as u8));
        }
        for vcpu in recalled {
            self.send_back(VcpuId(vcpu as u8));
        }
        for vm in mailbox.take(Message::Gangs) {
            self.follow_gang(vm);
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
        for vcpu in mailbox.take(Message::Vcpus) {
            let id = VcpuId(vcpu as u8);
            self.accept_power_on(id);
            self.attend(id);
        }
        if mailbox.take(Message::IdleCores).next().is_some() {
            self.reschedule = true;
        }
        if mailbox.take(Message::Consoles).next().is_some() {
            self.keep_carrying();
        }
    }

    /// Whether the loaded guest has an interrupt that would end its WFI. Inlined,
    /// as every sleep asks.
    #[inline(always)]
    pub fn loaded_has_interrupt(&self) -> bool {
        let Some(vcpu) = self.loaded.as_deref() else { return false };
        let used = vcpu.interface.used() & !ich::empty();
        if used == 0 {
            return false;
        }
        let (mask, group0, group1) = ich::guest_mask();
        ich::registers(used).any(|register| {
            let enabled = if register.is_group1() { group1 } else { group0 };
            register.is_pending() && register.priority() < mask && enabled
        })
    }
}

/// Ends an interrupt that was EL2's own.
fn finish(intid: u32) {
    gic::drop_priority(intid);
    gic::deactivate(intid);
}
