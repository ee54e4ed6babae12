//! The paper's statements about its Figure 11, as checks.

use super::{CaseStudy, Run, mean_change};
use crate::results::{Check, Goal};
use sim::case_study::Scheme;
use sim::observer::Doing;
use sim::system::Need;

/// How far a mean change may be from the paper's, percentage points. Theirs
/// includes what locks, switches and timers cost on their machine.
const POINTS: f64 = 2.0;

/// Instants may differ by as much: the paper reads them off its timelines, ms.
const READING: f64 = 0.2;

impl CaseStudy {
    /// What the paper says, and what we found.
    pub fn claims(&self) -> Vec<Check> {
        let [mpcp, no, with] = &self.runs[..] else { return Vec::new() };
        let near = |name: &str, value, paper: f64, within| {
            Check::new(name, value, "ms", Goal::Between(paper - within, paper + within))
        };
        let change = |run: &Run| 100.0 * mean_change(&run.responses, &mpcp.responses);
        let both = |name: &str, value: fn(&Run) -> Option<f64>, paper| {
            [mpcp, no].map(|run| {
                let name = format!("{}, {name}", run.scheme.name());
                near(&name, value(run), paper, READING)
            })
        };
        let mut claims = vec![
            near_the_paper("vMPCP+DSnO: mean change of response times", change(no), -7.5),
            near_the_paper("vMPCP+DSwO: mean change of response times", change(with), -29.1),
        ];
        claims.extend(both("τ2 holds the resource from", |run| run.gcs(1, 0), 3.0));
        claims.extend(both("τ2 holds it until its budget comes again", |run| run.gcs_end(1), 10.0));
        claims.extend(both("τ8 acquires it at", |run| run.gcs(7, 0), 10.0));
        let releases = with.gcs_end(1).map(|end| end - 4.0);
        claims.push(near(
            "vMPCP+DSwO, τ2 releases it in its first period, ms after 4",
            releases,
            0.0,
            READING,
        ));
        let waits = |run: &Run| Some(run.gcs(6, 0)? - run.gcs_end(7)?);
        claims.push(Check::new(
            "MPCP, τ8 goes on first: τ7 enters its gcs so long after τ8's",
            waits(mpcp),
            "ms",
            Goal::AtLeast(1.0),
        ));
        claims.push(near(
            "vMPCP+DSnO, τ7 enters its gcs right after τ8's",
            waits(no),
            0.0,
            READING,
        ));
        let longer = ms(no.responses[7]) - ms(mpcp.responses[7]);
        claims.push(Check::new(
            "vMPCP+DSnO lengthens τ8's response slightly",
            longer,
            "ms",
            Goal::Between(0.001, 2.0),
        ));
        let shorter =
            |task: usize| with.responses[task] < mpcp.responses[task].min(no.responses[task]);
        let count = [0, 1, 2, 3, 4, 5, 7].into_iter().filter(|&task| shorter(task)).count();
        claims.push(Check::new(
            "vMPCP+DSwO, tasks but τ7 that respond sooner than under both others",
            count as f64,
            "of 7",
            Goal::Exactly(7.0),
        ));
        claims.push(Check::new(
            "vMPCP+DSwO, τ7 responds later than under MPCP by",
            ms(with.responses[6]) - ms(mpcp.responses[6]),
            "ms",
            Goal::AtLeast(0.001),
        ));
        claims
    }
}

/// Compares a change in % with the paper's.
pub fn near_the_paper(name: &str, change: impl Into<Option<f64>>, paper: f64) -> Check {
    Check::new(name, change, "%", Goal::Between(paper - POINTS, paper + POINTS))
}

impl Run {
    /// When a task's gcs begins (0) or goes on (1, ...), ms.
    fn gcs(&self, task: usize, piece: usize) -> Option<f64> {
        self.pieces(task).nth(piece).map(|(from, _)| from)
    }

    /// When a task's first gcs ends, ms.
    fn gcs_end(&self, task: usize) -> Option<f64> {
        self.pieces(task).last().map(|(_, to)| to)
    }

    fn pieces(&self, task: usize) -> impl Iterator<Item = (f64, f64)> {
        let own = move |doing| matches!(doing, Doing::Task { task: t, need: Need::Global(_) } if t == task);
        let slices = self.timeline.slices.iter().filter(move |slice| own(slice.doing));
        slices.map(|slice| (ms(slice.from), ms(slice.to)))
    }

    /// What the scheme is called.
    pub const fn name(&self) -> &'static str {
        self.scheme.name()
    }
}

impl CaseStudy {
    /// The changes of a scheme against MPCP: the mean over tasks, and that of
    /// the mean.
    pub fn changes(&self, scheme: Scheme) -> (f64, f64) {
        let baseline = &self.run(Scheme::Mpcp).responses;
        let responses = &self.run(scheme).responses;
        (mean_change(responses, baseline), super::change_of_the_mean(responses, baseline))
    }
}

pub(super) fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}
