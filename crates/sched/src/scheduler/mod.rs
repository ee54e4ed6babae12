//! The scheduler of one physical core.
//!
//! Fixed priorities, and round robin with a quantum among equals. The vCPUs of a core
//! stand in an array, highest priority first, and bit sets over the *positions* in that
//! array say which are ready, and which share a priority. Finding the next
//! one is a count of trailing zeros, whatever the number of vCPUs; a linked run queue
//! would be as fast and harder to check.
//!
//! A vCPU that is preempted, or may not run here for a while, keeps its turn and what is
//! left of its quantum; one that sleeps gives both up, and starts a new quantum when its
//! turn comes again. So among k equals, a vCPU that wakes has its turn at most the sum of the
//! other k - 1 quanta later, times of higher priorities aside; at most twice that sum if the
//! core [yields to](Scheduler::yield_to) vCPUs.
//!
//! # Extras
//!
//! A vCPU may have any of these extras:
//!
//! - a *server* ([`crate::server`]) limits how long it runs;
//! - in a global critical section (gcs) it is at its *ceiling* ([`crate::ceiling`]);
//! - it may be *held back*, such as the siblings of a vCPU that was displaced;
//! - it may be *boosted*: at times it is at a second, higher position.
//!
//! One word is the set of vCPUs that have any of them. The code for extras is out of line;
//! on a core where the set is empty, each method only tests that. A further extra is one more
//! reason to be in that set.
//!
//! Only the methods that begin or end a gcs or a server take the time: what the others
//! change takes effect with the next [`decide`](Scheduler::decide), which has to follow them
//! at the same instant.
//!
//! | module | story |
//! | --- | --- |
//! | `vocabulary` | what goes in, and what comes out |
//! | `order` | vCPUs are added and removed |
//! | `turns` | equals take turns |
//! | `blocked` | vCPUs that are away or held back, and keep their turns |
//! | `extras` | what the core does only if some vCPU has an extra |
//! | `budgets` | servers: accounts are charged and replenished |
//! | `sections` | global critical sections and ceilings |
//! | `boosts` | vCPUs that have two positions |
//! | `check` | what always holds, for tests and checked builds |

mod blocked;
mod boosts;
mod budgets;
#[cfg(any(test, feature = "checked"))]
mod check;
mod extras;
mod order;
mod sections;
mod turns;
mod vocabulary;

pub use boosts::{Boost, MAX_BOOSTS};
pub use vocabulary::{
    Compact, Decision, Params, Priority, Refusal, Removed, Reported, State, VcpuId, Woken,
};

use crate::mailbox::Members;
use crate::{Duration, Instant, MAX_VCPUS};
use extras::Extras;
use notes::{Bounded, each};

/// A vCPU in the array. 32 bytes, so that its address is one shift away.
#[derive(Clone, Copy)]
struct Entry {
    /// The whole quantum.
    quantum: Duration,
    /// What is left of it.
    left: Duration,
    /// The positions of equal priority, its own included.
    peers: u64,
    priority: Priority,
    id: VcpuId,
    /// The position whose turn it is among the peers; valid in the first of them.
    turn: u8,
    /// The number of its boosts, or [`ABSENT`].
    boost: u8,
}

const NO_ENTRY: Entry = Entry {
    quantum: Duration(0),
    left: Duration(0),
    peers: 0,
    priority: Priority(0),
    id: VcpuId(0),
    turn: 0,
    boost: ABSENT,
};

const _: () = assert!(size_of::<Entry>() == 32);

/// No position.
const ABSENT: u8 = u8::MAX;
/// All positions; a mask that the compiler sees instead of a bounds check.
const POSITION: usize = MAX_VCPUS - 1;

impl Entry {
    /// Returns where the vCPU stands in a table of all. The mask changes nothing, as no other one is
    /// added; it spares a comparison at each access.
    #[inline(always)]
    const fn number(&self) -> usize {
        self.id.0 as usize & POSITION
    }
}

/// The vCPUs of one core, and which of them runs.
pub struct Scheduler {
    /// Positions that may run here and have a reason to: work, or a periodic server's
    /// budget to idle away.
    ready: u64,
    /// Positions without [extras](Extras) that are ready on another core.
    away: u64,
    /// Positions that have a server, may be boosted, are at their ceiling, or are held back.
    special: u64,
    /// Positions that could change the latest decision if they became ready.
    reach: u64,
    /// Up to when the running vCPU's quantum and account have been charged.
    charged: Instant,
    /// Position of the vCPU that runs, or [`ABSENT`].
    running: u8,
    /// Position of the vCPU that runs before its turn, or [`ABSENT`].
    yielded_to: u8,
    /// How many entries are used.
    count: u8,
    /// Highest priority first.
    entries: [Entry; MAX_VCPUS],
    /// Position of each vCPU in `entries`, or [`ABSENT`].
    position: [u8; MAX_VCPUS],
    extras: Extras,
}

