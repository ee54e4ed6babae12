//! Figures 6 to 10: what varies in each, and what the paper says of it.

use super::curves::Curves;
use crate::results::{Check, Goal};
use analysis::tasksets::{Scheme, Setting};

/// How far two shares of schedulable tasksets may differ and still be called the
/// same, percentage points: the paper's words, "almost", are no closer.
const ALMOST: f64 = 5.0;
/// What chance alone may do, percentage points: with 10,000 tasksets the standard
/// error is at most half of one.
const NOISE: f64 = 2.0;

/// One of the five experiments.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// As the paper numbers it.
    pub number: u32,
    /// What varies, with its unit.
    pub varies: &'static str,
    /// What the paper says of the figure, in its words or near them.
    pub says: &'static str,
    /// What varies takes these values. The text of the paper says neither the
    /// ranges nor the steps but those it mentions; for Figure 7 it says that they
    /// are all possible values, which for 48 tasks are the divisors of 48.
    pub values: &'static [f64],
    /// Table I, and in it a value of what varies.
    pub setting: fn(f64) -> Setting,
    statements: fn(&Curves) -> Vec<Check>,
}

/// In the paper's order.
pub const FIGURES: [Figure; 5] = [
    Figure {
        number: 6,
        varies: "size of a gcs (µs)",
        says: "PSnO and DSnO are almost unaffected by the size of a gcs; PSwO and DSwO fall as it \
               grows, DSwO performs better than PSwO",
        values: &[10.0, 50.0, 100.0, 150.0, 200.0, 250.0, 300.0, 350.0, 400.0, 450.0, 500.0],
        setting: |us| Setting { gcs_ns: us as u64 * 1_000, ..Setting::BASE },
        statements: size_of_a_gcs,
    },
    Figure {
        number: 7,
        varies: "lockers per mutex",
        says: "performance degrades only when the number of lockers per mutex is very high \
               (more than 12)",
        values: &[1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 48.0],
        setting: |count| Setting { lockers_per_mutex: count as usize, ..Setting::BASE },
        statements: lockers,
    },
    Figure {
        number: 8,
        varies: "gcs's per task",
        says: "the lead of DSwO grows with the number of gcs's per task; at 32, DSwO shows no \
               noticeable degradation",
        values: &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0],
        setting: |count| Setting { gcs_per_task: count as usize, ..Setting::BASE },
        statements: gcs_per_task,
    },
    Figure {
        number: 9,
        varies: "vCPU period (ms)",
        says: "DSwO performs much better than the others; at a vCPU period of 40 ms the \
               difference is about 80 %",
        values: &[5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 35.0, 40.0, 45.0, 50.0],
        setting: |ms| Setting { vcpu_period_ns: ms as u64 * 1_000_000, ..Setting::BASE },
        statements: vcpu_period,
    },
    Figure {
        number: 10,
        varies: "task utilization per vCPU (%)",
        says: "all schemes fall above 17.0 %; at 19.0 % DSwO is better than PSnO and DSnO, at \
               20.0 % it is the opposite",
        values: &[15.0, 15.5, 16.0, 16.5, 17.0, 17.5, 18.0, 18.5, 19.0, 19.5, 20.0, 20.5, 21.0],
        setting: |percent| Setting { utilization: percent / 100.0, ..Setting::BASE },
        statements: utilization,
    },
];

impl Figure {
    /// What the paper says, as checks of `curves`. Values are percentage points.
    pub fn claims(self, curves: &Curves) -> Vec<Check> {
        let mut claims = (self.statements)(curves);
        let above = curves.most(|point| {
            let others = Scheme::ALL.into_iter().filter(|&scheme| scheme != Scheme::PSwO);
            let worst = others.map(|scheme| point.percent(scheme)).fold(f64::MAX, f64::min);
            point.percent(Scheme::PSwO) - worst
        });
        claims.push(at_most("PSwO is the worst: at most above another", above, NOISE));
        claims
    }
}

