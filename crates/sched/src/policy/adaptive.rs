//! A vCPU that is displaced waits while the activation that displaces it is expected to be short,
//! and leaves, as under [`super::on_demand`], when that pays.
//!
//! Waiting costs the more the longer the activation is, leaving costs the same each time. How long
//! activations are is learned of each vCPU that displaces others ([`Activations`]). One that was
//! expected to be short and is not is looked at again: then the vCPU leaves after all.

use super::{Answers, Mode, ModeBias, Policy, Then};
use crate::time::{Duration, Instant};

pub const POLICY: Policy =
    Policy { displaced: Answers::always(Then::LeaveIfItPays), ..Policy::NONE };

/// How long a vCPU waits before it leaves, in a clock's ticks.
///
/// It is the problem of renting or buying: to wait is to rent, at a price that grows with time, and
/// to leave is to buy. A vCPU that always leaves when it has waited for as long as leaving costs
/// never pays more than twice what it would if it knew the future. With an estimate, it leaves
/// sooner where that says *long* and later where it says *short*, and pays little more than needed
/// where the estimate is right (Purohit, Svitkina and Kumar, NeurIPS 2018).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// An activation of this length costs as much if the vCPU waits as if it leaves: in its kernel.
    in_kernel: Duration,
    /// Likewise in a program.
    in_program: Duration,
    /// The displacing guest's handler and task have begun by then.
    dispatch: Duration,
}

impl Patience {
    /// An activation of this length costs as much if the vCPU waits as if it leaves, nanoseconds:
    /// `docs/src/policies/adaptive.md` says how it was found.
    pub const IN_KERNEL_NS: u64 = 7_000;
    /// Likewise where the vCPU is in a program, and those that were displaced before mostly were: its
    /// siblings seldom wait for it.
    pub const IN_PROGRAM_NS: u64 = 50_000;
    /// So long after it has got its core, a guest that an interrupt has woken has begun to execute
    /// its task, nanoseconds.
    pub const DISPATCH_NS: u64 = 1_500;

    /// Makes it for a clock. `ticks`: how many ticks so many nanoseconds are.
    #[must_use]
    pub fn new(ticks: impl Fn(u64) -> u64) -> Self {
        let [in_kernel, in_program, dispatch] =
            [Self::IN_KERNEL_NS, Self::IN_PROGRAM_NS, Self::DISPATCH_NS]
                .map(|ns| Duration(ticks(ns)));
        Self { in_kernel, in_program, dispatch }
    }

    /// Returns which length of an activation costs as much if the vCPU waits as if it leaves.
    const fn break_even(&self, is_in_programs: bool) -> Duration {
        if is_in_programs { self.in_program } else { self.in_kernel }
    }
}

/// How often as long as the break-even a vCPU waits that expected to wait for less.
const DOUBT: u64 = 2;
/// A new activation counts as one of so many.
const MEMORY: u64 = 8;

/// What a vCPU that displaces others usually does, in ticks.
///
/// An *activation* is the time from when it gets its core until it loses it. What it displaces is asked
/// at its beginning, and once more: when it has waited long enough. What there is to compute is computed
/// when an activation is over, because at its beginning a real-time guest waits.
#[derive(Clone, Copy, Debug)]
pub struct Activations {
    /// When the present activation began.
    begun: Instant,
    /// What it displaces leaves then.
    until: Instant,
    /// How long what it displaces waits; less if it is foreseen.
    wait: Duration,
    /// True if activations are long.
    is_long: bool,
    /// Activations that nothing was learned of yet.
    count: u64,
    /// How long the vCPU had run in all when something was learned last.
    ran: Duration,
    /// What waiting would have cost in one of the last activations, in the mean.
    cost: u64,
    /// The mode in which it met what it displaced.
    met: ModeBias,
}

/// What becomes of a vCPU that is displaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// It leaves as soon as this instant has come.
    LeaveAfter(Instant),
    /// It waits until then, which has not come, and is asked again.
    WaitUntil(Instant),
}

impl Activations {
    /// Makes that of a vCPU of which nothing is known.
    #[must_use]
    pub fn new() -> Self {
        Self {
            begun: Instant(0),
            until: Instant(0),
            wait: Duration(0),
            is_long: true,
            count: 0,
            ran: Duration(0),
            cost: 0,
            met: ModeBias::default(),
        }
    }

    /// Decides about what this vCPU displaces, which has its core since `begun`. `foreseen`: its guest
    /// was not to run yet, so it waits for nothing that is done now. If it is asked once more in the same
    /// activation, the instant is the same, and may not have come.
    #[must_use]
    #[inline]
    pub fn choose(&mut self, begun: Instant, foreseen: bool) -> Choice {
        if begun == self.begun {
            return Choice::LeaveAfter(self.until);
        }
        self.begun = begun;
        self.count += 1;
        let wait = if foreseen && self.is_long { Duration(0) } else { self.wait };
        self.until = begun.after(wait);
        if wait.0 == 0 { Choice::LeaveAfter(begun) } else { Choice::WaitUntil(self.until) }
    }

