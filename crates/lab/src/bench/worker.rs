//! What a worker of a campaign on several machines does: it runs one case, beside workers that may
//! be on other machines and share nothing with it but a file system.
//!
//! Nothing here needs a lock. Each worker has a directory of its own, and what it brings has its
//! place in the end by being renamed: a worker that is killed at any instant leaves nothing that
//! passes for a measurement, and two that run the same case bring the same.

use super::campaign::{Findings, make, reason};
use super::store::{Case, Measured, Store};
use crate::suite::Bench;
use miette::{Result, miette};
use serde::Serialize;
use std::fs::{self, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Where workers have their directories, below that of the experiment.
const ROOMS: &str = "workers";

/// One case, as those see it that give it to a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Point {
    /// The case's name.
    pub name: String,
    /// It has been measured with the same inputs, and need not be run.
    pub kept: bool,
}

/// The points of an experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Points {
    /// Each wants a machine to itself: it uses all processors, or its real time is a figure.
    pub alone: bool,
    /// All that were asked for, in the order in which one machine would run them.
    pub points: Vec<Point>,
}

/// Runs `case` with `run`, in a directory of its own that becomes the case's, and keeps what it
/// brings. Returns why it brought nothing, if so; that is kept too.
///
/// # Errors
/// When files cannot be written, and on Ctrl-C.
pub(super) fn measure<M: Measured>(
    store: &Store,
    case: &M::Case,
    bench: &Bench,
    run: impl FnOnce(&Bench) -> Result<M>,
) -> Result<Option<String>> {
    let rooms = bench.directory.join(ROOMS);
    make(&rooms)?;
    // What `create_dir` asks for: others may read the logs.
    let room = tempfile::Builder::new()
        .prefix(&format!("{}.", case.name()))
        .permissions(Permissions::from_mode(0o777))
        .tempdir_in(&rooms);
    let room =
        room.map_err(|error| miette!("cannot make a directory in {}: {error}", rooms.display()))?;
    let result = run(&bench.at(room.path()));
    if bench.interrupt.requested() {
        return Err(miette!("interrupted"));
    }
    let logs = store.directory().join(case.name());
    let (from, to) = (room.path().display().to_string(), logs.display().to_string());
    place(&room.keep(), &logs)?;
    match result {
        Ok(measurement) => store.keep(&measurement).map(|()| None),
        Err(error) => {
            let why = reason(&error).replace(&from, &to);
            store.keep_failure(case, &why).map(|()| Some(why))
        }
    }
}

/// Makes the directory `room` the one at `logs`, in place of what an earlier run has left there.
fn place(room: &Path, logs: &Path) -> Result<()> {
    let fail = |error| miette!("cannot rename {} to {}: {error}", room.display(), logs.display());
    match fs::remove_dir_all(logs) {
        Err(error) if error.kind() != ErrorKind::NotFound && !logs.is_dir() => {
            return Err(fail(error));
        }
        _ => {}
    }
    match fs::rename(room, logs) {
        // Another worker has run the same case: its logs say the same.
        Err(_) if logs.is_dir() => fs::remove_dir_all(room).map_err(fail),
        renamed => renamed.map_err(fail),
    }
}

/// Deletes what workers have left that did not come to their ends.
///
/// # Errors
/// When something cannot be deleted.
pub(super) fn clear(bench: &Bench) -> Result<()> {
    let rooms = bench.directory.join(ROOMS);
    fs::remove_dir_all(&rooms).or_else(|error| match error.kind() {
        ErrorKind::NotFound => Ok(()),
        _ => Err(miette!("cannot delete {}: {error}", rooms.display())),
    })
}

/// Returns what workers have brought of `cases`, in their order.
pub(super) fn merged<M: Measured>(store: &Store, cases: Vec<M::Case>) -> Findings<M> {
    let (mut measurements, mut failures) = (Vec::new(), Vec::new());
    for case in &cases {
        match store.find(case) {
            Some(measurement) => measurements.push(measurement),
            None => {
                let why = store.failure(case);
                let why =
                    why.unwrap_or_else(|| "no worker has measured it with this program".into());
                failures.push((case.clone(), why));
            }
        }
    }
    Findings { all: cases.len(), planned: cases, measurements, failures }
}

#[cfg(test)]
mod tests {
    use super::super::store::tests::{Found, Plain, inputs};
    use super::*;
    use crate::testing;
    use std::sync::Barrier;
    use std::thread;

    fn bench(directory: &Path) -> Bench {
        fs::create_dir_all(directory.join("cases")).unwrap();
        testing::bench(directory)
    }

    fn store(bench: &Bench) -> Store {
        Store::new(bench.directory.join("cases"), inputs("11"))
    }

    fn plan() -> Vec<Plain> {
        (0..3).map(|n| Plain(format!("case-{n}"), n)).collect()
    }

    #[test]
    fn what_workers_bring_is_what_one_machine_would() {
        let directory = tempfile::tempdir().unwrap();
        let bench = bench(directory.path());
        let store = store(&bench);
        for case in &plan()[..2] {
            let why = measure(&store, case, &bench, |bench| {
                fs::write(bench.directory.join("log"), &case.0).unwrap();
                let logs = bench.directory.display();
                if case.1 == 1 {
                    Err(miette!("late; logs in {logs}").wrap_err("no"))
                } else {
                    Ok(Found { case: case.clone(), value: 0.5 })
                }
            });
            let logs = store.directory().join(&case.0);
            let late = format!("no: late; logs in {}", logs.display());
            assert_eq!(why.unwrap(), (case.1 == 1).then_some(late));
            assert_eq!(fs::read_to_string(logs.join("log")).unwrap(), case.0);
        }
        let found = merged::<Found>(&store, plan());
        assert_eq!(found.measurements, [Found { case: plan()[0].clone(), value: 0.5 }]);
        assert_eq!((found.planned, found.all), (plan(), 3));
        let failed: Vec<_> = found.failures.iter().map(|(case, why)| (case.1, &why[..2])).collect();
        assert_eq!(failed, [(1, "no"), (2, "no")]);
        assert!(found.failures[1].1.contains("no worker"), "{:?}", found.failures);
    }

    #[test]
    fn two_workers_may_run_the_same_case() {
        let directory = tempfile::tempdir().unwrap();
        let (bench, both) = (bench(directory.path()), Barrier::new(2));
        let (store, case) = (store(&bench), &plan()[0]);
        let worker = || {
            measure(&store, case, &bench, |bench| {
                fs::write(bench.directory.join("log"), "x").unwrap();
                // Passes only when the other one runs as well.
                both.wait();
                Ok(Found { case: case.clone(), value: 0.5 })
            })
        };
        thread::scope(|scope| {
            let workers = [scope.spawn(worker), scope.spawn(worker)];
            for worker in workers {
                assert_eq!(worker.join().unwrap().unwrap(), None);
            }
        });
        assert_eq!(store.find(case), Some(Found { case: case.clone(), value: 0.5 }));
        assert!(store.directory().join("case-0/log").is_file());
        assert_eq!(fs::read_dir(bench.directory.join(ROOMS)).unwrap().count(), 0);
    }

    #[test]
    fn what_a_dead_worker_left_is_no_measurement_and_is_deleted() {
        let directory = tempfile::tempdir().unwrap();
        let bench = bench(directory.path());
        clear(&bench).unwrap();
        fs::create_dir_all(bench.directory.join(ROOMS).join("dead")).unwrap();
        assert_eq!(merged::<Found>(&store(&bench), plan()).measurements, []);
        clear(&bench).unwrap();
        assert!(!bench.directory.join(ROOMS).exists());
    }
}
