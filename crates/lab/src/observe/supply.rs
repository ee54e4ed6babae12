//! What a vCPU with a budget had in its periods.
//!
//! A machine is looked at now and then, and periods begin in between. What a vCPU had until a
//! period began lies between what it had at the look before and at the look after, and it cannot
//! have run longer than time went by. So for each period there is a time that the vCPU certainly
//! had; where looks are near the beginnings of periods, that is nearly all of it.

/// A server, in ticks of the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Periods {
    /// When the first begins, after EL2 was entered.
    pub offset: u64,
    /// From one to the next, greater than 0.
    pub length: u64,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Supply {
    last: Option<Look>,
    /// The most that it can have had until the current period began.
    before: Option<u64>,
    most: u64,
}

/// When it was looked, after EL2 was entered, and how long the vCPU had run until then.
#[derive(Clone, Copy, Debug)]
struct Look {
    now: u64,
    run: u64,
}

impl Supply {
    /// Returns the most that the vCPU certainly had in one period, ticks.
    #[must_use]
    pub fn most(&self) -> u64 {
        self.most
    }

    /// The vCPU had run for `run` ticks when `now` had passed since EL2 was entered.
    pub(super) fn look(&mut self, periods: Periods, now: u64, run: u64) {
        let look = Look { now, run };
        if self.last.is_some_and(|last| run.saturating_sub(last.run) > now.saturating_sub(last.now))
        {
            // EL2 was looked at while it wrote.
            (self.last, self.before) = (None, None);
            return;
        }
        if let Some(last) = self.last {
            let number = |at: u64| at.checked_sub(periods.offset).map(|at| at / periods.length);
            let begun = number(now).filter(|&period| number(last.now) != Some(period));
            if let Some(period) = begun {
                let begin = periods.offset + period * periods.length;
                // The period before it ended there only if none lies in between.
                let follows = number(last.now).is_some_and(|before| before + 1 == period);
                if follows {
                    let least = last.run.max(run.saturating_sub(now - begin));
                    self.had(least);
                }
                self.before =
                    Some(run.min(last.run.saturating_add(begin.saturating_sub(last.now))));
            }
        }
        self.had(run);
        self.last = Some(look);
    }

    /// In the current period, it had run for so long in all.
    fn had(&mut self, run: u64) {
        if let Some(before) = self.before {
            self.most = self.most.max(run.saturating_sub(before));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PERIODS: Periods = Periods { offset: 5, length: 100 };

    #[test]
    fn looks_near_the_beginnings_see_nearly_all() {
        let mut supply = Supply::default();
        // It runs for 30 from the beginning of each period on.
        for now in (0..1_000).step_by(10) {
            let periods = (now as u64).saturating_sub(5) / 100;
            let run = periods * 30 + ((now as u64).saturating_sub(5) % 100).min(30);
            supply.look(PERIODS, now as u64, run);
        }
        assert!((25..=30).contains(&supply.most()), "{}", supply.most());
    }

    proptest! {
        /// No vCPU is said to have had more than it had, however it runs and is looked at.
        #[test]
        fn no_more_is_seen_than_there_was(
            turns in proptest::collection::vec(any::<bool>(), 400..2_000),
            looks in proptest::collection::vec(1_u64..150, 1..100),
        ) {
            let (mut run, mut had) = (vec![0_u64], vec![0_u64; 30]);
            for (now, &runs) in (0_u64..).zip(&turns) {
                run.push(run.last().unwrap() + u64::from(runs));
                if let Some(since) = now.checked_sub(PERIODS.offset) {
                    had[(since / PERIODS.length) as usize] += u64::from(runs);
                }
            }
            let (mut supply, mut now) = (Supply::default(), 0);
            for step in looks {
                now += step;
                let Some(&run) = run.get(now as usize) else { break };
                supply.look(PERIODS, now, run);
            }
            prop_assert!(supply.most() <= *had.iter().max().unwrap());
        }
    }
}
