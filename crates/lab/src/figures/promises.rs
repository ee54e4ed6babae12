//! What a run saw beside what was computed, as tables and checks.

use crate::answer::Answer;
use crate::dataset::{Dataset, Unit};
use crate::observe::Between;
use crate::promises::{Counts, SeenBudget, SeenResponse, objections};
use crate::quantity::{duration, ns, real};
use crate::results::{Check, Goal, Outcome};
use crate::session::Run;
use miette::{Result, ensure};
use std::time::Duration;

/// Adds what was seen beside what was computed, with a check of each.
pub fn tell(answer: &mut Answer, run: &Run) {
    let promises = &run.promises;
    let (responses, budgets) = (promises.responses(&run.observer), promises.budgets(&run.observer));
    if !responses.is_empty() {
        answer.data(&response_data(&responses));
        if !promises.schedulable() {
            answer.remark(
                "The analysis does not find this system schedulable, so no bound is certain.",
            );
        }
    }
    if run.instrument.is_none() && !(responses.is_empty() && budgets.is_empty()) {
        answer.remark(
            "Nothing was judged against its bound: bounds are the board's time, and this run was in the \
             host's. `--vtime` judges.",
        );
    }
    let unseen = promises.unseen(&run.observer);
    if !unseen.is_empty() {
        let names = unseen.join(", ");
        answer.remark(&format!(
            "No response was seen of these tasks, so nothing was compared: {names}."
        ));
    }
    if !budgets.is_empty() {
        answer.data(&budget_data(&budgets));
    }
    for seen in budgets.iter().filter(|seen| seen.counts.lowered > 0) {
        answer.remark(&format!(
            "{} stayed in global critical sections for longer than its tasks declare, so EL2 lowered \
             it {}.",
            seen.vcpu,
            times(seen.counts.lowered)
        ));
    }
    // What fails is in the table of checks.
    check(&mut answer.outcome, run);
}

/// Adds the checks of `run` to `outcome`, and returns what was not kept. In the host's time
/// there are none: bounds are the board's.
pub fn check(outcome: &mut Outcome, run: &Run) -> Vec<String> {
    let kept = [response_checks(run), budget_checks(run)].concat();
    [add(outcome, run, kept), check_order(outcome, run)].concat()
}

/// Like [`check`], of a run of the checked build, whose paths have no bound: what a vCPU may overrun
/// its budget by is not known there. In a machine test it was 9 us, where the build that ships keeps
/// to 2.7 us.
pub fn check_unbounded(outcome: &mut Outcome, run: &Run) -> Vec<String> {
    [add(outcome, run, response_checks(run)), check_order(outcome, run)].concat()
}

/// Adds checks to `outcome`, unless the run was in the host's time, and returns what was not kept.
fn add(outcome: &mut Outcome, run: &Run, checks: Vec<Check>) -> Vec<String> {
    if run.instrument.is_none() {
        return Vec::new();
    }
    let failed = checks.iter().filter(|check| !check.holds());
    let broken = failed.map(|c| format!("{}: {}, goal {}", c.name, c.value_text(), c.goal));
    let broken = broken.collect();
    checks.into_iter().for_each(|check| outcome.check(check));
    broken
}

fn response_checks(run: &Run) -> Vec<Check> {
    let promises = &run.promises;
    let responses = promises.responses(&run.observer);
    let seen = responses.iter().filter(|seen| promises.schedulable() && seen.is_seen());
    let check = |seen: &SeenResponse| {
        let name = format!("longest response of {}", seen.task);
        Some(Check::new(&name, us(seen.longest), "us", Goal::AtMost(us(seen.bound?))))
    };
    seen.filter_map(check).collect()
}

fn budget_checks(run: &Run) -> Vec<Check> {
    let check = |seen: &SeenBudget| {
        let name = format!("the most that {} had in a period", seen.vcpu);
        Some(Check::new(&name, us(seen.most()?), "us", Goal::AtMost(us(seen.limit))))
    };
    run.promises.budgets(&run.observer).iter().filter_map(check).collect()
}

