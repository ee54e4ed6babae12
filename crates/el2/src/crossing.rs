//! What a guest executes, and waiting until it executes something else.
//!
//! A *view* of a VM's memory lets its vCPU execute its kernel only, or programs
//! only. When it goes to the other, the fetch is refused and it comes here: to be
//! moved, or because somebody waits for it. One waits for a vCPU in its kernel
//! if its policy says so, or if it is a sibling's turn: it may hold a lock.

use crate::arch::{context, cpu, gic, timer};
use crate::pcpu::Pcpu;
use crate::vcpu::Vcpu;
use abi::status::Exit;
use sched::policy::{Mode, Side, View};
use sched::{Duration, Instant, VcpuId};

/// How long a vCPU may stay in its kernel when it is a sibling's turn: it may
/// hold a lock for which that one would spin. The shortest quantum there is.
const SIBLINGS_WAIT_NS: u64 = abi::system::MIN_QUANTUM_NS;

impl Pcpu {
    /// Two vCPUs of one VM may come to take turns here.
    pub fn learn_siblings(&mut self) {
        let system = self.system;
        for (index, vm) in system.vms().iter().enumerate() {
            let here = self
                .scheduler
                .vcpus()
                .filter(|id| usize::from(system.vcpus[usize::from(id.0)].vm) == index);
            if here.count() > 1 {
                self.may_wait |= vm.stage2_pa[0] != vm.stage2_pa[1];
                cpu::trap_wait_for_event();
            }
        }
    }

    /// The loaded vCPU was about to execute what its view does not let it.
    /// Answers whether its policy takes care of that; else it is a fault.
    #[inline(never)]
    pub fn cross(&mut self) -> bool {
        let mode = context::guest_mode();
        let Some(vcpu) = self.loaded.as_deref_mut() else { return false };
        match (vcpu.view, mode) {
            (View::UserOnly, Mode::Kernel) | (View::KernelOnly, Mode::User) => {}
            _ => return false,
        }
        vcpu.status.exits[Exit::Crossing as usize] += 1;
        let (id, slot) = (vcpu.id, usize::from(vcpu.id.0));
        let to = match vcpu.policy.crossed(mode) {
            // It has left its kernel: who waits for that need not any longer.
            Side::Here => {
                self.reschedule = true;
                vcpu.habit.was_waited_for();
                return self.delaying.is_some_and(|(delayer, _)| delayer == id);
            }
            Side::Base => self.base_of(slot),
            Side::Refuge => self.haven_of(slot),
        };
        self.depart(id, to);
        true
    }

    /// Whether `next`, who should have the core, waits for the loaded vCPU. That
    /// one's time runs out even if who waits goes away meanwhile and others
    /// come: else it might never give way.
    #[inline(never)]
    pub fn waits(&mut self, next: Option<VcpuId>, now: Instant) -> bool {
        let yields = core::mem::take(&mut self.yields);
        let limit_ns = next.filter(|_| !yields).and_then(|next| self.delay_limit_ns(next));
        if let (Some(limit_ns), Some(vcpu)) = (limit_ns, self.loaded.as_deref()) {
            let id = vcpu.id;
            let until = self.delaying.map_or_else(
                || now.after(Duration(timer::ns_to_ticks(limit_ns))),
                |(_, until)| until,
            );
            if now < until {
                if self.delaying.is_none() {
                    self.delaying = Some((id, until));
                    self.set_loaded_view(View::KernelOnly);
                }
                self.scheduler.let_finish(id);
                self.set_mask(gic::MASK_NOTHING);
                self.arm(Some(until));
                return true;
            }
        }
        if let Some((id, _)) = self.delaying
            && !(next == Some(id) && self.is_loaded(id) && context::guest_mode() == Mode::Kernel)
        {
            self.delaying = None;
            self.end_delay(id);
        }
        false
    }

    /// How long `next` waits for the loaded vCPU at most; none: not at all.
    fn delay_limit_ns(&self, next: VcpuId) -> Option<u64> {
        let vcpu = self.loaded.as_deref()?;
        let slot = usize::from(vcpu.id.0);
        let goes_on = vcpu.id != next
            && self.loaded_is_current()
            && self.scheduler.is_ready(vcpu.id)
            && self.working >> slot & 1 == 0;
        if !goes_on || !vcpu.has_views {
            return None;
        }
        let mode = context::guest_mode();
        if self.displaced_by[usize::from(next.0)] >> slot & 1 == 1 {
            let limit_ns = self.system.vms[vcpu.vm].delay_limit_ns;
            return vcpu.policy.delays(mode).then_some(limit_ns);
        }
        let sibling = usize::from(self.system.vcpus[usize::from(next.0)].vm) == vcpu.vm;
        (sibling && mode == Mode::Kernel).then_some(SIBLINGS_WAIT_NS)
    }

    /// The loaded vCPU spins: if a sibling was preempted here in its kernel, what
    /// that one holds may be what this one spins for.
    pub fn yield_to_lock_holder(&mut self) {
        let Some((me, vm)) = self.loaded.as_deref().map(|vcpu| (vcpu.id, vcpu.vm)) else { return };
        for slot in self.vcpus_of(vm) {
            let id = VcpuId(slot as u8);
            let holds = |vcpu: &Vcpu| context::mode_of(vcpu.general.pstate) == Mode::Kernel;
            if id != me
                && self.vcpus[slot].as_deref().is_some_and(holds)
                && self.scheduler.hurry(id)
            {
                self.yields = true;
                self.reschedule = true;
                return;
            }
        }
    }

    /// Nobody waits for this vCPU any longer.
    fn end_delay(&mut self, id: VcpuId) {
        let (system, at_base) = (self.system, self.base_of(usize::from(id.0)) == self.index);
        if let Some(vcpu) = self.vcpu(id) {
            let view = vcpu.usual_view(at_base);
            vcpu.set_view(system, view);
            vcpu.space.enter();
        }
        // Nobody was loaded since, so this is about its VM.
        cpu::flush_guest_tlb_and_stage2();
    }

    fn set_loaded_view(&mut self, view: View) {
        let system = self.system;
        if let Some(vcpu) = self.loaded.as_deref_mut() {
            vcpu.set_view(system, view);
            vcpu.space.enter();
            cpu::flush_guest_tlb_and_stage2();
        }
    }
}
