//! Runs scenarios, several side by side.
//!
//! In virtual time the cores of a machine take turns, so that a machine keeps one
//! processor of the host busy, and what runs beside it changes nothing of what it does.

use super::share;
use super::{Asked, Bench, Body, Build, Repeat, Scenario, TOLD, Tally};
use crate::bundle::Builds;
use crate::progress::Progress;
use miette::miette;
use std::fmt;
use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender};
use std::thread;
use std::time::Instant;

/// Most machines at the same time: each has up to 2 GiB of memory.
const SIDE_BY_SIDE: usize = 8;

/// Returns how many scenarios run at the same time on this computer.
#[must_use]
pub fn side_by_side() -> usize {
    thread::available_parallelism().map_or(1, usize::from).min(SIDE_BY_SIDE)
}

/// What a thread that runs scenarios says.
enum Word<'a> {
    Begins(&'a Scenario),
    Ended { scenario: &'a Scenario, result: miette::Result<()>, seconds: f64 },
}

/// Which scenarios are run, and how.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Which.
    pub asked: Asked<'a>,
    /// So many at the same time.
    pub at_once: usize,
    /// How often each.
    pub repeat: Repeat,
    /// The ELF files of the hypervisor's checked build, which records where it is asked to. They take
    /// the place of [`Bench::hypervisor`] in scenarios that want them.
    pub checked: Builds,
}

/// Runs scenarios, each in a fresh directory `name` below `bench.directory`, and tells how
/// each ended. A failure keeps its reason in `failure.txt` there. Stops early on Ctrl-C,
/// and does not count what that ended.
pub fn run_scenarios<'a>(
    scenarios: &'a [Scenario],
    call: Call<'_>,
    bench: &Bench,
    progress: &mut Progress,
) -> Tally {
    let asked: Vec<_> = scenarios.iter().filter(|one| one.is_asked_for(call.asked)).collect();
    let work = |scenario: &&'a Scenario, words: &Sender<Word<'a>>| {
        // The other end is there until all have ended.
        drop(words.send(Word::Begins(scenario)));
        let start = Instant::now();
        let result = run_one(scenario, call, bench);
        let seconds = start.elapsed().as_secs_f64();
        drop(words.send(Word::Ended { scenario, result, seconds }));
    };
    share(&asked, call.at_once, &bench.interrupt, work, |heard| gather(heard, bench, progress))
}

/// Counts how scenarios end, and shows what runs.
fn gather(heard: &Receiver<Word<'_>>, bench: &Bench, progress: &mut Progress) -> Tally {
    let (mut tally, mut running) = (Tally::default(), Vec::new());
    for word in heard {
        match word {
            Word::Begins(scenario) => running.push(&scenario.name),
            Word::Ended { scenario, result, seconds } => {
                running.retain(|name| **name != scenario.name);
                let interrupted = result.is_err() && bench.interrupt.requested();
                report(scenario, &result, interrupted, seconds, progress);
                match skipped(&result) {
                    _ if interrupted => {}
                    Some(_) => tally.skipped += 1,
                    None => tally.count(result.is_ok()),
                }
                if result.is_ok() {
                    told(&bench.directory.join(&scenario.name), progress);
                }
            }
        }
        let names: Vec<_> = running.iter().map(|name| name.as_str()).collect();
        progress.now(&format!("{tally}  {}", names.join(", ")));
    }
    tally
}

fn report(
    scenario: &Scenario,
    result: &miette::Result<()>,
    interrupted: bool,
    seconds: f64,
    progress: &mut Progress,
) {
    let name = &scenario.name;
    if interrupted {
        return progress.line(&format!("machine test {name} ... interrupted"));
    }
    if let Some(Skipped(why)) = skipped(result) {
        return progress.line(&format!("machine test {name} ... skipped in part: {why}"));
    }
    let verdict = if result.is_ok() { "ok" } else { "FAILED" };
    progress.line(&format!("machine test {name} ... {verdict} ({seconds:.1} s)"));
    if let Err(reason) = result {
        progress.line(&format!("{}\n{reason:?}", scenario.about));
    }
}

/// Says that everything held which a scenario could look at here, and at what it could not.
#[derive(Debug)]
pub struct Skipped(pub &'static str);

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Skipped {}
impl miette::Diagnostic for Skipped {}

/// Returns what a scenario could not look at, if it failed by nothing else.
fn skipped(result: &miette::Result<()>) -> Option<&Skipped> {
    result.as_ref().err()?.downcast_ref()
}

/// Shows what a scenario has told in its directory, if it has.
fn told(directory: &Path, progress: &mut Progress) {
    let told = fs::read_to_string(directory.join(TOLD)).unwrap_or_default();
    told.lines().for_each(|line| progress.line(&format!("  {line}")));
}

fn run_one(scenario: &Scenario, call: Call<'_>, bench: &Bench) -> miette::Result<()> {
    let hypervisor = match scenario.build {
        Build::Checked => call.checked,
        Build::Shipped => bench.hypervisor,
    };
    let directory = bench.directory.join(&scenario.name);
    let bench = Bench { directory, hypervisor, ..bench.clone() };
    let result = call.repeat.run(&bench, || {
        fresh(&bench.directory)?;
        guard(&scenario.run, &bench)
    });
    if let Err(reason) = &result
        && skipped(&result).is_none()
    {
        // The terminal has it too; a disk that is full must not hide it.
        drop(fs::write(bench.directory.join("failure.txt"), format!("{reason:?}\n")));
    }
    result
}

/// Makes an empty directory, whatever was there.
fn fresh(directory: &Path) -> miette::Result<()> {
    let removed = fs::remove_dir_all(directory).or_else(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    });
    removed
        .and_then(|()| fs::create_dir_all(directory))
        .map_err(|error| miette!("cannot make {} anew: {error}", directory.display()))
}

