//! What a microsecond more or less changes.
//!
//! In the ideal schedule several things happen at one instant: at 7 ms, τ1 gives
//! the resource back while τ3 and τ6 ask for it; at 10 ms, τ7 is about to ask
//! for it when τ8's vCPU is replenished. On hardware one comes first, by
//! microseconds, and the schedules part there. So every execution time is made
//! shorter by chance, by at most a hundredth, and the outcomes are counted.

use super::{change_of_the_mean, mean_change, run};
use sim::case_study::Scheme;
use sim::system::{Execution, Refusal};
use std::collections::BTreeMap;

/// How many seeds are tried.
pub const SEEDS: u64 = 400;

/// Execution times are at least so many percent of the worst case.
const LEAST: u8 = 99;

/// One way in which the schedule under vMPCP+DSwO goes on.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Response times of the tasks, rounded to ms.
    pub responses_ms: Vec<u64>,
    pub seeds: u64,
    /// [`mean_change`], the mean over these seeds.
    pub mean_change: f64,
    /// [`change_of_the_mean`], likewise.
    pub change_of_the_mean: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Ties {
    /// The smallest and the greatest [`mean_change`] under vMPCP+DSnO.
    pub no_overrun: (f64, f64),
    /// The same under vMPCP+DSwO.
    pub with_overrun: (f64, f64),
    /// Outcomes under vMPCP+DSwO, the most frequent first.
    pub outcomes: Vec<Outcome>,
}

impl Ties {
    pub(super) fn simulate() -> Result<Self, Refusal> {
        let execution = Execution::Random { least: LEAST };
        let none = (f64::INFINITY, f64::NEG_INFINITY);
        let (mut no_overrun, mut with_overrun) = (none, none);
        let mut outcomes: BTreeMap<Vec<u64>, Outcome> = BTreeMap::new();
        for seed in 0..SEEDS {
            let responses = |scheme| Ok(run(scheme, execution, seed)?.responses);
            let baseline = responses(Scheme::Mpcp)?;
            let no = mean_change(&responses(Scheme::DeferrableNoOverrun)?, &baseline);
            let with = responses(Scheme::DeferrableWithOverrun)?;
            let change = mean_change(&with, &baseline);
            widen(&mut no_overrun, no);
            widen(&mut with_overrun, change);
            let rounded: Vec<u64> = with.iter().map(|ns| (ns + 500_000) / 1_000_000).collect();
            let outcome = outcomes.entry(rounded.clone()).or_insert(Outcome {
                responses_ms: rounded,
                seeds: 0,
                mean_change: 0.0,
                change_of_the_mean: 0.0,
            });
            outcome.seeds += 1;
            outcome.mean_change += change;
            outcome.change_of_the_mean += change_of_the_mean(&with, &baseline);
        }
        let mut outcomes: Vec<_> = outcomes.into_values().collect();
        for outcome in &mut outcomes {
            let seeds = outcome.seeds as f64;
            outcome.mean_change /= seeds;
            outcome.change_of_the_mean /= seeds;
        }
        outcomes.sort_by_key(|outcome| std::cmp::Reverse(outcome.seeds));
        Ok(Self { no_overrun, with_overrun, outcomes })
    }
}

fn widen(range: &mut (f64, f64), value: f64) {
    *range = (range.0.min(value), range.1.max(value));
}
