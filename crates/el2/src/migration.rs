//! Moving vCPUs between cores.
//!
//! Migration moves the owning reference ([`crate::transit`]). The *base* of a
//! vCPU is the core its description names. Whether and where to it leaves is
//! decided in [`crate::policies`].
//!
//! Every core that may come to own a vCPU has it in its scheduler from the
//! start. Where it is not, it sleeps and nothing wakes it, so that coming and
//! going is as cheap as waking and sleeping.
//!
//! A VM is stopped at home: a vCPU that is halted elsewhere goes back to its
//! base first, and one that was on its way is halted where it arrives.

use crate::arch::{context, gic, timer};
use crate::pcpu::Pcpu;
use crate::shared::{PLACES, PRESENCE, RECALLS, TRANSITS, VMS};
use crate::vcpu::Vcpu;
use core::sync::atomic::Ordering;
use sched::{Message, VcpuId};

impl Pcpu {
    /// The core that a vCPU belongs to.
    pub fn base_of(&self, id: usize) -> usize {
        usize::from(self.system.vcpus[id].pcpu)
    }

    /// A vCPU's base wants it back.
    pub fn send_back(&mut self, id: VcpuId) {
        let base = self.base_of(usize::from(id.0));
        // What was recalled from work for its VM comes back when that is done.
        if base != self.index && self.working >> id.0 & 1 == 0 && !PRESENCE[base].is_away() {
            if self.ahead != 0 {
                self.fall_asleep_again(id);
            }
            self.depart(id, base);
        }
    }

    /// Gives a vCPU of this core, if it is, to another core.
    pub fn depart(&mut self, id: VcpuId, to: usize) {
        if self.is_loaded(id) {
            if self.loaded_is_current() {
                let now = timer::now();
                self.scheduler.charge(now);
                self.account(None, now);
            }
            self.unload();
        }
        self.hand_over(id, to);
    }

    /// The same for one that is not loaded. A real-time guest may wait for this.
    #[inline(always)]
    pub fn hand_over(&mut self, id: VcpuId, to: usize) {
        let slot = usize::from(id.0);
        let Some(vcpu) = self.vcpus[slot].take() else { return };
        self.save_float_of(id, vcpu);
        let back = to == self.base_of(slot);
        if vcpu.has_views {
            vcpu.set_view(self.system, vcpu.usual_view(back));
        }
        if self.visitors >> slot & 1 == 1 {
            self.visitor_left(slot);
        }
        vcpu.ready_on_arrival = self.scheduler.leave(id);
        if vcpu.has_devices {
            self.reroute(vcpu.vm, to);
        }
        // Its base may have been taken again meanwhile: then it may have to leave
        // at once, and not when the real-time guest sleeps next.
        let urgent = back && vcpu.leaves_when_displaced;
        TRANSITS[slot].put(vcpu);
        PLACES[slot].set(to);
        self.reschedule = true;
        self.tell(to, Message::Arrivals, slot, urgent);
    }

    /// Takes in a vCPU that another core has given to this one.
    pub fn take_in(&mut self, id: VcpuId) {
        let slot = usize::from(id.0);
        let Some(vcpu) = TRANSITS[slot].take() else { return };
        // From here on whoever has something for it comes here; what was left
        // before is looked at below.
        PLACES[slot].arrived();
        let (vm, has_devices, moves_on) = (vcpu.vm, vcpu.has_devices, vcpu.moves_on);
        let stale = vcpu.on && vcpu.epoch != VMS[vm].epoch.load(Ordering::Acquire);
        let (on, news) = (vcpu.on && !stale, vcpu.has_news());
        self.scheduler.come_back(id, vcpu.ready_on_arrival);
        vcpu.status.pcpu = self.index as u64;
        vcpu.status.migrations += 1;
        self.own(vcpu);
        self.reschedule = true;
        if stale {
            self.retire(id);
        }
        let base = self.base_of(slot);
        if base == self.index {
            self.displaced &= !(1 << slot);
            if moves_on {
                RECALLS.settle(id);
            }
            if has_devices {
                self.reroute(vm, self.index);
            }
        } else if moves_on {
            self.visitor_came(slot);
        } else if self.consolidation.shelters >> base & 1 == 1 {
            self.shelter();
        }
        if !on {
            self.go_home_halted(id);
            self.accept_power_on(id);
        }
        // A guest that sleeps and has nothing new sleeps on.
        if news {
            self.attend(id);
        }
        // It may hold what others spin for.
        self.hurry(id);
    }

    /// A vCPU that is off: where it belongs, and where it is sheltered, it counts
    /// as halted. Elsewhere it has no business.
    pub fn go_home_halted(&mut self, id: VcpuId) {
        let slot = usize::from(id.0);
        let base = self.base_of(slot);
        if base != self.index && self.consolidation.shelters >> base & 1 == 0 {
            self.depart(id, base);
            return;
        }
        let Some((vm, index)) = self.vcpu(id).map(|vcpu| (vcpu.vm, vcpu.index)) else { return };
        VMS[vm].halted.fetch_or(1 << index, Ordering::AcqRel);
        self.tell_home_of_halted(vm);
    }

    fn save_float_of(&mut self, id: VcpuId, vcpu: &mut Vcpu) {
        if self.float_owner != Some(id) {
            return;
        }
        context::open_float_now();
        vcpu.float.save();
        self.float_owner = None;
        // Nobody's now: whoever is loaded gets its own back when it wants it.
        context::open_float(false);
    }

    /// Devices of a VM whose home this is interrupt the core that its vCPU has
    /// gone to: here they would stay pending behind the real-time guest.
    fn reroute(&self, vm: usize, to: usize) {
        if self.home_of(vm) != self.index {
            return;
        }
        let affinity = self.system.board.pcpu_mpidr[to];
        let spis = &self.system.spis[..self.system.header.spi_count as usize];
        for spi in spis.iter().filter(|spi| spi.vm as usize == vm) {
            gic::send_to(self.system.board.gicd_pa, spi.physical, affinity);
        }
    }
}
