//! Physical interrupts, by number.

use super::Pcpu;
use crate::arch::gic::{self, Doorbell, Redistributor, virtual_interface};
use crate::arch::timer;
use crate::bug::bug;
use crate::shared::VMS;
use crate::vcpu::Loaded;
use abi::system::{MAX_SPIS, System, flags};
use notes::{Bounded, each};

impl Pcpu {
    /// Handles a physical interrupt that was acknowledged.
    pub fn take(&mut self, intid: u32) {
        match intid {
            timer::VIRTUAL_INTID => self.virtual_timer(),
            timer::EL2_INTID => {
                finish(intid);
                self.timer_fired();
            }
            _ if let Some(doorbell) = Doorbell::with(intid) => {
                self.end_doorbell(intid);
                self.read_mail(doorbell);
            }
            gic::MAINTENANCE => {
                // Before the work, which looks for interrupts of the same priority.
                gic::drop_priority(intid);
                self.with_interface(|interface, gic, hw| interface.sync(gic, hw));
                gic::deactivate(intid);
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

    /// Ends a doorbell that was acknowledged.
    pub(super) fn end_doorbell(&mut self, intid: u32) {
        finish(intid);
        self.ledger.count_doorbell();
    }

    /// Injects the loaded guest's own timer interrupt. The path from here to the guest looks
    /// nothing up, because this is the most frequent interrupt.
    fn virtual_timer(&mut self) {
        let intid = timer::VIRTUAL_INTID;
        gic::drop_priority(intid);
        if !timer::loaded_is_asserted() {
            // It was reprogrammed, or unloaded, between asserting and now.
            gic::deactivate(intid);
            return;
        }
        if self.need_resched {
            self.inject_timer_while_awaited();
            return;
        }
        self.inject_timer(false);
        let is_at_work = |vcpu: &Loaded| self.ledger.is_current(vcpu.config().unboosted());
        if !self.roster.loaded().is_some_and(is_at_work) {
            self.wake_loaded();
        }
    }

    /// Does the rest while another vCPU may wait. The loaded one may have gone to sleep just now: it
    /// has the core until the decision that follows from that is carried out.
    #[cold]
    #[inline(never)]
    fn inject_timer_while_awaited(&mut self) {
        self.inject_timer(true);
        self.wake_loaded();
    }

    #[inline(always)]
    fn inject_timer(&mut self, awaited: bool) {
        let intid = timer::VIRTUAL_INTID;
        self.with_interface_at_exit(awaited, |interface, gic, hw| {
            interface.inject(gic, hw, intid, intid)
        });
    }

    /// Wakes the loaded vCPU, which has got an interrupt, if it sleeps.
    fn wake_loaded(&mut self) {
        if let Some(id) = self.roster.loaded().filter(|vcpu| vcpu.is_on()).map(|vcpu| vcpu.id()) {
            self.wake(id);
        }
    }

    /// Posts a device's interrupt for its guest, which will end it. Out of line, so that timers and
    /// doorbells need fewer registers.
    #[inline(never)]
    fn pass_through(&mut self, intid: u32) {
        gic::drop_priority(intid);
        let spis = &self.system.spis[..self.system.header.spi_count as usize];
        let Some(spi) = spis
            .iter()
            .one_for::<{ each::DEVICE_INTERRUPT }, MAX_SPIS>()
            .find(|spi| spi.physical == intid)
        else {
            return self.take_other(intid);
        };
        let vm = usize::from(spi.vm);
        let effects = VMS[vm].gic.post(0, spi.virtual_);
        self.notify(vm, effects);
    }

    /// Handles what is no device's: the watchdog's timer, which is looked for last, so that what
    /// comes more often does not take longer for it; or what has no cause.
    #[inline(never)]
    fn take_other(&mut self, intid: u32) {
        if intid == timer::WATCH_INTID {
            self.watch();
        } else {
            self.ledger.count_spurious();
        }
        gic::deactivate(intid);
    }

    /// Returns true if the loaded guest has an interrupt that would end its WFI. Inlined,
    /// as every sleep asks.
    #[inline(always)]
    pub fn loaded_has_interrupt(&self) -> bool {
        let Some(vcpu) = self.roster.loaded() else {
            bug!("a guest sleeps without a loaded vCPU");
            return false;
        };
        let used = vcpu.list_registers() & !virtual_interface::empty();
        if used == 0 {
            return false;
        }
        let (mask, group0, group1) = virtual_interface::guest_mask();
        virtual_interface::registers(used).any(|register| {
            let enabled = if register.is_group1() { group1 } else { group0 };
            register.is_pending() && register.priority() < mask && enabled
        })
    }
}

/// Sets up a core's own interrupts.
pub(super) fn start_redistributor(index: usize, system: &System) -> Redistributor {
    let separate = system.header.flags & flags::PRIORITY_SEPARATION != 0;
    Redistributor::start(gic::frame(&system.board, index), separate)
}

/// Ends an interrupt that was EL2's own.
fn finish(intid: u32) {
    gic::drop_priority(intid);
    gic::deactivate(intid);
}
