//! What guests record of themselves, beside what they count and what EL2 records.

use super::perfetto;
use super::staged::description;
use crate::demo::{LINUX, RTOS};
use crate::figures;
use crate::guests::Mark;
use crate::session::Run;
use crate::suite::{Bench, Scenario};
use crate::trace::{Guests, History, TaskTurn, Trace};
use miette::Result;
use std::time::Duration;

/// The name, and that of its description.
pub const NAME: &str = "traced-guests";
/// Virtual time within which Linux boots and has done its work: it needs some three seconds.
const LIMIT: Duration = Duration::from_secs(20);
/// The task of FreeRTOS whose activations it counts.
const MEASURED: &str = "measure";
/// Linux's CPUs, and runs of its work on each.
const CPUS: usize = 2;
const RUNS: usize = 3;
/// Switches that are enough for a comparison.
const ENOUGH: u64 = 400;

/// Returns the scenario.
pub fn scenario() -> Scenario {
    let about = "what guests record of themselves agrees with what they count, and with EL2";
    Scenario::new(NAME, about, run)
}

fn run(bench: &Bench) -> Result<()> {
    let bundle = bench.pack(&bench.described(&description(NAME), &[])?)?;
    let run = bench.session(&bundle, LIMIT)?.run(|_| false)?;
    let trace = Trace::read(&bench.directory)?;
    let history = History::of(&trace);
    let guests = Guests::of(&trace, &history);
    let mut outcome = figures::outcome(NAME, &run);
    outcome.figure("trace", trace.json(&guests));
    let mut objections: Vec<String> = trace.loss(&guests).into_iter().collect();
    objections.extend(activations(&run, &trace, &guests));
    objections.extend(markers(&trace, &guests));
    let counted = switches(&guests);
    outcome.figure("linux_switches", serde_json::json!(counted));
    objections.extend(counts_agree(counted));
    objections.extend(outside(&trace, &history, &guests));
    let perfetto = perfetto::check(bench, &trace, &history, &mut outcome)?;
    perfetto::judge(bench, &run, outcome, objections, perfetto)
}

/// FreeRTOS switches to its measured task once for each activation, and once at its start.
fn activations(run: &Run, trace: &Trace, guests: &Guests) -> Option<String> {
    let vm = run.observer.layout.vm(RTOS)?;
    let Some(said) = run.said.guests[vm].freertos.activations else {
        return Some(format!("{RTOS} said no summary"));
    };
    let reported = run.observer.reports(vm).and_then(|reports| reports.header);
    let reported = reported.map_or(0, |header| header.written);
    let own: Vec<&TaskTurn> =
        guests.turns.iter().filter(|turn| trace.subject.vcpus[turn.vcpu].vm == vm).collect();
    let begins = own.iter().enumerate().filter(|(number, turn)| {
        // A switch from a task to itself is none.
        turn.name == MEASURED && (*number == 0 || own[number - 1].name != MEASURED)
    });
    let begins = begins.count() as u64;
    (begins != said + 1 || reported != said).then(|| {
        format!(
            "{RTOS} counted {said} activations, reported {reported}, and switched {begins} times \
             to {MEASURED}"
        )
    })
}

/// Each run on each CPU has marked its beginning and its end, on the vCPU that the CPU is.
fn markers(trace: &Trace, guests: &Guests) -> Vec<String> {
    let mut all = Vec::new();
    for (run, cpu) in (1..=RUNS).flat_map(|run| (0..CPUS).map(move |cpu| (run, cpu))) {
        let [begin, end] = [false, true].map(|ends| {
            let wanted = Some(Mark::Work { run, cpu, ends });
            let found: Vec<_> =
                guests.markers.iter().filter(|mark| Mark::of(&mark.text) == wanted).collect();
            match found[..] {
                [mark] if trace.subject.label(mark.vcpu) == format!("{LINUX}.{cpu}") => {
                    Some(mark.at)
                }
                _ => None,
            }
        });
        if begin.is_none() || begin >= end {
            all.push(format!("run {run} on CPU {cpu} began at {begin:?} and ended at {end:?} ns"));
        }
    }
    // Besides, the beginning and the end of all are marked with the kernel's own count, twice each.
    let expected = 2 * RUNS * CPUS + 4;
    if guests.markers.len() != expected {
        all.push(format!("{} markers were recorded, not {expected}", guests.markers.len()));
    }
    all
}

/// How many switches Linux has counted from its first look to its second, and how many it recorded
/// meanwhile: a look is somewhere between two marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
struct Switches {
    counted: u64,
    /// From behind the first look to before the second.
    at_least: u64,
    /// From before the first look to behind the second.
    at_most: u64,
}

