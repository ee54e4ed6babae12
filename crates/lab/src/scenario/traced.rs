//! What EL2 records, beside what it counts: both tell of the same events, in different words.

use super::LIMIT;
use super::overrun;
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
/// The kinds of servers of the vCPU that overruns its budget.
const SERVERS: [&str; 2] = ["deferrable", "periodic"];

/// What has to happen for which a system is run: its name, how often at least, and how it is
/// counted.
type Wanted = (&'static str, u64, fn(&Tally) -> u64);

/// What the tasks of `traced` do, and the vCPU that migrates.
const WANTED: [Wanted; 5] = [
    ("migrations", 20, |tally| tally.migrations),
    ("throttled", 20, |tally| tally.throttled),
    ("replenished", 20, |tally| tally.replenished),
    ("raised", 20, |tally| tally.raised),
    ("grants", 20, |tally| tally.grants),
];
/// What happens to a guest that begins and ends sections by chance.
const WANTED_OF_OVERRUNS: [Wanted; 3] = [
    ("overruns", 20, |tally| tally.overruns),
    ("stops in overrun", 2, |tally| tally.overrun_stops),
    ("times lowered", 20, |tally| tally.lowered),
];

/// Returns the scenarios.
pub fn scenarios() -> impl Iterator<Item = Scenario> {
    let about = "what EL2 records agrees with what it counts, to the last event and tick";
    let all =
        Scenario::new(NAME, about, |bench: &Bench| run(NAME, NAME, &[], has_ended, &WANTED, bench));
    let overruns = SERVERS.iter().map(move |server| {
        let name = format!("{NAME}-overruns.{server}");
        Scenario::new(name.clone(), about, move |bench: &Bench| {
            let edits = overrun::traced("chance", server);
            // It switches itself off when all guests have counted.
            run(&name, overrun::NAME, &edits, |_| false, &WANTED_OF_OVERRUNS, bench)
        })
    });
    [all].into_iter().chain(overruns)
}

fn run(
    name: &str,
    described: &str,
    edits: &[(String, String)],
    until: fn(&Moment) -> bool,
    wanted: &[Wanted],
    bench: &Bench,
) -> Result<()> {
    let bundle = bench.pack(&bench.described(&description(described), edits)?)?;
    let run = bench.session(&bundle, LIMIT)?.run(until)?;
    let trace = Trace::read(&bench.directory)?;
    let mut outcome = figures::outcome(name, &run);
    let history = History::of(&trace);
    outcome.figure("trace", trace.json(&Guests::of(&trace, &history)));
    let drawing = report::file(&trace.draw_beginning(&history, name)).unwrap_or_default();
    crate::results::write_file(&bench.directory.join("trace.svg"), drawing.as_bytes())?;
    let mut objections = objections(&run, &trace, &history);
    objections.extend(too_few(&Tally::of(&trace), wanted));
    let perfetto = perfetto::check(bench, &trace, &history, &mut outcome)?;
    perfetto::judge(bench, &run, outcome, objections, perfetto)
}

/// Returns what is wanted and did not happen often enough.
fn too_few(tallies: &[Tally], wanted: &[Wanted]) -> Vec<String> {
    let total = |of: fn(&Tally) -> u64| tallies.iter().map(of).sum::<u64>();
    let counted = wanted.iter().map(|&(name, least, of)| (name, least, total(of)));
    let few = counted.filter(|&(_, least, count)| count < least);
    few.map(|(name, _, count)| format!("only {count} {name} were recorded")).collect()
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
                ended: tally.ended,
                waits: tally.waits,
                grants: tally.grants,
                ..counted.clone()
            })
        {
            let label = trace.subject.label(id);
            all.push(format!("{label}: EL2 recorded {tally:?}, and counted {counted:?}"));
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
        overruns: status.overruns,
        overrun_stops: status.overrun_stops,
        lowered: status.lowered,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_happen_often_enough_is_told() {
        let of = |overruns| Tally { overruns, overrun_stops: 20, lowered: 20, ..Tally::default() };
        assert_eq!(too_few(&[of(8), of(12)], &WANTED_OF_OVERRUNS), Vec::<String>::new());
        let few = too_few(&[of(8), of(11)], &WANTED_OF_OVERRUNS);
        assert_eq!(few, ["only 19 overruns were recorded"]);
    }
}
