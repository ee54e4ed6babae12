//! Cores without much to do give their vCPUs away and are powered down.
//!
//! When is [`sched::consolidation`]'s matter; which cores may be, and who shelters
//! their vCPUs, the host's. Here a core looks at its load when a window of time is
//! over: one that may be powered down always, a shelter while it has vCPUs of
//! others. All others find that there is nothing to look at, ever.
//!
//! A core leaves as a vCPU does: each of its vCPUs departs to the shelter, asleep
//! or not, with its timers and interrupts. Then its own state is put to rest and
//! the firmware switches it off. The shelter switches it on again; it begins where
//! every core begins, finds its state, and asks for its vCPUs.
//!
//! Messages to a core that is off stay in its mailbox. They are for vCPUs that it
//! does not own, so that it may read them late, or for VMs: which of its vCPUs
//! those mean is seen from their epochs.

use crate::arch::boot::{STACK_SIZE, stack_top};
use crate::arch::firmware::{self, Started};
use crate::arch::ich::Interface;
use crate::arch::{cache, gic, timer};
use crate::console::log;
use crate::pcpu::{NOBODY, Pcpu};
use crate::shared::{PRESENCE, RESTING};
use crate::start;
use crate::status;
use abi::system::{System, Vcpu};
use sched::consolidation::{Host, Leaver, Load};
use sched::{Duration, Instant, Members, Message, VcpuId};

/// See the module.
pub struct Consolidation {
    /// Who shelters this core's vCPUs; none: it stays on.
    shelter: Option<usize>,
    /// The vCPUs (bit set by identifier) that belong here.
    mine: u64,
    /// The cores (bit set) whose vCPUs this one shelters.
    pub shelters: u64,
    /// Those of them that the firmware does not switch on again.
    lost: u64,
    /// When the present window ends; never: there is none.
    pub look_at: Instant,
    /// How long a window is.
    window: Duration,
    /// When the present one began, and what this core and its shelter had idled.
    since: Instant,
    idle: u64,
    shelter_idle: u64,
    leaver: Leaver,
    host: Host,
    /// Its vCPUs are gone, and it goes off when it is idle.
    pub leaving: bool,
}

impl Consolidation {
    /// Nothing to look at.
    pub fn new() -> Self {
        Self {
            shelter: None,
            mine: 0,
            shelters: 0,
            lost: 0,
            look_at: timer::NEVER,
            window: Duration(0),
            since: Instant(0),
            idle: 0,
            shelter_idle: 0,
            leaver: Leaver::new(),
            host: Host::new(),
            leaving: false,
        }
    }
}

/// The cores (bit set) that may come to own a vCPU: its base, its havens, its
/// base's shelter.
pub fn places(system: &System, vcpu: &Vcpu) -> u16 {
    let shelter = system.board.pcpu_shelter[usize::from(vcpu.pcpu)];
    1 << vcpu.pcpu | vcpu.havens | 1 << shelter
}

/// The state of a core that was powered down: it goes on with that.
pub fn resting(index: usize) -> Option<&'static mut Pcpu> {
    RESTING[index].take()
}

impl Pcpu {
    /// Finds out what this core is for others, and others for it.
    pub fn learn_consolidation(&mut self) {
        let (system, index) = (self.system, self.index);
        let shelters = &system.board.pcpu_shelter[..system.board.pcpu_count as usize];
        let sheltered = |core: &usize| *core != index && usize::from(shelters[*core]) == index;
        let vcpus = &system.vcpus[..system.header.vcpu_count as usize];
        let based = |id: &usize| usize::from(vcpus[*id].pcpu) == index;
        let set = |set: u64, member: usize| set | 1 << member;
        let consolidation = &mut self.consolidation;
        consolidation.window = Duration(timer::ns_to_ticks(system.header.consolidation_window_ns));
        consolidation.shelters = (0..shelters.len()).filter(sheltered).fold(0, set);
        consolidation.mine = (0..vcpus.len()).filter(based).fold(0, set);
        let shelter = usize::from(shelters[index]);
        // The host sees to the rest; these two would be fatal.
        if shelter != index && self.console.is_none() && !self.tell_idle {
            self.consolidation.shelter = Some(shelter);
            self.begin_window(timer::now());
        }
    }

    fn begin_window(&mut self, now: Instant) {
        self.consolidation.since = now;
        self.consolidation.look_at = now.after(self.consolidation.window);
        self.consolidation.idle = self.idled(now);
        if let Some(shelter) = self.consolidation.shelter {
            self.consolidation.shelter_idle = status::idle(self.system, shelter, now.0);
        }
    }

    /// Ticks this core has idled, the present rest included.
    fn idled(&self, now: Instant) -> u64 {
        let rests = self.status.current == NOBODY;
        self.status.idle + if rests { now.0.saturating_sub(self.status.since) } else { 0 }
    }

