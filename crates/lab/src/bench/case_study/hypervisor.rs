//! The same system on the hypervisor, with the probe's tasks. There is no MPCP there.

use super::CaseStudy;
use super::claims::ms;
use super::mean_change;
use crate::answer::Answer;
use crate::bench::campaign::room;
use crate::dataset::{Dataset, Unit};
use crate::figures::promises;
use crate::promises::SeenResponse;
use crate::quantity::real;
use crate::results::{Check, Goal, Outcome};
use crate::session::End;
use crate::suite::Bench;
use miette::{Result, ensure};
use sim::case_study::Scheme;
use std::time::Duration;

/// What boots, from the project's root.
const SYSTEM: &str = "systems/bench/case-study.toml";
/// Virtual time: ten hyperperiods, in the first of which the guests boot.
const LENGTH: Duration = Duration::from_secs(2);
/// What is told of each scheme, a row each.
const ROWS: [&str; 4] =
    ["in the simulator", "on the hypervisor, mean", "on the hypervisor, longest", "bound"];

/// A scheme on the hypervisor.
#[derive(Clone, Debug)]
pub struct Seen {
    pub scheme: Scheme,
    /// The tasks in the order of the paper.
    pub tasks: Vec<SeenResponse>,
    /// What did not hold besides, a sentence each.
    pub broken: Vec<String>,
}

/// Runs the schemes that the hypervisor has.
pub fn run(bench: &Bench) -> Result<Vec<Seen>> {
    let schemes = [Scheme::DeferrableNoOverrun, Scheme::DeferrableWithOverrun];
    schemes.into_iter().map(|scheme| boot(bench, scheme)).collect()
}

fn boot(bench: &Bench, scheme: Scheme) -> Result<Seen> {
    let edits = match scheme {
        Scheme::DeferrableWithOverrun => Vec::new(),
        _ => vec![("overrun = true".to_owned(), "overrun = false".to_owned())],
    };
    let bench = room(bench, &scheme.name().to_lowercase())?;
    let bundle = bench.pack(&bench.described(SYSTEM, &edits)?)?;
    let run = bench.session(&bundle, LENGTH)?.run(|_| false)?;
    ensure!(run.end == End::TimeOver, "{}: {}", scheme.name(), run.end.about());
    let mut tasks = run.promises.responses(&run.observer);
    let own_name = |task: &SeenResponse| task.task.rsplit('/').next().map(str::to_owned);
    tasks.sort_by_key(own_name);
    let mut broken = promises::check(&mut Outcome::new("x"), &run);
    broken.extend(run.hypervisor_faults());
    Ok(Seen { scheme, tasks, broken })
}

/// Adds what was seen, beside the simulator's.
pub fn tell(answer: &mut Answer, study: &CaseStudy, all: &[Seen]) {
    answer.data(&responses(study, all));
    for seen in all {
        // Without overrun, some tasks have no bound within their periods.
        let above = seen.tasks.iter().filter(|task| task.bound.is_some_and(|b| task.longest > b));
        let reported = seen.tasks.iter().filter(|task| task.jobs > 0).count() as u64;
        for (what, found, goal) in [
            ("tasks that ran on the hypervisor", reported, 8.0),
            ("responses above their bounds on the hypervisor", above.count() as u64, 0.0),
            ("whatever else does not hold there", seen.broken.len() as u64, 0.0),
        ] {
            let name = format!("{}, {what}", seen.scheme.name());
            answer.outcome.check(Check::new(&name, real(found), "", Goal::Exactly(goal)));
        }
        seen.broken.iter().for_each(|what| answer.remark(what));
    }
}

/// A scheme's row: response times in ns, by task.
struct Row {
    name: String,
    times: Vec<Option<u64>>,
    change: Option<f64>,
}

fn responses(study: &CaseStudy, all: &[Seen]) -> Dataset {
    let baseline = &study.run(Scheme::Mpcp).responses;
    let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let rows = all.iter().flat_map(|seen| {
        let simulated = &study.run(seen.scheme).responses;
        ROWS.into_iter().enumerate().map(move |(row, name)| {
            let times: Vec<_> = (0..baseline.len())
                .map(|task| match (row, seen.tasks.get(task)) {
                    (0, _) => simulated.get(task).copied(),
                    (1, Some(task)) => task.mean.map(ns),
                    (2, Some(task)) => Some(ns(task.longest)),
                    (_, Some(task)) => task.bound.map(ns),
                    (_, None) => None,
                })
                .collect();
            let known: Option<Vec<u64>> = times.iter().copied().collect();
            let change = known.filter(|_| row < 3).map(|known| mean_change(&known, baseline));
            Row { name: format!("{}, {name}", seen.scheme.name()), times, change }
        })
    });
    let title = "Response times on the hypervisor, and their change against MPCP in the simulator";
    let mut all = Dataset::of("on_the_hypervisor", title, rows)
        .name("scheme", |row| row.name.clone())
        .head("")
        .column("mean_change", Unit::Change, |row| row.change.map(|change| 100.0 * change));
    for task in 0..baseline.len() {
        let time = |row: &Row| row.times.get(task).copied().flatten().map(ms);
        all = all.column(&format!("τ{}", task + 1), Unit::Milliseconds, time).digits(2);
    }
    all.done()
}
