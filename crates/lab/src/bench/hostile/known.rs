//! What is known to miss a goal of the bench, with the reason. The goals stay, and the checks fail:
//! the list tells those that are known from new ones.

use super::case::Case;
use super::seen::Seen;
use crate::quantity::real;

/// What a run is judged by, and is known to miss in some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// The worst dispatch latency of FreeRTOS, µs.
    Dispatch,
    /// Activations that FreeRTOS missed.
    RtosMissed,
    /// Activations that the neighbour missed.
    NeighbourMissed,
    /// The mean time in which the neighbour does its work, ns: judged is by how much it changes.
    NeighbourWork,
    /// Bytes of the neighbour's console that were lost.
    ConsoleLost,
    /// Sentences on a FreeRTOS that does not run.
    RtosStopped,
    /// Whatever else does not hold: sentences.
    Broken,
}

impl Figure {
    /// Figures whose goal is that there are none.
    pub const COUNTS: [Self; 5] = [
        Self::RtosMissed,
        Self::NeighbourMissed,
        Self::ConsoleLost,
        Self::RtosStopped,
        Self::Broken,
    ];

    /// Returns what it is called in checks.
    pub const fn about(self) -> &'static str {
        match self {
            Self::Dispatch => "worst dispatch latency of FreeRTOS",
            Self::RtosMissed => "activations that FreeRTOS missed",
            Self::NeighbourMissed => "activations that the neighbour missed",
            Self::NeighbourWork => "change of what another VM takes for its work, the most",
            Self::ConsoleLost => "console bytes of others lost",
            Self::RtosStopped => "runs in which FreeRTOS does not run",
            Self::Broken => "whatever else does not hold",
        }
    }

    /// Returns its value in a run, in its unit.
    pub fn of(self, seen: &Seen) -> Option<f64> {
        let is_stopped = |why: &&String| why.starts_with("rtos ");
        let stopped = seen.broken.iter().filter(is_stopped).count() as u64;
        let count = match self {
            Self::Dispatch => return seen.rtos.worst_dispatch_ns().map(|ns| real(ns) / 1e3),
            Self::NeighbourWork => return seen.neighbour.dispatch.mean(),
            Self::RtosMissed => seen.rtos.missed,
            Self::NeighbourMissed => seen.neighbour.missed,
            Self::ConsoleLost => seen.console_lost,
            Self::RtosStopped => u64::from(stopped > 0),
            Self::Broken => seen.broken.len() as u64 - stopped,
        };
        Some(real(count))
    }
}

/// Runs that are known to miss goals.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// Which runs, in words that follow "beside".
    pub beside: &'static str,
    /// Returns true if a case is one of them.
    is_of: fn(&Case) -> bool,
    /// Figures that miss their goals.
    pub figures: &'static [Figure],
    /// The reason, in a sentence.
    pub why: &'static str,
}

/// Policies by which the vCPU that is displaced leaves before FreeRTOS runs, or siblings arrive meanwhile.
const LEAVE_FIRST: [&str; 4] = ["on-demand", "on-demand-fixed", "on-demand-lazy", "masked"];

/// All that is known. The first that names a figure of a run is the one that counts.
pub const KNOWN: [Known; 4] = [
    Known {
        beside: "a real-time VM",
        is_of: |case| has(case, |adversary| adversary.is_realtime),
        figures: &[Figure::ConsoleLost, Figure::NeighbourMissed, Figure::NeighbourWork],
        why: "A real-time VM that never sleeps keeps the core that drives the UART, so what others say is \
              not written there, and a guest that waits for room takes longer and misses activations.",
    },
    Known {
        beside: "a VM above FreeRTOS (rt-vcpu)",
        is_of: |case| has(case, |adversary| adversary.policy == "rt-vcpu"),
        figures: &[Figure::Dispatch, Figure::RtosMissed, Figure::RtosStopped],
        why: "FreeRTOS is filled in its own time, on its own core, so it does not start while the \
              adversary above it leaves that core no time; once it has started it makes way to another core.",
    },
    Known {
        beside: "messages under on-demand, its controls and masked",
        is_of: |case| {
            let leaves = has(case, |adversary| {
                adversary.mode == "messages" && LEAVE_FIRST.contains(&adversary.policy.as_str())
            });
            case.is_woken && leaves
        },
        figures: &[Figure::Dispatch],
        why: "The vCPU that is displaced leaves before FreeRTOS runs, or siblings arrive meanwhile.",
    },
    Known {
        beside: "messages of a real-time VM",
        is_of: |case| case.is_woken && has(case, |adversary| adversary.is_realtime),
        figures: &[Figure::Dispatch],
        why: "FreeRTOS waits for the message with which its core is busy, a decision and a switch, which \
              takes longer beside a real-time VM than beside another one.",
    },
];

fn has(case: &Case, is_it: impl Fn(&super::case::Adversary) -> bool) -> bool {
    case.adversary.as_ref().is_some_and(is_it)
}

impl Known {
    /// Returns which entry of [`KNOWN`] says that `figure` of `case` misses its goal.
    pub fn of(case: &Case, figure: Figure) -> Option<usize> {
        KNOWN.iter().position(|known| known.figures.contains(&figure) && (known.is_of)(case))
    }
}

#[cfg(test)]
mod tests {
    use super::super::cases;
    use super::*;
    use crate::bench::store::Case as _;
    use sched::policy::MigrationPolicy;

    /// No entry is of cases that are gone, and none excuses attacks without a policy or standing of
    /// their own.
    #[test]
    fn each_entry_is_of_some_runs_and_none_of_the_plain_ones() {
        let cases = cases(1);
        for (number, known) in KNOWN.iter().enumerate() {
            for &figure in known.figures {
                let is_of = |case: &&Case| Known::of(case, figure) == Some(number);
                let named: Vec<_> = cases.iter().filter(is_of).collect();
                assert!(!named.is_empty(), "{known:?}");
                for case in named {
                    let adversary = case.adversary.as_ref().unwrap();
                    assert!(adversary.is_realtime || adversary.policy != "none", "{}", case.name());
                }
            }
        }
        assert!(cases.iter().all(|case| Known::of(case, Figure::Broken).is_none()));
        assert!(LEAVE_FIRST.iter().all(|name| MigrationPolicy::named(name).is_some()));
    }
}
