//! Taking a vCPU off the hardware and putting another on.

use crate::arch::ich::Loaded;
use crate::arch::{context, cpu, timer};
use crate::pcpu::Pcpu;
use crate::vcpu::Vcpu;
use el2::vgic::Effects;

impl Pcpu {
    /// All but floating point, which stays where it is until somebody else
    /// wants to use it.
    pub fn save(&mut self, vcpu: &mut Vcpu) {
        vcpu.general.save_return();
        vcpu.system.save();
        vcpu.timer.save();
        let mut hw = Loaded::new(self.interface);
        vcpu.timer_held = vcpu.interface.park(&vcpu.shared.gic, &mut hw, timer::VIRTUAL_INTID);
        vcpu.note_wake();
        if hw.notify != 0 {
            self.notify(vcpu.vm, Effects { notify: hw.notify, deactivate: None });
        }
        self.interface.save(vcpu.interface.used(), &mut vcpu.saved_interface);
        if vcpu.timer_held {
            // The next guest's timer is the same physical interrupt.
            self.redistributor.set_timer_active(false);
        }
    }

    /// Puts a vCPU on the hardware, which must hold none. Inlined, as every switch
    /// comes by.
    #[inline(always)]
    pub fn load(&mut self, vcpu: &'static mut Vcpu) {
        vcpu.space.enter();
        if vcpu.may_meet_siblings
            && self.last_of_vm[vcpu.vm].replace(vcpu.id).is_some_and(|last| last != vcpu.id)
        {
            // Another sibling's view may be another one too.
            if vcpu.has_views {
                cpu::flush_guest_tlb_and_stage2();
            } else {
                cpu::flush_guest_tlb();
            }
        }
        context::open_float(self.float_owner == Some(vcpu.id));
        vcpu.system.load();
        self.interface.load(&vcpu.saved_interface);
        self.load_timer(vcpu);
        vcpu.general.load_return();
        let news = vcpu.has_news();
        self.loaded = Some(vcpu);
        if news {
            self.with_interface(|interface, gic, hw| interface.sync(gic, hw));
        }
    }

    /// Puts its timer on the hardware. One that is due already is injected at
    /// once, instead of by the interrupt that would follow.
    fn load_timer(&mut self, vcpu: &mut Vcpu) {
        vcpu.timer.load();
        if vcpu.timer_held {
            self.redistributor.set_timer_active(true);
        } else if timer::loaded_is_asserted() {
            self.redistributor.set_timer_active(true);
            let mut hw = Loaded::new(self.interface);
            let intid = timer::VIRTUAL_INTID;
            let gic = &vcpu.shared.gic;
            vcpu.status.injected += vcpu.interface.inject(gic, &mut hw, intid, intid) as u64;
            if hw.notify != 0 {
                self.notify(vcpu.vm, Effects { notify: hw.notify, deactivate: None });
            }
        }
    }

    /// The loaded vCPU uses floating point for the first time since somebody
    /// else did.
    #[inline(never)]
    pub fn switch_float(&mut self) {
        context::open_float_now();
        let Some(id) = self.loaded.as_ref().map(|vcpu| vcpu.id) else { return };
        if self.float_owner == Some(id) {
            return;
        }
        if let Some(previous) = self.float_owner.replace(id).and_then(|id| self.vcpu(id)) {
            previous.float.save();
        }
        if let Some(vcpu) = self.loaded.as_deref() {
            vcpu.float.load();
        }
    }
}
