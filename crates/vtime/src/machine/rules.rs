//! How time moves on, and which cores leave when it cannot.

use super::{Effects, Machine, MainLoop, State, Vcpu, Verdict};

impl Machine {
    /// How far a core at `at_ns` may run: to the end of the window, or to the
    /// deadline if that has moved before it since the window was opened.
    pub(super) fn limit_for(&self, at_ns: u64) -> u64 {
        match self.main_loop {
            MainLoop::Settled { deadline_ns: Some(d) } => self.window_end_ns.min(d.max(at_ns)),
            _ => self.window_end_ns,
        }
    }

    /// Moves time on as far as rules 2 and 3 allow.
    pub(super) fn advance(&mut self) -> Effects {
        if self.vcpus.iter().any(|v| self.holds_time(v)) {
            return self.release_waiting();
        }
        let MainLoop::Settled { deadline_ns } = self.main_loop else {
            // It may wait for cores that could not leave before.
            return self.release_waiting();
        };
        if self.serial
            && let Some(effects) = self.next_turn()
        {
            return effects;
        }
        let earliest_ns = self.vcpus.iter().filter_map(|v| v.state.arrival_ns()).min();
        let next_ns = earliest_ns.into_iter().chain(deadline_ns).min();
        if self.is_to_hold(next_ns) {
            return self.hold(next_ns.is_none());
        }
        match (earliest_ns, deadline_ns) {
            (earliest, Some(deadline_ns)) if earliest.is_none_or(|e| deadline_ns <= e) => {
                self.reach(deadline_ns, earliest.is_none())
            }
            (Some(earliest_ns), _) => self.open_window(earliest_ns, deadline_ns),
            (None, _) => Effects::default(),
        }
    }

    /// Returns true if a hold is asked for at or before the present, when nothing
    /// happens until `next_ns`.
    fn is_to_hold(&mut self, next_ns: Option<u64>) -> bool {
        self.rested &= next_ns.is_none();
        match (self.hold_at_ns, next_ns) {
            (Some(hold_at_ns), Some(next_ns)) => next_ns > hold_at_ns,
            (Some(_), None) => !self.rested,
            (None, _) => false,
        }
    }

    /// Holds the machine. At rest time does not pass.
    fn hold(&mut self, at_rest: bool) -> Effects {
        if !at_rest {
            self.now_ns = self.now_ns.max(self.hold_at_ns.unwrap_or(0));
        }
        self.main_loop = MainLoop::Held { at_rest };
        Effects { poke: true, ..Effects::default() }
    }

    /// Global time becomes a deadline.
    fn reach(&mut self, deadline_ns: u64, by_jump: bool) -> Effects {
        self.counts.deadlines += 1;
        self.counts.jumps += u64::from(by_jump && deadline_ns > self.now_ns);
        self.now_ns = self.now_ns.max(deadline_ns);
        // A core that is woken by the timers waits for the next window, and so for the
        // next deadline.
        self.window_end_ns = self.now_ns;
        self.main_loop = MainLoop::Due;
        Effects { poke: true, ..Effects::default() }
    }

    /// Global time becomes the earliest arrival, and the cores run on.
    fn open_window(&mut self, earliest_ns: u64, deadline_ns: Option<u64>) -> Effects {
        self.now_ns = self.now_ns.max(earliest_ns);
        let end_ns = self.now_ns + self.quantum_ns;
        self.window_end_ns = deadline_ns.map_or(end_ns, |d| d.min(end_ns));
        self.counts.quanta += 1;
        self.counts.early_ends += u64::from(self.window_end_ns < end_ns);
        if self.serial {
            return self.next_turn().unwrap_or_default();
        }
        let mut effects = Effects::default();
        for (index, v) in self.vcpus.iter_mut().enumerate() {
            if v.state.arrival_ns().is_some_and(|at_ns| at_ns < self.window_end_ns) {
                v.state = State::Running { limit_ns: self.window_end_ns };
                effects.unpark(index);
            }
        }
        effects
    }

    /// Lets the core run whose turn it is in this window, if any is left.
    fn next_turn(&mut self) -> Option<Effects> {
        let may_run = |(index, v): (usize, &Vcpu)| {
            let at_ns = v.state.arrival_ns()?;
            (at_ns < self.limit_for(at_ns)).then_some((at_ns, index))
        };
        let (at_ns, next) = self.vcpus.iter().enumerate().filter_map(may_run).min()?;
        let limit_ns = self.limit_for(at_ns);
        self.vcpus[next].state = State::Running { limit_ns };
        let mut effects = Effects::default();
        effects.unpark(next);
        Some(effects)
    }

    /// Returns true if a core that waits may leave, should there be a reason: once in
    /// each episode, and one after the other if cores take turns.
    pub(super) fn may_leave(&self, vcpu: usize) -> bool {
        let has_to = |v: &Vcpu| v.waits() && !v.blocked && v.left_in != self.episode;
        has_to(&self.vcpus[vcpu])
            && !(self.serial && (self.something_moves() || self.vcpus[..vcpu].iter().any(has_to)))
    }

    /// Returns true if a core's thread does something, or is to go on first.
    fn something_moves(&self) -> bool {
        self.vcpus.iter().any(|v| v.called || v.moves())
    }

    /// Returns true if time must wait for this core. If cores take turns, it waits for
    /// one that is outside as well: that one may yet look for interrupts, and
    /// must not find those that are sent after it left.
    fn holds_time(&self, v: &Vcpu) -> bool {
        v.state.holds_time() || (self.serial && v.is_outside())
    }

    /// Returns true if every core that time waits for is itself blocked, on something
    /// that only a core in the lockstep can bring about.
    pub(super) fn stalled(&self) -> bool {
        let mut holding = self.vcpus.iter().filter(|v| self.holds_time(v)).peekable();
        holding.peek().is_some() && holding.all(|v| v.blocked)
    }

    /// Wakes those that wait and must leave.
    pub(super) fn release_waiting(&self) -> Effects {
        let mut effects = Effects::default();
        for (index, v) in self.vcpus.iter().enumerate() {
            if v.waits() && matches!(self.verdict(index), Verdict::Leave(_)) {
                effects.unpark(index);
            }
        }
        effects
    }
}
