//! FreeRTOS beside a Linux that loads a disk, a network and their link as much as it can, all at once, and beside
//! hackbench in the same system.

use super::dma::{DESCRIPTION, NETWORK_LIMIT};
use crate::demo::{LINUX, RTOS};
use crate::guests::words::number;
use crate::results::{Check, Goal, Outcome};
use crate::session::Run;
use crate::suite::{Bench, Scenario};
use miette::Result;
use serde_json::json;

/// The part of its worst latency beside hackbench that FreeRTOS may have beside devices.
const MOST: f64 = 1.05;
/// What loads Linux, of which each has moved that much at least in its second, else it was little: sectors of 512 bytes,
/// packets, and doorbells. It is about half of what each does, as docs/src/smmu.md has it.
const LEAST: [(&str, &str, u64); 3] =
    [("disk", "sectors", 200_000), ("network", "packets", 10_000), ("link", "rings", 1_100_000)];
/// Periods of FreeRTOS in a run at least: a worst case of few is none.
const LEAST_PERIODS: u64 = 1_000;
/// What Linux is told, and how it is told what to load instead.
const TOLD: &str = "rdinit=/pcie/init";
/// What is put into the description: a link of FreeRTOS and Linux.
const LINK: [(&str, &str); 2] = [
    (
        "[[vm]]\nname = \"linux\"",
        "[[link]]\nname = \"control\"\nbetween = [\"linux\", \"rtos\"]\nsize = \"64K\"\n\n[[vm]]\nname = \"linux\"",
    ),
    ("freertos.elf\"", "freertos.elf\"\ncmdline = \"link=control\""),
];

/// Returns the scenario.
pub fn scenario() -> Scenario {
    let about = "FreeRTOS is as soon beside a loaded disk, network and link as beside hackbench";
    Scenario::new("io-load", about, compare).shipped()
}

fn compare(bench: &Bench) -> Result<()> {
    let mut outcome = Outcome::new("io-load");
    let hackbench_ns = worst_ns("hackbench", bench, &mut outcome)?;
    let loaded_ns = worst_ns("disk network link", bench, &mut outcome)?;
    let part = loaded_ns as f64 / hackbench_ns as f64;
    let name = "FreeRTOS's longest dispatch latency beside disk, network and link, part of that beside hackbench";
    outcome.check(Check::new(name, Some(part), "", Goal::AtMost(MOST)));
    bench.demand(&outcome)
}

/// Runs Linux with these loads; returns how late FreeRTOS's task was at worst, nanoseconds.
fn worst_ns(loads: &str, bench: &Bench, outcome: &mut Outcome) -> Result<u64> {
    let told = format!("{TOLD} pcie.for=1 pcie.load=\\\"{loads}\\\"");
    let mut edits = vec![(TOLD.into(), told)];
    edits.extend(LINK.map(|(from, to)| (from.into(), to.into())));
    let bundle = bench.pack(&bench.described(DESCRIPTION, &edits)?)?;
    let session = bench.session(&bundle, NETWORK_LIMIT)?;
    let vm = |name| session.layout.vm_called(name);
    let (linux, rtos) = (vm(LINUX)?, vm(RTOS)?);
    let run = session.run(|now| now.observer.is_over(linux))?;
    run.without_faults()?;
    let said = &run.said.guests[linux].linux;
    if let Some(why) = &said.failed {
        return Err(run.unfinished(&format!("Linux gave up: {why}")));
    }
    let moved = moved(&said.pcie, loads).map_err(|why| run.unfinished(&why))?;
    let (worst_ns, periods) = seen(&run, rtos)?;
    if periods < LEAST_PERIODS {
        let why = format!("FreeRTOS had {periods} periods, of at least {LEAST_PERIODS}");
        return Err(run.unfinished(&why));
    }
    outcome.figure(
        loads,
        json!({ "worst_dispatch_ns": worst_ns, "periods": periods, "sectors": moved[0], "packets": moved[1], "rings": moved[2] }),
    );
    Ok(worst_ns)
}

/// Returns how late FreeRTOS's task was at worst, nanoseconds, and in how many periods; it missed none.
fn seen(run: &Run, rtos: usize) -> Result<(u64, u64)> {
    let seen = run.observer.reports(rtos).and_then(|reports| reports.lateness());
    let seen = seen.ok_or_else(|| run.unfinished("FreeRTOS reports nothing"))?;
    if seen.missed > 0 {
        return Err(run.unfinished(&format!("FreeRTOS missed {} periods", seen.missed)));
    }
    let worst_ns =
        seen.worst_dispatch_ns().ok_or_else(|| run.unfinished("FreeRTOS never began"))?;
    Ok((worst_ns, seen.activations))
}

/// Returns what Linux has moved under these loads, as [`LEAST`] has it, or says what is missing.
fn moved(said: &[String], loads: &str) -> Result<[u64; 3], String> {
    let line = said.iter().find(|line| line.starts_with("load="));
    let line = line.ok_or("Linux tells of no load")?;
    let moved = LEAST.map(|(_, name, _)| number::<u64>(line, name).unwrap_or(0));
    for ((load, name, least), moved) in LEAST.into_iter().zip(moved) {
        if loads.split(' ').any(|wanted| wanted == load) && moved < least {
            return Err(format!("Linux has moved {moved} {name}, of at least {least}"));
        }
    }
    Ok(moved)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_that_moves_little_is_none() {
        let all = "disk network link";
        let said = |sectors, packets, rings| {
            vec![format!("load={all} sectors={sectors} packets={packets} rings={rings}")]
        };
        let much = [400_000, 20_000, 2_200_000];
        assert_eq!(moved(&said(400_000, 20_000, 2_200_000), all), Ok(much));
        let short = |said: &[String]| moved(said, all).unwrap_err();
        assert_eq!(
            short(&said(400_000, 7, 2_200_000)),
            "Linux has moved 7 packets, of at least 10000"
        );
        assert_eq!(
            short(&said(400_000, 20_000, 0)),
            "Linux has moved 0 rings, of at least 1100000"
        );
        assert_eq!(moved(&said(400_000, 20_000, 0), "disk network"), Ok([400_000, 20_000, 0]));
        assert_eq!(moved(&said(0, 7, 0), "hackbench"), Ok([0, 7, 0]));
        assert!(moved(&["device=x".into()], "hackbench").is_err());
    }
}