/// A scenario that panics fails; the others still run.
fn guard(run: &Body, bench: &Bench) -> miette::Result<()> {
    panic::catch_unwind(AssertUnwindSafe(|| run(bench))).unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
        Err(miette!("it panicked: {}", text.unwrap_or("for no stated reason")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::bench;
    use std::sync::{Arc, Condvar, Mutex};
    use std::time::Duration;

    /// How long one waits for another that never comes.
    const PATIENCE: Duration = Duration::from_secs(60);

    fn call(filter: &str, at_once: usize) -> Call<'_> {
        let checked = Builds::one(b"checks", true);
        let asked = Asked { filter, all: false };
        Call { asked, at_once, repeat: Repeat { times: 1, busy: false }, checked }
    }

    fn scenarios() -> Vec<Scenario> {
        vec![
            Scenario::new("a-good", "", |bench: &Bench| {
                assert!(bench.directory.ends_with("a-good"));
                assert_eq!(fs::read_dir(&bench.directory).unwrap().count(), 0, "it is fresh");
                let checks = Builds::one(b"checks", true);
                assert_eq!(bench.hypervisor, checks);
                fs::write(bench.directory.join("log"), "x").unwrap();
                Ok(())
            }),
            Scenario::new("b-bad", "", |_: &Bench| Err(miette!("too late by 3 ticks"))),
            Scenario::new("b-worse", "", |_: &Bench| panic!("at the disco")),
            Scenario::new("good-and-long", "", |bench: &Bench| {
                assert_eq!(bench.hypervisor.silent, b"ships");
                Ok(())
            })
            .shipped()
            .by_name(),
            Scenario::new("slow", "", |_: &Bench| Ok(())).with_all(),
            Scenario::new("in-part", "", |_: &Bench| Err(Skipped("there is no tool").into())),
        ]
    }

    #[test]
    fn failures_and_panics_are_counted_and_kept() {
        let directory = tempfile::tempdir().unwrap();
        let run = |filter| {
            let (bench, mut progress) = (bench(directory.path()), Progress::silent());
            run_scenarios(&scenarios(), call(filter, 1), &bench, &mut progress)
        };
        assert_eq!(run(""), Tally { passed: 1, failed: 2, skipped: 1 });
        assert!(!directory.path().join("in-part/failure.txt").exists());
        assert_eq!(run("b-"), Tally { passed: 0, failed: 2, skipped: 0 });
        assert_eq!(run("good"), Tally { passed: 1, failed: 0, skipped: 0 });
        assert_eq!(run("good-and"), Tally::default());
        assert_eq!(run("good-and-long"), Tally { passed: 1, failed: 0, skipped: 0 });
        assert_eq!(run("slo"), Tally { passed: 1, failed: 0, skipped: 0 });
        let all = Call { asked: Asked { filter: "", all: true }, ..call("", 1) };
        let (bench, mut progress) = (bench(directory.path()), Progress::silent());
        let all = run_scenarios(&scenarios(), all, &bench, &mut progress);
        assert_eq!(all, Tally { passed: 2, failed: 2, skipped: 1 });
        let reason = |name: &str| {
            fs::read_to_string(directory.path().join(name).join("failure.txt")).unwrap()
        };
        assert!(reason("b-bad").contains("too late by 3 ticks"));
        assert!(reason("b-worse").contains("at the disco"));
    }

    #[test]
    fn an_interrupt_stops_before_the_next() {
        let directory = tempfile::tempdir().unwrap();
        let bench = bench(directory.path());
        bench.interrupt.request();
        let tally = run_scenarios(&scenarios(), call("", 2), &bench, &mut Progress::silent());
        assert_eq!(tally, Tally::default());
    }

    #[test]
    fn what_an_interrupt_ended_is_not_counted() {
        let directory = tempfile::tempdir().unwrap();
        let bench = bench(directory.path());
        let ends = |bench: &Bench| {
            bench.interrupt.request();
            Err(miette!("interrupted"))
        };
        let good = |_: &Bench| Ok(());
        let scenarios = [
            Scenario::new("a", "", good),
            Scenario::new("b", "", ends),
            Scenario::new("c", "", good),
        ];
        let tally = run_scenarios(&scenarios, call("", 1), &bench, &mut Progress::silent());
        assert_eq!(tally, Tally { passed: 1, failed: 0, skipped: 0 });
    }

    #[test]
    fn two_run_side_by_side() {
        let directory = tempfile::tempdir().unwrap();
        let (meet, met) = (Arc::new(Mutex::new(0)), Arc::new(Condvar::new()));
        let both = move |_: &Bench| {
            let mut here = meet.lock().unwrap();
            *here += 1;
            met.notify_all();
            let missing = |here: &mut i32| *here < 2;
            let (here, _) = met.wait_timeout_while(here, PATIENCE, missing).unwrap();
            if *here == 2 { Ok(()) } else { Err(miette!("the other did not come")) }
        };
        let scenarios = [Scenario::new("a", "", both.clone()), Scenario::new("b", "", both)];
        let (bench, mut progress) = (bench(directory.path()), Progress::silent());
        let tally = run_scenarios(&scenarios, call("", 2), &bench, &mut progress);
        assert_eq!(tally, Tally { passed: 2, failed: 0, skipped: 0 });
    }
}
