//! What a guest may execute, and delayed preemption.
//!
//! A *view* of a VM's memory lets its vCPU execute its kernel only, or programs only.
//! When it goes to the other, the fetch is refused and it comes here: to be moved, or
//! because another vCPU waits for that. A vCPU in its kernel is waited for if its policy
//! says so, or if it is a sibling's turn: it may hold a lock.

use super::Pcpu;
use super::visitors::destination;
use crate::arch::{context, cpu, timer};
use crate::bug::bug;
use crate::parts::{Gate, Limit};
use abi::status::Exit;
use sched::policy::{Mode, Side, View};
use sched::{Duration, Instant, VcpuId};

/// How long a vCPU may stay in its kernel when it is a sibling's turn: it may
/// hold a lock for which that one would spin. The shortest quantum there is.
const SIBLINGS_WAIT_NS: u64 = abi::system::MIN_QUANTUM_NS;

impl Pcpu {
    /// The loaded vCPU was about to execute what its view does not let it. Returns true if
    /// its policy takes care of that; else it is a fault.
    #[inline(never)]
    pub fn view_fault(&mut self) -> bool {
        let mode = context::guest_mode();
        let Some(vcpu) = self.roster.loaded_mut() else {
            bug!("a fetch is refused without a loaded vCPU");
            return false;
        };
        match (vcpu.view(), mode) {
            (View::UserOnly, Mode::Kernel) | (View::KernelOnly, Mode::User) => {}
            _ => return false,
        }
        vcpu.account().count_exit(Exit::ViewFault);
        let id = vcpu.id();
        let to = match vcpu.config().policy().crossed(mode) {
            // It has left its kernel: a vCPU that waits for that need not any longer.
            Side::Here => {
                vcpu.mode_bias().was_waited_for();
                self.need_resched = true;
                return self.kernel_wait.is_for(id);
            }
            Side::Base => vcpu.config().base(),
            Side::Fallback => destination(vcpu.config()),
        };
        self.depart(id, to);
        true
    }

    /// Returns true if `next`, which should have the core, waits for the loaded vCPU.
    #[inline(never)]
    pub(super) fn waits(&mut self, next: Option<VcpuId>, now: Instant) -> bool {
        let limit = next.and_then(|next| self.delay_limit(next));
        let end_after = |ns| now.after(Duration(timer::ns_to_ticks(ns)));
        let stays = |id| {
            let stays = next == Some(id) && self.roster.is_loaded(id);
            stays && context::guest_mode() == Mode::Kernel
        };
        match self.kernel_wait.gate(now, limit, end_after, stays) {
            Gate::Open => false,
            Gate::Ends(id) => {
                self.end_delay(id);
                false
            }
            Gate::Hold { delayer, until, begins } => {
                if begins {
                    self.set_loaded_view(View::KernelOnly);
                }
                self.scheduler.let_finish(delayer);
                self.mask_nothing();
                self.arm(Some(until));
                true
            }
        }
    }

    /// Returns how long `next` waits for the loaded vCPU at most; none: not at all.
    fn delay_limit(&self, next: VcpuId) -> Option<Limit> {
        let vcpu = self.roster.loaded()?;
        let delayer = vcpu.id();
        let goes_on = delayer != next
            && self.loaded_is_current()
            && self.scheduler.is_ready(delayer)
            && !self.jobs.has(delayer);
        if !goes_on || !vcpu.config().has_views() {
            return None;
        }
        let mode = context::guest_mode();
        if self.displacement.losers(next).has(delayer) {
            let ns = self.system.vms[vcpu.vm()].delay_limit_ns;
            return vcpu.config().policy().delays(mode).then_some(Limit { delayer, ns });
        }
        let sibling = self.vm_of(next) == vcpu.vm();
        let waits = sibling && mode == Mode::Kernel;
        waits.then_some(Limit { delayer, ns: SIBLINGS_WAIT_NS })
    }

    /// The loaded vCPU spins: if a sibling was preempted here in its kernel, what
    /// that one holds may be what this one spins for.
    pub fn yield_to_lock_holder(&mut self) {
        let Some(vcpu) = self.roster.loaded() else { return bug!("a WFE without a loaded vCPU") };
        let (me, vm) = (vcpu.id(), vcpu.vm());
        for id in self.vcpus_of(vm) {
            let holds = self.roster.parked(id).is_some_and(|vcpu| vcpu.mode() == Mode::Kernel);
            if id != me && holds && self.scheduler.yield_to(id) {
                self.kernel_wait.yields();
                self.need_resched = true;
                return;
            }
        }
    }

    /// No vCPU waits for this one any longer.
    fn end_delay(&mut self, id: VcpuId) {
        let at_base = self.base_of(id) == self.index;
        // One that was given to another core left with its usual view.
        if let Some(vcpu) = self.roster.get(id) {
            vcpu.set_usual_view(at_base);
            vcpu.enter_space();
        }
        // No other vCPU was loaded since, so VTTBR_EL2 still holds this VM's VMID and the
        // flush hits the right entries.
        cpu::flush_guest_tlb_and_stage2();
    }

    fn set_loaded_view(&mut self, view: View) {
        if let Some(vcpu) = self.roster.loaded_mut() {
            vcpu.set_view(view);
            vcpu.enter_space();
            cpu::flush_guest_tlb_and_stage2();
        }
    }
}
