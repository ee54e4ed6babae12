//! A bench's runs, one after the other or several side by side; what has been
//! measured already is not measured again.

use super::Tell;
use super::store::{Case, Measured, Store};
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::suite::{Bench, share};
use miette::{Report, Result, ensure, miette};
use std::fs;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

/// How to go about it.
#[derive(Clone, Copy, Debug)]
pub struct Campaign<'a> {
    /// What is known, and where logs go: a directory for each case.
    pub store: &'a Store,
    /// Measure again what is known.
    pub fresh: bool,
    /// Runs at the same time, at least 1.
    pub side_by_side: usize,
    pub interrupt: &'a Interrupt,
}

/// What a campaign brought.
#[derive(Clone, Debug)]
pub struct Findings<M: Measured> {
    /// The cases that were to be run.
    pub planned: Vec<M::Case>,
    /// What they brought, in their order.
    pub measurements: Vec<M>,
    /// Cases that brought nothing, and why.
    pub failures: Vec<(M::Case, String)>,
    /// How many cases there are, asked for or not.
    pub all: usize,
}

impl<M: Measured> Findings<M> {
    /// Returns true if all of these were measured.
    pub fn covers(&self, cases: &[M::Case]) -> bool {
        cases.iter().all(|case| self.measurements.iter().any(|seen| seen.case() == case))
    }

    /// Returns those of one kind, of an experiment that has several.
    pub fn part<P: Measured>(
        &self,
        case: impl Fn(&M::Case) -> Option<P::Case>,
        seen: impl Fn(&M) -> Option<P>,
    ) -> Findings<P> {
        let planned: Vec<_> = self.planned.iter().filter_map(&case).collect();
        let failed = |(of, why): &(M::Case, String)| Some((case(of)?, why.clone()));
        Findings {
            all: planned.len(),
            planned,
            measurements: self.measurements.iter().filter_map(seen).collect(),
            failures: self.failures.iter().filter_map(failed).collect(),
        }
    }
}

/// What a worker tells.
enum Event<M> {
    Now(String),
    Done(usize, Box<Result<M>>),
}

impl Campaign<'_> {
    /// Runs what is not known of `cases` with `run`, which is given the case, a
    /// directory for its logs, and a function that is told what it does.
    ///
    /// # Errors
    /// When files cannot be written, and on Ctrl-C. A case that fails is no
    /// error.
    pub fn run<M>(
        &self,
        cases: &[M::Case],
        progress: &mut Progress,
        run: impl Fn(&M::Case, &Path, Tell<'_>) -> Result<M> + Sync,
    ) -> Result<Findings<M>>
    where
        M: Measured,
    {
        let known: Vec<Option<M>> = cases.iter().map(|case| self.known(case)).collect();
        let missing: Vec<usize> = (0..cases.len()).filter(|&i| known[i].is_none()).collect();
        let work = |&index: &usize, events: &Sender<Event<M>>| {
            let case = &cases[index];
            let place = case.name();
            // The other end is there until all have ended.
            let mut tell = |what: &str| drop(events.send(Event::Now(format!("{place}: {what}"))));
            let logs = self.store.directory().join(case.name());
            let result = make(&logs).and_then(|()| run(case, &logs, &mut tell));
            // What it was cut short in is no measurement, however it ended.
            let result = result.and_then(|measurement| {
                ensure!(!self.interrupt.requested(), "interrupted");
                Ok(measurement)
            });
            drop(events.send(Event::Done(index, Box::new(result))));
        };
        share(&missing, self.side_by_side, self.interrupt, work, |received| {
            self.gather(cases, known, received, progress)
        })
    }

    fn known<M: Measured>(&self, case: &M::Case) -> Option<M> {
        if self.fresh { None } else { self.store.find(case) }
    }

    fn gather<M: Measured>(
        &self,
        cases: &[M::Case],
        mut measured: Vec<Option<M>>,
        received: &Receiver<Event<M>>,
        progress: &mut Progress,
    ) -> Result<Findings<M>> {
        let (begin, mut failures) = (Instant::now(), Vec::new());
        let missing = || cases.iter().zip(&measured).filter(|(_, known)| known.is_none());
        let (mut done, all) = (cases.len() - missing().count(), cases.len());
        let mut pace = Pace { done: 0.0, left: missing().map(|(case, _)| case.work()).sum() };
        let mut unwritten = None;
        for event in received {
            if let Event::Done(index, _) = &event {
                done += 1;
                pace.step(cases[*index].work());
            }
            match event {
                Event::Now(what) => {
                    let left = pace.left(begin.elapsed());
                    progress.now(&format!("{done} of {all} done{left}; {what}"));
                }
                Event::Done(index, result) => match *result {
                    Ok(measurement) => {
                        let (name, real_s) = (cases[index].name(), measurement.real_s());
                        unwritten = self.store.keep(&measurement).err().or(unwritten);
                        progress.line(&format!("{name} ... {real_s:.1} s"));
                        measured[index] = Some(measurement);
                    }
                    Err(_) if self.interrupt.requested() => {}
                    Err(error) => {
                        progress.line(&format!("{} ... FAILED: {error:?}", cases[index].name()));
                        failures.push((cases[index].clone(), reason(&error)));
                    }
                },
            }
        }
        if self.interrupt.requested() {
            return Err(miette!("interrupted"));
        }
        let measurements = measured.into_iter().flatten().collect();
        let planned = cases.to_vec();
        let found = Findings { planned, measurements, failures, all };
        unwritten.map_or(Ok(found), Err)
    }
}

