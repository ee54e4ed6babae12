//! The page, the tables, the checks.

use super::case::{Adversary, NONE};
use super::known::{Figure, KNOWN, Known};
use super::mode::{MODES, WOKEN};
use super::quote;
use super::seen::Seen;
use crate::answer::Answer;
use crate::bench::store::Case as _;
use crate::dataset::{Dataset, Unit};
use crate::quantity::{count, real};
use crate::report::Plot;
use crate::results::{Check, Goal};
use crate::table::Table;

/// What an adversary may add to the worst dispatch latency of FreeRTOS, ns.
pub const MOST_ADDED_NS: u64 = 4_000;
/// By how much a figure of another VM may change, hundredths.
pub const MOST_CHANGE_PERCENT: f64 = 1.0;

/// Returns the answer.
pub fn answer(seen: &[Seen]) -> Answer {
    let lead = "A guest that attacks the hypervisor in one way for as long as it runs, below \
                FreeRTOS on one core and, with several vCPUs, below a second real-time VM on \
                another one. How late are its neighbours, and is anything of theirs lost?";
    let mut answer = Answer::new("hostile", "The worst guest", lead);
    let alone = alone(seen, Wake::Timer);
    let attacked: Vec<&Seen> = seen.iter().filter(|seen| seen.case.adversary.is_some()).collect();
    let worst = attacked.iter().filter_map(|seen| seen.rtos.worst_dispatch_ns()).max();
    let us = |ns: Option<u64>| ns.map_or_else(|| "-".into(), |ns| format!("{:.2}", real(ns) / 1e3));
    answer.tile(
        us(alone.and_then(|alone| alone.rtos.worst_dispatch_ns())),
        "µs, worst dispatch alone",
    );
    answer.tile(us(worst), "µs, worst beside an adversary");
    answer.tile(count(attacked.iter().map(|seen| seen.operations).sum()), "hostile operations");
    let virtual_s = real(seen.iter().map(|seen| seen.virtual_ns).sum()) / 1e9;
    answer.outcome.figure("virtual_s", virtual_s);
    answer.outcome.figure("runs", seen.len());
    let data = data(seen);
    for (wake, name) in [(Wake::Timer, "modes"), (Wake::Core, "modes-woken")] {
        let by_mode = by_mode(seen, wake, name);
        let caption = "The worst dispatch latency of FreeRTOS beside each attack, of all its runs. \
                       The mark is the goal.";
        let plot = Plot::bars(&by_mode, "mode", "worst_dispatch_us").goal("goal_us");
        let file = format!("worst-dispatch-{name}");
        let plot = answer.plot(&file, &plot, caption);
        answer.section(&format!("How late is FreeRTOS when {} wakes it?", wake.about()), plot);
        answer.data(&by_mode);
    }
    answer.data(&data);
    judge(&mut answer, seen);
    if super::is_whole(seen.iter().map(|seen| &seen.case)) {
        let quoted = quote::quoted(seen, answer.outcome.checks());
        answer.document("bench hostile", quoted);
    }
    for seen in seen.iter().filter(|seen| !seen.broken.is_empty()) {
        let said = seen.broken.join("\n  ");
        answer.remark(&format!("{}:\n  {said}", seen.case.name()));
    }
    answer
}

pub(super) fn alone(seen: &[Seen], wake: Wake) -> Option<&Seen> {
    seen.iter().find(|seen| seen.case.adversary.is_none() && Wake::of(seen) == wake)
}

/// The goal, ns.
pub(super) fn goal_ns(seen: &[Seen], wake: Wake) -> Option<u64> {
    Some(alone(seen, wake)?.rtos.worst_dispatch_ns()? + MOST_ADDED_NS)
}

/// What wakes FreeRTOS. Its latencies are compared with those for the same reason.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wake {
    Timer,
    Core,
}

impl Wake {
    pub(super) const ALL: [Self; 2] = [Self::Timer, Self::Core];

