//! The same system on the hypervisor, with the probe's tasks.

use super::claims::ms;
use super::report::SHOWN;
use super::{CaseStudy, mean_change, orders};
use crate::answer::Answer;
use crate::bench::campaign::room;
use crate::dataset::{Dataset, Unit};
use crate::figures::promises;
use crate::promises::SeenResponse;
use crate::quantity::real;
use crate::results::{Check, Goal, Outcome};
use crate::session::End;
use crate::suite::Bench;
use crate::trace::{History, Trace};
use crate::view::{Silent, View};
use maud::{PreEscaped, html};
use miette::{Result, ensure};
use sim::case_study::Scheme;
use std::path::PathBuf;
use std::time::Duration;

/// What boots, from the project's root.
const SYSTEM: &str = "systems/bench/case-study.toml";
/// Virtual time: ten hyperperiods, in the first of which the guests boot.
pub const LENGTH: Duration = Duration::from_secs(2);
/// When the first task gets the resource, after the beginning of a hyperperiod, ns.
const FIRST_SECTION: u64 = 3_000_000;
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
    /// The second hyperperiod as it was traced, an SVG file; none if the trace has none.
    pub drawing: Option<String>,
}

/// Runs all schemes: for the figures by the build that ships, and for the drawing by that which
/// records. The latter takes some nanoseconds more, which may decide a tie.
pub fn run(bench: &Bench) -> Result<Vec<Seen>> {
    let one = |scheme: Scheme| {
        let boot = |place: &str, edits: &[(String, String)]| {
            boot(bench, place, scheme, edits, LENGTH, Box::new(Silent))
        };
        let place = scheme.name().to_lowercase();
        let (mut seen, _) = boot(&place, &[])?;
        let (_, traced) = boot(&format!("{place}-traced"), &[traced()])?;
        seen.drawing = drawing(&Trace::read(&traced)?, scheme);
        Ok(seen)
    };
    Scheme::ALL.into_iter().map(one).collect()
}

/// Asks for a trace.
pub fn traced() -> (String, String) {
    ("[hypervisor]\n".into(), "[hypervisor]\ntrace = \"256K\"\n".into())
}

/// Draws what the simulator's timeline shows of the scheme, from its trace.
fn drawing(trace: &Trace, scheme: Scheme) -> Option<String> {
    let history = History::of(trace);
    let groups = orders::hyperperiods(history.holds.clone());
    let first = groups.get(1)?.first()?.from;
    let from = first.checked_sub(FIRST_SECTION)?;
    let title = format!("{} on the hypervisor", scheme.name());
    Some(trace.svg(&history, &title, from, from + SHOWN))
}

/// Runs a scheme for `length`, after `more` edits of the description, with its files in `place`.
/// Returns that directory, too.
pub fn boot<'a>(
    bench: &'a Bench,
    place: &str,
    scheme: Scheme,
    more: &[(String, String)],
    length: Duration,
    view: Box<dyn View + 'a>,
) -> Result<(Seen, PathBuf)> {
    let edit = |from: &str, to: &str| (from.to_owned(), to.to_owned());
    let no_overrun = edit("overrun = true", "overrun = false");
    let (mut edits, protocol) = match scheme {
        Scheme::Mpcp => (vec![no_overrun], "mpcp"),
        Scheme::DeferrableNoOverrun => (vec![no_overrun], "vmpcp"),
        Scheme::DeferrableWithOverrun => (Vec::new(), "vmpcp"),
    };
    let table = format!("[hypervisor]\nprotocol = \"{protocol}\"\n\n[board]");
    edits.insert(0, edit("[board]", &table));
    edits.extend_from_slice(more);
    let bench = room(bench, place)?;
    let bundle = bench.pack(&bench.described(SYSTEM, &edits)?)?;
    let run = bench.session(&bundle, length)?.shown_by(view).run(|_| false)?;
    ensure!(run.end == End::TimeOver, "{}: {}", scheme.name(), run.end.about());
    let mut tasks = run.promises.responses(&run.observer);
    let own_name = |task: &SeenResponse| task.task.rsplit('/').next().map(str::to_owned);
    tasks.sort_by_key(own_name);
    let mut broken = promises::check(&mut Outcome::new("x"), &run);
    broken.extend(run.hypervisor_faults());
    let seen = Seen { scheme, tasks, broken, drawing: None };
    Ok((seen, bench.directory.clone()))
}

/// Adds what was seen, beside the simulator's.
pub fn tell(answer: &mut Answer, study: &CaseStudy, all: &[Seen]) {
    answer.data(&responses(study, all));
    for seen in all {
        // Without overrun, some tasks have no bound within their periods; under MPCP, none has.
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
        if let Some(drawing) = &seen.drawing {
            let name = seen.scheme.name();
            let title = format!("{name} on the hypervisor, by its trace");
            answer.section(&title, html! { figure { (PreEscaped(drawing)) } });
            answer.file(
                &format!("{}-traced.svg", name.to_lowercase().replace('+', "-")),
                drawing.clone(),
            );
        }
    }
}

/// A scheme's row: response times in ns, by task.
struct Row {
    name: String,
    times: Vec<Option<u64>>,
    change: Option<f64>,
}

/// Returns the times of a row in ns, by task.
fn times(study: &CaseStudy, seen: &Seen, row: usize) -> Vec<Option<u64>> {
    let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let simulated = &study.run(seen.scheme).responses;
    let one = |(task, &simulated): (usize, &u64)| {
        let seen = seen.tasks.get(task);
        match row {
            0 => Some(simulated),
            1 => seen?.mean.map(ns),
            2 => seen.map(|task| ns(task.longest)),
            _ => seen?.bound.map(ns),
        }
    };
    simulated.iter().enumerate().map(one).collect()
}

fn responses(study: &CaseStudy, all: &[Seen]) -> Dataset {
    let known = |times: &[Option<u64>]| times.iter().copied().collect::<Option<Vec<u64>>>();
    let baseline = |row| {
        let mpcp = all.iter().find(|seen| seen.scheme == Scheme::Mpcp)?;
        known(&times(study, mpcp, row))
    };
    let rows = all.iter().flat_map(|seen| {
        ROWS.into_iter().enumerate().map(move |(row, name)| {
            let times = times(study, seen, row);
            let change = known(&times).zip(baseline(row)).filter(|_| seen.scheme != Scheme::Mpcp);
            let change = change.map(|(times, baseline)| mean_change(&times, &baseline));
            Row { name: format!("{}, {name}", seen.scheme.name()), times, change }
        })
    });
    let title = "Response times on the hypervisor, and their change against MPCP";
    let mut all = Dataset::of("on_the_hypervisor", title, rows)
        .name("scheme", |row| row.name.clone())
        .head("")
        .column("mean_change", Unit::Change, |row| row.change.map(|change| 100.0 * change));
    for task in 0..study.run(Scheme::Mpcp).responses.len() {
        let time = |row: &Row| row.times.get(task).copied().flatten().map(ms);
        all = all.column(&format!("τ{}", task + 1), Unit::Milliseconds, time).digits(2);
    }
    all.done()
}
