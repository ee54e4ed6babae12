//! Overruns: a guest that begins global critical sections only to have more than its budget.
//!
//! The tables say what a vCPU may have: its budget, its overrun, and for how long sections may
//! raise it in a period. The guest tries to have more. It counts what it has, and so do a vCPU
//! above it, which waits while the hostile one is raised, and one below, which has what is left.

use super::LIMIT;
use super::expect::{Expect, Seen};
use super::staged::description;
use crate::figures;
use crate::session::Run;
use crate::suite::{Bench, Scenario};
use std::ops::RangeInclusive;

/// The description that they use.
pub const NAME: &str = "overrun";

/// How it describes the server of the hostile vCPU.
const OWN_SERVER: &str = "\"deferrable\", budget = \"300us\"";
/// Periods that are counted.
const PERIODS: u64 = 200;
/// Periods of the vCPU above the hostile one in one of that one.
const DUE: u64 = 2;
/// What EL2 takes when it gives a core to a vCPU and takes it away, nanoseconds: two stays.
const SWITCHES_NS: u64 = 1_500;
/// What the hostile vCPU may lack of a period for that: it has the core at most so often.
const LACKS_NS: u64 = (DUE + 1) * SWITCHES_NS;

/// What the guest does, and what EL2 is to count of it in [`PERIODS`] periods.
#[derive(Debug)]
struct Attack {
    /// What its command line calls it.
    how: &'static str,
    about: &'static str,
    /// In how many periods it overran its budget.
    overruns: RangeInclusive<u64>,
    /// How often it was stopped in a section.
    stops: RangeInclusive<u64>,
    /// How often it was lowered.
    lowered: RangeInclusive<u64>,
    /// The longest overrun is all that the tables allow.
    is_whole: bool,
}

const ATTACKS: [Attack; 4] = [
    Attack {
        how: "once",
        about: "a section that never ends gives a guest one overrun, and raises it once",
        overruns: 1..=1,
        stops: 1..=1,
        lowered: 1..=1,
        is_whole: true,
    },
    Attack {
        how: "late",
        about: "a section at the end of each budget gives a guest its overrun and no more",
        overruns: PERIODS..=PERIODS,
        stops: PERIODS..=PERIODS,
        lowered: 0..=0,
        is_whole: true,
    },
    Attack {
        how: "again",
        about: "a guest that begins sections again and again is lowered once in each period",
        overruns: 0..=0,
        stops: 0..=0,
        lowered: PERIODS..=PERIODS,
        is_whole: false,
    },
    Attack {
        how: "chance",
        about: "a guest that begins and ends sections by chance has budget and overrun at most",
        overruns: 10..=PERIODS,
        stops: 1..=PERIODS,
        lowered: 10..=PERIODS,
        is_whole: false,
    },
];

/// All of them.
pub fn scenarios() -> impl Iterator<Item = Scenario> {
    ATTACKS.iter().flat_map(|attack| ["deferrable", "periodic"].map(|kind| scenario(attack, kind)))
}

fn scenario(attack: &'static Attack, kind: &'static str) -> Scenario {
    let name = format!("overrun-{}.{kind}", attack.how);
    Scenario::new(name.clone(), attack.about, move |bench: &Bench| {
        let edits = edits(attack.how, kind);
        let bundle = bench.pack(&bench.described(&description(NAME), &edits)?)?;
        // It switches itself off when all guests have counted.
        let run = bench.session(&bundle, LIMIT)?.run(|_| false)?;
        let raised_ns = bundle.tables.vcpus[0].gcs_ns;
        let mut outcome = figures::outcome(&name, &run);
        outcome.figure("hostile raised_at_most_ns", raised_ns);
        for (vm, guest) in run.observer.layout.vms.iter().zip(&run.said.guests) {
            outcome.figure(&format!("{} passed", vm.name), serde_json::json!(guest.probe.passed));
        }
        let objections = not_passed(&run);
        let objections = match objections.is_empty() {
            true => exceeded(attack, &run, raised_ns).unwrap_or_else(|why| vec![why]),
            false => objections,
        };
        bench.judge(&run, outcome, &objections)
    })
    .shipped()
}

/// Edits the description: the hostile guest attacks like that, and has a server of this kind.
fn edits(how: &str, kind: &str) -> [(String, String); 2] {
    [
        ("how=once".to_owned(), format!("how={how}")),
        (OWN_SERVER.to_owned(), OWN_SERVER.replace("deferrable", kind)),
    ]
}