    /// A window is over.
    #[inline(never)]
    pub fn look_at_load(&mut self, now: Instant) {
        let length = now.since(self.consolidation.since);
        let own = Load::of(length, Duration(self.idled(now) - self.consolidation.idle));
        match self.consolidation.shelter {
            Some(shelter) => self.consider_leaving(shelter, own, length, now),
            None => self.consider_calling(own, now),
        }
    }

    fn consider_leaving(&mut self, shelter: usize, own: Load, length: Duration, now: Instant) {
        let idled = status::idle(self.system, shelter, now.0);
        let idled = idled.saturating_sub(self.consolidation.shelter_idle);
        let there = Load::of(length, Duration(idled));
        self.begin_window(now);
        // One that reports a failure comes when it has.
        if self.recall_missing(shelter) || self.working | self.stopped != 0 {
            self.consolidation.leaver.stays();
        } else if self.consolidation.leaver.window(own, there) {
            self.consolidation.leaving = true;
            self.consolidation.look_at = timer::NEVER;
            PRESENCE[self.index].leaves();
            for id in Members(self.consolidation.mine) {
                self.depart(VcpuId(id as u8), shelter);
            }
        }
    }

    /// Asks for the vCPUs that belong here and are not. Answers whether there
    /// are any.
    fn recall_missing(&self, shelter: usize) -> bool {
        let missing = |id: &usize| !self.owns(VcpuId(*id as u8));
        let missing = Members(self.consolidation.mine).filter(missing);
        missing.map(|id| self.tell(shelter, Message::Recalls, id, false)).count() > 0
    }

    /// This core, whose vCPUs are gone, is switched off, and goes on with
    /// [`Self::come_back`]. Comes back only when the firmware refuses.
    #[inline(never)]
    pub fn power_down(&mut self) {
        let now = timer::now();
        self.book_rest(now);
        self.status.power_downs += 1;
        self.status.online = 0;
        // SAFETY: the one exclusive reference that there is to this core's state,
        // which is static; it is used again by this very core only, after it was
        // off, or below.
        RESTING[self.index].put(unsafe { &mut *(&raw mut *self) });
        let stack = stack_top(self.index) as u64 + 16 - STACK_SIZE as u64;
        // It will begin with its MMU off, on this stack.
        cache::clean_to_memory(stack, STACK_SIZE as u64);
        firmware::stop_core();
        drop(RESTING[self.index].take());
        let shelter = self.consolidation.shelter.take();
        self.is_back(now, shelter);
        log!(self, "pCPU {} cannot be powered down", self.index);
    }

    /// This core was powered down: nothing of what its hardware held is there.
    pub fn come_back(&mut self) {
        let now = timer::now();
        let away = now.since(Instant(self.status.since));
        self.redistributor = start::start_redistributor(self.index, self.system);
        self.interface = Interface::start();
        self.mask = gic::MASK_NOTHING;
        self.armed = timer::NEVER;
        timer::arm(timer::NEVER);
        self.float_owner = None;
        self.learn_siblings();
        self.book_rest(now);
        self.status.powered_down += away.0;
        self.consolidation.leaver.back(away.0 / self.consolidation.window.0.max(1));
        self.is_back(now, self.consolidation.shelter);
    }

    /// What comes next is a rest of its own.
    fn book_rest(&mut self, now: Instant) {
        self.status.idle = self.idled(now);
        self.status.since = now.0;
        self.since = now;
    }

    fn is_back(&mut self, now: Instant, shelter: Option<usize>) {
        self.status.online = 1;
        self.consolidation.leaving = false;
        self.reschedule = true;
        PRESENCE[self.index].returns();
        if let Some(shelter) = shelter {
            self.recall_missing(shelter);
            if self.consolidation.shelter.is_some() {
                self.begin_window(now);
            }
        }
    }

    /// A vCPU has come whose core leaves.
    #[inline(never)]
    pub fn shelter(&mut self) {
        if self.consolidation.look_at == timer::NEVER {
            self.consolidation.host = Host::new();
            self.begin_window(timer::now());
        }
    }

    fn consider_calling(&mut self, own: Load, now: Instant) {
        let here = self.consolidation.shelters & !self.consolidation.lost;
        let away = Members(here).filter(|&core| PRESENCE[core].is_away());
        let away = away.fold(0, |set, core| set | 1 << core);
        if away == 0 {
            self.consolidation.look_at = timer::NEVER;
            return;
        }
        self.begin_window(now);
        if self.consolidation.host.window(own) {
            Members(away).for_each(|core| self.call_back(core));
        }
    }

    /// Switches a core on. If it is still on its way off, it is called again when
    /// the next window is over.
    fn call_back(&mut self, core: usize) {
        let mpidr = self.system.board.pcpu_mpidr[core];
        if firmware::start_core(mpidr, core) == Started::No {
            self.consolidation.lost |= 1 << core;
            log!(self, "pCPU {core} does not start again: its vCPUs stay on pCPU {}", self.index);
        }
    }
}
