//! A vCPU that is displaced waits while the activation that displaces it is expected to be short,
//! and leaves, as under [`super::on_demand`], when that pays.
//!
//! Waiting costs the more the longer the activation is, leaving costs the same each time. How long
//! activations are is learned of each vCPU that displaces others ([`Habit`]). One that was expected
//! to be short and is not is looked at again: then the vCPU leaves after all.

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
    /// The same in a program.
    in_program: Duration,
    /// The displacing guest's handler and task have begun by then.
    dispatch: Duration,
}

impl Patience {
    /// An activation of this length costs as much if the vCPU waits as if it leaves, nanoseconds:
    /// `docs/src/policies/adaptive.md` says how it was found.
    pub const IN_KERNEL_NS: u64 = 7_000;
    /// The same where the vCPU is in a program, and those that were displaced before mostly were: its
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
    const fn break_even(&self, holds_no_lock: bool) -> Duration {
        if holds_no_lock { self.in_program } else { self.in_kernel }
    }
}

/// How often as long as the break-even a vCPU waits that expected to wait for less.
const DOUBT: u64 = 2;
/// A new activation counts as one of so many.
const MEMORY: u64 = 8;

/// What a vCPU that displaces others usually does, in ticks.
///
/// An *activation* is the time from when it gets its core until it loses it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Habit {
    /// When the present activation began.
    begun: Instant,
    /// How long the vCPU had run in all when that began.
    ran: Duration,
    /// What waiting would have cost in one of the last activations, in the mean.
    cost: u64,
    /// The mode in which it met what it displaced.
    met: ModeBias,
}

/// What a vCPU does that is displaced by another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// It leaves.
    Leave,
    /// It waits, and is asked again at this instant.
    WaitUntil(Instant),
}

impl Habit {
    /// Records that the vCPU has its core since `begun`, and ran for so long in all before. Does
    /// nothing if that is known.
    #[inline]
    pub fn begins(&mut self, begun: Instant, ran: Duration, patience: &Patience) {
        if begun == self.begun {
            return;
        }
        let length = ran.0.saturating_sub(self.ran.0);
        (self.begun, self.ran) = (begun, ran);
        self.met.runs();
        // What counts is what a vCPU loses that waits first: it is asked again, and leaves then. So
        // one activation that is very long counts no more than one that is long.
        let break_even = patience.in_kernel.0;
        let most = DOUBT * break_even;
        let cost = if length > most { most + break_even } else { length };
        // Rounded up, or the mean could never reach what it is the mean of.
        self.cost += cost.saturating_sub(self.cost).div_ceil(MEMORY);
        self.cost -= self.cost.saturating_sub(cost).div_ceil(MEMORY);
    }

    /// Decides about a vCPU that is displaced at `now` and was in this mode. `foreseen`: the guest
    /// that displaces it was not to run yet, so it waits for nothing that is done now.
    #[must_use]
    #[inline]
    pub fn choose(
        &mut self,
        mode: Mode,
        foreseen: bool,
        now: Instant,
        patience: &Patience,
    ) -> Choice {
        let break_even = patience.break_even(self.met.lost_core(mode) && mode == Mode::User);
        let wait = if self.cost < break_even.0 {
            Duration(DOUBT * break_even.0)
        } else if foreseen {
            Duration(0)
        } else {
            patience.dispatch
        };
        if now.since(self.begun) >= wait {
            Choice::Leave
        } else {
            Choice::WaitUntil(self.begun.after(wait))
        }
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
        habit: Habit,
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
            Self { habit: Habit::default(), now: 1_000, ran: 0, advance }
        }

