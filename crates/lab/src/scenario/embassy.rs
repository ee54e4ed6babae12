//! A guest on Embassy, which is no FreeRTOS: its task has a deadline beside hackbench, on a core that Linux has too. Linux
//! talks to it by a link, of which one side is in C and the other one in Rust.

use super::{REAL_LIMIT, stock};
use crate::demo::{LINUX, RTOS};
use crate::figures;
use crate::guests::words::number;
use crate::suite::{Bench, Scenario};
use miette::Result;
use std::time::Duration;

/// The description, below the project's root.
const SYSTEM: &str = "systems/embassy.toml";
/// Virtual time within which Linux boots and has done its work: it needs four seconds.
const LIMIT: Duration = Duration::from_secs(20);
/// How late the guest's task may be at worst, nanoseconds.
const LATEST_NS: u64 = 1_000;
/// What Linux has to print, in this order, with other lines between.
const SAID: [&str; 7] = [
    "control: /dev/uio0, 32768 bytes for each side",
    "done: load 200",
    "not possible: load 1000",
    "unknown: speed 7",
    "ping one",
    "round trips=50",
    "late ",
];

/// Returns the scenario.
pub fn scenario() -> Scenario {
    let about = "a guest on Embassy meets each deadline beside hackbench, on a shared core, and answers by a link";
    Scenario::new("embassy", about, meet).shipped()
}

fn meet(bench: &Bench) -> Result<()> {
    let bundle = bench.pack(&bench.described(SYSTEM, &[])?)?;
    let session = bench.session(&bundle, LIMIT)?.within(REAL_LIMIT);
    let vm = |name| session.layout.vm_called(name);
    let (linux, rtos) = (vm(LINUX)?, vm(RTOS)?);
    let run = session.run(|now| now.observer.is_over(linux) || now.observer.is_over(rtos))?;
    let (observer, said) = (&run.observer, &run.said.guests[linux].linux);
    let mut outcome = figures::outcome("embassy", &run);
    outcome.figure("links", serde_json::json!(said.links));
    let mut objections = stock::late(observer);
    objections.extend(said.failed.iter().map(|why| format!("Linux gave up: {why}")));
    objections.extend(unsaid(&said.links));
    if said.hackbench_s.is_empty() {
        objections.push("hackbench did not finish".into());
    }
    let reports = observer.reports(rtos);
    let seen = reports.and_then(|reports| reports.lateness()).unwrap_or_default();
    let worst_ns = seen.worst_dispatch_ns();
    if worst_ns.is_none_or(|worst_ns| worst_ns > LATEST_NS) {
        objections.push(format!("its task was {worst_ns:?} ns late, not {LATEST_NS}"));
    }
    bench.tell(&format!(
        "{} activations, {} missed, {} ns late at worst",
        seen.activations,
        seen.missed,
        worst_ns.unwrap_or_default()
    ))?;
    bench.judge(&run, outcome, &objections)
}

/// Returns what is wrong with what Linux printed of the link.
fn unsaid(said: &[String]) -> Vec<String> {
    let mut rest = said.iter();
    let mut all = Vec::new();
    for wanted in SAID {
        if !rest.any(|line| line.starts_with(wanted)) {
            all.push(format!("Linux did not print `{wanted}` in its place: {said:?}"));
        }
    }
    let counts: Vec<_> =
        said.iter().filter_map(|line| number::<u64>(line, "activations")).collect();
    if counts.len() < 8 || !counts.is_sorted() || counts.first() == counts.last() {
        all.push(format!("the latest values do not count activations: {counts:?}"));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_out_of_place_or_standing_still_is_told() {
        let value = |count: usize| format!("activations={count} missed=0 late_ns=600 load=200");
        let mut said = Vec::from_iter(SAID[..5].iter().map(ToString::to_string));
        said.extend((1..9).map(value));
        said.extend(SAID[5..].iter().map(ToString::to_string));
        assert_eq!(unsaid(&said), [""; 0]);
        let mut swapped = said.clone();
        swapped.swap(0, 1);
        assert!(!unsaid(&swapped).is_empty());
        for line in 0..said.len() {
            let mut without = said.clone();
            without.remove(line);
            assert!(!unsaid(&without).is_empty(), "{line}");
        }
        let still = said.iter().map(|line| line.replace("activations=8", "activations=1"));
        assert!(!unsaid(&Vec::from_iter(still)).is_empty());
    }
}
