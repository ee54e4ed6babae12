//! Boosts: a vCPU that has a second, higher position.
//!
//! A vCPU that may be boosted stands twice in the array: at its own priority, and at the one that
//! boosts give it. It is at one of the two, and the other entry is its *shadow*, which nothing makes
//! ready. To boost it is to move its bits from one position to the other, whatever the number of
//! vCPUs.
//!
//! For its equals here, a vCPU that leaves a position sleeps, and one that comes wakes: a boost gives
//! a turn up, and what was used of a quantum stays used.
//!
//! A boost ends when the guest says so, or when the vCPU has run for as long as it may: its *limit*
//! in each period, and its *window* after an interrupt, of which the guest has said nothing. Each
//! interrupt begins the window anew. The first period begins with the first boost, and each later one
//! with the first boost after the period before has ended. What is refused because the limit is spent is not
//! forgotten: an interrupt boosts the vCPU when the next period may begin, as does one that had less than its window, and
//! what the guest has said, if it holds still. So a vCPU runs at its higher priority for
//! at most two budgets in any time as long as a period, and one in the long run.

use super::{ABSENT, Compact, Entry, POSITION, Priority, Refusal, Reported, Scheduler, VcpuId};
use crate::mailbox::Members;
use crate::{Duration, Instant};
use notes::{Bounded, each};

/// How many vCPUs of a core may be boosted.
pub const MAX_BOOSTS: usize = 4;

/// What a boost gives to a vCPU, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Boost {
    /// The higher priority.
    pub priority: Priority,
    /// How long it may run at that in a period; [`Duration::MAX`]: as long as it likes.
    pub budget: Duration,
    /// The period; not zero.
    pub period: Duration,
    /// An interrupt boosts it for so long; none: interrupts do not boost it.
    pub window: Option<Duration>,
}

/// The boosts of a vCPU.
#[derive(Clone, Copy)]
pub(super) struct State {
    is: Boost,
    /// The entry at its own priority, and the one at the higher.
    base: u8,
    high: u8,
    /// It is at the higher one.
    is_boosted: bool,
    /// When a new period may begin, and what is left in the present one.
    next: Instant,
    left: Duration,
    /// What is left of this boost.
    grant: Duration,
    /// When its timer interrupts it, while it has work and others may have the core.
    rises_at: Instant,
    /// That instant has boosted it: its guest may not see the interrupt for long, and each one counts
    /// once.
    has_risen: bool,
    /// The guest has said that it is urgent, and nothing else since.
    is_urgent: bool,
    /// An interrupt did not boost it for its window, as its limit was spent by then.
    is_owed: bool,
}

impl State {
    /// Returns true if an interrupt boosts it, or lets it be boosted for longer: its guest has not had that already. What
    /// is left is as of the latest charge: near the end of a limit an interrupt may come to nothing that would have begun a new period.
    fn rises(&self) -> bool {
        let has_more = self.is_boosted && self.is_urgent;
        self.is.window.is_some_and(|window| !has_more || self.grant <= window)
    }

    /// Returns for how long a boost lasts at most that an interrupt begins, or the guest.
    fn lasts(&self, interrupt: bool) -> Duration {
        match self.is.window {
            Some(window) if interrupt && !self.is_urgent => window,
            _ => Duration::MAX,
        }
    }

    /// Returns true if a new period boosts it, where it is not boosted.
    const fn wants_next_period(&self) -> bool {
        self.is_urgent || self.is_owed
    }
}

/// The boosts of a core. Sets are of positions.
pub(super) struct Boosts {
    /// Entries at which no vCPU is: it is at its other one.
    pub(super) shadows: u64,
    /// vCPUs that are at their higher positions.
    pub(super) boosted: u64,
    /// vCPUs with work that an interrupt boosts, when the core decides next.
    pub(super) rising: u64,
    count: u8,
    states: [Option<State>; MAX_BOOSTS],
}

impl Boosts {
    pub(super) const fn new() -> Self {
        Self { shadows: 0, boosted: 0, rising: 0, count: 0, states: [None; MAX_BOOSTS] }
    }

    /// Returns true if no vCPU of the core may be boosted: without looking in a build without boosts, which
    /// has nothing of what is only done for others.
    #[inline(always)]
    pub(super) const fn are_none(&self) -> bool {
        !cfg!(feature = "boosts") || self.count == 0
    }