fn at_most(name: &str, value: f64, goal: f64) -> Check {
    Check::new(name, value, "points", Goal::AtMost(goal))
}

fn at_least(name: &str, value: f64, goal: f64) -> Check {
    Check::new(name, value, "points", Goal::AtLeast(goal))
}

fn size_of_a_gcs(curves: &Curves) -> Vec<Check> {
    let behind = curves.most(|point| point.percent(Scheme::PSwO) - point.percent(Scheme::DSwO));
    vec![
        at_most("PSnO from its best to its worst", curves.range(Scheme::PSnO), ALMOST),
        at_most("DSnO from its best to its worst", curves.range(Scheme::DSnO), ALMOST),
        at_least("PSwO falls from first to last by", curves.fall(Scheme::PSwO), ALMOST),
        at_least("DSwO falls from first to last by", curves.fall(Scheme::DSwO), ALMOST),
        at_most("DSwO is better than PSwO: at most below it", behind, NOISE),
    ]
}

fn lockers(curves: &Curves) -> Vec<Check> {
    let few = curves.between(1.0, 12.0);
    let fall = |scheme: Scheme| {
        let name = format!("{} up to 12 lockers, from its best to its worst", scheme.name());
        at_most(&name, few.range(scheme), ALMOST)
    };
    let mut claims: Vec<_> = Scheme::ALL.into_iter().map(fall).collect();
    let falls = Scheme::ALL.into_iter().map(|scheme| curves.range(scheme)).fold(0.0, f64::max);
    claims.push(at_least("with more, the scheme that falls most falls by", falls, ALMOST));
    claims
}

fn gcs_per_task(curves: &Curves) -> Vec<Check> {
    let leads: Vec<f64> = curves.points.iter().map(|point| point.lead()).collect();
    let shrinks = leads.windows(2).map(|pair| pair[0] - pair[1]).fold(f64::MIN, f64::max);
    let last = leads.last().copied().unwrap_or(0.0);
    vec![
        at_most("DSwO from 1 to 32 gcs's per task falls by", curves.fall(Scheme::DSwO), NOISE),
        at_most("lead of DSwO shrinks from one point to the next by at most", shrinks, NOISE),
        at_least("lead of DSwO at 32 gcs's per task", last, ALMOST),
    ]
}

fn vcpu_period(curves: &Curves) -> Vec<Check> {
    let lead = curves.at(40.0).map(super::curves::Point::lead);
    let behind = curves.most(|point| -point.lead());
    vec![
        Check::new("lead of DSwO at 40 ms", lead, "points", Goal::Between(70.0, 90.0)),
        at_most("DSwO is at most below another", behind, NOISE),
    ]
}

fn utilization(curves: &Curves) -> Vec<Check> {
    let fall = |scheme: Scheme| {
        let percent = |at| curves.at(at).map(|point| point.percent(scheme));
        let fall = percent(17.0).zip(percent(20.0)).map(|(before, after)| before - after);
        let name = format!("{} from 17 % to 20 % falls by", scheme.name());
        Check::new(&name, fall, "points", Goal::AtLeast(ALMOST))
    };
    let lead = |at: f64, scheme: Scheme| {
        curves.at(at).map(|point| point.percent(Scheme::DSwO) - point.percent(scheme))
    };
    let mut claims: Vec<_> = Scheme::ALL.into_iter().map(fall).collect();
    for scheme in [Scheme::PSnO, Scheme::DSnO] {
        let name = scheme.name();
        let ahead = format!("at 19 % DSwO is above {name} by");
        let behind = format!("at 20 % DSwO is above {name} by");
        let goal = Goal::AtLeast(NOISE);
        claims.push(Check::new(&ahead, lead(19.0, scheme), "points", goal));
        claims.push(Check::new(&behind, lead(20.0, scheme), "points", Goal::AtMost(0.0)));
    }
    claims
}
