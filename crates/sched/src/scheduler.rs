//! Fixed priorities, and round robin with a quantum among equals.
//!
//! The vCPUs of a core stand in an array, highest priority first, and two bit
//! sets over that array answer everything: which are ready, and which share a
//! priority. Finding the next one is a count of trailing zeros, whatever the
//! number of vCPUs; a linked run queue would be as fast and harder to believe.
//!
//! A vCPU that is preempted, or on another core for a while, keeps its turn and what
//! is left of its quantum; one that sleeps gives both up, and starts a new quantum
//! when its turn comes again. A turn among k equals therefore comes at most the sum
//! of the other k - 1 quanta after it was asked for, times of higher priorities aside;
//! at most twice that sum if vCPUs are [hurried](Scheduler::hurry).

use crate::ceiling::Ceiling;
use crate::mailbox::Members;
use crate::{Duration, Instant, MAX_VCPUS};
use core::fmt;

/// Names a vCPU: its index in the system's table, below [`MAX_VCPUS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VcpuId(pub u8);

/// A scheduling priority; larger is higher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(pub u16);

/// What the scheduler must know of a vCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Its priority.
    pub priority: Priority,
    /// How long it may run while an equal waits; not zero.
    pub quantum: Duration,
}

/// Where a vCPU stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// On the core, as of the latest decision.
    Running,
    /// Ready, but another runs.
    Suspended,
    /// Waits for an interrupt, or is switched off.
    Sleeping,
}

/// What the core should do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The vCPU to run; none: wait for an interrupt.
    pub run: Option<VcpuId>,
    /// Decide again at this instant at the latest; none: when an event comes.
    pub until: Option<Instant>,
}

/// Why a vCPU was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is on this core already.
    AlreadyHere,
    /// Its identifier is not below [`MAX_VCPUS`].
    UnknownVcpu,
    /// Its quantum is zero.
    ZeroQuantum,
    /// Its server's budget is zero.
    ZeroBudget,
    /// Its server's period is zero.
    ZeroPeriod,
    /// Its server's budget is larger than the period it comes in.
    BudgetBeyondPeriod,
    /// Its server's budget and overrun together are larger than the period.
    OverrunBeyondPeriod,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AlreadyHere => "the vCPU is on this core already",
            Self::UnknownVcpu => "the vCPU's number is too large",
            Self::ZeroQuantum => "the quantum is zero",
            Self::ZeroBudget => "the budget is zero: the vCPU could never run",
            Self::ZeroPeriod => "the period is zero: the budget would be endless",
            Self::BudgetBeyondPeriod => "the budget is larger than its period",
            Self::OverrunBeyondPeriod => "budget and overrun are larger than the period",
        })
    }
}

#[derive(Clone, Copy)]
struct Entry {
    id: VcpuId,
    params: Params,
    /// What is left of its quantum.
    left: Duration,
    /// The entries of equal priority, itself included.
    peers: u64,
    /// Whose turn it is among the peers; valid in the first of them.
    turn: u8,
}

const NO_ENTRY: Entry = Entry {
    id: VcpuId(0),
    params: Params { priority: Priority(0), quantum: Duration(0) },
    left: Duration(0),
    peers: 0,
    turn: 0,
};

const ABSENT: u8 = u8::MAX;

/// The vCPUs of one core and which of them runs.
pub struct Scheduler {
    /// Highest priority first; `count` are used.
    entries: [Entry; MAX_VCPUS],
    count: u8,
    /// Position of each vCPU in `entries`, or [`ABSENT`].
    position: [u8; MAX_VCPUS],
    /// Set of positions.
    ready: u64,
    /// Set of positions: at their ceiling, above all others.
    raised: u64,
    /// Set of positions: ready on another core.
    away: u64,
    /// Position of the vCPU that runs, or [`ABSENT`].
    running: u8,
    /// Position of the vCPU that runs before its turn, or [`ABSENT`].
    hurried: u8,
    /// Up to when the running vCPU's quantum has been charged.
    charged: Instant,
}

