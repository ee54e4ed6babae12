//! Stock Linux under each policy, beside an RTOS and a neighbour that crashes.

use super::moved::WRITTEN;
use super::staged::description;
use crate::demo::{self, Demo, LINUX, RTOS};
use crate::guests::LinuxWork;
use crate::observe::Observer;
use crate::suite::{Bench, Scenario};
use miette::Result;
use std::time::Duration;

/// Virtual time within which Linux boots and has done its work: it needs some two seconds.
const LIMIT: Duration = Duration::from_secs(20);
/// The name of its description, and how its scenarios' begin.
pub const NAME: &str = "stock";
/// The neighbour that crashes.
const CRASH: &str = "crash";
/// How often that has to have started, while Linux boots and works.
const STARTS: u64 = 20;

/// What a description says for each policy, and how often Linux's vCPUs must at
/// least have arrived on other cores.
///
/// Under `safe-unsafe` the RTOS may wait for the time that its period leaves it
/// beside its load, and no longer.
const POLICIES: &[(&str, &str, u64)] = &[
    ("none", "", 0),
    ("partition", "", 0),
    ("on-demand", "", 500),
    ("trap-based", "", 100),
    ("trap-based-eager", "", 500),
    ("trap-based-deferred", "", 500),
    ("safe-unsafe", "\ndelay_limit = \"200us\"", 0),
    ("coscheduling", "", 0),
    ("balance", "", 100),
    (RT_VCPU, "", 0),
];

/// The policy of the RTOS: Linux's first vCPU ranks above it.
const RT_VCPU: &str = "rt-vcpu";

/// What is changed in the description.
fn edits(policy: &str, more: &str) -> Vec<(String, String)> {
    if policy != RT_VCPU {
        return vec![(WRITTEN.into(), format!("migration_policy = \"{policy}\"{more}"))];
    }
    let realtime = "realtime = true";
    vec![
        (WRITTEN.into(), String::new()),
        ("{ pcpu = 0, priority = 1, ".into(), "{ pcpu = 0, priority = 20, ".into()),
        (realtime.into(), format!("{realtime}\nmigration_policy = \"{policy}\"")),
    ]
}

/// All of them: each takes long, and runs only when it is asked for.
pub fn scenarios() -> impl Iterator<Item = Scenario> {
    POLICIES.iter().map(|&(policy, more, migrations)| {
        let about = format!("stock Linux works beside an RTOS and a crashing neighbour ({policy})");
        let run = move |bench: &Bench| stage(bench, &edits(policy, more), migrations);
        Scenario::new(format!("{NAME}.{policy}"), about, run).by_name()
    })
}

fn stage(bench: &Bench, edits: &[(String, String)], migrations: u64) -> Result<()> {
    play(bench, NAME, edits, |demo| objections(demo, migrations))
}

/// Runs the description `name` until Linux has done its work; there must be none of
/// `objections`.
pub(super) fn play(
    bench: &Bench,
    name: &str,
    edits: &[(String, String)],
    objections: impl FnOnce(&Demo) -> Vec<String>,
) -> Result<()> {
    let bundle = bench.pack(&bench.described(&description(name), edits)?)?;
    let demo = demo::run(bench.session(&bundle, LIMIT)?, LinuxWork::Runs(1))?;
    let mut all = Vec::new();
    if !demo.linux().did(demo.work) {
        let (runs, failed) = (demo.linux().hackbench_s.len(), &demo.linux().failed);
        all.push(format!("{runs} runs of hackbench finished ({failed:?})"));
    }
    all.extend(objections(&demo));
    bench.judge(&demo.run, demo.answer().outcome, &all)
}

fn objections(demo: &Demo, migrations: u64) -> Vec<String> {
    let mut objections = Vec::new();
    let mut demand = |holds: bool, otherwise: String| {
        if !holds {
            objections.push(otherwise);
        }
    };
    let cpus = demo.linux().cpus;
    demand(cpus == Some(4), format!("Linux found {cpus:?} CPUs"));
    let observer = &demo.run.observer;
    let Some(now) = observer.latest() else { return vec!["nothing was seen".into()] };
    let layout = &observer.layout;
    if let Some(vm) = layout.vm(LINUX) {
        let all: u64 = layout.vms[vm].vcpus.clone().map(|vcpu| now.vcpus[vcpu].migrations).sum();
        demand(all >= migrations, format!("Linux's vCPUs migrated {all} times, not {migrations}"));
    }
    let starts = layout.vm(CRASH).map_or(0, |vm| now.vms[vm].starts);
    demand(starts >= STARTS, format!("the neighbour started {starts} times, not {STARTS}"));
    objections.extend(late(observer));
    objections
}

/// Returns what the RTOS missed of its activations.
pub(super) fn late(observer: &Observer) -> Vec<String> {
    let reports = observer.layout.vm(RTOS).and_then(|vm| observer.reports(vm));
    let Some((due, header)) = reports.and_then(|reports| reports.due().zip(reports.header)) else {
        return vec!["the RTOS does not report".into()];
    };
    let (written, missed) = (header.written, header.missed);
    let missed = (missed > 0).then(|| format!("the RTOS missed {missed} activations"));
    let fewer = (due.abs_diff(written) > 1)
        .then(|| format!("{written} activations of {due} that were due"));
    missed.into_iter().chain(fewer).collect()
}