        /// Runs for so long, its advance included, and sleeps for a while.
        fn runs(&mut self, length: u64, mode: Mode) -> Met {
            let begun = self.now;
            let patience = patience();
            self.habit.begins(Instant(begun), Duration(self.ran), &patience);
            let mut met = Met { left: false, waited: length, asked: 0 };
            let mut at = begun + 500;
            while at < begun + length {
                met.asked += 1;
                let foreseen = at < begun + self.advance;
                match self.habit.choose(mode, foreseen, Instant(at), &patience) {
                    Choice::Leave => {
                        met = Met { left: true, waited: at - begun, ..met };
                        break;
                    }
                    Choice::WaitUntil(Instant(again)) => {
                        assert!(again > at, "it would be asked for ever");
                        at = again;
                    }
                }
            }
            self.ran += length;
            self.now = begun + length + 10_000;
            met
        }
    }

    #[test]
    fn it_waits_for_short_activations_and_leaves_for_long_ones() {
        let mut rtos = Displacer::new(0);
        assert!((0..20).all(|_| !rtos.runs(BREAK_EVEN / 2, Mode::Kernel).left));
        assert!((0..8).all(|_| !rtos.runs(BREAK_EVEN - 1, Mode::Kernel).left));
        let learned = (0..20).position(|_| rtos.runs(1_000_000, Mode::Kernel).waited <= 2 * 1_500);
        assert!(learned.is_some_and(|after| after <= 3), "{learned:?}");
        let learned = (0..20).position(|_| !rtos.runs(BREAK_EVEN / 2, Mode::Kernel).left);
        assert!(learned.is_some(), "and forgets");
    }

    /// Its handler and its task begin as if there were nothing to migrate.
    #[test]
    fn a_guest_that_nothing_foretold_does_not_wait_for_a_departure() {
        let mut rtos = Displacer::new(0);
        for _ in 0..30 {
            let met = rtos.runs(1_000_000, Mode::Kernel);
            assert!(met.left && met.waited >= Patience::DISPATCH_NS);
        }
        let mut foreseen = Displacer::new(4_000);
        (0..10).for_each(|_| drop(foreseen.runs(1_000_000, Mode::Kernel)));
        let met = foreseen.runs(1_000_000, Mode::Kernel);
        assert_eq!(
            (met.left, met.waited, met.asked),
            (true, 500, 1),
            "while it waits for its timer"
        );
    }

    /// What takes a vCPU in a program, as it did the last times, may take longer.
    #[test]
    fn a_vcpu_in_a_program_waits_longer() {
        let length = 3 * BREAK_EVEN;
        let mut rtos = Displacer::new(0);
        (0..20).for_each(|_| drop(rtos.runs(length, Mode::User)));
        assert!(!rtos.runs(length, Mode::User).left);
        assert!(rtos.runs(length, Mode::Kernel).left, "but not if it holds a lock");
        let mut mixed = Displacer::new(0);
        (0..20).for_each(|_| drop(mixed.runs(length, Mode::Kernel)));
        assert!(mixed.runs(length, Mode::User).left, "the first that is in a program");
    }

    /// One long activation in many: it is no habit.
    #[test]
    fn a_rare_long_activation_costs_what_was_doubted() {
        let mut rtos = Displacer::new(0);
        for round in 1..200 {
            let is_long = round % 20 == 0;
            let met = rtos.runs(if is_long { 10_000_000 } else { 1_000 }, Mode::Kernel);
            assert_eq!(met.left, is_long, "activation {round}");
            assert!(met.waited <= DOUBT * BREAK_EVEN);
        }
    }

    #[test]
    fn the_mean_reaches_what_it_is_the_mean_of() {
        for length in [0, 1, 9, 100, 6_999] {
            let mut rtos = Displacer::new(0);
            (0..200).for_each(|_| drop(rtos.runs(20_000, Mode::Kernel)));
            (0..200).for_each(|_| drop(rtos.runs(length, Mode::Kernel)));
            assert_eq!(rtos.habit.cost, length);
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
            (0..2 * MEMORY).for_each(|_| drop(rtos.runs(length, Mode::Kernel)));
            let count = 100;
            let all: u64 = (0..count).map(|_| cost(&rtos.runs(length, Mode::Kernel))).sum();
            let best = count * length.min(BREAK_EVEN + 500);
            // Time is lost on one core; there are four.
            let lost = all.saturating_sub(best) * 100;
            assert!(
                lost <= 2 * 4 * count * period,
                "f = {percent} %, {period} ns, advance {advance}: {all} instead of {best}"
            );
        }
    }

    proptest! {
        /// Whatever lengths come in whatever order: each activation costs at most what was
        /// doubted and a departure, so at most three times what the better choice would have cost, or
        /// a departure that was not needed.
        #[test]
        fn each_activation_costs_little_more_than_the_better_choice(
            lengths in prop::collection::vec(500u64..100_000, 1..200),
            advance in prop_oneof![Just(0u64), Just(4_000)],
        ) {
            let mut rtos = Displacer::new(advance);
            for length in lengths {
                let met = rtos.runs(length, Mode::Kernel);
                prop_assert!(cost(&met) <= (DOUBT + 1) * BREAK_EVEN);
                prop_assert!(met.asked <= 3, "asked {} times", met.asked);
                if met.left {
                    prop_assert!(met.waited < length);
                }
            }
        }

        /// A clock that stands, goes back or jumps never makes it ask for the past.
        #[test]
        fn any_sequence_of_questions_has_an_answer(
            questions in prop::collection::vec((any::<u64>(), any::<u64>(), any::<bool>()), 1..50),
        ) {
            let (mut habit, patience) = (Habit::default(), patience());
            for (begun, ran, foreseen) in questions {
                habit.begins(Instant(begun), Duration(ran), &patience);
                prop_assert!(habit.cost <= (DOUBT + 1) * BREAK_EVEN);
                match habit.choose(Mode::Kernel, foreseen, Instant(ran), &patience) {
                    Choice::Leave => {}
                    Choice::WaitUntil(again) => prop_assert!(again > Instant(ran) || again == Instant::NEVER),
                }
            }
        }
    }
}