    /// Returns true if the vCPU at this position is boosted.
    #[inline(always)]
    pub(super) const fn has_raised(&self, at: usize) -> bool {
        cfg!(feature = "boosts") && self.boosted >> at & 1 == 1
    }

    /// Records where an entry stands. Returns true if its vCPU is there.
    pub(super) fn stands(&mut self, entry: &Entry, at: u8) -> bool {
        let Some(state) = self.of(entry) else { return true };
        let is_high = entry.priority == state.is.priority;
        *(if is_high { &mut state.high } else { &mut state.base }) = at;
        is_high == state.is_boosted
    }

    /// Returns those of the vCPUs that may be boosted.
    fn used(&self) -> impl Iterator<Item = &Option<State>> {
        self.states[..usize::from(self.count).min(MAX_BOOSTS)].iter()
    }

    #[inline(always)]
    fn of(&mut self, entry: &Entry) -> Option<&mut State> {
        if !cfg!(feature = "boosts") {
            return None;
        }
        self.states.get_mut(usize::from(entry.boost))?.as_mut()
    }
}

impl Scheduler {
    /// Lets a vCPU of this core be boosted, from now on.
    ///
    /// # Errors
    /// Refuses a vCPU that is not here or has a server or a boost, a priority that is not higher, a
    /// period or a window of no length, and more vCPUs than [`MAX_BOOSTS`].
    pub fn set_boost(&mut self, id: VcpuId, boost: Boost) -> Result<(), Refusal> {
        let at = self.find(id).ok_or(Refusal::UnknownVcpu)?;
        let entry = self.entries[at];
        let number = self.extras.boosts.count;
        if entry.boost != ABSENT || usize::from(number) >= MAX_BOOSTS || !self.has_room() {
            return Err(Refusal::NoMoreBoosts);
        }
        if boost.priority <= entry.priority {
            return Err(Refusal::NoBoost);
        }
        if boost.period.0 == 0 || boost.window == Some(Duration(0)) {
            return Err(Refusal::ZeroPeriod);
        }
        self.make_special(at);
        self.extras.lasting |= 1 << at;
        self.entries[at].boost = number;
        self.extras.boosts.states[usize::from(number)] = Some(State {
            is: boost,
            base: at as u8,
            high: ABSENT,
            is_boosted: false,
            next: Instant(0),
            left: Duration(0),
            grant: Duration(0),
            rises_at: Instant::NEVER,
            has_risen: false,
            is_urgent: false,
            is_owed: false,
        });
        self.extras.boosts.count += 1;
        let params = super::Params { priority: boost.priority, quantum: entry.quantum };
        let high = self.insert(id, params, number);
        self.extras.boosts.shadows |= 1 << high;
        self.reach = self.reach_of_running();
        Ok(())
    }

    /// Boosts a vCPU, as its guest says, for as long as its limit allows.
    pub fn boost(&mut self, id: VcpuId, now: Instant) -> Reported {
        let Some(at) = self.find(id) else { return Reported::Refused };
        let entry = self.entries[at];
        if let Some(state) = self.extras.boosts.of(&entry) {
            state.is_urgent = true;
        }
        if self.lengthen_boost(at, false, now) {
            return Reported::Stands;
        }
        // What it has run until now is not of this boost.
        self.charge_running_with_extras(now);
        if !self.begin_boost(at, false, now) {
            return Reported::Refused;
        }
        self.reach = self.reach_of_running();
        Reported::Decide
    }

    /// Follows an interrupt that [boosts](super::Woken::Rises) a vCPU: one that is boosted is so for its window from now
    /// on. Returns true if the core has to decide: that is not so, or its limit is spent, or begins anew.
    pub fn rises(&mut self, id: VcpuId, now: Instant) -> bool {
        notes::needs::<{ each::BOOST }>();
        self.find(id).is_none_or(|at| !self.lengthen_boost(at, true, now))
    }

