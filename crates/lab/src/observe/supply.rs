//! What a vCPU with a budget had in its periods.
//!
//! A machine is looked at now and then, and periods begin in between. What a vCPU had until a
//! period began lies between what it had at the look before and at the look after, and it cannot
//! have run longer than time went by. So for each period there is a time that the vCPU certainly
//! had, and one that it had at most. The two are as far apart as the looks around the period's
//! ends at most, and equal where the vCPU did not run between these looks, or always.

/// A server, in ticks of the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Periods {
    /// When the first begins, after EL2 was entered.
    pub offset: u64,
    /// From one to the next, greater than 0.
    pub length: u64,
}

/// What is known of a time: `least <= time <= most`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Between<T> {
    /// It is certainly so long.
    pub least: T,
    /// It is not longer.
    pub most: T,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Supply {
    last: Option<Look>,
    /// What it had had when the current period began.
    before: Option<Between<u64>>,
    /// None before anything is known.
    longest: Option<Between<u64>>,
}

/// When it was looked, after EL2 was entered, and how long the vCPU had run until then.
#[derive(Clone, Copy, Debug)]
struct Look {
    now: u64,
    run: u64,
}

impl Periods {
    /// Returns the number of the period to which `at` belongs; none before the first.
    fn number(self, at: u64) -> Option<u64> {
        at.checked_sub(self.offset).map(|at| at / self.length)
    }

    /// Returns when a period begins.
    fn begin(self, number: u64) -> u64 {
        number.saturating_mul(self.length).saturating_add(self.offset)
    }
}

impl Look {
    /// Returns how long the vCPU had run at the instant `at`, from this look to the next, `then`.
    fn run_at(self, at: u64, then: Self) -> Between<u64> {
        Between {
            least: self.run.max(then.run.saturating_sub(then.now.saturating_sub(at))),
            most: then.run.min(self.run.saturating_add(at.saturating_sub(self.now))),
        }
    }
}

impl Supply {
    /// Returns what is known of the most that the vCPU had in one of the periods that began after
    /// the first look, ticks; none if no such period was seen.
    #[must_use]
    pub fn longest(&self) -> Option<Between<u64>> {
        self.longest
    }

    /// The vCPU had run for `run` ticks when `now` had passed since EL2 was entered.
    pub(super) fn look(&mut self, periods: Periods, now: u64, run: u64) {
        let look = Look { now, run };
        let Some(last) = self.last.replace(look) else { return };
        let (passed, ran) = (now.saturating_sub(last.now), run.saturating_sub(last.run));
        if ran > passed {
            // EL2 was looked at while it wrote.
            (self.last, self.before) = (None, None);
            return;
        }
        let Some(current) = periods.number(now) else { return };
        let before = periods.number(last.now);
        if before.is_none_or(|before| before < current) {
            let next = before.map_or(0, |before| before + 1);
            self.had(periods, last.run_at(periods.begin(next), look));
            self.had_within(periods, current - next, passed, ran);
            self.before = Some(last.run_at(periods.begin(current), look));
        }
        self.had(periods, Between { least: run, most: run });
    }

    /// From the beginning of the period of which `before` tells on, it had run for so long in all.
    fn had(&mut self, periods: Periods, run: Between<u64>) {
        let Some(before) = self.before else { return };
        self.know(Between {
            least: run.least.saturating_sub(before.most),
            most: run.most.saturating_sub(before.least).min(periods.length),
        });
    }

    /// Between two looks so many `whole` periods went by, and the vCPU `ran` for so long of the time
    /// that `passed`.
    fn had_within(&mut self, periods: Periods, whole: u64, passed: u64, ran: u64) {
        if whole == 0 {
            return;
        }
        // What it did not run before the first of them and after the last, it ran in them: in
        // one of them as long as in the mean.
        let outside = passed.saturating_sub(whole.saturating_mul(periods.length));
        let least = ran.saturating_sub(outside).div_ceil(whole);
        self.know(Between { least, most: ran.min(periods.length) });
    }

    /// This is known of what it had in one period.
    fn know(&mut self, one: Between<u64>) {
        let longest = self.longest.get_or_insert(one);
        longest.least = longest.least.max(one.least);
        longest.most = longest.most.max(one.most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PERIODS: Periods = Periods { offset: 5, length: 100 };

    /// What looks so far apart see of a vCPU that runs for 30 from the beginning of each period on.
    fn seen(apart: usize) -> Between<u64> {
        let mut supply = Supply::default();
        for now in (0..1_000).step_by(apart) {
            let since = (now as u64).saturating_sub(5);
            supply.look(PERIODS, now as u64, since / 100 * 30 + (since % 100).min(30));
        }
        supply.longest().unwrap()
    }

    #[test]
    fn looks_near_the_beginnings_see_nearly_all() {
        assert_eq!(seen(5), Between { least: 30, most: 30 });
        assert_eq!(seen(10), Between { least: 25, most: 35 });
    }

    #[test]
    fn looks_that_are_far_apart_say_so() {
        for apart in [150, 330] {
            let Between { least, most } = seen(apart);
            assert!(least <= 30 && most >= 60 + least, "{apart}: {least} to {most}");
        }
    }

    #[test]
    fn a_vcpu_that_never_runs_is_known_whatever_the_looks() {
        let mut supply = Supply::default();
        for now in [0, 90, 400, 2_000] {
            supply.look(PERIODS, now, 7);
        }
        assert_eq!(supply.longest(), Some(Between { least: 0, most: 0 }));
        // And so is one that always does.
        supply.look(PERIODS, 2_500, 507);
        assert_eq!(supply.longest(), Some(Between { least: 100, most: 100 }));
    }

    #[test]
    fn nothing_is_known_before_a_period_begins() {
        let mut supply = Supply::default();
        for now in [110, 150, 190] {
            supply.look(PERIODS, now, now);
            assert_eq!(supply.longest(), None);
        }
        supply.look(PERIODS, 220, 210);
        assert_eq!(supply.longest(), Some(Between { least: 5, most: 15 }));
    }

    proptest! {
        /// The truth is between what is told, however the vCPU runs and is looked at.
        #[test]
        fn what_there_was_is_between_what_is_told(
            turns in proptest::collection::vec(any::<bool>(), 400..2_000),
            looks in proptest::collection::vec(1_u64..350, 1..100),
        ) {
            let mut run = vec![0_u64];
            for &runs in &turns {
                run.push(run.last().unwrap() + u64::from(runs));
            }
            let (mut supply, mut now, mut first) = (Supply::default(), 0, None);
            for step in looks {
                let then = now + step;
                let Some(&run) = run.get(then as usize) else { break };
                now = then;
                first = first.or(Some(now));
                supply.look(PERIODS, now, run);
            }
            let at = |instant: u64| run[instant.min(now) as usize];
            let had = |number: u64| at(PERIODS.begin(number + 1)) - at(PERIODS.begin(number));
            let first = first.unwrap_or(0);
            let begun = (0..30).filter(|&number| PERIODS.begin(number) > first);
            let longest = begun.map(had).max().unwrap_or(0);
            let told = supply.longest().unwrap_or_default();
            prop_assert!(told.most >= longest, "{told:?} {longest}");
            let ever = (0..30).map(had).max().unwrap_or(0);
            prop_assert!(told.least <= ever, "{told:?} {ever}");
        }
    }
}
