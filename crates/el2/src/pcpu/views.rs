//! What a guest may execute, and delayed preemption.
//!
//! A *view* of a VM's memory lets its vCPU execute its kernel only, or programs only.
//! When the vCPU goes to the other, its fetch faults and exits to EL2: its policy moves it
//! then, or a vCPU that waits gets the core. Another vCPU waits for one in its kernel if the
//! policy of the latter says so, or if the two are siblings: the one in its kernel may hold
//! a lock. Under other policies it waits for one whose guest asks for that.

use super::Pcpu;
use super::visitors::{destination, idle_elsewhere};
use crate::arch::{context, cpu, timer};
use crate::bug::bug;
use crate::parts::{Gate, Limit, NEVER};
use crate::shared::BOARD;
use crate::status::trace::Kind;
use abi::status::Exit;
use abi::system::NO_DELAY_LIMIT;
use core::sync::atomic::Ordering;
use notes::each;
use sched::policy::{Mode, Request, Side, View};
use sched::{Duration, Instant, VcpuId};

/// How much later EL2 looks again whether a guest still asks, nanoseconds, as it checks itself before the guest runs.
const CHECKS_NS: u64 = if cfg!(feature = "checked") { 10_000 } else { 0 };

/// Returns true if a view forbids what a vCPU in this mode executes.
fn is_forbidden(view: View, mode: Mode) -> bool {
    matches!((view, mode), (View::UserOnly, Mode::Kernel) | (View::KernelOnly, Mode::User))
}

impl Pcpu {
    /// Handles a fetch of the loaded vCPU that its view forbids. Returns false if the guest
    /// itself has to take the fault.
    #[inline(never)]
    pub fn view_fault(&mut self) -> bool {
        let mode = context::guest_mode();
        let Some(vcpu) = self.roster.loaded_mut() else {
            bug!("a fetch is refused without a loaded vCPU");
            return false;
        };
        if !is_forbidden(vcpu.view(), mode) {
            return false;
        }
        vcpu.account().count_exit(Exit::ViewFault);
        let id = vcpu.id();
        self.trace.note(Kind::Exit, id, Exit::ViewFault as u32, self.entered);
        let config = vcpu.config();
        let may_leave = match config.policy().crossed(mode) {
            // It has left its kernel: a vCPU that waits for that gets the core.
            Side::Here => {
                vcpu.mode_bias().was_waited_for();
                self.need_resched = true;
                return self.kernel_wait.is_for(id);
            }
            Side::Base => BOARD.may_return(self.index, config.base()),
            Side::Fallback => {
                BOARD.may_return(self.index, config.fallback())
                    || !idle_elsewhere(config).is_empty()
            }
        };
        if !may_leave {
            // That core is powered down, or about to be. What it recalls when it is back departs
            // then; until then the vCPU runs here, whatever its mode is.
            self.set_loaded_view(View::Full);
            return true;
        }
        if !self.take_off(id) || cpu::interrupt_pending() {
            self.depart_later(id);
        } else {
            self.cross(id);
        }
        true
    }

    /// Hands a vCPU that is not loaded over to the core on which its policy wants it, if its view
    /// forbids what it executes next; else to its base, which has recalled it, or to where it was
    /// asked to be. If it may not go there any more it stays: it comes to this again when it runs, or
    /// is recalled again.
    #[inline(never)]
    pub(super) fn cross(&mut self, id: VcpuId) {
        notes::needs::<{ each::MIGRANT }>();
        self.need_resched = true;
        // It may have left for another reason.
        let Some(vcpu) = self.roster.parked(id) else { return };
        let (config, mode) = (vcpu.config(), vcpu.mode());
        let to = match config.policy().crossed(mode) {
            Side::Fallback if is_forbidden(vcpu.view(), mode) => destination(config),
            _ => {
                #[cfg(test)]
                assert!(
                    !self.visitors.present().has(id)
                        || BOARD.is_recalled(id)
                        || is_forbidden(vcpu.view(), mode),
                    "a visitor goes to its base, which has not recalled it"
                );
                self.wanted_at(id)
            }
        };
        if BOARD.may_return(self.index, to) {
            self.hand_over_parked(id, to);
        }
    }

