//! vCPUs that are away from their bases, and cores that have nothing to run.
//!
//! A vCPU that comes to a core shares it with whoever is there already. If a
//! haven of its has nothing to run, it goes on to that one; if its base is free
//! and its policy says so, back; and when its turn is over on, to where the next of
//! its siblings belongs. Cores that may take somebody in say when they are idle; those
//! that have somebody are told.

use crate::arch::{context, cpu};
use crate::pcpu::Pcpu;
use crate::policies;
use crate::shared::{HOSTS, IDLE, RECALLS, TAKEN};
use core::sync::atomic::{Ordering, fence};
use sched::policy::{Stay, next_on_tour};
use sched::{Duration, Members, Message, VcpuId};

/// Whoever takes an idle core's bit away is the one that comes. Answers whether
/// the caller is.
fn claim(core: usize) -> bool {
    IDLE.fetch_and(!(1 << core), Ordering::Relaxed) >> core & 1 == 1
}

/// The refuge, or another of these idle cores, whichever nobody else is on the way to.
#[inline(never)]
fn idle_haven(refuge: usize, idle: u32, ready: bool) -> usize {
    let takes = |&core: &usize| !ready || claim(core);
    if idle >> refuge & 1 == 1 && takes(&refuge) {
        return refuge;
    }
    let others = idle & !(1 << refuge);
    Members(others.into()).find(takes).unwrap_or(refuge)
}

impl Pcpu {
    /// The cores (bit set) that have nothing to run and that a vCPU may go to.
    /// A moment later this may be wrong: then two share a core.
    pub fn idle_havens_of(&self, id: usize) -> u32 {
        IDLE.load(Ordering::Relaxed) & u32::from(self.system.vcpus[id].havens)
    }

    /// Where a vCPU that can run goes: to its refuge, but rather to an idle core. Here,
    /// if it has nowhere to go.
    pub fn haven_of(&self, id: usize) -> usize {
        self.haven_among(id, self.idle_havens_of(id), true)
    }

    /// The same, when these are idle. One that sleeps leaves an idle core to others.
    #[inline(always)]
    pub fn haven_among(&self, id: usize, idle: u32, ready: bool) -> usize {
        let refuge = usize::from(self.system.vcpus[id].refuge);
        if idle == 0 { refuge } else { idle_haven(refuge, idle, ready) }
    }

    /// A vCPU that belongs elsewhere is here, and may go on.
    #[inline(never)]
    pub fn visitor_came(&mut self, id: usize) {
        if let Some(vcpu) = self.vcpu(VcpuId(id as u8)) {
            vcpu.stay = Stay::begin(Duration(vcpu.status.run));
        }
        self.visitors |= 1 << id;
        self.concerned |= 1 << id;
        HOSTS.fetch_or(1 << self.index, Ordering::SeqCst);
        // Before it looks who is idle.
        fence(Ordering::SeqCst);
        // Its base may have called where it was before.
        if RECALLS.is_wanted(VcpuId(id as u8)) {
            self.send_back(VcpuId(id as u8));
        }
    }

    /// It is gone.
    #[inline(never)]
    pub fn visitor_left(&mut self, id: usize) {
        self.visitors &= !(1 << id);
        self.concerned &= !(1 << id);
        if self.visitors == 0 {
            HOSTS.fetch_and(!(1 << self.index), Ordering::Relaxed);
        }
    }

    /// Sends a visitor on that waits here, or for which others do, if there is a
    /// better place. `shared`: equals of the one that has the core are ready.
    #[inline(never)]
    pub fn make_room(&mut self, current: VcpuId, shared: bool) {
        for slot in Members(self.visitors) {
            let id = VcpuId(slot as u8);
            if id == current
                && let Some(vcpu) = self.loaded.as_deref_mut()
            {
                vcpu.habit.runs();
            }
            let crowded = if id == current { shared } else { self.scheduler.is_ready(id) };
            if !crowded || self.working >> slot & 1 == 1 {
                continue;
            }
            if let Some(to) = self.better_place(slot) {
                self.depart(id, to);
                return;
            }
        }
    }

    fn better_place(&mut self, slot: usize) -> Option<usize> {
        let idle = self.idle_havens_of(slot);
        if idle != 0 {
            let core = idle.trailing_zeros() as usize;
            if claim(core) {
                return Some(core);
            }
        }
        // One that has the core still goes back when its turn is over.
        let base = self.base_of(slot);
        let vcpu = self.vcpus[slot].as_deref_mut()?;
        let mode = context::mode_of(vcpu.general.pstate);
        let free = !TAKEN[base].load(Ordering::Relaxed);
        let goes_back = vcpu.habit.lost_core(mode) && vcpu.policy.makes_room(mode) && free;
        if goes_back {
            return Some(base);
        }
        let quantum = policies::params(self.system, slot).quantum;
        let over = vcpu.stay.is_over(Duration(vcpu.status.run), quantum);
        let tour = self.system.vcpus[slot].tour;
        if over { next_on_tour(tour, self.index) } else { None }
    }

    /// Waits for an interrupt, and lets others know meanwhile. `tell`: those that
    /// have visitors, too; not again before this core had something to run, or two
    /// with sleeping visitors would keep each other awake.
    pub fn wait_known_as_idle(&self, tell: bool) {
        // Either this core sees the host of a visitor, or that sees this core.
        let before = IDLE.fetch_or(1 << self.index, Ordering::SeqCst);
        if tell {
            let hosts = HOSTS.load(Ordering::SeqCst) & !(1 << self.index) & !before;
            for host in Members(hosts.into()) {
                self.tell(host, Message::IdleCores, self.index, false);
            }
        }
        cpu::wait_for_interrupt();
        IDLE.fetch_and(!(1 << self.index), Ordering::Relaxed);
    }
}
