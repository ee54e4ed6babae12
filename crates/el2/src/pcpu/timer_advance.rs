//! A real-time vCPU gets its core before its own timer fires, and so does one that interrupts boost.
//!
//! The deadline of a timer is known beforehand. EL2 therefore sets its own timer earlier
//! than the timer of a sleeping vCPU, by the vCPU's *advance*. When the vCPU's timer fires,
//! the switch, the departure of the vCPUs that it displaces, and whatever EL2 was doing are
//! over. The guest has executed WFI and must not notice, so EL2 itself waits with WFI, with
//! the vCPU loaded; then the timer is an interrupt without a switch.
//!
//! One whose guest executes WFI within its advance keeps the core in the same way.
//!
//! For the scheduler such a vCPU is ready, and has the core. It counts as *woken early* until
//! it has an interrupt that ends its WFI, or a vCPU displaces it, or it has to sleep on
//! because its timer's interrupt is disabled. No vCPU displaces one with a boost, which has no policy: if it loses
//! its core, it stays as it is until it has that again.

use super::Pcpu;
use crate::arch::{cpu, timer};
use crate::bug::bug;
use crate::parts::wakes_at;
use abi::status::vcpu_state;
use notes::each;
use sched::{Instant, State, VcpuId};

/// What comes before a guest that has the core.
pub(super) enum Before {
    /// Nothing more.
    Nothing,
    /// A piece that belongs to no vCPU's turn.
    Piece,
    /// A piece of the vCPU's job.
    Job,
    /// Listing the rest of its interrupts.
    Listing,
    /// The wait for its timer.
    Timer,
}

/// What comes after the wait for a vCPU's timer.
enum After {
    /// The scheduler decides anew.
    Decision,
    /// The guest, which is on the hardware.
    Guest,
}

impl Pcpu {
    /// Says what comes before the guest of `current`, which gets the core: a piece of its job,
    /// say, or the wait for its timer. vCPUs that were woken early and that `current` displaces
    /// sleep again. Before all that come the pieces that belong to no vCPU's turn, if another one may
    /// get the core by them.
    #[inline(never)]
    pub(super) fn before_guest(&mut self, current: VcpuId, now: Instant) -> Before {
        if self.jobs.has_pieces(self.precedence.before(current)) {
            return Before::Piece;
        }
        self.give_core(Some(current), now);
        for loser in self.timer_advance.early() & self.displacement.losers(current) {
            self.fall_asleep_again(loser);
        }
        if self.jobs.has(current) {
            Before::Job
        } else if self.jobs.must_list(current, self.roster.loaded_id()) {
            Before::Listing
        } else if self.timer_advance.early().has(current) {
            Before::Timer
        } else {
            Before::Nothing
        }
    }

    /// Does that. Returns true if the scheduler has to be asked again, false if the vCPU is on the
    /// hardware and its guest runs. Apart from [`Self::before_guest`], so that no path leads
    /// through a piece and then on to the guest.
    #[inline(never)]
    pub(super) fn do_before_guest(
        &mut self,
        what: Before,
        current: VcpuId,
        until: Option<Instant>,
    ) -> bool {
        match what {
            Before::Nothing => {}
            Before::Piece => {
                self.arm_out_of_line(until);
                if !self.gives_way() {
                    self.do_next_piece(self.precedence.before(current));
                }
            }
            Before::Job => self.work(current, until),
            Before::Listing => self.go_on_listing(current, until),
            Before::Timer => {
                return matches!(self.wait_for_timer(current, until), After::Decision);
            }
        }
        true
    }

    /// Wakes a vCPU with an advance, for which EL2's timer has fired.
    #[inline(never)]
    pub(super) fn wake_before_timer(&mut self, id: VcpuId, now: Instant) {
        notes::needs::<{ each::ADVANCE }>();
        let Some(vcpu) = self.roster.parked_mut(id) else {
            return bug!("a vCPU's timer is due that is not parked here");
        };
        let sleeps = self.scheduler.state(id) == Some(State::Sleeping);
        // One that sleeps for less than its advance is on its way since another one has the core.
        let begin = vcpu.wakes_at().max(self.ledger.since());
        vcpu.sets_out(begin);
        if vcpu.timer_deadline() > now {
            if !sleeps || !self.scheduler.matters(id) {
                return;
            }
            self.timer_advance.begin(id);
        } else if sleeps {
            // Its core had something else to do for longer than its advance.
            vcpu.adapt_timer_advance(now);
        }
        self.wake(id);
    }

    /// Returns when the loaded vCPU, if it sleeps, has to be woken early on a core that
    /// idles: vCPUs that it displaces may sleep here, and have to leave.
    pub(super) fn loaded_wakes_at(&mut self, now: Instant) -> Option<Instant> {
        let vcpu = self.roster.loaded()?;
        let (id, advance) = (vcpu.id(), vcpu.timer_advance());
        if advance == 0 || !vcpu.is_on() {
            return None;
        }
        let wakes_at = wakes_at(timer::loaded_deadline(), advance, now)?;
        let asleep = self.scheduler.state(id) == Some(State::Sleeping);
        (asleep && !self.loaded_timer_is_held()).then_some(wakes_at)
    }