fn switches(guests: &Guests) -> Option<Switches> {
    let (mut before, mut behind) = (Vec::new(), Vec::new());
    for mark in &guests.markers {
        match Mark::of(&mark.text) {
            Some(Mark::Counting) => before.push(mark.at),
            Some(Mark::Switches(count)) => behind.push((mark.at, count)),
            Some(Mark::Work { .. }) | None => {}
        }
    }
    before.sort_unstable();
    behind.sort_unstable();
    let (&[before_first, before_second], &[(behind_first, first), (behind_second, second)]) =
        (&before[..], &behind[..])
    else {
        return None;
    };
    let linux: Vec<usize> = guests.markers.iter().map(|mark| mark.vcpu).collect();
    let recorded = |from: u64, to: u64| {
        let is_between = |turn: &&TaskTurn| turn.from > from && turn.from <= to;
        let own = guests.turns.iter().filter(|turn| linux.contains(&turn.vcpu));
        own.filter(is_between).count() as u64
    };
    Some(Switches {
        counted: second.checked_sub(first)?,
        at_least: recorded(behind_first, before_second),
        at_most: recorded(before_first, behind_second),
    })
}

fn counts_agree(switches: Option<Switches>) -> Option<String> {
    let Some(Switches { counted, at_least, at_most }) = switches else {
        return Some(format!("{LINUX} did not mark how many switches it counts"));
    };
    // At each look every CPU may be between its count and its record of one switch.
    let (least, most) = (at_least.saturating_sub(CPUS as u64), at_most + CPUS as u64);
    let agree = (least..=most).contains(&counted) && counted >= ENOUGH;
    (!agree).then(|| {
        format!("{LINUX} counted {counted} switches, and recorded {at_least} to {at_most}")
    })
}

/// Every event of a guest is from a moment at which EL2 says that its vCPU has a core.
fn outside(trace: &Trace, history: &History, guests: &Guests) -> Vec<String> {
    let mut all = Vec::new();
    for vcpu in 0..trace.subject.vcpus.len() {
        let mut turns: Vec<(u64, u64)> = history
            .turns
            .iter()
            .filter(|turn| turn.vcpu == vcpu)
            .map(|turn| (turn.from, turn.to))
            .collect();
        turns.sort_unstable();
        let runs_at = |at: u64| {
            let behind = turns.partition_point(|&(from, _)| from <= at);
            behind > 0 && turns[behind - 1].1 >= at
        };
        let switches = guests.turns.iter().filter(|turn| turn.vcpu == vcpu).map(|turn| turn.from);
        let marks = guests.markers.iter().filter(|mark| mark.vcpu == vcpu).map(|mark| mark.at);
        let odd: Vec<u64> = switches.chain(marks).filter(|&at| !runs_at(at)).collect();
        if let Some(first) = odd.first() {
            let label = trace.subject.label(vcpu);
            all.push(format!("{label} had no core at {} of its events ({first} ns)", odd.len()));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Marker, Subject, Turn, vcpu};

    #[test]
    fn each_demand_on_counts_can_fail() {
        let recorded = |counted| Some(Switches { counted, at_least: 1_000, at_most: 1_010 });
        for good in [998, 1_005, 1_012] {
            assert_eq!(counts_agree(recorded(good)), None, "{good}");
        }
        let few = Switches { counted: 9, at_least: 9, at_most: 9 };
        for bad in [None, recorded(997), recorded(1_013), Some(few)] {
            assert!(counts_agree(bad).is_some(), "{bad:?}");
        }
    }

    #[test]
    fn switches_are_those_between_the_marks_of_two_looks() {
        let mark = |text: &str, at| Marker { vcpu: 0, task: 0, text: text.to_owned(), at };
        let turn = |from| TaskTurn { vcpu: 0, task: 0, name: String::new(), from, to: from + 1 };
        let markers = vec![
            mark("counting", 10),
            mark("switches 5", 20),
            mark("counting", 30),
            mark("switches 9", 40),
        ];
        let turns = [5, 15, 22, 28, 35, 45].map(turn).to_vec();
        let mut guests = Guests { markers, turns, ..Guests::default() };
        let expected = Switches { counted: 4, at_least: 2, at_most: 4 };
        assert_eq!(switches(&guests), Some(expected));
        guests.markers.remove(0);
        assert_eq!(switches(&guests), None);
    }

    #[test]
    fn an_event_without_a_core_is_found() {
        let turn = |from, to| Turn { pcpu: 0, vcpu: 0, idles: false, from, to };
        let history = History { turns: vec![turn(10, 20), turn(30, 40)], ..History::default() };
        let subject = Subject { vcpus: vec![vcpu(0, 0)], ..Subject::default() };
        let trace = Trace { subject, ..Trace::default() };
        for (at, runs) in [(9, false), (10, true), (20, true), (25, false), (40, true), (41, false)]
        {
            let marker = Marker { vcpu: 0, task: 0, text: String::new(), at };
            let guests = Guests { markers: vec![marker], ..Guests::default() };
            assert_eq!(outside(&trace, &history, &guests).is_empty(), runs, "{at}");
        }
    }
}
