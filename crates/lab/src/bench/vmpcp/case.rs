//! One boot: a guest that makes each call again and again.

use super::rows::ROWS;
use crate::bench::store::{self, measured};
use crate::bench::{ProgressView, Tell};
use crate::figures::promises;
use crate::guests::{Guest, TimedCall};
use crate::looks::Exception;
use crate::session::Run;
use crate::suite::Bench;
use miette::{Result, ensure, miette};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};
use vtime::stats::Statistics;

/// How often the descriptions of the systems make each call.
pub const DESCRIBED: u64 = 10_000;
/// The VM that makes the calls, the only one.
const VM: usize = 0;
/// Virtual time for the machine: FreeRTOS needs half a second, Linux some three.
const LIMIT: Duration = Duration::from_secs(20);
/// How often each call is made in a boot that ends at one: more than the first times, which may
/// be unlike the others.
const BEFORE_END: u64 = 10;

/// The guest that makes the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Caller {
    Freertos,
    Linux,
}

impl Caller {
    pub const ALL: [Self; 2] = [Self::Freertos, Self::Linux];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Freertos => "FreeRTOS",
            Self::Linux => "Linux",
        }
    }

    /// The system, below the project's root, and what precedes the repetitions in it.
    pub const fn system(self) -> (&'static str, &'static str) {
        match self {
            Self::Freertos => ("systems/bench/vmpcp.toml", "bench="),
            Self::Linux => ("systems/bench/vmpcp-linux.toml", "--rounds "),
        }
    }

    /// What it has said of its calls.
    fn calls(self, said: &Guest) -> &[TimedCall] {
        match self {
            Self::Freertos => &said.freertos.calls,
            Self::Linux => &said.linux.sharing.calls,
        }
    }
}

/// Where a boot of FreeRTOS ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// The row of the table whose call was made all but one times, or every time.
    pub row: usize,
    /// The call was made the last time, too.
    pub after: bool,
}

/// One boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    pub caller: Caller,
    /// How often each call is made.
    pub repetitions: u64,
    /// Where it ends, if not when all have been made.
    pub stop: Option<Stop>,
}

/// What a boot brought.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    pub case: Case,
    pub real_s: f64,
    /// What the guest measured of each call; nothing of a boot that ends at one.
    pub taken: Vec<TimedCall>,
    /// Instructions at EL2 in all visits by calls and traps.
    pub at_el2: u64,
}

impl store::Case for Case {
    fn name(&self) -> String {
        let caller = self.caller.name().to_lowercase();
        match self.stop {
            None => format!("{caller}-{}", self.repetitions),
            Some(Stop { row, after }) => {
                let end = if after { "after" } else { "before" };
                format!("at-el2-{end}-{}", ROWS[row].key.replace('_', "-"))
            }
        }
    }
}

measured!(Seen, case: Case, real_s);

impl Case {
    /// Returns the boots that measure every call, of both guests.
    pub fn measuring(repetitions: u64) -> [Self; 2] {
        Caller::ALL.map(|caller| Self { caller, repetitions, stop: None })
    }

    /// Returns the two boots that end before and after the call of this row is made.
    pub fn around(row: usize) -> [Self; 2] {
        let (caller, repetitions) = (Caller::Freertos, BEFORE_END);
        let stop = |after| Some(Stop { row, after });
        [false, true].map(|after| Self { caller, repetitions, stop: stop(after) })
    }

    /// Boots it, with its files in the directory of `bench`.
    pub fn run(&self, bench: &Bench, tell: Tell<'_>) -> Result<Seen> {
        let begin = Instant::now();
        let (system, before) = self.caller.system();
        let mut often = format!("{before}{}", self.repetitions);
        if let Some(Stop { row, after }) = self.stop {
            often += &format!(" bench_stop={}", 2 * row + 1 + usize::from(after));
        }
        let edit = (format!("{before}{DESCRIBED}"), often);
        let bundle = bench.pack(&bench.described(system, &[edit])?)?;
        let session = bench.session(&bundle, LIMIT)?.shown_by(Box::new(ProgressView(tell)));
        let run = session.run(|_| false)?;
        run.without_faults()?;
        promises::demand(&run)?;
        let taken = self.caller.calls(&run.said.guests[VM]);
        let expected = self.stop.map_or(ROWS.len(), |stop| stop.row);
        ensure!(taken.len() == expected, self.incomplete(&run, taken.len(), expected));
        let counts = run.instrument.as_ref().filter(|counts| counts.finished);
        let at_el2 = counts.map(at_el2).ok_or_else(|| miette!("nothing counted instructions"))?;
        let taken = if self.stop.is_some() { Vec::new() } else { taken.to_vec() };
        Ok(Seen { case: self.clone(), real_s: begin.elapsed().as_secs_f64(), taken, at_el2 })
    }

    fn incomplete(&self, run: &Run, found: usize, expected: usize) -> String {
        let (guest, end, logs) = (self.caller.name(), run.end.about(), run.directory.display());
        format!("{guest} measured {found} calls of {expected}: {end} (its console is in {logs})")
    }
}

/// Returns the instructions in all visits to EL2 by calls and traps. Those by interrupts come when
/// they will.
fn at_el2(counts: &Statistics) -> u64 {
    let calls = counts.vcpus.iter().flat_map(|pcpu| Exception::Synchronous.tallies(pcpu));
    calls.map(|tally| tally.instructions).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn interrupts_are_not_counted() {
        let tally = |instructions: u64| {
            let histogram = [[instructions, 1]];
            json!({ "visits": 1, "instructions": instructions, "longest": instructions,
                    "histogram": histogram })
        };
        let range = json!({ "instructions": 0, "visits": 0, "by_entry": {
            "0x40200000": tally(90_000), "0x40200c00": tally(128), "0x40200c80": tally(160),
        } });
        assert_eq!(at_el2(&crate::testing::statistics([(1_000, range)])), 128);
    }
}
