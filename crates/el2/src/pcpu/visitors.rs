//! vCPUs that are away from their bases, and cores that have nothing to run.
//!
//! Away from its base, a vCPU shares a core with that core's own vCPUs. It goes on to a
//! core of its affinity that has nothing to run; back to its base when that is free and its policy
//! agrees; and when its turn is over, to the next core of its rotation. Cores to which vCPUs
//! may come say when they are idle; those that have visitors are told.

use super::Pcpu;
use crate::arch::cpu;
use crate::bug::bug;
use crate::shared::{HOSTS, IDLE, TAKEN};
use crate::vcpu::VcpuConfig;
use core::sync::atomic::{Ordering, fence};
use sched::{CoreSet, Message, VcpuId};

/// Takes an idle core's bit away: the vCPU for which that succeeds is the one that goes
/// there. Returns true if it did.
fn claim(core: usize) -> bool {
    CoreSet::from_bits(IDLE.fetch_and(!bit(core), Ordering::Relaxed).into()).has(core)
}

fn bit(core: usize) -> u32 {
    CoreSet::of(core).bits() as u32
}

/// Returns the fallback, or another of these idle cores, whichever no other vCPU is on the
/// way to.
#[inline(never)]
fn idle_one(fallback: usize, idle: CoreSet, ready: bool) -> usize {
    let takes = |&core: &usize| !ready || claim(core);
    if idle.has(fallback) && takes(&fallback) {
        return fallback;
    }
    (idle - CoreSet::of(fallback)).iter().find(takes).unwrap_or(fallback)
}

/// Returns the cores that have nothing to run and that a vCPU may go to. A moment later
/// this may be wrong: then two share a core.
#[inline(always)]
pub(super) fn idle_elsewhere(config: &VcpuConfig) -> CoreSet {
    CoreSet::from_bits(IDLE.load(Ordering::Relaxed).into()) & config.elsewhere()
}

/// Returns where a vCPU that can run goes: to its fallback, but rather to an idle core.
/// That is its base if it has nowhere to go.
pub(super) fn destination(config: &VcpuConfig) -> usize {
    destination_among(config, idle_elsewhere(config), true)
}

/// Returns where a vCPU goes when these cores are idle. One that sleeps leaves an idle
/// core to others.
#[inline(always)]
pub(super) fn destination_among(config: &VcpuConfig, idle: CoreSet, ready: bool) -> usize {
    if idle.is_empty() { config.fallback() } else { idle_one(config.fallback(), idle, ready) }
}

impl Pcpu {
    /// A vCPU that belongs elsewhere is here, and may go on.
    #[inline(never)]
    pub(super) fn visitor_came(&mut self, id: VcpuId) {
        match self.roster.get(id) {
            Some(vcpu) => vcpu.begin_visit(),
            None => bug!("a visitor comes that is not here"),
        }
        self.visitors.came(id);
        HOSTS.fetch_or(bit(self.index), Ordering::SeqCst);
        // Before it looks which cores are idle.
        fence(Ordering::SeqCst);
    }

    /// A visitor has gone.
    #[inline(never)]
    pub(super) fn visitor_left(&mut self, id: VcpuId) {
        if self.visitors.left(id) {
            HOSTS.fetch_and(!bit(self.index), Ordering::Relaxed);
        }
    }

    /// Sends a visitor on that waits here, or for which others do, if there is a better
    /// place. `crowded`: equals of the vCPU that has the core are ready.
    #[inline(never)]
    pub(super) fn make_room(&mut self, current: VcpuId, crowded: bool) {
        for id in self.visitors.present() {
            if id == current
                && let Some(vcpu) = self.roster.loaded_mut()
            {
                vcpu.mode_bias().runs();
            }
            let waits = if id == current { crowded } else { self.scheduler.is_ready(id) };
            if !waits || self.jobs.has(id) {
                continue;
            }
            if let Some(to) = self.better_place(id) {
                self.depart(id, to);
                return;
            }
        }
    }

    fn better_place(&mut self, id: VcpuId) -> Option<usize> {
        // Its base, once idle, recalls it.
        if let Some(core) = idle_elsewhere(self.roster.get(id)?.config()).first()
            && claim(core)
        {
            return Some(core);
        }
        // One that has the core still goes back when its turn is over.
        let mode = self.roster.parked(id)?.mode();
        let vcpu = self.roster.get(id)?;
        let lost_in_user_mode = vcpu.mode_bias().lost_core(mode);
        let config = vcpu.config();
        let free = !TAKEN[config.base()].load(Ordering::Relaxed);
        if lost_in_user_mode && config.policy().makes_room(mode) && free {
            return Some(config.base());
        }
        if vcpu.visit_is_over() { config.next_in_rotation(self.index) } else { None }
    }

    /// Waits for an interrupt, and lets other cores know meanwhile. `tell`: those that have
    /// visitors, too; not again before this core had something to run.
    #[inline(never)]
    pub(super) fn wait_known_as_idle(&self, tell: bool) {
        // Either this core sees the core that a visitor is on, or that sees this core.
        let before = CoreSet::from_bits(IDLE.fetch_or(bit(self.index), Ordering::SeqCst).into());
        if tell {
            let hosts = CoreSet::from_bits(HOSTS.load(Ordering::SeqCst).into());
            for core in hosts - CoreSet::of(self.index) - before {
                self.tell(core, Message::IdleCores, self.index, false);
            }
        }
        cpu::wait_for_interrupt();
        IDLE.fetch_and(!bit(self.index), Ordering::Relaxed);
    }
}