impl Scheduler {
    /// A core without vCPUs.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            entries: [NO_ENTRY; MAX_VCPUS],
            count: 0,
            position: [ABSENT; MAX_VCPUS],
            ready: 0,
            raised: 0,
            away: 0,
            running: ABSENT,
            hurried: ABSENT,
            charged: Instant(0),
        }
    }

    /// A vCPU is this core's from now on. It comes behind its equals in the
    /// order of turns.
    ///
    /// # Errors
    /// Refuses inconsistent parameters and a vCPU that is already here.
    pub fn arrive(&mut self, id: VcpuId, params: Params, ready: bool) -> Result<(), Refusal> {
        if usize::from(id.0) >= MAX_VCPUS {
            return Err(Refusal::UnknownVcpu);
        }
        if self.has(id) {
            return Err(Refusal::AlreadyHere);
        }
        if params.quantum.0 == 0 {
            return Err(Refusal::ZeroQuantum);
        }
        let count = usize::from(self.count);
        let at = self.entries[..count]
            .iter()
            .position(|entry| entry.params.priority < params.priority)
            .unwrap_or(count);
        self.open_gap(at);
        self.entries[at] = Entry { id, params, left: params.quantum, peers: 0, turn: at as u8 };
        self.count += 1;
        self.renumber();
        if ready {
            self.ready |= 1 << at;
        }
        Ok(())
    }

    /// A vCPU leaves this core. Answers its parameters and whether it was
    /// ready, or none when it is not here.
    pub fn depart(&mut self, id: VcpuId) -> Option<(Params, bool)> {
        let at = self.find(id)?;
        let entry = self.entries[at];
        let was_ready = self.ready >> at & 1 == 1;
        self.pass_turn(at);
        self.spread_turn(at);
        self.close_gap(at);
        self.count -= 1;
        self.position[usize::from(id.0)] = ABSENT;
        self.renumber();
        Some((entry.params, was_ready))
    }

    /// A vCPU has something to do. Nothing happens when it is ready already or
    /// not here.
    pub fn wake(&mut self, id: VcpuId) {
        if let Some(at) = self.find(id) {
            self.ready |= 1 << at;
        }
    }

    /// A vCPU has nothing to do: it gives up its turn and its quantum. Nothing
    /// happens when it sleeps already or is not here.
    pub fn sleep(&mut self, id: VcpuId) {
        if let Some(at) = self.find(id) {
            self.ready &= !(1 << at);
            if usize::from(self.hurried) == at {
                self.hurried = ABSENT;
            }
            // What was used before its turn stays used.
            if self.has_turn(at) {
                self.entries[at].left = self.entries[at].params.quantum;
                self.pass_turn(at);
            }
        }
    }

    /// A vCPU goes to another core and may [come back](Self::come_back). If it is
    /// ready it keeps what is left of its quantum, and its turn until an equal has
    /// used up a quantum meanwhile: else two that come and go together would find
    /// the same one first each time. Answers whether it was ready. One that runs has
    /// to be [charged](Self::charge) before.
    pub fn leave(&mut self, id: VcpuId) -> bool {
        let Some(at) = self.find(id) else { return false };
        let bit = 1 << at;
        let was_ready = self.ready & bit != 0;
        self.away |= self.ready & bit;
        self.ready &= !bit;
        if usize::from(self.hurried) == at {
            self.hurried = ABSENT;
        }
        was_ready
    }

    /// A vCPU that left is back, ready or asleep.
    pub fn come_back(&mut self, id: VcpuId, ready: bool) {
        if let Some(at) = self.find(id) {
            self.away &= !(1 << at);
            self.ready |= u64::from(ready) << at;
        }
    }

    /// Somebody waits for this vCPU, which is ready while an equal runs: it runs
    /// now, for as long as its quantum lasts, which is the shorter in its turn.
    /// So each still has at most a quantum in a round, however often it is
    /// hurried. Answers whether the latest decision is out of date.
    pub fn hurry(&mut self, id: VcpuId) -> bool {
        let Some(at) = self.find(id) else { return false };
        if self.running == ABSENT || usize::from(self.running) == at {
            return false;
        }
        let peers = self.entries[at].peers;
        if self.ready >> at & 1 == 0
            || peers >> self.running & 1 == 0
            || self.entries[at].left.0 == 0
        {
            return false;
        }
        let turn = self.entries[peers.trailing_zeros() as usize].turn;
        self.hurried = if usize::from(turn) == at { ABSENT } else { at as u8 };
        true
    }

    /// The latest decision is not carried out yet: this vCPU, which is ready, runs
    /// on until the next one, and is charged.
    pub fn let_finish(&mut self, id: VcpuId) {
        if let Some(at) = self.find(id) {
            self.running = at as u8;
        }
    }

    /// Raises a vCPU to its ceiling: above every vCPU that is not raised, and
    /// as before among those that are. Nothing happens when it is not here.
    pub fn raise(&mut self, id: VcpuId) {
        if let Some(at) = self.find(id) {
            self.raised |= 1 << at;
        }
    }

    /// Takes a vCPU back to its own priority.
    pub fn lower(&mut self, id: VcpuId) {
        if let Some(at) = self.find(id) {
            self.raised &= !(1 << at);
        }
    }

    /// Charges the vCPU that runs for the time it took, and says who runs now
    /// by the vCPUs' own priorities.
    pub fn decide(&mut self, now: Instant) -> Decision {
        self.charge(now);
        self.decide_among(self.ready, now)
    }

    /// The same, but those that are [raised](Self::raise) come first. A method
    /// of its own, so that who raises nobody does not pay for it.
    pub fn decide_with_ceilings(&mut self, now: Instant) -> Decision {
        self.charge(now);
        let raised = self.ready & self.raised;
        self.decide_among(if raised == 0 { self.ready } else { raised }, now)
    }

    /// Who of `ready`, a set of positions, runs now.
    #[inline(always)]
    fn decide_among(&mut self, ready: u64, now: Instant) -> Decision {
        if ready == 0 {
            self.running = ABSENT;
            return Decision { run: None, until: None };
        }
        let top = ready.trailing_zeros() as usize;
        let peers = self.entries[top].peers;
        let candidates = ready & peers;
        let first = peers.trailing_zeros() as usize;
        if candidates & (candidates - 1) == 0 {
            if !self.is_away(self.entries[first].turn) {
                self.entries[first].turn = top as u8;
            }
            self.running = top as u8;
            return Decision { run: Some(self.entries[top].id), until: None };
        }
        let mut next = at_or_after(candidates, u32::from(self.entries[first].turn));
        while self.entries[usize::from(next)].left.0 == 0 {
            // It had its turn before.
            let entry = &mut self.entries[usize::from(next)];
            entry.left = entry.params.quantum;
            next = at_or_after(candidates, u32::from(next) + 1);
        }
        if !self.is_away(self.entries[first].turn) {
            self.entries[first].turn = next;
        }
        if self.hurried != ABSENT && candidates >> self.hurried & 1 == 1 {
            next = self.hurried;
        }
        self.running = next;
        let entry = &self.entries[usize::from(next)];
        Decision { run: Some(entry.id), until: Some(now.after(entry.left)) }
    }

    /// Where a vCPU stands, or none when it is not here.
    #[must_use]
    pub fn state(&self, id: VcpuId) -> Option<State> {
        let at = self.find(id)?;
        Some(if self.ready >> at & 1 == 0 {
            State::Sleeping
        } else if usize::from(self.running) == at {
            State::Running
        } else {
            State::Suspended
        })
    }

    /// Whether a vCPU is here and has something to do.
    #[must_use]
    pub fn is_ready(&self, id: VcpuId) -> bool {
        self.find(id).is_some_and(|at| self.ready >> at & 1 == 1)
    }

    /// Whether waking this vCPU could change the latest decision: it would
    /// preempt the vCPU that runs, or has to share with it. What concerns a
    /// vCPU of lower priority can wait until the core is given up.
    #[must_use]
    pub fn matters(&self, id: VcpuId) -> bool {
        let Some(at) = self.find(id) else { return false };
        self.running == ABSENT
            || self.entries[at].params.priority
                >= self.entries[usize::from(self.running)].params.priority
    }

    /// A vCPU's priority, raised or not; none when it is not here.
    #[must_use]
    pub fn ceiling(&self, id: VcpuId) -> Option<Ceiling> {
        let at = self.find(id)?;
        let priority = self.entries[at].params.priority;
        Some(Ceiling { gcs: self.raised >> at & 1 == 1, priority })
    }

    /// The vCPUs whose waking [matters](Self::matters), highest priority first.
    pub fn sleepers_that_matter(&self) -> impl Iterator<Item = VcpuId> + '_ {
        let all = low_bits(usize::from(self.count));
        let reach = match self.running {
            ABSENT => all,
            // The entries are in order of priority: up to the last equal.
            running => {
                low_bits(64 - self.entries[usize::from(running)].peers.leading_zeros() as usize)
            }
        };
        Members(all & reach & !self.ready).map(|at| self.entries[at].id)
    }

    /// The vCPUs of this core, highest priority first.
    pub fn vcpus(&self) -> impl Iterator<Item = VcpuId> + '_ {
        self.entries[..usize::from(self.count)].iter().map(|entry| entry.id)
    }

    /// Whether a vCPU is on this core.
    #[must_use]
    pub fn has(&self, id: VcpuId) -> bool {
        self.find(id).is_some()
    }

    fn find(&self, id: VcpuId) -> Option<usize> {
        match self.position.get(usize::from(id.0)) {
            None | Some(&ABSENT) => None,
            Some(&at) => Some(usize::from(at)),
        }
    }

    /// Takes the time since the last charge from the running vCPU's quantum;
    /// when none is left, it begins a new one at the end of the line.
    /// [`Self::decide`] does so first of all.
    pub fn charge(&mut self, now: Instant) {
        let taken = now.since(self.charged);
        self.charged = now;
        let at = usize::from(self.running);
        if self.running == ABSENT || self.ready >> at & 1 == 0 {
            return;
        }
        let entry = &mut self.entries[at];
        entry.left.0 = entry.left.0.saturating_sub(taken.0);
        if entry.left.0 == 0 {
            if self.hurried == self.running {
                self.hurried = ABSENT;
                return;
            }
            entry.left = entry.params.quantum;
            let peers = entry.peers;
            let first = &mut self.entries[peers.trailing_zeros() as usize];
            if usize::from(first.turn) == at || self.away >> first.turn & 1 == 1 {
                first.turn = at_or_after(peers, at as u32 + 1);
            }
        }
    }

    /// Whether it is on another core, ready, and finds its turn when it is back.
    #[inline(always)]
    fn is_away(&self, at: u8) -> bool {
        self.away != 0 && self.away >> at & 1 == 1
    }

    fn has_turn(&self, at: usize) -> bool {
        let first = self.entries[at].peers.trailing_zeros() as usize;
        usize::from(self.entries[first].turn) == at
    }

    /// If it is this entry's turn, it is the next one's.
    fn pass_turn(&mut self, at: usize) {
        let peers = self.entries[at].peers;
        let first = &mut self.entries[peers.trailing_zeros() as usize];
        if usize::from(first.turn) == at {
            first.turn = at_or_after(peers, at as u32 + 1);
        }
    }

    /// Tells every peer whose turn it is, so that the first may leave.
    fn spread_turn(&mut self, at: usize) {
        let peers = self.entries[at].peers;
        let turn = self.entries[peers.trailing_zeros() as usize].turn;
        for peer in Members(peers) {
            self.entries[peer].turn = turn;
        }
    }

    /// Moves the entries from `at` on one place down, and what refers to them.
    fn open_gap(&mut self, at: usize) {
        let count = usize::from(self.count);
        self.entries.copy_within(at..count, at + 1);
        let below = low_bits(at);
        for set in [&mut self.ready, &mut self.raised, &mut self.away] {
            *set = (*set & below) | (*set & !below) << 1;
        }
        self.shift_references(at, 1);
    }

    /// Moves the entries behind `at` one place up, and what refers to them.
    fn close_gap(&mut self, at: usize) {
        let count = usize::from(self.count);
        for reference in [&mut self.running, &mut self.hurried] {
            if usize::from(*reference) == at {
                *reference = ABSENT;
            }
        }
        self.entries.copy_within(at + 1..count, at);
        self.entries[count - 1] = NO_ENTRY;
        let below = low_bits(at);
        for set in [&mut self.ready, &mut self.raised, &mut self.away] {
            *set = (*set & below) | (*set >> 1 & !below);
        }
        self.shift_references(at + 1, -1);
    }

    fn shift_references(&mut self, from: usize, by: i8) {
        let shift = |position: &mut u8| {
            if *position != ABSENT && usize::from(*position) >= from {
                *position = position.wrapping_add_signed(by);
            }
        };
        shift(&mut self.running);
        shift(&mut self.hurried);
        self.entries.iter_mut().for_each(|entry| shift(&mut entry.turn));
    }

    /// Recomputes what follows from the order of the entries, keeping for each
    /// priority whose turn it is.
    fn renumber(&mut self) {
        let count = usize::from(self.count);
        let mut begin = 0;
        while begin < count {
            let priority = self.entries[begin].params.priority;
            let length = self.entries[begin..count]
                .iter()
                .take_while(|entry| entry.params.priority == priority)
                .count();
            let peers = low_bits(begin + length) & !low_bits(begin);
            // The turn stands in the first peer; a peer that was first before
            // this change, or a newcomer that is first now, carries it along.
            let turn = self.entries[begin].turn;
            let in_range = usize::from(turn) >= begin && usize::from(turn) < begin + length;
            for (at, entry) in self.entries.iter_mut().enumerate().skip(begin).take(length) {
                entry.peers = peers;
                entry.turn = if in_range { turn } else { begin as u8 };
                self.position[usize::from(entry.id.0)] = at as u8;
            }
            begin += length;
        }
    }
}

impl Default for Scheduler {
    fn default() -> Self {
        Self::new()
    }
}

/// The lowest member of a set that is not empty, at or above `from`, else the
/// lowest at all.
fn at_or_after(set: u64, from: u32) -> u8 {
    let tail = set & u64::MAX.checked_shl(from).unwrap_or(0);
    (if tail == 0 { set } else { tail }).trailing_zeros() as u8
}

/// The set of all positions below `at`.
fn low_bits(at: usize) -> u64 {
    1u64.checked_shl(at as u32).map_or(u64::MAX, |bit| bit - 1)
}

#[cfg(test)]
mod tests;
