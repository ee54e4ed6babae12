//! vCPUs that are away from their bases, and cores that have nothing to run.
//!
//! Away from its base, a vCPU shares a core with that core's own vCPUs. From there it moves
//! on to a core of its affinity that has nothing to run; back to its base when that is free
//! and its policy says so; and when its turn is over, to the next core of its rotation. Under some
//! policies it is not recalled, and goes back when it sleeps or waits. A core
//! to which vCPUs may come sets its bit in `IDLE` when it idles, and sends a message to the
//! cores that have visitors.

use super::Pcpu;
use crate::arch::cpu;
use crate::arch::gic::Doorbell;
use crate::bug::bug;
use crate::shared::{BOARD, HOSTS, IDLE, TAKEN};
use crate::vcpu::VcpuConfig;
use abi::MAX_PCPUS;
use core::sync::atomic::{Ordering, fence};
use notes::{Bounded, each};
use sched::{CoreSet, Message, VcpuId};

/// Clears an idle core's bit, so that only one vCPU goes there. Returns true if this call
/// has cleared it.
fn claim(core: usize) -> bool {
    IDLE.remove(core, Ordering::Relaxed).has(core)
}

/// Returns the fallback or another of these idle cores, one to which no other vCPU is on its
/// way. If there is none, returns the fallback.
#[inline(never)]
fn idle_one(fallback: usize, idle: CoreSet, ready: bool) -> usize {
    let takes = |&core: &usize| !ready || claim(core);
    if idle.has(fallback) && takes(&fallback) {
        return fallback;
    }
    (idle - CoreSet::of(fallback)).iter().find(takes).unwrap_or(fallback)
}

/// Returns the cores that have nothing to run and to which a vCPU may go. This may change at
/// any moment: then two vCPUs share a core.
#[inline(always)]
pub(super) fn idle_elsewhere(config: &VcpuConfig) -> CoreSet {
    IDLE.load(Ordering::Relaxed) & config.elsewhere()
}

/// Returns where a vCPU that can run goes: to an idle core of its affinity, else to its
/// fallback, which is its base if it has no other.
pub(super) fn destination(config: &VcpuConfig) -> usize {
    destination_among(config, idle_elsewhere(config), true)
}

/// Returns where a vCPU goes when these cores are idle. A vCPU that sleeps does not claim
/// an idle core.
#[inline(always)]
pub(super) fn destination_among(config: &VcpuConfig, idle: CoreSet, ready: bool) -> usize {
    if idle.is_empty() { config.fallback() } else { idle_one(config.fallback(), idle, ready) }
}

impl Pcpu {
    /// Records a visitor that has arrived.
    #[inline(never)]
    pub(super) fn visitor_came(&mut self, id: VcpuId) {
        notes::needs::<{ each::MIGRANT }>();
        match self.roster.get(id) {
            Some(vcpu) => vcpu.begin_visit(),
            None => bug!("a visitor comes that is not here"),
        }
        self.visitors.came(id);
        HOSTS.insert(self.index, Ordering::SeqCst);
        // Before it looks which cores are idle.
        fence(Ordering::SeqCst);
    }

    /// Records that a visitor has left.
    #[inline(never)]
    pub(super) fn visitor_left(&mut self, id: VcpuId) {
        notes::needs::<{ each::MIGRANT }>();
        if self.visitors.left(id) {
            HOSTS.remove(self.index, Ordering::Relaxed);
        }
    }

    /// Makes a visitor move on that waits for the core, or for which others wait, if there is
    /// a better core. `ends`: the turn or the budget of `current`, which has the core, ends.
    #[inline(never)]
    pub(super) fn make_room(&mut self, current: VcpuId, ends: bool) {
        notes::needs::<{ each::MIGRANT }>();
        // A budget that ends is no turn of others.
        let crowded = ends && self.scheduler.takes_turns();
        for id in self.visitors.present() {
            if id == current
                && let Some(vcpu) = self.roster.loaded_mut()
            {
                vcpu.mode_bias().runs();
            }
            let waits = if id == current { crowded } else { self.scheduler.is_ready_to_work(id) };
            let left = match (waits, id == current) {
                _ if self.jobs.has(id) => None,
                (true, _) => self.better_place(id).map(|to| self.move_on(id, to)),
                (false, true) => None,
                // It sleeps.
                (false, false) => self.free_base(id).map(|to| self.depart(id, to)),
            };
            if left.is_some() {
                return;
            }
        }
    }