    pub(super) fn of(seen: &Seen) -> Self {
        if seen.case.is_woken { Self::Core } else { Self::Timer }
    }

    /// Returns the attacks that are measured.
    pub(super) const fn modes(self) -> &'static [&'static str] {
        match self {
            Self::Timer => MODES,
            Self::Core => WOKEN,
        }
    }

    /// Returns it for people.
    const fn about(self) -> &'static str {
        match self {
            Self::Timer => "its timer",
            Self::Core => "another core",
        }
    }

    /// Returns what stands behind the name of FreeRTOS.
    pub(super) const fn apposition(self) -> &'static str {
        match self {
            Self::Timer => "",
            Self::Core => ", which another core wakes,",
        }
    }
}

/// The runs of a mode.
pub(super) fn of<'a>(seen: &'a [Seen], mode: &str, wake: Wake) -> Vec<&'a Seen> {
    let is_it = |adversary: &Adversary| adversary.mode == mode;
    let all = seen.iter().filter(|seen| Wake::of(seen) == wake);
    all.filter(|seen| seen.case.adversary.as_ref().is_some_and(is_it)).collect()
}

/// The greatest that the runs of a mode have.
fn most(runs: &[&Seen], of: impl Fn(&Seen) -> Option<u64>) -> Option<u64> {
    runs.iter().filter_map(|seen| of(seen)).max()
}

/// A mode, and its runs.
type Runs<'a> = (&'static str, Vec<&'a Seen>);

/// A row for each mode.
fn by_mode(seen: &[Seen], wake: Wake, name: &str) -> Dataset {
    let runs = wake.modes().iter().map(|mode| (*mode, of(seen, mode, wake)));
    let rows = runs.filter(|(_, runs)| !runs.is_empty());
    let us = |ns: Option<u64>| ns.map(|ns| real(ns) / 1e3);
    let goal = us(goal_ns(seen, wake));
    let sum = |runs: &[&Seen], of: fn(&Seen) -> u64| runs.iter().map(|seen| of(seen)).sum::<u64>();
    let dispatch = |seen: &Seen| seen.rtos.worst_dispatch_ns();
    let title =
        format!("Attacks, the worst of all runs of each, FreeRTOS woken by {}", wake.about());
    Dataset::of(name, &title, rows)
        .name("mode", |(mode, _): &Runs| *mode)
        .name("runs", |(_, runs)| runs.len() as u64)
        .for_programs()
        .column("worst_response", Unit::Microseconds, |(_, runs)| {
            us(most(runs, |seen| seen.rtos.response.max().map(u64::from)))
        })
        .column("worst_dispatch", Unit::Microseconds, |(_, runs)| us(most(runs, dispatch)))
        .column("goal", Unit::Microseconds, move |_| goal)
        .for_programs()
        .name("beside", |(_, runs)| worst_name(runs))
        .column("longest_at_el2", Unit::Microseconds, |(_, runs)| {
            us(most(runs, |seen| Some(seen.longest_el2_ns)))
        })
        .head("longest at EL2")
        .column("neighbour", Unit::Change, |(_, runs)| change_of(runs, alone(seen, wake)))
        .name("missed", move |(_, runs)| sum(runs, Seen::missed))
        .name("console_bytes_lost", move |(_, runs)| sum(runs, |seen| seen.console_lost))
        .name("operations", move |(_, runs)| sum(runs, |seen| seen.operations))
        .name("exits", move |(_, runs)| sum(runs, |seen| seen.exits))
        .done()
}

/// The name of the run with the worst dispatch latency, less that of the mode.
fn worst_name(runs: &[&Seen]) -> String {
    let worst = runs.iter().max_by_key(|seen| seen.rtos.worst_dispatch_ns());
    let adversary = worst.and_then(|seen| seen.case.adversary.as_ref());
    adversary.map_or_else(String::new, variety)
}