    /// Lets a boost last from now on for as long as its limit allows, and for a window at most if an interrupt asks for that.
    /// Returns false if there is none, or there may be more to it: its limit is spent, or begins anew.
    fn lengthen_boost(&mut self, at: usize, interrupt: bool, now: Instant) -> bool {
        // Not charged yet, and charged to both what is left of the limit and of the boost.
        let taken =
            if usize::from(self.running) == at { now.since(self.charged) } else { Duration(0) };
        let (entry, boosts) = (self.entries[at], &mut self.extras.boosts);
        let Some(state) = boosts.of(&entry) else { return false };
        if !state.is_boosted || now >= state.next || state.left.0 <= taken.0 {
            return false;
        }
        let lasts = Duration(state.lasts(interrupt).0.saturating_add(taken.0));
        // Its guest takes that interrupt now, so nothing is owed if this is less.
        state.grant = state.left.min(lasts);
        boosts.rising &= !(1 << at);
        true
    }

    /// Records when the timer of a vCPU interrupts it; [`Instant::NEVER`]: it does not. While the vCPU
    /// has work and another one has the core, the core decides again then if that boosts the vCPU.
    /// One instant boosts it once, however often it is said.
    pub fn rises_at(&mut self, id: VcpuId, at: Instant) {
        let Some(entry) = self.find(id).map(|at| self.entries[at]) else { return };
        if let Some(state) = self.extras.boosts.of(&entry) {
            // While it is boosted, too: it may fall back with the next decision.
            let at = if state.is.window.is_some() { at } else { Instant::NEVER };
            state.has_risen &= at == state.rises_at;
            state.rises_at = at;
        }
    }

    /// Returns true if vCPUs of this core may be boosted.
    #[must_use]
    pub const fn has_boosts(&self) -> bool {
        !self.extras.boosts.are_none()
    }

    /// Records that there is an interrupt for a vCPU with work. Returns true if that is to boost it.
    #[inline(always)]
    pub(super) fn begins_to_rise(&mut self, at: usize) -> bool {
        notes::needs::<{ each::BOOST }>();
        let entry = self.entries[at];
        let is_rising = self.extras.boosts.of(&entry).is_some_and(|state| state.rises());
        self.extras.boosts.rising |= u64::from(is_rising) << at;
        is_rising
    }

    /// Boosts the vCPUs for which there was an interrupt.
    fn raise_interrupted(&mut self, now: Instant) {
        notes::needs::<{ each::BOOST }>();
        let has_work = self.ready | self.extras.pending;
        // It may sleep again.
        let rising = core::mem::take(&mut self.extras.boosts.rising) & has_work;
        for at in Members::of(rising).one_for::<{ each::BOOST }, MAX_BOOSTS>() {
            self.begin_boost(at & POSITION, true, now);
        }
    }

    /// Records what boosts vCPUs with work at this instant: interrupts of timers that they have, on this core or
    /// in memory, and a new period.
    fn note_instants(&mut self, now: Instant) {
        let (ready, boosts) = (self.ready, &mut self.extras.boosts);
        for state in boosts.states[..usize::from(boosts.count).min(MAX_BOOSTS)]
            .iter_mut()
            .one_for::<{ each::BOOST }, MAX_BOOSTS>()
            .flatten()
        {
            // For one that is boosted there is time until it falls back.
            if ready >> state.base & 1 == 0 {
                continue;
            }
            let rises = state.rises_at <= now && !state.has_risen;
            state.has_risen |= rises;
            if rises || state.wants_next_period() && state.next <= now {
                boosts.rising |= 1 << state.base;
            }
        }
    }

    /// Adds to the given positions, which could change the decision, those whose vCPUs an interrupt would boost
    /// to one of them, and takes out those at which no vCPU is. Returns them, and when the first timer fires, or the
    /// first period begins, that does so.
    #[inline(never)]
    pub(super) fn with_rises(&self, given: u64) -> (u64, Instant) {
        notes::needs::<{ each::BOOST }>();
        let (mut first, mut reach) = (Instant::NEVER, given);
        for state in self.extras.boosts.used().one_for::<{ each::BOOST }, MAX_BOOSTS>().flatten() {
            let is_raised = state.is.window.is_some() || state.is_urgent;
            if !is_raised || given >> state.high & 1 == 0 {
                continue;
            }
            reach |= 1 << state.base;
            if self.ready >> state.base & 1 == 0 || state.base == self.running {
                continue;
            }
            if !state.has_risen {
                first = first.min(state.rises_at);
            }
            if state.wants_next_period() {
                first = first.min(state.next);
            }
        }
        (reach & !self.extras.boosts.shadows, first)
    }