impl Scheduler {
    /// Makes the scheduler of a core that has no vCPUs.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            ready: 0,
            away: 0,
            special: 0,
            reach: 0,
            charged: Instant(0),
            running: ABSENT,
            yielded_to: ABSENT,
            count: 0,
            entries: [NO_ENTRY; MAX_VCPUS],
            position: [ABSENT; MAX_VCPUS],
            extras: Extras::new(),
        }
    }

    /// Charges the vCPU that runs for the time it took, and returns which runs now.
    #[inline(always)]
    pub fn decide(&mut self, now: Instant) -> Decision {
        match (self.has_extras(), self.has_boosts()) {
            (false, _) => self.decide_without_extras(now),
            (true, false) => self.decide_with_extras(now).into(),
            (true, true) => self.decide_with_boosts(now).into(),
        }
    }

    /// Does what [`Self::decide`] does where no vCPU [has an extra](Self::has_extras): a core asks for that
    /// itself, as for boosts.
    #[inline(always)]
    pub fn decide_without_extras(&mut self, now: Instant) -> Decision {
        self.charge_quantum(self.ready, self.away, now);
        let (run, until) = self.choose(self.ready, self.away, now);
        Decision { run, idles: None, until }
    }

    /// Charges the vCPU that runs for the time since the last charge. [`Self::decide`]
    /// does so first of all.
    #[inline(always)]
    pub fn charge(&mut self, now: Instant) {
        if self.special != 0 {
            return self.charge_with_extras(now);
        }
        self.charge_quantum(self.ready, self.away, now);
    }

    /// Like [`Self::charge`]; but vCPUs that wait for budgets are looked at when the scheduler next
    /// decides, as there may be many.
    #[inline(always)]
    pub fn charge_running(&mut self, now: Instant) {
        if self.special != 0 {
            return self.charge_running_with_extras(now);
        }
        self.charge_quantum(self.ready, self.away, now);
    }

    /// Records that a vCPU of this core has work.
    #[inline(always)]
    pub fn wake(&mut self, id: VcpuId) -> Woken {
        let Some(at) = self.find(id) else { return Woken::Nothing };
        if self.special >> at & 1 == 1 {
            match self.wake_special(at) {
                Woken::Decide => {}
                woken => return woken,
            }
        } else {
            if self.ready >> at & 1 == 1 {
                return Woken::Nothing;
            }
            self.ready |= 1 << at;
        }
        if self.reach >> at & 1 == 1 { Woken::Decide } else { Woken::Waits }
    }

    /// Records that a vCPU of this core has no work: it gives up its turn and its quantum.
    pub fn sleep(&mut self, id: VcpuId) {
        let Some(at) = self.find(id) else { return };
        if self.special >> at & 1 == 1 {
            return self.sleep_special(at);
        }
        self.ready &= !(1 << at);
        self.give_up_turn(at);
    }

    /// Keeps the core for this vCPU, which is ready, until the next decision: the latest
    /// one, of `now`, is not carried out yet. Returns by when the core has to decide again, if it
    /// has to: when the vCPU's budget ends, or another one is replenished that would preempt it. Not
    /// when the quantum of the chosen one would end: that has not begun, and the instant would be as
    /// near again each time.
    pub fn let_finish(&mut self, id: VcpuId, now: Instant) -> Option<Instant> {
        self.settle();
        let at = self.find(id)?;
        self.running = at as u8;
        self.reach = self.plain_reach();
        if self.special == 0 {
            return None;
        }
        let until = self.first_of_budgets(None, now);
        if !self.has_boosts() {
            return until;
        }
        let first = self.first_of_boosts(until.unwrap_or(Instant::NEVER), now);
        (first != Instant::NEVER).then_some(first)
    }

    /// Returns the state of a vCPU, or none when it is not here.
    #[must_use]
    pub fn state(&self, id: VcpuId) -> Option<State> {
        let at = self.find(id)?;
        Some(if !self.has_work(at) {
            State::Sleeping
        } else if usize::from(self.running) == at && self.ready >> at & 1 == 1 {
            State::Running
        } else {
            State::Suspended
        })
    }

    /// Returns true if a vCPU is here, may run, and has a reason to.
    #[must_use]
    pub fn is_ready(&self, id: VcpuId) -> bool {
        self.find(id).is_some_and(|at| self.ready >> at & 1 == 1)
    }

    /// Returns true if a vCPU is here, may run, and has work: it does not merely idle a budget away.
    #[must_use]
    pub fn is_ready_to_work(&self, id: VcpuId) -> bool {
        self.is_ready(id) && (self.special == 0 || !self.idles(id))
    }

    #[cold]
    #[inline(never)]
    fn idles(&self, id: VcpuId) -> bool {
        self.find(id).is_some_and(|at| !self.has_work(at))
    }

    /// Returns true if equals of the vCPU that runs are ready, so that they take turns.
    #[must_use]
    #[inline(never)]
    pub fn takes_turns(&self) -> bool {
        let peers = self.entries[usize::from(self.running) & POSITION].peers;
        self.running != ABSENT && (self.ready & peers).count_ones() > 1
    }

    /// Returns true if letting this vCPU run could change the latest decision: it would
    /// preempt the vCPU that runs, or take turns with it. Any other vCPU can wait until the
    /// core is given up.
    #[must_use]
    pub fn matters(&self, id: VcpuId) -> bool {
        self.find(id).is_some_and(|at| self.reach >> at & 1 == 1)
    }

    /// Returns the vCPUs without work whose waking [matters](Self::matters), highest
    /// priority first; not one that idles its budget away.
    pub fn sleepers_that_matter(&self) -> impl Iterator<Item = VcpuId> + '_ {
        let asleep = self.reach & !(self.ready | self.away | self.extras.pending);
        Members::of(asleep)
            .one_for::<{ each::VCPU }, MAX_VCPUS>()
            .map(|at| self.entries[at & POSITION].id)
    }

    /// Returns true if some vCPU of this core has an [extra](self#extras).
    #[must_use]
    pub const fn has_extras(&self) -> bool {
        self.special != 0
    }

    /// Returns the vCPUs of this core, highest priority first.
    pub fn vcpus(&self) -> impl Iterator<Item = VcpuId> + '_ {
        let used = self.entries[..usize::from(self.count)].iter().enumerate();
        used.filter(|(at, entry)| self.find(entry.id) == Some(*at)).map(|(_, entry)| entry.id)
    }

    /// Returns true if a vCPU is on this core.
    #[must_use]
    pub fn has(&self, id: VcpuId) -> bool {
        self.find(id).is_some()
    }

    /// Returns a vCPU's position; none if it never comes to this core: then there is nothing to do for
    /// it here, whatever it is that a message of another core asks for.
    #[inline(always)]
    fn find(&self, id: VcpuId) -> Option<usize> {
        match self.position.get(usize::from(id.0)) {
            None | Some(&ABSENT) => None,
            Some(&at) => Some(usize::from(at) & POSITION),
        }
    }

    /// All positions that are used.
    #[inline(always)]
    fn all(&self) -> u64 {
        low_bits(usize::from(self.count))
    }

    /// Returns true if a vCPU has work, wherever it may run.
    #[inline(always)]
    fn has_work(&self, at: usize) -> bool {
        if self.special >> at & 1 == 1 {
            return self.has_work_special(at);
        }
        self.ready >> at & 1 == 1
    }
}

impl Default for Scheduler {
    fn default() -> Self {
        Self::new()
    }
}

/// The lowest member of a set that is not empty, at or above `from`, else the lowest at
/// all.
#[inline(always)]
fn at_or_after(set: u64, from: u8) -> u8 {
    first_or_wrapped(set, set & (u64::MAX << (from & 63)))
}

/// The same, above `at`.
#[inline(always)]
fn after(set: u64, at: u8) -> u8 {
    first_or_wrapped(set, set & (u64::MAX << (at & 63) << 1))
}

#[inline(always)]
fn first_or_wrapped(set: u64, tail: u64) -> u8 {
    (if tail == 0 { set } else { tail }).trailing_zeros() as u8
}

/// The set of all positions below `at`.
#[inline(always)]
const fn low_bits(at: usize) -> u64 {
    if at >= MAX_VCPUS { u64::MAX } else { (1 << at) - 1 }
}

#[cfg(test)]
mod tests;
