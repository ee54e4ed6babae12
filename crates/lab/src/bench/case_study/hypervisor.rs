//! The same system on the hypervisor: how it is booted and judged, and with the probe's tasks.

use super::orders::{TASKS, beginnings};
use super::report::{CAPTION, SHOWN};
use crate::answer::Answer;
use crate::bench::campaign::room;
use crate::figures::promises;
use crate::promises::SeenResponse;
use crate::quantity::{ns, real};
use crate::results::{Check, Goal, Outcome};
use crate::session::{End, Run};
use crate::suite::Bench;
use crate::trace::{History, Trace};
use crate::view::{Silent, View};
use maud::PreEscaped;
use miette::Result;
use serde::{Deserialize, Serialize};
use sim::case_study::Scheme;
use std::path::PathBuf;
use std::time::Duration;

/// What boots, from the project's root.
pub const SYSTEM: &str = "systems/bench/case-study.toml";
/// Virtual time: ten hyperperiods, in the first of which the guests boot.
pub const LENGTH: Duration = Duration::from_secs(2);

/// A scheme on the hypervisor.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Seen {
    #[serde(with = "by_name")]
    pub scheme: Scheme,
    /// The tasks in the order of the paper.
    pub tasks: Vec<SeenResponse>,
    /// What did not hold besides, a sentence each.
    pub broken: Vec<String>,
    /// The second hyperperiod as it was traced, an SVG file; none if the trace has none.
    pub drawing: Option<String>,
    /// Where the run left its files.
    pub directory: PathBuf,
}

/// Schemes in files, by their names in the paper.
pub mod by_name {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use sim::case_study::Scheme;

    pub fn serialize<S: Serializer>(scheme: &Scheme, serializer: S) -> Result<S::Ok, S::Error> {
        scheme.name().serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Scheme, D::Error> {
        let name = String::deserialize(deserializer)?;
        let found = Scheme::ALL.into_iter().find(|scheme| scheme.name() == name);
        found.ok_or_else(|| D::Error::custom(format!("there is no scheme `{name}`")))
    }
}

/// Runs all schemes: for the figures by the build that ships, and for the drawing by that which
/// records. The latter takes some nanoseconds more, which may decide a tie.
pub fn run(bench: &Bench) -> Result<Vec<Seen>> {
    let one = |scheme: Scheme| {
        let seen = |place: &str, edits: &[(String, String)]| {
            let bench = room(bench, place)?;
            let run = boot(&bench, SYSTEM, scheme, edits, LENGTH, Box::new(Silent))?;
            Ok(Seen::of(scheme, &run, End::TimeOver))
        };
        let place = scheme.name().to_lowercase();
        let figures: Seen = seen(&place, &[])?;
        let traced: Result<Seen> = seen(&format!("{place}-traced"), &[traced()]);
        let trace = Trace::read(&traced?.directory)?;
        let title = format!("{} on the hypervisor", scheme.name());
        Ok(Seen { drawing: drawing(&trace, &title), ..figures })
    };
    Scheme::ALL.into_iter().map(one).collect()
}

/// Asks for a trace.
pub fn traced() -> (String, String) {
    ("[hypervisor]\n".into(), "[hypervisor]\ntrace = \"256K\"\n".into())
}

/// Draws of the second hyperperiod of a trace what the simulator's timeline shows.
pub fn drawing(trace: &Trace, title: &str) -> Option<String> {
    let history = History::of(trace);
    let from = *beginnings(&history).get(1)?;
    Some(trace.draw(&history, title, from, from + SHOWN).into_string())
}

/// Runs a scheme on the `system` that a file describes, for `length` at most, after `more` edits of
/// the description, with its files in the directory of `bench`.
pub fn boot<'a>(
    bench: &'a Bench,
    system: &str,
    scheme: Scheme,
    more: &[(String, String)],
    length: Duration,
    view: Box<dyn View + 'a>,
) -> Result<Run> {
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
    let bundle = bench.pack(&bench.described(system, &edits)?)?;
    bench.session(&bundle, length)?.shown_by(view).run(|_| false)
}

impl Seen {
    /// Reads what a run of a scheme saw, which should have ended by `end`.
    pub fn of(scheme: Scheme, run: &Run, end: End) -> Self {
        let mut tasks = run.promises.responses(&run.observer);
        let own_name = |task: &SeenResponse| task.task.rsplit('/').next().map(str::to_owned);
        tasks.sort_by_key(own_name);
        let mut broken = promises::check(&mut Outcome::new("x"), run);
        broken.extend(run.hypervisor_faults());
        if run.end != end {
            broken.push(format!("the run did not end as it should: {}", run.end.about()));
        }
        Self { scheme, tasks, broken, drawing: None, directory: run.directory.clone() }
    }

    /// Returns the mean response of each task, if each has one, ns.
    pub fn means(&self) -> Option<Vec<u64>> {
        self.tasks.iter().map(|task| task.mean.map(ns)).collect()
    }

    /// Adds the drawing, where there is one, of what ran on `place`, which is `file` in file names.
    pub fn draw(&self, answer: &mut Answer, place: &str, file: &str) {
        let Some(drawing) = &self.drawing else { return };
        let name = self.scheme.name();
        let title = format!("{name} {place}, by its trace");
        let file = format!("{}-{file}", name.to_lowercase().replace('+', "-"));
        let drawing = answer.drawing(&file, &PreEscaped(drawing.clone()), CAPTION);
        answer.section(&title, drawing);
    }
}

/// Adds what was seen of the probe's tasks, but for the responses.
pub fn tell(answer: &mut Answer, all: &[Seen]) {
    for seen in all {
        judge(answer, seen, "on the hypervisor", 1);
        seen.draw(answer, "on the hypervisor", "traced");
    }
}

/// Returns how many of the tasks have a bound. With overrun all have; those of the lower vCPUs hold as long as
/// these get their budgets, which the analysis does not promise. Without, the bounds of all but the last
/// two would be longer than their periods; for MPCP none is computed.
pub const fn bounds(scheme: Scheme) -> u64 {
    match scheme {
        Scheme::Mpcp => 0,
        Scheme::DeferrableNoOverrun => 2,
        Scheme::DeferrableWithOverrun => TASKS as u64,
    }
}

/// Adds the checks of what ran on `place`: each task did `jobs` at least, all in time, as many as can
/// be had a bound, none was above it, and nothing else was broken.
pub fn judge(answer: &mut Answer, seen: &Seen, place: &str, jobs: u64) {
    let bounded: Vec<_> =
        seen.tasks.iter().filter_map(|task| Some((task.longest, task.bound?))).collect();
    let above = bounded.iter().filter(|(longest, bound)| longest > bound).count();
    let ran = seen.tasks.iter().filter(|task| task.jobs >= jobs).count();
    let late: u64 = seen.tasks.iter().map(|task| task.late).sum();
    let responses = format!("of {} responses with a bound, above it", bounded.len());
    for (what, found, goal) in [
        ("tasks that ran", ran as u64, TASKS as u64),
        ("jobs that were late", late, 0),
        ("responses with a bound", bounded.len() as u64, bounds(seen.scheme)),
        (&responses, above as u64, 0),
        ("whatever else does not hold", seen.broken.len() as u64, 0),
    ] {
        let name = format!("{}, {what} {place}", seen.scheme.name());
        let check = Check::new(&name, real(found), "", Goal::Exactly(real(goal)));
        answer.outcome.check(check.as_premise());
    }
    for what in &seen.broken {
        answer.remark(&format!("{} {place}: {what}", seen.scheme.name()));
    }
}