    /// Boosts a vCPU that is charged until `now`: as its guest says, or because of an interrupt that
    /// [counts](State::rises), for its window from now on if its guest says nothing. Returns true if the core has to decide again.
    #[inline(never)]
    pub(super) fn begin_boost(&mut self, at: usize, interrupt: bool, now: Instant) -> bool {
        notes::needs::<{ each::BOOST }>();
        let (entry, boosts) = (self.entries[at], &mut self.extras.boosts);
        boosts.rising &= !(1 << at);
        let Some(state) = boosts.of(&entry) else { return false };
        let window = state.lasts(interrupt);
        if now >= state.next {
            (state.next, state.left) = (now.after(state.is.period), state.is.budget);
        }
        let was_owed = state.is_owed;
        state.grant = state.left.min(window);
        // A timer may boost before it fires: its guest may not have taken that by the end of less than a window.
        state.is_owed = interrupt && state.grant < window;
        if state.grant.0 == 0 {
            // Its window is not nothing, so its limit is spent.
            state.is_owed |= was_owed;
            return false;
        }
        let (is_new, high) = (!state.is_boosted, state.high);
        if is_new {
            self.change_position(at, usize::from(high) & POSITION);
        }
        // Or it has to decide by another instant.
        true
    }

    /// Ends a vCPU's boost with the next decision, as its guest says. Returns true if it is boosted:
    /// then the core has to decide again. If its timer has fired all the same, that boosts it anew: the
    /// guest says so of another interrupt.
    pub fn end_boost(&mut self, id: VcpuId) -> bool {
        notes::needs::<{ each::BOOST }>();
        let Some(entry) = self.find(id).map(|at| self.entries[at]) else { return false };
        let Some(state) = self.extras.boosts.of(&entry) else { return false };
        (state.grant, state.has_risen) = (Duration(0), false);
        (state.is_urgent, state.is_owed) = (false, false);
        state.is_boosted
    }

    /// Returns true if the latest decision, which is for a vCPU, is for one that is boosted while others
    /// are here: ready, or asleep. The core does not decide when one wakes that is not above it, and does not look
    /// at the timers of such.
    #[must_use]
    pub fn boost_is_awaited(&self) -> bool {
        let bit = 1 << (self.running & POSITION as u8);
        let elsewhere = self.away | self.extras.away | self.extras.boosts.shadows;
        self.extras.boosts.boosted & bit != 0 && self.all() & !(bit | elsewhere) != 0
    }

    /// Returns true if a vCPU of this core is boosted.
    #[must_use]
    pub fn is_boosted(&self, id: VcpuId) -> bool {
        self.find(id).is_some_and(|at| self.extras.boosts.boosted >> at & 1 == 1)
    }

    /// Takes the time since the last charge from the boost of the vCPU that runs.
    #[inline(never)]
    pub(super) fn charge_boost(&mut self, at: usize, now: Instant) {
        let (taken, entry) = (now.since(self.charged), self.entries[at]);
        if let Some(state) = self.extras.boosts.of(&entry) {
            for left in [&mut state.left, &mut state.grant] {
                if *left != Duration::MAX {
                    left.0 = left.0.saturating_sub(taken.0);
                }
            }
        }
    }

    /// Does what a decision has to do for boosts first: it ends those of which nothing is left, and
    /// begins those that interrupts ask for. An interrupt may have come after a boost's end, and before
    /// this decision.
    fn follow_boosts(&mut self, now: Instant) {
        let boosted = Members::of(self.extras.boosts.boosted);
        for at in boosted.one_for::<{ each::BOOST }, MAX_BOOSTS>() {
            let at = at & POSITION;
            if self.boost_left(at).0 == 0 {
                self.fall_back(at);
            }
        }
        self.note_instants(now);
        if self.extras.boosts.rising != 0 {
            self.raise_interrupted(now);
        }
    }

    /// Does what [`Self::decide`] does where vCPUs may be boosted.
    #[cold]
    #[inline(never)]
    pub fn decide_with_boosts(&mut self, now: Instant) -> Compact {
        self.charge_with_extras(now);
        self.follow_boosts(now);
        let mut decision = self.decide_charged(now);
        decision.until = self.first_of_boosts(decision.until, now);
        decision
    }