    /// Wakes the loaded vCPU early: at `begin`, unless the core rests only since later.
    pub(super) fn wake_loaded_early(&mut self, begin: Instant) {
        notes::needs::<{ each::ADVANCE }>();
        let begin = begin.max(self.ledger.since());
        if let Some(vcpu) = self.roster.loaded_mut() {
            vcpu.sets_out(begin);
            let id = vcpu.id();
            self.timer_advance.begin(id);
            self.wake(id);
        }
    }

    /// Leaves its core to the loaded vCPU, whose guest would sleep, if the vCPU would be woken early at once: the core
    /// would go to another one and come back, which takes longer than what is left. Returns whether it is left.
    #[inline(always)]
    pub(super) fn stays_for_timer(&mut self) -> bool {
        let advance = self.roster.loaded().map_or(0, |vcpu| vcpu.timer_advance());
        advance != 0 && self.stays_for_timer_within(advance)
    }

    #[inline(never)]
    fn stays_for_timer_within(&mut self, advance: u64) -> bool {
        notes::needs::<{ each::ADVANCE }>();
        let Some(id) = self.roster.loaded_id() else { return false };
        let wait = wait_for_loaded_timer();
        if wait > advance {
            return false;
        }
        if cpu::interrupt_pending() {
            // That is taken first, and the guest executes WFI again: one may end for no reason.
            return true;
        }
        // A timer that has fired, and has no interrupt, is not to be waited for.
        let stays = wait > 0 && !self.loaded_timer_is_held();
        if stays {
            self.timer_advance.stay(id);
            self.need_resched = true;
        }
        stays
    }

    /// Lets a vCPU that was woken early sleep again, because another vCPU displaces it or it
    /// leaves. If it has got an interrupt meanwhile, it stays awake.
    #[inline(never)]
    pub(super) fn fall_asleep_again(&mut self, id: VcpuId) {
        if !self.timer_advance.end(id) {
            return;
        }
        notes::needs::<{ each::ADVANCE }>();
        let news = self.roster.get(id).is_some_and(|vcpu| {
            vcpu.end_wait();
            vcpu.has_news()
        });
        let awake = news || self.roster.is_loaded(id) && self.loaded_has_interrupt();
        if !awake {
            self.sleep(id, vcpu_state::SLEEPING);
        }
    }

    /// Loads a vCPU that was woken early, makes the vCPUs leave that it displaces, and waits
    /// until an interrupt would end its WFI, or the scheduler has to decide again.
    fn wait_for_timer(&mut self, id: VcpuId, until: Option<Instant>) -> After {
        notes::needs::<{ each::ADVANCE }>();
        let _ = self.put_on_hardware(id, until);
        cpu::synchronize();
        if self.timer_advance.arrive(id)
            && let Some(vcpu) = self.roster.loaded_mut()
        {
            vcpu.adapt_timer_advance(timer::now());
        }
        loop {
            if self.loaded_has_interrupt() {
                self.timer_advance.end(id);
                return if self.need_resched { After::Decision } else { After::Guest };
            }
            if self.need_resched {
                return After::Decision;
            }
            if !cpu::interrupt_pending() {
                if !self.loaded_timer_is_near() {
                    self.timer_advance.end(id);
                    self.loaded_sleeps();
                    return After::Decision;
                }
                cpu::wait_for_interrupt();
            }
            self.entered = timer::now();
            self.take_pending_interrupts();
            if !self.roster.is_loaded(id) || !self.timer_advance.early().has(id) {
                // Its VM was stopped, or it was sent away.
                self.need_resched = true;
                return After::Decision;
            }
        }
    }

    /// Returns true if the loaded vCPU's timer will fire within the longest advance: it may have been made shorter
    /// just now. If the guest has that interrupt already and still waits, the interrupt is disabled or masked.
    fn loaded_timer_is_near(&mut self) -> bool {
        let Some(vcpu) = self.roster.loaded() else {
            bug!("a vCPU that waits for its timer is not loaded");
            return false;
        };
        wait_for_loaded_timer() <= vcpu.config().timer_advance() && !self.loaded_timer_is_held()
    }

    /// Returns true if the loaded guest has its timer's interrupt, and has not ended it.
    pub(super) fn loaded_timer_is_held(&mut self) -> bool {
        notes::needs::<{ each::ADVANCE }>();
        let mut held = false;
        self.with_interface(|interface, gic, hw| {
            held = interface.park(gic, hw, timer::VIRTUAL_INTID);
            0
        });
        held
    }
}

/// Returns in how many ticks the loaded virtual timer will fire; 0 if it has fired.
fn wait_for_loaded_timer() -> u64 {
    timer::loaded_deadline().since(timer::now()).0
}