    /// Records the mode of a vCPU that is displaced in this activation, or was in the last one.
    pub fn meets(&mut self, mode: Mode) {
        let _ = self.met.lost_core(mode);
    }

    /// Learns from the activations that are over, after which the vCPU has run for so long in all.
    pub fn learn(&mut self, ran: Duration, patience: &Patience) {
        let count = core::mem::take(&mut self.count);
        let before = core::mem::replace(&mut self.ran, ran);
        let all = ran.0.saturating_sub(before.0);
        if count == 0 {
            return;
        }
        let is_in_programs = self.met.is_in_programs();
        self.met.runs();
        // What counts is what a vCPU loses that waits first: it leaves after a while. So one activation
        // that is very long counts no more than one that is long.
        let (length, break_even) = (all / count, patience.break_even(is_in_programs));
        let most = DOUBT * break_even.0;
        let cost = if length > most { most + break_even.0 } else { length };
        // Rounded up, or the mean could never reach what it is the mean of.
        // The first is all that is known.
        let weight = if self.wait.0 == 0 { MEMORY } else { count.min(MEMORY) };
        self.cost += (cost.saturating_sub(self.cost) * weight).div_ceil(MEMORY);
        self.cost -= (self.cost.saturating_sub(cost) * weight).div_ceil(MEMORY);
        self.is_long = self.cost >= break_even.0;
        self.wait = if self.is_long { patience.dispatch } else { Duration(most) };
    }
}

impl Default for Activations {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A clock's tick is a nanosecond.
    fn patience() -> Patience {
        Patience::new(|ns| ns)
    }

    const BREAK_EVEN: u64 = Patience::IN_KERNEL_NS;

    /// A vCPU that displaces another one again and again.
    struct Displacer {
        activations: Activations,
        now: u64,
        ran: u64,
        advance: u64,
    }

    /// What became of the other one in an activation.
    struct Met {
        left: bool,
        /// How long it waited before it left, or in all.
        waited: u64,
        asked: u32,
    }

    impl Displacer {
        fn new(advance: u64) -> Self {
            Self { activations: Activations::new(), now: 1_000, ran: 0, advance }
        }

        /// Runs for so long, its advance included, and sleeps for a while.
        fn runs(&mut self, length: u64, mode: Mode) -> Met {
            let begun = self.now;
            let mut at = begun;
            let mut met = Met { left: false, waited: length, asked: 0 };
            while at < begun + length {
                met.asked += 1;
                match self.activations.choose(Instant(begun), at < begun + self.advance) {
                    Choice::LeaveAfter(Instant(until)) if at >= until => {
                        met = Met { left: true, waited: at - begun, ..met };
                        break;
                    }
                    Choice::LeaveAfter(Instant(until)) | Choice::WaitUntil(Instant(until)) => {
                        assert!(until > at, "it would be asked for ever");
                        at = until;
                    }
                }
            }
            self.ran += length;
            self.now = begun + length + 10_000;
            self.activations.meets(mode);
            self.activations.learn(Duration(self.ran), &patience());
            met
        }

        fn runs_often(&mut self, count: u64, length: u64, mode: Mode) {
            for _ in 0..count {
                self.runs(length, mode);
            }
        }
    }

    #[test]
    fn it_waits_for_short_activations_and_leaves_for_long_ones() {
        let mut rtos = Displacer::new(0);
        assert!(rtos.runs(BREAK_EVEN / 2, Mode::Kernel).left, "nothing is known");
        assert!((0..20).all(|_| !rtos.runs(BREAK_EVEN / 2, Mode::Kernel).left));
        assert!((0..8).all(|_| !rtos.runs(BREAK_EVEN - 1, Mode::Kernel).left));
        let learned = (0..20).position(|_| rtos.runs(1_000_000, Mode::Kernel).waited < BREAK_EVEN);
        assert!(learned.is_some_and(|after| after <= 3), "{learned:?}");
        let learned = (0..20).position(|_| !rtos.runs(BREAK_EVEN / 2, Mode::Kernel).left);
        assert!(learned.is_some(), "and forgets");
    }

    /// The handler and the task begin as if there were nothing to migrate.
    #[test]
    fn a_guest_that_nothing_foretold_does_not_wait_for_a_departure() {
        let mut rtos = Displacer::new(0);
        assert!(rtos.runs(1_000_000, Mode::Kernel).left, "nothing is known");
        for _ in 0..30 {
            let met = rtos.runs(1_000_000, Mode::Kernel);
            assert_eq!((met.left, met.waited, met.asked), (true, Patience::DISPATCH_NS, 2));
        }
        let mut foreseen = Displacer::new(4_000);
        foreseen.runs_often(10, 1_000_000, Mode::Kernel);
        let met = foreseen.runs(1_000_000, Mode::Kernel);
        assert_eq!((met.left, met.waited, met.asked), (true, 0, 1), "while it waits for its timer");
    }