    /// Has the core decide again when the timer of another vCPU would boost that. Returns the first of that
    /// instant, `until`, and the end of the running vCPU's boost.
    #[inline(always)]
    pub(super) fn first_of_boosts(&mut self, until: Instant, now: Instant) -> Instant {
        let (reach, rise) = self.with_rises(self.reach);
        self.reach = reach;
        let first = until.min(rise);
        if self.running != ABSENT && self.extras.boosts.boosted >> self.running & 1 == 1 {
            return first.min(now.after(self.boost_left(usize::from(self.running))));
        }
        first
    }

    /// Returns how long the vCPU at this position may stay boosted.
    #[cold]
    #[inline(never)]
    pub(super) fn boost_left(&self, at: usize) -> Duration {
        let states = &self.extras.boosts.states;
        let state = states.get(usize::from(self.entries[at].boost)).and_then(Option::as_ref);
        state.map_or(Duration::MAX, |state| state.grant)
    }

    fn fall_back(&mut self, at: usize) {
        let entry = self.entries[at];
        if let Some(base) = self.extras.boosts.of(&entry).map(|state| usize::from(state.base)) {
            self.change_position(at, base & POSITION);
        }
    }

    /// Moves a vCPU to its other entry. The caller brings `reach` up to date, or decides.
    fn change_position(&mut self, from: usize, to: usize) {
        self.give_up_turn(from);
        let (from_bit, to_bit) = (1_u64 << from, 1_u64 << to);
        // All that it can be: it has no server and no sections.
        let extras = &mut self.extras;
        let move_in = |set: &mut u64| *set = *set & !from_bit | (*set >> from & 1) << to;
        self.special = self.special & !from_bit | to_bit;
        extras.lasting = extras.lasting & !from_bit | to_bit;
        if self.ready & from_bit != 0 {
            self.ready = self.ready & !from_bit | to_bit;
        } else {
            move_in(&mut extras.pending);
            move_in(&mut extras.away);
            move_in(&mut extras.held_back);
        }
        move_in(&mut extras.boosts.rising);
        let (boosts, entry) = (&mut self.extras.boosts, self.entries[to]);
        boosts.shadows = boosts.shadows & !to_bit | from_bit;
        boosts.boosted &= !from_bit;
        if let Some(state) = boosts.of(&entry) {
            state.is_boosted = usize::from(state.high) == to;
            if state.is_boosted {
                boosts.boosted |= to_bit;
            }
        }
        self.position[entry.number()] = to as u8;
        if usize::from(self.running) == from {
            self.running = to as u8;
        }
    }

    /// Asserts that each vCPU that may be boosted stands where its state says.
    #[cfg(any(test, feature = "checked"))]
    pub(super) fn check_boosts(&self) {
        let boosts = &self.extras.boosts;
        let mut shadows = 0;
        for (number, state) in boosts.states.iter().enumerate() {
            let Some(state) = state else { continue };
            let [here, shadow] =
                if state.is_boosted { [state.high, state.base] } else { [state.base, state.high] };
            for at in [here, shadow] {
                assert_eq!(
                    usize::from(self.entries[usize::from(at)].boost),
                    number,
                    "an entry of a boost"
                );
            }
            let id = self.entries[usize::from(here)].id;
            assert_eq!(self.find(id), Some(usize::from(here)), "where {id:?} stands");
            assert_eq!(boosts.boosted >> here & 1 == 1, state.is_boosted, "{id:?} is boosted");
            assert!(
                self.special >> here & 1 == 1,
                "the guard knows nothing of the boosts of {id:?}"
            );
            assert!(state.left <= state.is.budget, "{id:?} has more than its limit");
            assert!(self.extras.accounts[usize::from(id.0)].is_none(), "{id:?} has a server, too");
            shadows |= 1 << shadow;
        }
        assert_eq!(boosts.shadows, shadows, "the shadows");
        assert_eq!(shadows & (self.ready | self.special | self.away), 0, "a shadow is ready");
        assert!(Members::of(boosts.boosted).all(|at| self.entries[at].boost != ABSENT), "no boost");
    }
}
