//! `cassata campaign`, with Snakemake itself: workers bring what one machine brings, although one
//! of them is killed on its way.

mod cluster;

use crate::results::{Check, Goal, Outcome};
use crate::suite::{Bench, Scenario, Skipped};
use cluster::Cluster;
use miette::{IntoDiagnostic, Result, ensure, miette};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::Duration;

/// The bench, three machines of it.
const BENCH: [&str; 3] = ["promises", "--systems", "12"];
/// How many points that has.
const POINTS: usize = 3;
/// Where the launcher installs Snakemake: without it, nothing can be shown.
const INSTALLED: &str = "build/campaign/bin/python";
/// The figure of real time, which no two runs have in common.
const REAL_TIME: &str = "real_s";
/// What a machine writes while it runs.
const HALFWAY: &str = "virtual-time.json";
/// How often a worker, or the end, is looked for.
const LOOK: Duration = Duration::from_millis(5);

/// Returns the scenario of workers on this computer.
#[must_use]
pub fn local() -> Scenario {
    let about = "workers of a campaign bring what one machine brings, although one is killed";
    Scenario::new("campaign", about, |bench| compare(bench, "campaign", &["--cores", "2"], &[]))
        .shipped()
}

/// Returns the scenario of workers on a Slurm cluster. The launcher installs Slurm for it, so it
/// runs only when asked for.
#[must_use]
pub fn slurm() -> Scenario {
    const NAME: &str = "campaign-slurm";
    let about = "the same with Slurm, on a cluster of one node";
    Scenario::new(NAME, about, |bench| {
        let cluster = Cluster::start(&bench.directory)?;
        // Slurm has no database of jobs here, which `sacct` would ask, and points are short.
        let options = "--executor slurm --jobs 2 --slurm-no-account --slurm-status-command squeue \
                       --slurm-init-seconds-before-status-checks 5";
        let options: Vec<_> = options.split_whitespace().collect();
        compare(bench, NAME, &options, &cluster.environment())
    })
    .shipped()
    .by_name()
}

/// Runs the bench alone, and as a campaign with these options of Snakemake in this environment, and
/// compares what they wrote.
fn compare(bench: &Bench, name: &str, options: &[&str], env: &[(&str, PathBuf)]) -> Result<()> {
    if !bench.root.join(INSTALLED).is_file() {
        return Err(Skipped("Snakemake is not installed").into());
    }
    let results = ["alone", "shared"].map(|name| bench.directory.join(name));
    let alone = command(bench, "bench", &results[0])?.spawn().into_diagnostic()?;
    let alone = end_of(alone, bench, || {})?;
    let mut shared = command(bench, "campaign", &results[1])?;
    shared.arg("--").args(options).envs(env.iter().map(|(name, value)| (name, value)));
    let mut killed = None;
    let shared = end_of(shared.spawn().into_diagnostic()?, bench, || {
        killed = killed.or_else(|| kill_one(&results[1]));
    })?;
    let logs = bench.directory.display();
    ensure!(alone.code() == Some(0), "cassata bench: {alone}; logs in {logs}");
    ensure!(shared.code() == Some(0), "cassata campaign: {shared}; logs in {logs}");
    let [alone, shared] = results.map(|results| results.join(BENCH[0]));
    let measured = fs::read_dir(shared.join("campaign/points")).into_diagnostic()?.count();
    let (one, other) = (written(&alone)?, written(&shared)?);
    let names = one.keys().chain(other.keys());
    let differing = names.filter(|name| one.get(*name) != other.get(*name)).collect::<Vec<_>>();
    let mut outcome = Outcome::new(name);
    outcome.figure("differing", differing.into_iter().cloned().collect::<Vec<_>>());
    let count = outcome.figures["differing"].as_array().map_or(0, Vec::len);
    outcome.check(Check::new("files that differ", count as f64, "", Goal::Exactly(0.0)));
    let files = one.len() as f64;
    outcome.check(Check::new("files that were compared", files, "", Goal::AtLeast(3.0)));
    let wanted = Goal::Exactly(POINTS as f64);
    outcome.check(Check::new("points that workers ran", measured as f64, "", wanted));
    outcome.check(Check::done("a worker was killed halfway", killed.is_some()));
    let left = shared.join("workers").exists();
    outcome.check(Check::done("nothing is left of it", !left));
    bench.demand(&outcome)
}

/// Prepares a call of this program, with its words in a file beside `results`.
fn command(bench: &Bench, name: &str, results: &Path) -> Result<Command> {
    let log = File::create(results.with_extension("log")).into_diagnostic()?;
    // By this name it is there even if its file was built anew meanwhile.
    let mut command = Command::new("/proc/self/exe");
    command.arg(name).args(BENCH).arg("--results").arg(results).env("CASSATA_ROOT", &bench.root);
    command.stdout(log.try_clone().into_diagnostic()?).stderr(log);
    Ok(command)
}

/// Waits until `child` has ended, and does `meanwhile` again and again. Ctrl-C ends both.
fn end_of(mut child: Child, bench: &Bench, mut meanwhile: impl FnMut()) -> Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait().into_diagnostic()? {
            return Ok(status);
        }
        if bench.interrupt.requested() {
            // It may have ended meanwhile.
            kill_process(Pid::from_child(&child), Signal::TERM).ok();
            child.wait().into_diagnostic()?;
            return Err(miette!("interrupted"));
        }
        meanwhile();
        thread::sleep(LOOK);
    }
}

/// Kills a worker that is halfway through a point for these results; returns which.
fn kill_one(results: &Path) -> Option<Pid> {
    let rooms = fs::read_dir(results.join(BENCH[0]).join("workers")).ok()?;
    let halfway = rooms.flatten().find(|room| room.path().join(HALFWAY).is_file())?;
    let room = halfway.file_name().into_string().ok()?;
    let (point, _) = room.rsplit_once('.')?;
    let own: Vec<OsString> =
        [format!("--results={}", results.display()), format!("--run-point={point}")]
            .map(Into::into)
            .into();
    let pid = fs::read_dir("/proc").ok()?.flatten().find_map(|entry| {
        let pid = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        let words: Vec<_> =
            line.split(|byte| *byte == 0).map(|word| OsString::from_vec(word.into())).collect();
        own.iter().all(|word| words.contains(word)).then_some(pid)
    })?;
    kill_process(pid, Signal::KILL).ok()?;
    Some(pid)
}

/// Returns the files that an answer is made of, by their names: `result.json` without its figures of
/// real time, tables and drawings.
fn written(directory: &Path) -> Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(directory).into_diagnostic()? {
        let path = entry.into_diagnostic()?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let kind = path.extension().unwrap_or_default();
        if kind != "json" && kind != "csv" && kind != "svg" {
            continue;
        }
        let mut text = fs::read_to_string(&path).into_diagnostic()?;
        if kind == "json" {
            let mut value: Value = serde_json::from_str(&text).into_diagnostic()?;
            let figures = value["figures"].as_object_mut();
            let real = figures.and_then(|figures| figures.remove(REAL_TIME));
            ensure!(real.is_some(), "{}: there is no `{REAL_TIME}`", path.display());
            text = serde_json::to_string_pretty(&value).into_diagnostic()?;
        }
        files.insert(name, text);
    }
    Ok(files)
}