/// Returns why a case brought nothing, each cause behind what it caused, as it stands in results.
pub(super) fn reason(error: &Report) -> String {
    error.chain().map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// How fast it goes.
struct Pace {
    /// Work that has been done since the beginning.
    done: f64,
    /// Work that is left.
    left: f64,
}

impl Pace {
    fn step(&mut self, work: f64) {
        self.done += work;
        self.left -= work;
    }

    /// How long the rest will take if it goes on as in the time that has
    /// `passed`, in events; nothing before anything was done.
    fn left(&self, passed: Duration) -> String {
        if self.done <= 0.0 {
            return String::new();
        }
        let minutes = (passed.as_secs_f64() / 60.0 * (self.left / self.done).max(0.0)).ceil();
        format!(", about {minutes:.0} min left")
    }
}

/// Returns `bench` with a directory of its own, called `name`, below that of `bench`.
pub(super) fn room(bench: &Bench, name: &str) -> Result<Bench> {
    let room = bench.at(&bench.directory.join(name));
    make(&room.directory).map(|()| room)
}

/// Makes a directory if need be.
pub(super) fn make(directory: &Path) -> Result<()> {
    fs::create_dir_all(directory)
        .map_err(|error| miette!("cannot make {}: {error}", directory.display()))
}

#[cfg(test)]
mod tests {
    use super::super::store::tests::{Found, Plain};
    use super::*;
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    fn cases() -> Vec<Plain> {
        (0..4).map(|n| Plain(format!("case-{n}"), n)).collect()
    }

    #[test]
    fn what_is_known_is_not_run_again_and_failures_are_kept_apart() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path().into(), super::super::store::tests::inputs("11"));
        let interrupt = Interrupt::never();
        let runs = AtomicUsize::new(0);
        let run = |case: &Plain, logs: &Path, _: &mut dyn FnMut(&str)| {
            assert!(logs.ends_with(&case.0) && logs.is_dir());
            runs.fetch_add(1, Relaxed);
            let value = f64::from(case.1);
            if case.1 == 2 { Err(miette!("no")) } else { Ok(Found { case: case.clone(), value }) }
        };
        let go = |fresh| {
            let campaign =
                Campaign { store: &store, fresh, side_by_side: 1, interrupt: &interrupt };
            campaign.run(&cases(), &mut Progress::silent(), run).unwrap()
        };
        let first = go(false);
        assert_eq!(first.measurements.iter().map(|m| m.value).collect::<Vec<_>>(), [0.0, 1.0, 3.0]);
        assert_eq!(first.failures, [(cases()[2].clone(), first.failures[0].1.clone())]);
        assert_eq!((first.planned.len(), first.all), (4, 4));
        assert_eq!(runs.swap(0, Relaxed), 4);
        assert_eq!(go(false).measurements, first.measurements);
        assert_eq!(runs.swap(0, Relaxed), 1, "only what failed");
        go(true);
        assert_eq!(runs.load(Relaxed), 4);
    }

    #[test]
    fn what_an_interrupt_cuts_short_is_not_kept() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path().into(), super::super::store::tests::inputs("11"));
        let interrupt = Interrupt::never();
        let campaign =
            Campaign { store: &store, fresh: false, side_by_side: 1, interrupt: &interrupt };
        let run = |case: &Plain, _: &Path, _: &mut dyn FnMut(&str)| {
            if case.1 == 1 {
                interrupt.request();
            }
            Ok(Found { case: case.clone(), value: 0.0 })
        };
        let ended = campaign.run(&cases(), &mut Progress::silent(), run).unwrap_err();
        assert_eq!(ended.to_string(), "interrupted");
        let kept = cases().iter().filter(|case| store.find::<Found>(case).is_some()).count();
        assert_eq!(kept, 1);
    }

    #[test]
    fn what_is_left_takes_as_long_as_what_is_done() {
        let mut pace = Pace { done: 0.0, left: 9.0 };
        assert_eq!(pace.left(Duration::from_secs(60)), "");
        pace.step(3.0);
        assert_eq!(pace.left(Duration::from_secs(60)), ", about 2 min left");
        pace.step(6.0);
        assert_eq!(pace.left(Duration::from_secs(200)), ", about 0 min left");
    }

    #[test]
    fn two_run_at_the_same_time() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path().into(), super::super::store::tests::inputs("11"));
        let interrupt = Interrupt::never();
        let both = Barrier::new(2);
        let campaign =
            Campaign { store: &store, fresh: false, side_by_side: 2, interrupt: &interrupt };
        let found = campaign.run(&cases(), &mut Progress::silent(), |case: &Plain, _, _| {
            // Passes only when another case runs as well.
            both.wait();
            Ok(Found { case: case.clone(), value: 0.0 })
        });
        let measured: Vec<_> = found.unwrap().measurements.into_iter().map(|m| m.case).collect();
        assert_eq!(measured, cases());
    }
}