/// An adversary in words, but for its mode.
fn variety(adversary: &Adversary) -> String {
    let Adversary { vcpus, crowds, policy, is_realtime, .. } = adversary;
    let plural = if *vcpus == 1 { "" } else { "s" };
    let place = if *crowds { " on one core" } else { "" };
    let policy = if policy == NONE { String::new() } else { format!(", {policy}") };
    let standing = if *is_realtime { ", real-time" } else { "" };
    format!("{vcpus} vCPU{plural}{place}{policy}{standing}")
}

/// A row for each run.
fn data(seen: &[Seen]) -> Dataset {
    let us = |ns: Option<u32>| ns.map(|ns| f64::from(ns) / 1e3);
    let mode =
        |seen: &Seen| seen.case.adversary.as_ref().map_or("alone".into(), |a| a.mode.clone());
    Dataset::of("runs", "Runs", seen)
        .name("case", |seen: &&Seen| seen.case.name())
        .for_programs()
        .name("mode", move |seen| mode(seen))
        .name("adversary", |seen| seen.case.adversary.as_ref().map_or_else(String::new, variety))
        .name("woken_by", |seen| Wake::of(seen).about())
        .head("woken by")
        .column("response", Unit::Microseconds, move |seen| us(seen.rtos.response.max()))
        .column("dispatch", Unit::Microseconds, move |seen| us(seen.rtos.dispatch.max()))
        .column("dispatch_mean", Unit::Microseconds, |seen| {
            seen.rtos.dispatch.mean().map(|ns| ns / 1e3)
        })
        .for_programs()
        .column("neighbour_mean", Unit::Microseconds, |seen| {
            seen.neighbour.dispatch.mean().map(|ns| ns / 1e3)
        })
        .column("neighbour_max", Unit::Microseconds, move |seen| us(seen.neighbour.dispatch.max()))
        .column("longest_at_el2", Unit::Microseconds, |seen| real(seen.longest_el2_ns) / 1e3)
        .head("longest at EL2")
        .name("missed", |seen| seen.missed())
        .name("console_bytes_lost", |seen| seen.console_lost)
        .name("operations", |seen| seen.operations)
        .name("exits", |seen| seen.exits)
        .name("starts", |seen| seen.starts)
        .done()
}

/// By how much the mean time in which the second real-time VM does its work is another one than
/// without an adversary, hundredths: the most of `runs`, either way.
fn change_of(runs: &[&Seen], alone: Option<&Seen>) -> Option<f64> {
    let alone = Figure::NeighbourWork.of(alone?)?;
    let changes = runs.iter().filter_map(|seen| seen.change_of_work(alone));
    changes.max_by(|a, b| a.abs().total_cmp(&b.abs()))
}

/// The most of these changes, either way, of the runs with an adversary of which `is_it` is true.
fn most_change(seen: &[Seen], is_it: impl Fn(&Seen) -> bool) -> Option<f64> {
    let changes = Wake::ALL.into_iter().filter_map(|wake| {
        let attacked = seen.iter().filter(|seen| seen.case.adversary.is_some() && is_it(seen));
        let attacked: Vec<_> = attacked.filter(|seen| Wake::of(seen) == wake).collect();
        change_of(&attacked, alone(seen, wake)).map(f64::abs)
    });
    changes.max_by(f64::total_cmp)
}