    /// A guest that is mostly in programs waits longer.
    #[test]
    fn what_meets_programs_is_waited_for_longer() {
        let length = 3 * BREAK_EVEN;
        let mut rtos = Displacer::new(0);
        rtos.runs_often(40, length, Mode::User);
        assert!(!rtos.runs(length, Mode::User).left);
        rtos.runs_often(20, length, Mode::Kernel);
        assert!(rtos.runs(length, Mode::User).left, "a guest that is mostly in its kernel");
    }

    /// While the core idles after it, nothing is learned; then all of it is.
    #[test]
    fn activations_may_be_learned_together() {
        let mut activations = Activations::new();
        for begun in 1..=4 {
            let _ = activations.choose(Instant(begun * 100_000), false);
        }
        activations.learn(Duration(4 * 1_000), &patience());
        assert_eq!(activations.cost, 1_000);
        activations.learn(Duration(900_000), &patience());
        assert_eq!(activations.cost, 1_000, "no activation has begun");
    }

    /// There is one long activation in many.
    #[test]
    fn a_rare_long_activation_costs_what_was_doubted() {
        let mut rtos = Displacer::new(0);
        for round in 1..200 {
            let is_long = round % 20 == 0;
            if round == 1 {
                rtos.runs(1_000, Mode::Kernel);
            }
            let met = rtos.runs(if is_long { 10_000_000 } else { 1_000 }, Mode::Kernel);
            assert_eq!(met.left, is_long, "activation {round}");
            assert!(met.waited <= DOUBT * BREAK_EVEN);
        }
    }

    #[test]
    fn the_mean_reaches_what_it_is_the_mean_of() {
        for length in [1, 9, 100, 6_999] {
            let mut rtos = Displacer::new(0);
            rtos.runs_often(200, 20_000, Mode::Kernel);
            rtos.runs_often(200, length, Mode::Kernel);
            assert_eq!(rtos.activations.cost, length);
        }
    }

    /// What the other vCPU loses: what it waits, and for a departure as much as it takes to wait for
    /// the break-even.
    fn cost(met: &Met) -> u64 {
        met.waited + if met.left { BREAK_EVEN } else { 0 }
    }

    /// The shares of its period for which the real-time guest runs, and its periods: f from 0 to
    /// 0.9, 40 us to 500 ms.
    #[test]
    fn no_fixed_policy_is_better_by_more_than_two_percent_whatever_the_load_and_the_period() {
        let periods =
            [40_000, 53_000, 97_000, 211_000, 997_000, 10_000_000, 97_000_000, 500_000_000];
        for (period, percent, advance) in periods
            .into_iter()
            .flat_map(|period| (0..=90).map(move |percent| (period, percent)))
            .flat_map(|(period, percent)| [0, 4_000].map(|advance| (period, percent, advance)))
        {
            let length = (period * percent / 100).max(500) + advance;
            let mut rtos = Displacer::new(advance);
            rtos.runs_often(8 * MEMORY, length, Mode::Kernel);
            let count = 100;
            let all: u64 = (0..count).map(|_| cost(&rtos.runs(length, Mode::Kernel))).sum();
            let best = count * length.min(BREAK_EVEN);
            // Time is lost on one core; there are four.
            let lost = all.saturating_sub(best) * 100;
            assert!(
                lost <= 2 * 4 * count * period,
                "f = {percent} %, {period} ns, advance {advance}: {all} instead of {best}"
            );
        }
    }

    proptest! {
        /// Whatever lengths come in whatever order: each activation costs at most what was doubted and a
        /// departure, and what it displaces is asked twice at most.
        #[test]
        fn no_activation_costs_more_than_doubt_and_a_departure(
            all in prop::collection::vec((500u64..100_000, any::<bool>()), 1..200),
            advance in prop_oneof![Just(0u64), Just(4_000)],
        ) {
            let mut rtos = Displacer::new(advance);
            for (length, kernel) in all {
                let met = rtos.runs(length, if kernel { Mode::Kernel } else { Mode::User });
                prop_assert!(met.waited <= DOUBT * Patience::IN_PROGRAM_NS);
                prop_assert!(met.asked <= 2, "asked {} times", met.asked);
                prop_assert!(!met.left || met.waited < length);
            }
        }

        /// A clock that stands, goes back or jumps does no harm.
        #[test]
        fn any_sequence_of_questions_has_an_answer(
            all in prop::collection::vec((any::<u64>(), any::<u64>(), any::<bool>()), 1..50),
        ) {
            let mut activations = Activations::new();
            for (begun, ran, foreseen) in all {
                let (Choice::LeaveAfter(until) | Choice::WaitUntil(until)) =
                    activations.choose(Instant(begun), foreseen);
                prop_assert!(until >= Instant(begun) || until == Instant(0));
                activations.learn(Duration(ran), &patience());
                prop_assert!(activations.cost <= (DOUBT + 1) * Patience::IN_PROGRAM_NS);
            }
        }
    }
}
