//! Runs scenarios one after the other: each has the whole machine room.

use super::{Bench, Run, Scenario, Tally};
use crate::progress::Progress;
use miette::miette;
use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::time::Instant;

/// Runs the scenarios that `filter` asks for, each in a fresh directory
/// `name` below `bench.directory`, and tells how each ended. A failure keeps
/// its reason in `failure.txt` there. Stops early on Ctrl-C, and does not count what
/// that ended.
pub fn run_scenarios(
    scenarios: &[Scenario],
    filter: &str,
    bench: &Bench,
    progress: &mut Progress,
) -> Tally {
    let mut tally = Tally::default();
    for scenario in scenarios.iter().filter(|scenario| scenario.is_asked_for(filter)) {
        if bench.interrupt.requested() {
            break;
        }
        progress.now(&format!("{tally}  {}: {}", scenario.name, scenario.about));
        let start = Instant::now();
        let result = run_one(scenario, bench);
        let seconds = start.elapsed().as_secs_f64();
        if result.is_err() && bench.interrupt.requested() {
            progress.line(&format!("machine test {} ... interrupted", scenario.name));
            break;
        }
        let verdict = if result.is_ok() { "ok" } else { "FAILED" };
        progress.line(&format!("machine test {} ... {verdict} ({seconds:.1} s)", scenario.name));
        if let Err(reason) = &result {
            progress.line(&format!("{reason:?}"));
        }
        tally.count(result.is_ok());
    }
    tally
}

fn run_one(scenario: &Scenario, bench: &Bench) -> miette::Result<()> {
    let directory = bench.directory.join(&scenario.name);
    let fresh = fs::remove_dir_all(&directory).or_else(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    });
    fresh
        .and_then(|()| fs::create_dir_all(&directory))
        .map_err(|error| miette!("cannot make {} anew: {error}", directory.display()))?;
    let bench = Bench { directory, ..bench.clone() };
    let result = guard(&scenario.run, &bench);
    if let Err(reason) = &result {
        // The terminal has it too; a disk that is full must not hide it.
        drop(fs::write(bench.directory.join("failure.txt"), format!("{reason:?}\n")));
    }
    result
}

/// A scenario that panics fails; the others still run.
fn guard(run: &Run, bench: &Bench) -> miette::Result<()> {
    panic::catch_unwind(AssertUnwindSafe(|| run(bench))).unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
        Err(miette!("it panicked: {}", text.unwrap_or("for no stated reason")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrupt::Interrupt;
    use crate::qemu::Qemu;
    use std::path::Path;
    use vtime::wrap::Instrument;

    fn bench(directory: &Path) -> Bench {
        Bench {
            root: directory.into(),
            directory: directory.into(),
            hypervisor: b"",
            instrument: Instrument::unpack(b"", directory).unwrap(),
            qemu: Qemu::find().unwrap(),
            interrupt: Interrupt::never(),
        }
    }

    fn scenarios() -> Vec<Scenario> {
        vec![
            Scenario::new("a-good", "", |bench: &Bench| {
                assert!(bench.directory.ends_with("a-good"));
                assert_eq!(fs::read_dir(&bench.directory).unwrap().count(), 0, "it is fresh");
                fs::write(bench.directory.join("log"), "x").unwrap();
                Ok(())
            }),
            Scenario::new("b-bad", "", |_: &Bench| Err(miette!("too late by 3 ticks"))),
            Scenario::new("b-worse", "", |_: &Bench| panic!("at the disco")),
            Scenario::new("good-and-long", "", |_: &Bench| Ok(())).on_request(),
        ]
    }

    #[test]
    fn failures_and_panics_are_counted_and_kept() {
        let directory = tempfile::tempdir().unwrap();
        let run = |filter| {
            let (bench, mut progress) = (bench(directory.path()), Progress::silent());
            run_scenarios(&scenarios(), filter, &bench, &mut progress)
        };
        assert_eq!(run(""), Tally { passed: 1, failed: 2 });
        assert_eq!(run("b-"), Tally { passed: 0, failed: 2 });
        assert_eq!(run("good"), Tally { passed: 1, failed: 0 });
        assert_eq!(run("good-and"), Tally::default());
        assert_eq!(run("good-and-long"), Tally { passed: 1, failed: 0 });
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
        let tally = run_scenarios(&scenarios(), "", &bench, &mut Progress::silent());
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
        let tally = run_scenarios(&scenarios, "", &bench, &mut Progress::silent());
        assert_eq!(tally, Tally { passed: 1, failed: 0 });
    }
}
