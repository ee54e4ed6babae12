//! Linux and FreeRTOS talk by a link: the example of `docs/src/links.md`, as it stands there, and with a Linux that
//! rings and sends as fast as it can.

use super::REAL_LIMIT;
use crate::demo::{LINUX, RTOS};
use crate::figures;
use crate::guests::words::number;
use crate::observe::Observer;
use crate::suite::{Bench, Scenario};
use miette::{Result, miette};
use std::time::Duration;

/// The description, below the project's root.
const DESCRIPTION: &str = "systems/control.toml";
/// Virtual time within which Linux boots and has done its work, and FreeRTOS its periods.
const LIMIT: Duration = Duration::from_secs(20);
/// What is replaced: after the example, Linux floods its peer, and is answered still.
const FLOOD: (&str, &str) = (
    "bench control 50",
    "bench control 50; flood control 300 ping; ask control 'ping after'; peer control",
);
/// What Linux has to print, in this order, with other lines between.
const SAID: [&str; 7] = [
    "control: /dev/uio0, 32768 bytes for each side",
    "done: target 1500",
    "done: kp 800",
    "unknown: speed 7",
    "round trips=50",
    "ping after",
    "1",
];
/// Times that Linux rings in 300 ms at least.
const RINGS: u64 = 10_000;
/// How late FreeRTOS's task may be at worst, nanoseconds: as with any other load.
const LATEST_NS: u64 = 1_000;

/// Returns the scenario.
#[must_use]
pub fn scenario() -> Scenario {
    const NAME: &str = "link-linux";
    let about =
        "Linux orders and watches what FreeRTOS controls, and floods it, which it does not notice";
    Scenario::new(NAME, about, |bench| talk(bench, NAME)).shipped()
}

fn talk(bench: &Bench, name: &str) -> Result<()> {
    let edits = [(FLOOD.0.into(), FLOOD.1.into())];
    let bundle = bench.pack(&bench.described(DESCRIPTION, &edits)?)?;
    let session = bench.session(&bundle, LIMIT)?.within(REAL_LIMIT);
    let vm = |name| session.layout.vm(name).ok_or_else(|| miette!("there is no VM `{name}`"));
    let (linux, rtos) = (vm(LINUX)?, vm(RTOS)?);
    let run = session.run(|now| {
        now.observer
            .latest()
            .is_some_and(|seen| [linux, rtos].iter().all(|&vm| seen.vms[vm].is_over()))
    })?;
    let said = &run.said.guests[linux].linux;
    let mut outcome = figures::outcome(name, &run);
    outcome.figure("links", serde_json::json!(said.links));
    let mut objections = objections(&said.links);
    objections.extend(said.failed.iter().map(|why| format!("Linux gave up: {why}")));
    objections.extend(late(&run.observer, rtos));
    bench.judge(&run, outcome, &objections)
}

/// What is wrong with what Linux printed.
fn objections(said: &[String]) -> Vec<String> {
    let mut all = Vec::new();
    let mut rest = said.iter();
    for wanted in SAID {
        if !rest.any(|line| line.starts_with(wanted)) {
            all.push(format!("Linux did not print `{wanted}` in its place: {said:?}"));
        }
    }
    let speeds = said.iter().filter_map(|line| number::<u64>(line, "speed"));
    let [slow, fast] =
        speeds.fold([u64::MAX, 0], |[least, most], speed| [least.min(speed), most.max(speed)]);
    if slow > 1_000 || fast < 1_200 {
        all.push(format!("the motor's speed went from {slow} to {fast}"));
    }
    let rings: u64 = said.iter().filter_map(|line| number::<u64>(line, "rings")).sum();
    if rings < RINGS {
        all.push(format!("Linux rang {rings} times"));
    }
    all
}

/// What is wrong with when FreeRTOS's task began.
fn late(observer: &Observer, rtos: usize) -> Option<String> {
    let Some(seen) = observer.reports(rtos).and_then(|reports| reports.lateness()) else {
        return Some("FreeRTOS reports nothing".into());
    };
    let (missed, worst_ns) = (seen.missed, seen.worst_dispatch_ns());
    (missed > 0 || worst_ns.is_none_or(|worst_ns| worst_ns > LATEST_NS))
        .then(|| format!("FreeRTOS missed {missed} periods, and was {worst_ns:?} ns late"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_or_out_of_place_is_told() {
        let moved = ["t_us=1 speed=995", "t_us=2 speed=1300", "flood rings=20000 sent=3"];
        let said = Vec::from_iter(SAID.iter().chain(&moved).map(ToString::to_string));
        assert_eq!(objections(&said), [""; 0]);
        let without = |line: &str| {
            let rest = said.iter().filter(|said| *said != line).cloned();
            objections(&Vec::from_iter(rest)).len()
        };
        for line in [SAID[5], moved[0], moved[1], moved[2]] {
            assert!(without(line) > 0, "{line}");
        }
        let mut swapped = said.clone();
        swapped.swap(1, 2);
        assert!(!objections(&swapped).is_empty(), "{swapped:?}");
    }
}
