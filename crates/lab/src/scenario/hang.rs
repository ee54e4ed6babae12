//! A core hangs at EL2, and another one says so: the one that drives the UART, or one that does not;
//! or the machine is reset, as the description says. The bug is made as in [`super::fault`]: what
//! begins to end a VM begins with a branch to itself.

use super::fault::{ACTIVATIONS, DESCRIPTION, LIMIT, RTOS, with_a_bug};
use super::reason::Reason;
use super::staged::description;
use crate::bundle::{Builds, Bundle};
use crate::results::{Check, Outcome};
use crate::session::{End, Run};
use crate::suite::{Bench, Scenario};
use miette::{IntoDiagnostic, Result, miette};
use std::fs;

/// The name.
const NAME: &str = "hang";
/// The watchdog's time, microseconds.
const TIME_US: u64 = 5_000;
/// A64's `b .` (DDI 0487, C6.2.26).
const BRANCH_TO_SELF: [u8; 4] = 0x1400_0000_u32.to_le_bytes();
/// Stands in each report, before a number of seconds.
const REPORT: &str = " hangs: no interrupt for ";

/// What is different in a run.
struct Case {
    name: &'static str,
    /// The real-time VM has pCPU 2, and another one has pCPU 0, which drives the UART.
    swaps: bool,
    resets: bool,
    /// Cores that are reported.
    hung: u64,
}

const CASES: [Case; 3] = [
    Case { name: "two cores hang", swaps: false, resets: false, hung: 0b110 },
    Case { name: "the UART's core hangs, too", swaps: true, resets: false, hung: 0b011 },
    Case { name: "the machine is reset", swaps: false, resets: true, hung: 0 },
];

/// Returns the scenario.
#[must_use]
pub fn scenario() -> Scenario {
    let about = "a core that hangs at EL2 is reported by another one, which misses nothing";
    Scenario::new(NAME, about, |bench: &Bench| {
        let mut outcome = Outcome::new(NAME);
        let builds = with_a_bug(bench.hypervisor, BRANCH_TO_SELF)?;
        for case in &CASES {
            let (run, reason) = run(bench, &builds, case)?;
            let mut objections = objections(&run, case);
            objections.extend(reason.objection(case.resets));
            outcome.check(Check::done(case.name, objections.is_empty()));
            if !objections.is_empty() {
                bench.keep(&outcome)?;
                return Err(miette!("{}: {}", case.name, objections.join("; ")));
            }
        }
        bench.keep(&outcome)?;
        fs::remove_file(bench.image()).into_diagnostic()
    })
    .shipped()
}

fn run(bench: &Bench, builds: &Builds, case: &Case) -> Result<(Run, Reason)> {
    let edit = |from: &str, to: String| (from.to_owned(), to);
    let keys = format!("watchdog = \"{TIME_US}us\"\nreset_on_fault = {}", case.resets);
    let mut edits = vec![edit("[board]", format!("[hypervisor]\n{keys}\n\n[board]"))];
    if case.swaps {
        edits.push(edit("pcpu = 2", "pcpu = 3".into()));
        edits.push(edit("pcpu = 0", "pcpu = 2".into()));
        edits.push(edit("pcpu = 3", "pcpu = 0".into()));
    }
    let system = bench.described(&description(DESCRIPTION), &edits)?;
    let bundle = Bundle::pack(&system, builds, &bench.image())?;
    Reason::of(bench, bench.session(&bundle, LIMIT)?)
}

fn objections(run: &Run, case: &Case) -> Vec<String> {
    let mut all = Vec::new();
    let faults = run.hypervisor_faults();
    let reports: Vec<_> = faults.iter().filter_map(|line| time_us(line)).collect();
    if (run.end == End::PoweredOff) != case.resets {
        all.push(format!("the run ended because {}", run.end.about()));
    }
    let written = run.observer.layout.vm(RTOS).and_then(|vm| run.observer.reports(vm));
    let header = written.and_then(|reports| reports.header);
    let (written, missed) = header.map_or((0, 0), |header| (header.written, header.missed));
    if case.resets {
        if faults.len() != 1 || !faults.iter().all(|line| line.contains(" hangs since ")) {
            all.push(format!("EL2 told of {faults:?}"));
        }
        if written >= ACTIVATIONS {
            all.push(format!("{RTOS} went on to its end"));
        }
        return all;
    }
    // One report of each.
    let hung = run.observer.hung();
    if hung != case.hung || reports.len() != hung.count_ones() as usize {
        all.push(format!("the status area says that {hung:#b} hang, and EL2 told of {faults:?}"));
    }
    // A core looks twice in the watchdog's time, and reports one core at each look, in whole
    // milliseconds.
    let allowed = 3 * TIME_US / 2 / 1_000 * 1_000..=2 * TIME_US + TIME_US / 2;
    if let Some(us) = reports.iter().find(|us| !allowed.contains(us)) {
        all.push(format!("a core that hung was reported after {us} us"));
    }
    if (written, missed) != (ACTIVATIONS, 0) {
        all.push(format!("{RTOS} had {written} activations, and missed {missed}"));
    }
    all
}

/// Returns for how long a core had taken no interrupt by a report of that, microseconds.
fn time_us(line: &str) -> Option<u64> {
    let (_, time) = line.split_once(REPORT)?;
    let seconds: f64 = time.split_whitespace().next()?.parse().ok()?;
    Some((1e6 * seconds).round() as u64)
}
