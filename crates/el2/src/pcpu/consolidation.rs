//! Cores without much to do give their vCPUs away and are powered down.
//!
//! When is the matter of [`Consolidation`](crate::parts::Consolidation); which cores may be,
//! and which shelter their vCPUs, the host's.
//!
//! A core leaves as a vCPU does: each of its vCPUs departs to the shelter, asleep
//! or not, with its timers and interrupts. Then its own state is put to rest and
//! the firmware switches it off. The shelter switches it on again; it begins where
//! every core begins, finds its state, and asks for its vCPUs.
//!
//! Messages to a core that is off stay in its mailbox. They are for vCPUs that it
//! does not own, so that it may read them late, or for VMs: which of its vCPUs
//! those mean is seen from their epochs.

use super::Pcpu;
use super::console::log;
use super::interrupts::start_redistributor;
use crate::arch::boot::{STACK_SIZE, stack_top};
use crate::arch::firmware::{self, Started};
use crate::arch::gic::virtual_interface::Interface;
use crate::arch::{memory, statics, timer};
use crate::parts::{Idled, Verdict};
use crate::shared::transit::Transit;
use crate::shared::{BOARD, RESTS};
use abi::MAX_PCPUS;
use sched::{CoreSet, Instant, Member, Message};

statics! {
    /// By core: its state while it is powered down.
    static RESTING: [Transit<Pcpu>; MAX_PCPUS] = [const { Transit::new() }; MAX_PCPUS];
}

/// Returns the state of a core that was powered down: it goes on with that.
pub fn returning(index: usize) -> Option<&'static mut Pcpu> {
    RESTING[index].take()
}

impl Pcpu {
    /// Looks at the load from now on, if this core may leave.
    pub fn begin_to_look(&mut self) {
        if self.consolidation.shelter().is_some() {
            self.begin_window(timer::now());
        }
    }

    fn begin_window(&mut self, now: Instant) {
        let idled = self.idled(now);
        self.consolidation.begin_window(now, idled);
    }

    /// Returns how long this core and the one that would shelter its vCPUs have idled.
    fn idled(&self, now: Instant) -> Idled {
        let shelter = self.consolidation.shelter().unwrap_or(self.index);
        Idled { here: RESTS[self.index].idled(now), shelter: RESTS[shelter].idled(now) }
    }

    /// Waits for an interrupt as a core that takes part, or powers down.
    #[inline(never)]
    pub(super) fn rest_or_leave(&mut self) {
        if self.consolidation.is_leaving() {
            self.power_down();
            return;
        }
        RESTS[self.index].begin(timer::now());
        self.wait();
        RESTS[self.index].end(timer::now());
    }

    /// A window is over.
    #[inline(never)]
    pub(super) fn look_at_load(&mut self, now: Instant) {
        let idled = self.idled(now);
        let verdict = match self.consolidation.shelter() {
            Some(shelter) => {
                // One that reports a failure comes when it has.
                let busy = !self.jobs.pending().is_empty() || self.scheduler.holds_back();
                let held = self.recall_missing(shelter) || busy;
                self.consolidation.look_as_leaver(now, idled, held)
            }
            None => {
                let callable = self.consolidation.callable();
                let away = callable.iter().filter(|&core| BOARD.is_away(core));
                let away: CoreSet = away.collect();
                self.consolidation.look_as_host(now, idled, away)
            }
        };
        match verdict {
            Verdict::GoOn => {}
            Verdict::Leave(shelter) => {
                BOARD.depart(self.index);
                for id in self.consolidation.mine() {
                    self.depart(id, shelter);
                }
            }
            Verdict::Call(away) => away.iter().for_each(|core| self.call_back(core)),
        }
    }

    /// Asks for the vCPUs that belong here and are not. Returns true if there are any.
    fn recall_missing(&self, shelter: usize) -> bool {
        let missing = |&id: &_| !self.roster.owns(id);
        let missing = self.consolidation.mine().iter().filter(missing);
        missing.map(|id| self.tell(shelter, Message::Recalls, id.number(), false)).count() > 0
    }

    /// This core, whose vCPUs are gone, is switched off, and goes on with
    /// [`Self::come_back`]. Comes back only when the firmware refuses.
    fn power_down(&mut self) {
        self.ledger.powers_down(timer::now());
        let this = core::ptr::from_mut(self);
        // SAFETY: the one exclusive reference that there is to this core's state,
        // which is static; it is used again by this very core only, after it was
        // off, or below.
        RESTING[self.index].put(unsafe { &mut *this });
        let stack = stack_top(self.index) as u64 + 16 - STACK_SIZE as u64;
        // It will begin with its MMU off, on this stack.
        memory::clean_to_memory(stack, STACK_SIZE as u64);
        firmware::stop_core();
        let _ = RESTING[self.index].take();
        self.ledger.stayed(timer::now());
        let shelter = self.consolidation.stays_on();
        self.is_back(shelter);
        log!(self, "pCPU {} cannot be powered down", self.index);
    }

    /// This core was powered down: nothing of what its hardware held is there.
    pub fn come_back(&mut self) {
        let now = timer::now();
        self.redistributor = start_redistributor(self.index, self.system);
        self.interface = Interface::start();
        self.mask.was_reset();
        timer::arm(self.deadlines.fired());
        self.roster.forget_float();
        self.configure();
        let away = self.ledger.is_back(now);
        self.consolidation.was_away(away);
        self.is_back(self.consolidation.shelter());
    }

    fn is_back(&mut self, shelter: Option<usize>) {
        self.consolidation.is_back();
        self.need_resched = true;
        BOARD.come_back(self.index);
        if let Some(shelter) = shelter {
            self.recall_missing(shelter);
            self.begin_to_look();
        }
    }

    /// A vCPU has come whose core leaves.
    #[inline(never)]
    pub(super) fn shelter(&mut self) {
        if self.consolidation.begins_to_shelter() {
            self.begin_window(timer::now());
        }
    }

    /// Switches a core on. If it is still on its way off, it is called again when
    /// the next window is over.
    fn call_back(&mut self, core: usize) {
        let mpidr = self.system.board.pcpu_mpidr[core];
        if firmware::start_core(mpidr, core) == Started::No {
            self.consolidation.lost(core);
            log!(self, "pCPU {core} does not start again: its vCPUs stay on pCPU {}", self.index);
        }
    }
}
