//! Cores with little to do give their vCPUs away and are powered down.
//!
//! [`Consolidation`](crate::parts::Consolidation) decides when. The host has chosen which
//! cores may be powered down, and the consolidation target of each: the
//! core to which its vCPUs go.
//!
//! A core that leaves hands each of its vCPUs, asleep or not, over to the target. Then it
//! saves its own state and the firmware switches it off. The target switches it on
//! again; it begins where every core begins, finds its state, and recalls its vCPUs.
//!
//! Messages to a core that is off stay in its mailbox. A message about a vCPU may be read
//! late, because the core does not own that vCPU. A message about a VM is too: the epoch
//! of each vCPU tells whether the message concerns it.

use super::Pcpu;
use super::console::log;
use super::interrupts::start_redistributor;
use crate::arch::firmware::{self, Started};
use crate::arch::gic::Doorbell;
use crate::arch::gic::virtual_interface::Interface;
use crate::arch::{cpu, statics, timer};
use crate::bug::bug;
use crate::parts::{CONSOLIDATES, Idled, Verdict};
use crate::shared::hand_over::HandOver;
use crate::shared::{BOARD, RESTS};
use abi::MAX_PCPUS;
use notes::each;
use sched::{CoreSet, Instant, Member, Message};

statics! {
    /// By core: its state while it is powered down.
    static RESTING: [HandOver<Pcpu>; MAX_PCPUS] = [const { HandOver::new() }; MAX_PCPUS];
}

/// Returns the state with which a core that was powered down goes on.
pub fn returning(index: usize) -> Option<&'static mut Pcpu> {
    if CONSOLIDATES { RESTING[index].take() } else { None }
}

impl Pcpu {
    /// Begins to look at the load, if this core may leave.
    pub fn begin_to_look(&mut self) {
        if self.consolidation.target().is_some() {
            self.begin_window(timer::now());
        }
    }

    #[inline(never)]
    fn begin_window(&mut self, now: Instant) {
        let idled = self.idled(now);
        self.consolidation.begin_window(now, idled);
    }

    /// Returns how long this core and its consolidation target have idled.
    fn idled(&self, now: Instant) -> Idled {
        let target = self.consolidation.target().unwrap_or(self.index);
        Idled { here: RESTS[self.index].idled(now), target: RESTS[target].idled(now) }
    }

    /// Waits for an interrupt and records how long, or powers this core down if it leaves.
    #[inline(never)]
    pub(super) fn rest_or_leave(&mut self) {
        notes::needs::<{ each::LEAVER }>();
        // What is unread has rung: it is read first. The same holds of pieces and jobs that are left.
        let is_done = self.unread.is_empty()
            && !self.jobs.has_pieces(self.known)
            && self.jobs.pending().is_empty()
            && !cpu::interrupt_pending();
        if self.consolidation.is_leaving() && is_done {
            self.power_down();
            return;
        }
        RESTS[self.index].begin(timer::now());
        self.wait();
        RESTS[self.index].end(timer::now());
    }

    /// Looks at the load at the end of a window, and does what follows.
    #[inline(never)]
    pub(super) fn look_at_load(&mut self, now: Instant) {
        notes::needs::<{ each::LEAVER }>();
        let idled = self.idled(now);
        let verdict = match self.consolidation.target() {
            Some(target) => {
                // A vCPU that has a job comes back when the job is done.
                let busy = !self.jobs.pending().is_empty() || self.scheduler.holds_back();
                let held = self.recall_missing(target) || busy;
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
            Verdict::Leave => {
                BOARD.depart(self.index);
                self.jobs.depart_later(self.consolidation.mine());
                self.need_resched = true;
            }
            // As urgent as this timer.
            Verdict::Call(away) => away
                .iter()
                .for_each(|core| self.go_on_later(Message::AwayCores, core, Doorbell::Realtime)),
        }
    }

    /// Recalls the vCPUs that are based here and are elsewhere. Returns true if there are any.
    fn recall_missing(&self, target: usize) -> bool {
        let missing = |&id: &_| !self.roster.owns(id);
        let missing = self.consolidation.mine().iter().filter(missing);
        missing
            .map(|id| self.tell(target, Message::Recalls, id.number(), Doorbell::Ordinary))
            .count()
            > 0
    }

    /// Switches this core, whose vCPUs are gone, off. It goes on with [`Self::come_back`];
    /// this function returns only if the firmware refuses.
    fn power_down(&mut self) {
        notes::needs::<{ each::LEAVER }>();
        self.end_watch();
        self.ledger.powers_down(timer::now());
        let this = core::ptr::from_mut(self);
        // SAFETY: the one exclusive reference that there is to this core's state,
        // which is static; it is used again by this very core only, after it was
        // off, or below.
        RESTING[self.index].put(unsafe { &mut *this });
        firmware::stop_core();
        let _ = RESTING[self.index].take();
        self.ledger.stayed(timer::now());
        let target = self.consolidation.stays_on();
        self.is_back(target);
        log!(self, "pCPU ", self.index, " cannot be powered down");
    }

    /// Sets this core up after it was powered down: its hardware has lost its state.
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
        self.is_back(self.consolidation.target());
    }

    #[inline(never)]
    fn is_back(&mut self, target: Option<usize>) {
        self.consolidation.is_back();
        self.need_resched = true;
        BOARD.come_back(self.index);
        self.begin_to_watch();
        if let Some(target) = target {
            self.recall_missing(target);
            self.begin_to_look();
        }
    }

    /// Begins to look at the load, now that a vCPU has come whose core leaves.
    #[inline(never)]
    pub(super) fn consolidate(&mut self) {
        notes::needs::<{ each::LEAVER }>();
        if self.consolidation.begins_as_target() {
            self.begin_window(timer::now());
        }
    }

    /// Switches a core on. If it is still on its way to CPU_OFF, it is called again at the
    /// end of the next window.
    pub(super) fn call_back(&mut self, core: usize) {
        if !self.consolidation.takes_part() {
            return bug!("a core is to be switched on that was never powered down");
        }
        let mpidr = self.system.board.pcpu_mpidr[core];
        if firmware::start_core(mpidr, core) == Started::No {
            self.consolidation.lost(core);
            log!(self, "pCPU ", core, " does not start again: its vCPUs stay on pCPU ", self.index);
        }
    }
}
