//! Stock Linux under each policy, beside an RTOS and a neighbour that crashes.

use super::moved::WRITTEN;
use super::staged::{SYSTEMS, edited};
use crate::bundle::Bundle;
use crate::demo::{self, Demo, LINUX, LinuxWork, Options, RTOS};
use crate::machine::{Time, VirtualTime};
use crate::suite::{Bench, Scenario};
use crate::view::Silent;
use miette::{IntoDiagnostic, Result, miette};
use std::path::{Path, PathBuf};

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
    ("safe-unsafe", "\ndelay_limit_us = 200", 0),
    ("coscheduling", "", 0),
    ("balance", "", 100),
    (RT_VCPU, "", 0),
];

/// The policy of the RTOS: Linux's first vCPU ranks above it.
const RT_VCPU: &str = "rt-vcpu";

/// What is changed in the description.
fn edits(policy: &str, more: &str) -> Vec<(String, String)> {
    if policy != RT_VCPU {
        return vec![(WRITTEN.into(), format!("migration = \"{policy}\"{more}"))];
    }
    let realtime = "realtime = true";
    vec![
        (WRITTEN.into(), String::new()),
        ("{ pcpu = 0, priority = 1, ".into(), "{ pcpu = 0, priority = 20, ".into()),
        (realtime.into(), format!("{realtime}\nmigration = \"{policy}\"")),
    ]
}

/// All of them: each takes long, and runs only when it is asked for.
pub fn scenarios() -> impl Iterator<Item = Scenario> {
    POLICIES.iter().map(|&(policy, more, migrations)| {
        let about = format!("stock Linux works beside an RTOS and a crashing neighbour ({policy})");
        let run = move |bench: &Bench| stage(bench, &edits(policy, more), migrations);
        Scenario::new(format!("{NAME}.{policy}"), about, run).on_request()
    })
}

fn stage(bench: &Bench, edits: &[(String, String)], migrations: u64) -> Result<()> {
    let path = bench.root.join(SYSTEMS).join(format!("{NAME}.toml"));
    let demo = play(bench, &path, edits)?;
    let mut objections = objections(&demo, migrations);
    objections.extend(told_faults(bench)?);
    judge(bench, &demo, &objections)
}

/// Runs the description at `path` until Linux has done its work.
pub(super) fn play(bench: &Bench, path: &Path, edits: &[(String, String)]) -> Result<Demo> {
    let checked = system::load_text(path, &edited(path, edits)?)?;
    let bundle = Bundle::pack(&checked, bench.hypervisor, &image(bench))?;
    let time = VirtualTime::new(&bench.instrument, &bench.qemu, &bench.directory)?;
    let options = Options {
        time: Time::Virtual(time),
        limit: super::LIMIT,
        work: LinuxWork::Runs(1),
        directory: bench.directory.clone(),
    };
    demo::run(&bundle, &bench.qemu, &options, &mut Silent, bench.interrupt.clone())
        .map_err(miette::Report::from)
}

fn image(bench: &Bench) -> PathBuf {
    bench.directory.join("system.elf")
}

/// What the hypervisor said of faults of its own.
pub(super) fn told_faults(bench: &Bench) -> Result<Vec<String>> {
    let told = bench.directory.join("console-hypervisor.log");
    let told = std::fs::read_to_string(told).into_diagnostic()?;
    let faults = told.lines().filter(|line| line.contains("hypervisor fault"));
    Ok(faults.map(str::to_owned).collect())
}

/// Only what failed is worth the room its image takes.
pub(super) fn judge(bench: &Bench, demo: &Demo, objections: &[String]) -> Result<()> {
    if objections.is_empty() {
        return std::fs::remove_file(image(bench)).into_diagnostic();
    }
    let directory = bench.directory.display();
    Err(miette!("{}\n(ended: {:?}; logs in {directory})", objections.join("\n"), demo.end))
}

fn objections(demo: &Demo, migrations: u64) -> Vec<String> {
    let mut objections = Vec::new();
    let mut demand = |holds: bool, otherwise: String| {
        if !holds {
            objections.push(otherwise);
        }
    };
    let linux = &demo.linux;
    demand(linux.cpus == Some(4), format!("Linux found {:?} CPUs", linux.cpus));
    let (runs, failed) = (linux.hackbench_s.len(), &linux.failed);
    demand(linux.did(demo.work), format!("{runs} runs of hackbench finished ({failed:?})"));
    let observer = &demo.observer;
    let Some(now) = observer.latest() else { return vec!["nothing was seen".into()] };
    let layout = observer.layout();
    if let Some(vm) = layout.vm(LINUX) {
        let all: u64 = layout.vms[vm].vcpus.clone().map(|vcpu| now.vcpus[vcpu].migrations).sum();
        demand(all >= migrations, format!("Linux's vCPUs migrated {all} times, not {migrations}"));
    }
    let starts = layout.vm(CRASH).map_or(0, |vm| now.vms[vm].starts);
    demand(starts >= STARTS, format!("the neighbour started {starts} times, not {STARTS}"));
    let reports = layout.vm(RTOS).and_then(|vm| observer.reports(vm));
    let Some((due, header)) = reports.and_then(|reports| reports.due().zip(reports.header()))
    else {
        demand(false, "the RTOS does not report".into());
        return objections;
    };
    let (written, missed) = (header.written, header.missed);
    demand(missed == 0, format!("the RTOS missed {missed} activations"));
    demand(due.abs_diff(written) <= 1, format!("{written} activations of {due} that were due"));
    objections
}