fn judge(answer: &mut Answer, seen: &[Seen]) {
    let us = |ns: u64| real(ns) / 1e3;
    let mut check = |check| answer.outcome.check(check);
    let modes = |wake: Wake| wake.modes().iter().map(move |mode| (wake, *mode));
    for (wake, mode) in Wake::ALL.into_iter().flat_map(modes) {
        let runs =
            of(seen, mode, wake).into_iter().filter(|seen| !is_known(seen, Figure::Dispatch));
        let (runs, goal): (Vec<_>, _) = (runs.collect(), goal_ns(seen, wake));
        let worst = most(&runs, |seen| seen.rtos.worst_dispatch_ns());
        let name = wake.apposition();
        let name = format!("worst dispatch latency of FreeRTOS{name} beside {mode}");
        let value = goal.and(worst).map(us);
        check(Check::new(&name, value, "us", Goal::AtMost(us(goal.unwrap_or(0)))));
    }
    for figure in Figure::COUNTS {
        let counted = seen.iter().filter(|seen| !is_known(seen, figure));
        let sum = counted.filter_map(|seen| figure.of(seen)).sum::<f64>();
        check(Check::new(figure.about(), sum, "", Goal::Exactly(0.0)));
    }
    let figure = Figure::NeighbourWork;
    let change = most_change(seen, |seen| !is_known(seen, figure));
    check(Check::new(figure.about(), change, "%", Goal::AtMost(MOST_CHANGE_PERCENT)));
    known_checks(seen).for_each(check);
    tell_known(answer);
}

/// Returns true if a figure of a run is known to miss its goal.
pub(super) fn is_known(seen: &Seen, figure: Figure) -> bool {
    Known::of(&seen.case, figure).is_some()
}

/// Returns the same checks for what is known to miss a goal, each with the reason.
fn known_checks(seen: &[Seen]) -> impl Iterator<Item = Check> {
    let figures = KNOWN.iter().enumerate().flat_map(|(number, known)| {
        known.figures.iter().map(move |&figure| (number, known, figure))
    });
    figures.filter_map(|(number, known, figure)| {
        let is_of = |seen: &Seen| Known::of(&seen.case, figure) == Some(number);
        let runs: Vec<&Seen> = seen.iter().filter(|seen| is_of(seen)).collect();
        let wake = Wake::of(runs.first()?);
        let name = format!("{}{} beside {}", figure.about(), wake.apposition(), known.beside);
        let values = runs.iter().filter_map(|seen| figure.of(seen));
        let check = match figure {
            Figure::Dispatch => {
                let goal = goal_ns(seen, wake).map(|ns| real(ns) / 1e3);
                let value = goal.and(values.max_by(f64::total_cmp));
                Check::new(&name, value, "us", Goal::AtMost(goal.unwrap_or(0.0)))
            }
            Figure::NeighbourWork => {
                let change = most_change(seen, is_of);
                Check::new(&name, change, "%", Goal::AtMost(MOST_CHANGE_PERCENT))
            }
            _ => Check::new(&name, values.sum::<f64>(), "", Goal::Exactly(0.0)),
        };
        Some(check.as_known(known.why))
    })
}