    /// Hands a visitor over to a core that is better for it. If an interrupt comes first, the visitor
    /// stays, and this core looks again after that: a vCPU that wakes now may leave another core free,
    /// or need this one.
    #[inline(never)]
    fn move_on(&mut self, id: VcpuId, to: usize) {
        notes::needs::<{ each::MIGRANT }>();
        if self.roster.is_loaded(id) && cpu::interrupt_pending() {
            // By a message: a guest runs in between, or interrupts without end would keep it from that.
            self.go_on_later(Message::IdleCores, self.index, Doorbell::Ordinary);
            return;
        }
        self.need_resched = true;
        let idles = IDLE.load(Ordering::Relaxed).has(to);
        // It is gone if another vCPU goes there first.
        if self.take_off(id) && (!idles || claim(to)) {
            self.hand_over_parked(id, to);
        }
    }

    /// Sends a visitor back that sleeps, if its policy says so and its base is free. Returns true
    /// if one has left.
    fn send_sleeper_back(&mut self) -> bool {
        for id in self.visitors.present() {
            if !self.jobs.has(id)
                && let Some(base) = self.free_base(id)
            {
                self.depart(id, base);
                return true;
            }
        }
        false
    }

    /// Returns the base of a visitor that goes back by itself, if that is free.
    #[inline(never)]
    fn free_base(&mut self, id: VcpuId) -> Option<usize> {
        let config = self.roster.get(id)?.config();
        let base = config.base();
        let goes = config.returns_by_itself()
            && !TAKEN[base].load(Ordering::Relaxed)
            && BOARD.may_return(self.index, base);
        goes.then_some(base)
    }

    fn better_place(&mut self, id: VcpuId) -> Option<usize> {
        // Not its base: that recalls it when it is free.
        if let Some(core) = idle_elsewhere(self.roster.get(id)?.config()).first() {
            return Some(core);
        }
        // A vCPU that has the core still goes back when its turn is over.
        let mode = self.roster.parked(id)?.mode();
        if let Some(base) = self.free_base(id) {
            return Some(base);
        }
        let vcpu = self.roster.get(id)?;
        let lost_in_user_mode = vcpu.mode_bias().lost_core(mode);
        let config = vcpu.config();
        let free = !TAKEN[config.base()].load(Ordering::Relaxed);
        if lost_in_user_mode && config.policy().makes_room(mode) && free {
            return Some(config.base());
        }
        if vcpu.visit_is_over() { config.next_in_rotation(self.index) } else { None }
    }

    /// Waits for an interrupt, with this core's bit in `IDLE` set. `tell`: sends a message to
    /// the cores that have visitors first; not again before this core had something to run.
    #[inline(never)]
    pub(super) fn wait_known_as_idle(&mut self, tell: bool) {
        notes::needs::<{ each::MIGRANT }>();
        if !self.visitors.present().is_empty() && self.send_sleeper_back() {
            return;
        }
        // Either this core sees that another one has a visitor, or that one sees this core
        // as idle.
        let before = IDLE.insert(self.index, Ordering::SeqCst);
        if tell {
            let hosts = HOSTS.load(Ordering::SeqCst);
            for core in (hosts - CoreSet::of(self.index) - before)
                .iter()
                .one_for::<{ each::CORE }, MAX_PCPUS>()
            {
                self.tell(core, Message::IdleCores, self.index, Doorbell::Ordinary);
            }
        }
        cpu::wait_for_interrupt();
        IDLE.remove(self.index, Ordering::Relaxed);
    }
}
