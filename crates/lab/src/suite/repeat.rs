//! The same scenario several times: what it finds must be equal.

use super::{Bench, Busy, RESULT};
use miette::{Result, miette};
use serde_json::Value;
use std::io::ErrorKind;

/// The part of a result that may differ; see [`crate::results::Outcome::host`].
const HOST: &str = "host";
/// Most differences listed.
const LISTED: usize = 10;

/// How often each scenario runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeat {
    /// So often.
    pub times: u32,
    /// Every second time while other work keeps every processor busy.
    pub busy: bool,
}

impl Repeat {
    /// Does `run`, which leaves a result in the directory of `bench`, so often. What a person at
    /// a console sees depends on when keys are pressed: such a run leaves none, and need only pass.
    ///
    /// # Errors
    /// The first failure, or what differs between two results.
    pub(super) fn run(self, bench: &Bench, run: impl Fn() -> Result<()>) -> Result<()> {
        let mut first = None;
        for time in 0..self.times {
            let _busy = (self.busy && time % 2 == 1).then(Busy::start);
            run()?;
            if self.times == 1 || bench.interrupt.requested() {
                continue;
            }
            let found = result(bench)?;
            let first = first.get_or_insert_with(|| found.clone());
            let differences = differences(first, &found);
            if !differences.is_empty() {
                let listed = differences[..differences.len().min(LISTED)].join("\n");
                let (again, all) = (time + 1, differences.len());
                return Err(miette!("run {again} found what run 1 did not ({all}):\n{listed}"));
            }
        }
        Ok(())
    }
}

/// What the scenario found, without the host's part; null if it leaves no result.
fn result(bench: &Bench) -> Result<Value> {
    let path = bench.directory.join(RESULT);
    let text = match std::fs::read_to_string(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Value::Null),
        text => text.map_err(|error| miette!("cannot read {}: {error}", path.display()))?,
    };
    let mut found: Value = serde_json::from_str(&text)
        .map_err(|error| miette!("cannot understand {}: {error}", path.display()))?;
    if let Some(found) = found.as_object_mut() {
        found.remove(HOST);
    }
    Ok(found)
}

/// Where two results differ, and what they say there.
fn differences(one: &Value, other: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("", one, other, &mut found);
    found
}

fn compare(place: &str, one: &Value, other: &Value, found: &mut Vec<String>) {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) if one.keys().eq(other.keys()) => {
            for (key, value) in one {
                compare(&format!("{place}/{key}"), value, &other[key], found);
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (index, (one, other)) in one.iter().zip(other).enumerate() {
                compare(&format!("{place}/{index}"), one, other, found);
            }
        }
        _ if one == other => {}
        _ => found.push(format!("{place}: {one}, then {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::Builds;
    use crate::interrupt::Interrupt;
    use crate::qemu::Qemu;
    use crate::results::Outcome;
    use serde_json::json;
    use std::cell::Cell;
    use vtime::wrap::Instrument;

    #[test]
    fn differences_are_listed_with_their_place() {
        let one = json!({ "a": [1, { "b": 2.5 }], "c": "x" });
        assert!(differences(&one, &one).is_empty());
        let other = json!({ "a": [1, { "b": 2.25 }], "c": "x" });
        assert_eq!(differences(&one, &other), ["/a/1/b: 2.5, then 2.25"]);
        assert_eq!(differences(&one, &json!({ "a": [], "c": null })).len(), 2);
        assert_eq!(differences(&json!({ "a": 1 }), &json!({ "b": 1 })).len(), 1);
    }

    #[test]
    fn only_the_host_may_differ() {
        let directory = tempfile::tempdir().unwrap();
        let bench = Bench {
            root: directory.path().into(),
            directory: directory.path().into(),
            hypervisor: Builds::one(b"", false),
            instrument: Instrument::unpack(b"", directory.path()).unwrap(),
            qemu: Qemu::find().unwrap(),
            interrupt: Interrupt::never(),
            records: None,
        };
        let time = Cell::new(0);
        let runs = |figure: fn(u32) -> u32| {
            Repeat { times: 3, busy: true }.run(&bench, || {
                time.set(time.get() + 1);
                let mut outcome = Outcome::new("x");
                outcome.figure("switches", figure(time.get()));
                outcome.host.insert("real_time_s".into(), time.get().into());
                bench.keep(&outcome)
            })
        };
        assert!(runs(|_| 7).is_ok());
        assert_eq!(time.get(), 3);
        let error = runs(|time| time / 6).unwrap_err().to_string();
        assert!(error.contains("/figures/switches: 0, then 1"), "{error}");
        let nothing = tempfile::tempdir().unwrap();
        let bench = Bench { directory: nothing.path().into(), ..bench };
        assert!(Repeat { times: 2, busy: false }.run(&bench, || Ok(())).is_ok());
        time.set(0);
        let once_only = Repeat { times: 2, busy: false }.run(&bench, || {
            time.set(time.get() + 1);
            if time.get() == 2 { bench.keep(&Outcome::new("x")) } else { Ok(()) }
        });
        let error = once_only.unwrap_err().to_string();
        assert!(error.contains("null, then"), "{error}");
    }
}