/// Tells the reasons of what is known.
fn tell_known(answer: &mut Answer) {
    let checks = answer.outcome.checks();
    let mut table = Table::new("Known to miss a goal", ["", "", "why"]);
    for check in checks {
        if let Some(why) = check.known() {
            table.row([check.name.clone(), check.verdict().into(), why.into()]);
        }
    }
    if !table.rows.is_empty() {
        answer.table(&table);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::case::Case;
    use super::*;
    use crate::observe::{Distribution, Lateness};

    fn lateness(ns: u32) -> Lateness {
        let mut dispatch = Distribution::default();
        dispatch.record(ns);
        Lateness { activations: 1, missed: 0, response: dispatch.clone(), dispatch }
    }

    pub fn run(mode: Option<&str>, rtos: u32, neighbour: u32) -> Seen {
        Seen {
            case: Case { adversary: mode.map(Adversary::plain), is_woken: false, length_ms: 1 },
            real_s: 1.0,
            virtual_ns: 1_000_000,
            operations: 1_000,
            starts: 1,
            exits: 1_000,
            rtos: lateness(rtos),
            neighbour: lateness(neighbour),
            idle_ns: 0,
            is_on: true,
            longest_el2_ns: 1,
            console_lost: 0,
            broken: vec![],
        }
    }

    /// The names of checks that fail, of those that have a value.
    fn failing(seen: &[Seen]) -> Vec<String> {
        let answer = answer(seen);
        let known = answer.outcome.checks().iter().filter(|check| check.value.is_some());
        known.filter(|check| check.fails()).map(|check| check.name.clone()).collect()
    }

    #[test]
    fn the_goals_are_relative_to_the_neighbours_alone() {
        let alone = || run(None, 820, 100_000);
        assert!(failing(&[alone(), run(Some("sgi"), 4_820, 100_990)]).is_empty());
        let failed = failing(&[alone(), run(Some("sgi"), 4_821, 98_900)]);
        assert!(failed.len() == 2 && failed[0].ends_with("beside sgi"), "{failed:?}");
        assert!(failed[1].starts_with("change of what another VM"), "{failed:?}");
    }

    #[test]
    fn what_another_core_wakes_has_a_goal_of_its_own() {
        let woken = |mode, rtos| {
            let mut seen = run(mode, rtos, 90_000);
            seen.case.is_woken = true;
            seen
        };
        let alone = || vec![run(None, 820, 100_000), woken(None, 1_860)];
        let of = |rtos| [alone(), vec![woken(Some("messages"), rtos)]].concat();
        assert!(failing(&of(5_860)).is_empty());
        let failed = failing(&of(5_861));
        assert!(failed.len() == 1 && failed[0].contains("which another core wakes"), "{failed:?}");
    }

    #[test]
    fn whatever_is_lost_or_broken_fails() {
        let mut bad = run(Some("mix"), 820, 100_000);
        (bad.rtos.missed, bad.console_lost, bad.broken) = (1, 5, vec!["no".into()]);
        let failed = failing(&[run(None, 820, 100_000), bad]);
        assert_eq!(failed.len(), 3, "{failed:?}");
    }

    #[test]
    fn what_is_known_fails_by_itself_and_hides_nothing() {
        let mut realtime = run(Some("sgi"), 820, 100_000);
        realtime.case.adversary.as_mut().unwrap().is_realtime = true;
        (realtime.console_lost, realtime.neighbour) = (5, lateness(102_000));
        realtime.neighbour.missed = 2;
        let fails = |seen: &[Seen]| {
            let answer = answer(seen);
            let checks = answer.outcome.checks().iter().filter(|check| check.value.is_some());
            let failed = checks.filter(|check| check.fails());
            failed.map(|check| (check.name.clone(), check.known().is_some())).collect::<Vec<_>>()
        };
        let alone = || run(None, 820, 100_000);
        let failed = fails(&[alone(), realtime.clone()]);
        assert!(failed.len() == 3 && failed.iter().all(|(_, known)| *known), "{failed:?}");
        let mut other = run(Some("sgi"), 820, 102_000);
        (other.console_lost, realtime.rtos.missed) = (1, 1);
        let failed = fails(&[alone(), realtime, other]);
        let new = [Figure::RtosMissed, Figure::ConsoleLost, Figure::NeighbourWork];
        let new = new.map(|one| (one.about().into(), false));
        assert!(failed.len() == 6 && failed[..3] == new, "{failed:?}");
    }

    #[test]
    fn a_freertos_that_may_not_start_excuses_nothing_else() {
        let mut above = run(Some("sgi"), 820, 100_000);
        above.case.adversary.as_mut().unwrap().policy = "rt-vcpu".into();
        above.broken = vec!["rtos reported nothing".into(), "the hypervisor stopped".into()];
        let failed = failing(&[run(None, 820, 100_000), above]);
        let broken = Figure::Broken.about();
        assert!(failed.len() == 2 && failed[0] == broken, "{failed:?}");
        assert!(failed[1].ends_with("(rt-vcpu)"), "{failed:?}");
    }

    #[test]
    fn without_the_neighbours_alone_no_goal_is_met() {
        let answer = answer(&[run(Some("mix"), 820, 100_000)]);
        assert!(!answer.outcome.holds());
    }
}