/// Edits the description likewise, and has EL2 record what it does.
pub fn traced(how: &str, kind: &str) -> Vec<(String, String)> {
    let asked = "[hypervisor]\ntrace = \"1M\"\n\n[board]";
    edits(how, kind).into_iter().chain([("[board]".to_owned(), asked.to_owned())]).collect()
}

/// Returns why a guest has not counted, of each that has not.
fn not_passed(run: &Run) -> Vec<String> {
    let vms = run.observer.layout.vms.iter();
    let seen = vms.filter_map(|vm| Some((vm, Seen::of(&vm.name, &run.said, &run.observer)?)));
    seen.filter_map(|(vm, seen)| Some(format!("{}: {}", vm.name, Expect::Passes.objection(&seen)?)))
        .collect()
}

/// Returns what the guests counted that the tables do not allow: they let sections raise the
/// hostile vCPU for so many nanoseconds in each period.
fn exceeded(attack: &Attack, run: &Run, raised_ns: u64) -> Result<Vec<String>, String> {
    let figure = |vm: &str, role: &str, key: &str| {
        let vm = run.observer.layout.vm(vm).ok_or(format!("there is no VM {vm}"))?;
        let figure = run.said.guests[vm].probe.figure(role, key);
        figure.ok_or(format!("{role} did not say {key}"))
    };
    let hostile = |key: &str| figure("hostile", "grasp", key);
    let above = |key: &str| figure("above", "outranked", key);
    let rest = |key: &str| figure("rest", "leftover", key);
    let server = |vcpu: usize| {
        let name = run.observer.layout.vcpus.get(vcpu);
        name.and_then(|name| name.server).ok_or(format!("vCPU {vcpu} has no budget"))
    };
    let (own, other) = (server(0)?, server(1)?);
    let status = run.observer.latest().ok_or("there is no status area")?.vcpus[0];
    let (budget, overrun) = (own.budget_ns, own.overrun_ns);
    let overruns = hostile("overruns")?;

    let mut all = Vec::new();
    let mut demand = |what: &str, value: u64, goal: RangeInclusive<u64>| {
        if !goal.contains(&value) {
            all.push(format!("{what}: {value}, not {goal:?}"));
        }
    };
    // What the hostile one has.
    let always = attack.overruns == (PERIODS..=PERIODS);
    let least = budget + if always { overrun } else { 0 };
    demand("periods", hostile("periods")?, PERIODS..=PERIODS);
    demand("the least it had", hostile("least_ns")?, least - LACKS_NS..=budget + overrun);
    let most = if overruns > 0 { budget + overrun } else { budget };
    let whole = if attack.is_whole { most - LACKS_NS } else { 0 };
    demand("the most it had", hostile("most_ns")?, whole..=most);
    demand("all that it had", hostile("sum_ns")?, 0..=PERIODS * budget + overruns * overrun);
    // What EL2 counts of it.
    demand("times throttled", hostile("throttled")?, PERIODS..=PERIODS);
    demand("times replenished", hostile("replenished")?, PERIODS..=PERIODS);
    demand("periods with an overrun", overruns, attack.overruns.clone());
    demand("stops in a section", hostile("overrun_stops")?, attack.stops.clone());
    demand("times lowered", hostile("lowered")?, attack.lowered.clone());
    demand("stops in the status area", status.overrun_stops, hostile("overrun_stops")?..=u64::MAX);
    demand("times lowered in the status area", status.lowered, hostile("lowered")?..=u64::MAX);
    // The one above waits while the hostile one is raised, and has its budget.
    let had = other.budget_ns - SWITCHES_NS..=other.budget_ns;
    demand("the least that the one above had", above("least_ns")?, had.clone());
    demand("the most that the one above had", above("most_ns")?, had);
    let waits = SWITCHES_NS..=raised_ns + SWITCHES_NS;
    demand("the longest wait of the one above", above("latest_ns")?, waits.clone());
    demand("its waits in a period of the hostile one", above("both_ns")?, waits);
    demand("all of its waits", above("late_ns")?, 0..=PERIODS * (raised_ns + DUE * SWITCHES_NS));
    // The one below has what is left.
    let taken = DUE * other.budget_ns + (2 * DUE + 1) * SWITCHES_NS;
    let left = own.period_ns - budget - taken;
    demand("the least that was left", rest("least_ns")?, left - overrun..=own.period_ns);
    let all_left = PERIODS * left - (overruns + 1) * overrun;
    demand("all that was left", rest("sum_ns")?, all_left..=PERIODS * own.period_ns);
    Ok(all)
}