/// Adds the checks of the order in which mutexes were held, and returns what was wrong.
fn check_order(outcome: &mut Outcome, run: &Run) -> Vec<String> {
    let Some(counts) = &run.instrument else { return Vec::new() };
    let hz = run.observer.latest().map_or(0, |now| now.counter_hz);
    let skew = counts.quantum_ns.saturating_mul(hz) / 1_000_000_000;
    let mut broken = Vec::new();
    for (mutex, claims) in run.promises.claims(&run.observer) {
        if claims.iter().all(|claim| claim.sections.is_empty()) {
            continue;
        }
        let wrong = objections(&claims, skew);
        let (name, found) = (format!("{mutex} went out of order"), real(wrong.len() as u64));
        broken.extend(wrong.into_iter().map(|what| format!("{mutex}: {what}")));
        let check = Check::new(&name, found, "times", Goal::Exactly(0.0));
        broken.extend(add(outcome, run, vec![check]));
    }
    broken
}

/// Demands that `run` kept to what was computed for it.
///
/// # Errors
/// What was not kept.
pub fn demand(run: &Run) -> Result<()> {
    let broken = check(&mut Outcome::new("promises"), run);
    ensure!(broken.is_empty(), "{}\n(logs in {})", broken.join("\n"), run.directory.display());
    Ok(())
}

fn us(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn share(part: Duration, whole: Duration) -> Option<f64> {
    (whole > Duration::ZERO).then(|| part.as_secs_f64() / whole.as_secs_f64())
}

fn response_data(all: &[SeenResponse]) -> Dataset {
    const NS: Unit = Unit::Nanoseconds;
    Dataset::of("responses", "Tasks: from the beginning of a period to the end of its job", all)
        .name("task", |seen| seen.task.clone())
        .head("")
        .name("vcpu", |seen| seen.vcpu.clone())
        .head("vCPU")
        .name("jobs", |seen| seen.jobs)
        .name("late", |seen| seen.late)
        .column("mean", NS, |seen| seen.mean.map(ns))
        .column("longest", NS, |seen| ns(seen.longest))
        .column("bound", NS, |seen| seen.bound.map(ns))
        .column("of_bound", Unit::Share, |seen| share(seen.longest, seen.bound?))
        .column("period", NS, |seen| ns(seen.period))
        .done()
}

fn times(count: u64) -> String {
    if count == 1 { "once".into() } else { format!("{count} times") }
}

/// What EL2 counts: the key, what people read above it, and the count.
type Counted = (&'static str, &'static str, fn(&Counts) -> u64);

const COUNTED: [Counted; 7] = [
    ("throttled", "throttled", |counts| counts.throttled),
    ("replenished", "replenished", |counts| counts.replenished),
    ("overruns", "overruns", |counts| counts.overruns),
    ("overrun_stops", "stopped in overrun", |counts| counts.overrun_stops),
    ("raised", "raised", |counts| counts.raised),
    ("lowered", "lowered", |counts| counts.lowered),
    ("misuses", "misuses", |counts| counts.misuses),
];

/// Says for people what is known of the most that a vCPU had in a period.
fn most_text(seen: &&SeenBudget) -> String {
    match (seen.most(), seen.longest) {
        (Some(_), Some(Between { least, most })) if least < most => {
            format!("{} to {}", duration(least), duration(most))
        }
        (Some(most), _) => duration(most),
        (None, _) => "not seen".into(),
    }
}

fn budget_data(all: &[SeenBudget]) -> Dataset {
    const NS: Unit = Unit::Nanoseconds;
    let data = Dataset::of("budgets", "vCPUs: what each had in a period of its server", all)
        .name("vcpu", |seen| seen.vcpu.clone())
        .head("")
        .column("budget", NS, |seen| ns(seen.budget))
        .column("overrun", NS, |seen| ns(seen.overrun))
        .column("most", NS, |seen| seen.most().map(ns))
        .for_programs()
        .name("most_seen", most_text)
        .head("most")
        .for_people()
        .column("most_at_least", NS, |seen| seen.longest.map(|known| ns(known.least)))
        .for_programs()
        .column("most_at_most", NS, |seen| seen.longest.map(|known| ns(known.most)))
        .for_programs()
        .column("limit", NS, |seen| ns(seen.limit));
    let counts = COUNTED.iter().fold(data, |data, &(key, head, count)| {
        let column = data.name(key, |seen| count(&seen.counts)).head(head);
        // What did not happen to any vCPU would only make the table wider.
        let happened = all.iter().any(|seen| count(&seen.counts) > 0);
        if happened { column } else { column.for_programs() }
    });
    counts.done()
}

#[cfg(test)]
mod tests;
