//! The systems in short, as machine tests: a system that is measured seldom breaks unseen.

use super::hypervisor::{LENGTH, SYSTEM, Seen, boot, judge};
use super::linux;
use crate::answer::Answer;
use crate::session::End;
use crate::suite::{Bench, Scenario};
use crate::view::Silent;
use miette::Result;
use sim::case_study::Scheme;
use std::time::Duration;

/// Jobs of each task on Linux.
const JOBS: u64 = 2;

/// Returns both.
pub fn scenarios() -> Vec<Scenario> {
    let about = "eight tasks of the probe share a resource as in the paper, within their bounds";
    let probe = Scenario::new("case-study-probe", about, |bench| {
        run(bench, SYSTEM, &[], LENGTH, End::TimeOver, 1)
    });
    // Linux boots twice on a third of each core, which takes most of a minute. Nothing else boots this
    // system but the bench, and what Linux takes of its tasks' time is known of no other.
    let about = "eight tasks of Linux share a resource as in the paper, within their bounds";
    let edits = [(format!("--jobs {} ", linux::JOBS), format!("--jobs {JOBS} "))];
    let linux = Scenario::new("case-study-linux", about, move |bench| {
        run(bench, linux::SYSTEM, &edits, linux::LIMIT, End::PoweredOff, JOBS)
    });
    vec![probe.shipped(), linux.shipped()]
}

fn run(
    bench: &Bench,
    system: &str,
    edits: &[(String, String)],
    length: Duration,
    end: End,
    jobs: u64,
) -> Result<()> {
    let scheme = Scheme::DeferrableWithOverrun;
    let run = boot(bench, system, scheme, edits, length, Box::new(Silent))?;
    let mut answer = Answer::new("case-study", "", "");
    judge(&mut answer, &Seen::of(scheme, &run, end), "here", jobs);
    bench.demand(&answer.outcome)
}