    /// Returns true if the loaded vCPU keeps the core, and `next` has to wait.
    #[inline(never)]
    pub(super) fn waits(&mut self, next: Option<VcpuId>, now: Instant) -> bool {
        let before = next.map_or(self.known, |id| self.precedence.before(id));
        if self.jobs.has_pieces(before) {
            // The decision is not final: first these are told.
            return false;
        }
        let limit = next.and_then(|next| self.delay_limit(next));
        let end_after = |ns| match ns {
            NO_DELAY_LIMIT => NEVER,
            ns => now.after(Duration(timer::ns_to_ticks(ns))),
        };
        let stays = |id, asked| {
            let loaded = self.roster.loaded().filter(|vcpu| next == Some(id) && vcpu.id() == id);
            let is_in_kernel = || context::guest_mode() == Mode::Kernel;
            loaded.is_some_and(|vcpu| if asked { vcpu.asks(self.system) } else { is_in_kernel() })
        };
        match self.kernel_wait.gate(now, limit, end_after, stays) {
            Gate::Open | Gate::EndsAsked => false,
            Gate::Ends(id) => {
                self.end_delay(id);
                false
            }
            Gate::Hold { delayer, until, begins } => {
                if begins {
                    self.set_loaded_view(View::KernelOnly);
                }
                let mut until = until;
                let asked = self.roster.loaded().filter(|_| limit.is_some_and(|limit| limit.asked));
                if let Some(vcpu) = asked {
                    if let Some(ns) = vcpu.config().request().looked_at_each_ns() {
                        // From now on, not from the decision: it has to get on in between.
                        let again = Duration(timer::ns_to_ticks(ns + CHECKS_NS));
                        until = until.min(timer::now().after(again));
                    } else if let Some(line) = vcpu.config().line() {
                        line.cancelled.store(1, Ordering::Relaxed);
                    }
                }
                let decide_by = self.scheduler.let_finish(delayer, now);
                self.mask_nothing();
                self.arm_out_of_line(Some(decide_by.map_or(until, |instant| until.min(instant))));
                true
            }
        }
    }

    /// Returns how long at most `next` waits for the loaded vCPU; none: it does not wait.
    fn delay_limit(&self, next: VcpuId) -> Option<Limit> {
        let vcpu = self.roster.loaded()?;
        let delayer = vcpu.id();
        let goes_on = delayer != next
            && self.loaded_is_current()
            && self.scheduler.is_ready_to_work(delayer)
            // Its guest is not in its kernel then, but waits for an interrupt.
            && !(self.jobs.before_guest() | self.timer_advance.early()).has(delayer);
        if !goes_on {
            return None;
        }
        let (config, mode) = (vcpu.config(), context::guest_mode());
        if self.displacement.losers(next).has(delayer) {
            // A policy without requests has views if it makes others wait.
            let asked = config.request() != Request::None;
            let delays = config.policy().delays(mode, asked && vcpu.asks(self.system));
            return delays.then_some(Limit { delayer, ns: config.delay_limit_ns(), asked });
        }
        // Bounds have no room for this: one that has a budget does not wait.
        let sibling = self.vm_of(next) == vcpu.vm() && self.scheduler.account(next).is_none();
        let waits = sibling && mode == Mode::Kernel && config.has_views();
        let ns = self.system.header.sibling_grace_ns;
        waits.then_some(Limit { delayer, ns, asked: false })
    }

    /// Yields to a sibling that was preempted here in its kernel: the loaded vCPU spins, and
    /// that sibling may hold the lock.
    #[inline(never)]
    pub fn yield_to_lock_holder(&mut self) {
        let Some(vcpu) = self.roster.loaded() else { return bug!("a WFE without a loaded vCPU") };
        let (me, vm) = (vcpu.id(), vcpu.vm());
        let roster = &self.roster;
        let holds = |id| roster.parked(id).is_some_and(|vcpu| vcpu.mode() == Mode::Kernel);
        let holders = self.vcpus_of(vm).filter(|&id| id != me && holds(id));
        if self.scheduler.yield_to_any(holders) {
            self.kernel_wait.yields();
            self.need_resched = true;
        }
    }

    /// Gives a vCPU its usual view back, now that no vCPU waits for it.
    fn end_delay(&mut self, id: VcpuId) {
        let at_base = self.base_of(id) == self.index;
        // A vCPU that was handed over has its usual view already.
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
