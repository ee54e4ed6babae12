//! What EL2 records, beside what it counts: both tell of the same events, in different words.

use super::LIMIT;
use super::perfetto;
use super::staged::description;
use crate::figures;
use crate::report;
use crate::session::{Moment, Run};
use crate::suite::{Bench, Scenario};
use crate::trace::{Guests, History, Tally, Trace};
use abi::status::VcpuStatus;
use miette::Result;

/// The name, and that of its description.
pub const NAME: &str = "traced";
/// VMs that come to an end; the run ends with the last of them.
const ENDING: [&str; 2] = ["probe", "migrant"];

/// Returns the scenario.
pub fn scenario() -> Scenario {
    let about = "what EL2 records agrees with what it counts, to the last event and tick";
    Scenario::new(NAME, about, run)
}

fn run(bench: &Bench) -> Result<()> {
    let bundle = bench.pack(&bench.described(&description(NAME), &[])?)?;
    let run = bench.session(&bundle, LIMIT)?.run(has_ended)?;
    let trace = Trace::read(&bench.directory)?;
    let mut outcome = figures::outcome(NAME, &run);
    let history = History::of(&trace);
    outcome.figure("trace", trace.json(&Guests::of(&trace, &history)));
    let drawing = report::file(&trace.draw_beginning(&history, NAME)).unwrap_or_default();
    crate::results::write_file(&bench.directory.join("trace.svg"), drawing.as_bytes())?;
    let objections = objections(&run, &trace, &history);
    let perfetto = perfetto::check(bench, &trace, &history, &mut outcome)?;
    perfetto::judge(bench, &run, outcome, objections, perfetto)
}

fn has_ended(now: &Moment) -> bool {
    let layout = &now.observer.layout;
    let is_over = |name: &&str| {
        let vm = layout.vm(name).zip(now.observer.latest());
        vm.is_some_and(|(vm, seen)| seen.vms[vm].is_over())
    };
    ENDING.iter().all(is_over)
}

fn objections(run: &Run, trace: &Trace, history: &History) -> Vec<String> {
    let Some(seen) = run.observer.latest() else { return vec!["EL2 did not come up".into()] };
    let mut all = Vec::new();
    let lost: u64 = trace.lost.iter().sum();
    if lost > 0 {
        all.push(format!("{lost} records were lost"));
    }
    let now = seen.boot + seen.now;
    for (id, (tally, status)) in Tally::of(trace).iter().zip(&seen.vcpus).enumerate() {
        // The tally has finished turns only.
        let unfinished = seen.pcpus.iter().find(|pcpu| pcpu.current == id as u64);
        let run = status.run - unfinished.map_or(0, |pcpu| now - pcpu.since);
        let counted = counted(status, run);
        if *tally
            != (Tally {
                lowered: tally.lowered,
                waits: tally.waits,
                grants: tally.grants,
                ..counted.clone()
            })
        {
            let label = trace.subject.label(id);
            all.push(format!("{label}: EL2 recorded {tally:?}, and counted {counted:?}"));
        }
    }
    let total = |of: fn(&Tally) -> u64| Tally::of(trace).iter().map(of).sum::<u64>();
    for (name, count) in [
        ("migrations", total(|tally| tally.migrations)),
        ("throttled", total(|tally| tally.throttled)),
        ("replenished", total(|tally| tally.replenished)),
        ("raised", total(|tally| tally.raised)),
        ("grants", total(|tally| tally.grants)),
    ] {
        if count < 20 {
            all.push(format!("only {count} {name} were recorded"));
        }
    }
    all.extend(order_of_mutexes(trace, history));
    all
}

/// Returns what EL2 counts of a vCPU, in the words of a tally.
fn counted(status: &VcpuStatus, run: u64) -> Tally {
    Tally {
        run,
        switches: status.switches,
        migrations: status.migrations,
        throttled: status.throttled,
        replenished: status.replenished,
        raised: status.raised,
        injected: status.injected,
        exits: status.exits,
        ..Tally::default()
    }
}

/// No mutex has two holders at once, each migration arrives but the latest of a vCPU, and each
/// grant follows a wait.
fn order_of_mutexes(trace: &Trace, history: &History) -> Vec<String> {
    let mut all = Vec::new();
    let mut holds = history.holds.clone();
    holds.sort_by_key(|hold| (hold.mutex, hold.from, hold.to));
    for pair in holds.windows(2) {
        if pair[0].mutex == pair[1].mutex && pair[0].to > pair[1].from {
            all.push(format!("{pair:?}: a mutex has two holders"));
        }
    }
    let open = history.flows.iter().filter(|flow| flow.mutex.is_none() && flow.to.is_none());
    if open.count() > trace.subject.vcpus.len() {
        all.push("vCPUs left, and arrived nowhere".into());
    }
    let grants = history.flows.iter().filter(|flow| flow.mutex.is_some()).count();
    let ended = history.waits.iter().filter(|wait| wait.to < history.end).count();
    if ended > grants {
        all.push(format!("{ended} waits have ended, and only {grants} mutexes were granted"));
    }
    all
}
