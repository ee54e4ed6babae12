//! `cassata campaign`.

use super::bench::results;
use super::{interrupt, say};
use crate::cli::Distributed;
use crate::messages::note;
use crate::place;
use lab::interrupt::{EXIT_CODE, Interrupt};
use lab::results::{Directory, lock_file, write_json};
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::Duration;

/// The workflow, from the project's root.
const WORKFLOW: &str = "campaign/Snakefile";
/// The Python with which the launcher installs Snakemake. Its own program would name the directory in
/// which it was installed, which may have another name by now.
const PYTHON: &str = "build/campaign/bin/python";
/// What it is told without options: to use all processors of this computer.
const DEFAULT: [&str; 2] = ["--cores", "all"];
/// What it is told in any case, before the caller's options, so that these have the last word: to run
/// other points although one cannot be, to wait so many seconds for files that another machine has
/// written, and to tell of points in a line each.
const ALWAYS: [&str; 5] = ["--keep-going", "--latency-wait", "60", "--quiet", "rules"];
/// Files that the workflow leaves in its directory: what `cassata bench` says at its end, and its
/// exit code.
const SUMMARY: &str = "summary.txt";
const CODE: &str = "exit-code";
/// The file in the directory of the bench that is locked while a campaign of it goes on.
const LOCK: &str = "campaign.lock";
/// How often an end of Snakemake, or Ctrl-C, is looked for.
const LOOK: Duration = Duration::from_millis(100);

/// Has Snakemake run an experiment's points; answers as `cassata bench` does.
pub fn campaign(asked: &Distributed) -> Result<u8> {
    let Distributed { experiment, options, words, common, snakemake } = asked;
    experiment.check(options)?;
    let (root, results) = (place::root()?, results(common)?);
    let name = experiment.label().name;
    let program = root.join(PYTHON);
    if !program.is_file() {
        let help = "`./cassata campaign`, in the project, installs it";
        return Err(miette!(
            help = help,
            "there is no Snakemake: {} is missing",
            program.display()
        ));
    }
    // While a bench has it to itself, no worker may begin.
    drop(Directory::share(&results, name)?);
    let lock = lock_file(&results.join(name).join(LOCK))?;
    let directory = Directory::create(&results.join(name), "campaign")?;
    directory.clear()?;
    let config = directory.path().join("config.json");
    let told = config_of(&root, &results, name, words)?;
    write_json(&config, &told)?;
    let interrupt = interrupt()?;
    let mut command = Command::new(&program);
    command.args(["-m", "snakemake", "--snakefile"]).arg(root.join(WORKFLOW));
    command.arg("--directory").arg(directory.path()).arg("--configfile").arg(&config);
    command.args(ALWAYS);
    if snakemake.is_empty() {
        command.args(DEFAULT)
    } else {
        command.args(snakemake)
    };
    // Ctrl-C is passed on below, once. With this for input Snakemake and its workers here keep the
    // lock, should this process be killed: no other campaign begins beside them.
    command.process_group(0).stdin(lock);
    let child = command.spawn().into_diagnostic();
    let child = child.wrap_err_with(|| format!("cannot run {}", program.display()))?;
    let status = end_of(child, &interrupt)?;
    if interrupt.requested() {
        note("interrupted; what has been measured is kept, and another call goes on there");
        return Ok(EXIT_CODE);
    }
    if !status.success() {
        let logs = directory.path().join("log");
        let help = format!(
            "{} has what workers said; what has been measured is kept, and another call goes on \
             there",
            logs.display()
        );
        return Err(miette!(help = help, "Snakemake did not finish the campaign: {status}"));
    }
    tell(directory.path(), common.report_only)
}

/// Returns what the workflow has to know.
fn config_of(
    root: &Path,
    results: &Path,
    bench: &str,
    words: &[OsString],
) -> Result<serde_json::Value> {
    let text = |word: &std::ffi::OsStr| {
        let text = word.to_str().map(str::to_owned);
        let word = word.display();
        text.ok_or_else(|| {
            miette!("Snakemake's configuration cannot name `{word}`: it is no UTF-8")
        })
    };
    let options = words.iter().map(|word| text(word)).collect::<Result<Vec<_>>>()?;
    let (root, results) = (text(root.as_os_str())?, text(results.as_os_str())?);
    Ok(serde_json::json!({
        "bench": bench, "options": options, "root": root, "results": results,
        "summary": SUMMARY, "exit_code": CODE,
    }))
}

/// Waits until Snakemake has ended; asks it to, once, when this process is asked to.
fn end_of(mut child: Child, interrupt: &Interrupt) -> Result<ExitStatus> {
    let mut asked = false;
    loop {
        if let Some(status) = child.try_wait().into_diagnostic()? {
            return Ok(status);
        }
        if interrupt.requested() && !asked {
            asked = true;
            // It may have ended meanwhile.
            kill_process_group(Pid::from_child(&child), Signal::INT).ok();
        }
        thread::sleep(LOOK);
    }
}

/// Says what the merged answer says; returns its exit code.
fn tell(directory: &Path, report_only: bool) -> Result<u8> {
    let read = |name| fs::read_to_string(directory.join(name));
    let (Ok(summary), Ok(code)) = (read(SUMMARY), read(CODE)) else {
        note("Snakemake was not asked to merge anything");
        return Ok(0);
    };
    say(summary.trim_end());
    let code = code.trim().parse().into_diagnostic().wrap_err("no exit code was merged")?;
    Ok(if report_only { 0 } else { code })
}
