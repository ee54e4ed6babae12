//! What Perfetto's own trace processor says of an export.
//!
//! `setup/perfetto` has how it is asked; `./cassata test` fetches it. Where it is not, because
//! there is no Node.js or no registry to fetch it from, the export is not read by anything.

use crate::results::{Outcome, write_file};
use crate::session::Run;
use crate::suite::{Bench, Skipped};
use crate::trace::{Guests, History, Tally, Trace};
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use serde::Deserialize;
use std::path::Path;
use std::process::Command;

/// Where the trace processor is, below the project's root.
const PROCESSOR: &str = "build/perfetto";
/// Every kind of event, how often it is there, how long it takes in all, and the sum of its
/// arguments.
const EVENTS: &str = "select s.category, s.name, t.name as line, count(*) as count, \
    sum(s.dur) as ns, ifnull(sum(extract_arg(s.arg_set_id, 'debug.argument')), 0) as argument \
    from slice s join track t on s.track_id = t.id group by 1, 2, 3";
/// What it could not understand.
const ERRORS: &str = "select 'error' as category, name, '' as line, value as count, 0 as ns, 0 as argument \
    from stats where severity in ('error', 'data_loss') and value > 0";
/// Arrows.
const FLOWS: &str = "select 'flow' as category, '' as name, '' as line, count(*) as count, \
    0 as ns, 0 as argument from flow";

/// Of guests' own events how many are within a turn of their vCPU on a core, and how many outside:
/// the turns of a vCPU follow one another, so that one which ends behind an event and has begun
/// before it contains it.
const INSIDE: &str = "with \
    turns as (select ts, ts + dur as until, \
        case when instr(name, ' ') > 0 then substr(name, 1, instr(name, ' ') - 1) else name end \
        as vcpu from slice where category = 'run'), \
    own as (select s.ts, substr(t.name, 1, instr(t.name, ' ') - 1) as vcpu \
        from slice s join track t on s.track_id = t.id where s.category in ('task', 'marker')), \
    every as (select vcpu, ts, until, 0 as of_guest from turns \
        union all select vcpu, ts, 0, 1 from own), \
    seen as (select vcpu, ts, of_guest, max(until) over \
        (partition by vcpu order by ts, of_guest rows unbounded preceding) as until from every) \
    select iif(until >= ts, 'inside', 'outside') as category, vcpu as name, '' as line, \
    count(*) as count, 0 as ns, 0 as argument from seen where of_guest = 1 group by 1, 2";

/// Events of one kind on one line.
#[derive(Clone, Debug, Deserialize)]
struct Events {
    category: String,
    name: String,
    line: String,
    count: u64,
    ns: u64,
    argument: u64,
}

/// Exports a trace into the directory of `bench`, and returns what is wrong with what Perfetto
/// finds there; none if it cannot be asked. `outcome` says so, too.
pub fn check(
    bench: &Bench,
    trace: &Trace,
    history: &History,
    outcome: &mut Outcome,
) -> Result<Option<Vec<String>>> {
    let export = bench.directory.join("trace.perfetto-trace");
    write_file(&export, &trace.perfetto(history))?;
    let asked = events(&bench.root, &export)?;
    outcome.figure("perfetto_was_asked", asked.is_some());
    let found = asked.map(|events| objections(&events, trace, history));
    let said = |found: Vec<String>| found.iter().map(|what| format!("Perfetto: {what}")).collect();
    Ok(found.map(said))
}

/// Judges a run by all objections, Perfetto's among them.
///
/// # Errors
/// The objections. If there are none, and Perfetto was not asked, that.
pub fn judge(
    bench: &Bench,
    run: &Run,
    outcome: Outcome,
    mut objections: Vec<String>,
    perfetto: Option<Vec<String>>,
) -> Result<()> {
    let was_asked = perfetto.is_some();
    objections.extend(perfetto.unwrap_or_default());
    bench.judge(run, outcome, &objections)?;
    if was_asked { Ok(()) } else { Err(Skipped("Perfetto's trace processor is not there").into()) }
}

/// Asks for all kinds of events in a file; none if there is nothing to ask.
fn events(root: &Path, export: &Path) -> Result<Option<Vec<Events>>> {
    let processor = root.join(PROCESSOR);
    if !processor.join("engine_bundle.js").is_file() {
        return Ok(None);
    }
    let asked = Command::new("node")
        .args([&root.join("setup/perfetto/query.js"), &processor, export])
        .args([EVENTS, ERRORS, FLOWS, INSIDE])
        .output()
        .into_diagnostic()
        .wrap_err("cannot run node")?;
    if !asked.status.success() {
        let said = String::from_utf8_lossy(&asked.stderr);
        return Err(miette!("Perfetto's trace processor: {}", said.trim()));
    }
    let text = String::from_utf8_lossy(&asked.stdout);
    let mut all = Vec::new();
    for line in text.lines() {
        let rows: Vec<Events> = serde_json::from_str(line)
            .into_diagnostic()
            .wrap_err("what Perfetto's trace processor answers")?;
        all.extend(rows);
    }
    Ok(Some(all))
}

/// Compares with what was recorded.
fn objections(events: &[Events], trace: &Trace, history: &History) -> Vec<String> {
    let mut all = Vec::new();
    let sum = |of: fn(&Events) -> u64, category: &str, is: &dyn Fn(&Events) -> bool| {
        events.iter().filter(|one| one.category == category && is(one)).map(of).sum::<u64>()
    };
    let any = |_: &Events| true;
    let mut expect = |what: &str, found: u64, recorded: u64| {
        if found != recorded {
            all.push(format!("{what}: {found}, and {recorded} were recorded"));
        }
    };
    expect("errors", sum(|e| e.count, "error", &any), 0);
    let guests = Guests::of(trace, history);
    expect("guests' events without a core", sum(|e| e.count, "outside", &any), 0);
    for of in trace.guest_tallies(&guests) {
        let label = trace.subject.label(of.vcpu);
        let tasks = |e: &Events| e.line == format!("{label} tasks");
        let marks = |e: &Events| e.line == format!("{label} markers");
        let what = |name: &str| format!("{label}, {name}");
        let turns = guests.turns.iter().filter(|turn| turn.vcpu == of.vcpu);
        let ns = turns.map(|turn| turn.to - turn.from).sum();
        expect(&what("task switches"), sum(|e| e.count, "task", &tasks), of.switches);
        expect(&what("ns of tasks"), sum(|e| e.ns, "task", &tasks), ns);
        expect(&what("markers"), sum(|e| e.count, "marker", &marks), of.markers);
        let own = |e: &Events| e.name == label;
        let all = of.switches + of.markers;
        expect(&what("events on a core"), sum(|e| e.count, "inside", &own), all);
    }
    for (id, tally) in Tally::of(trace).iter().enumerate() {
        let label = trace.subject.label(id);
        let runs = |e: &Events| e.name == label && e.line.starts_with("pCPU");
        let own = |e: &Events| e.name.ends_with(&format!(" {label}"));
        let what = |name: &str| format!("{label}, {name}");
        expect(&what("turns"), sum(|e| e.count, "run", &runs), tally.switches);
        expect(&what("throttled"), sum(|e| e.count, "throttle", &own), tally.throttled);
        expect(&what("replenished"), sum(|e| e.argument, "replenish", &own), tally.replenished);
        expect(&what("overruns"), sum(|e| e.argument, "overrun", &own), tally.overruns);
        expect(&what("stops"), sum(|e| e.argument, "overrun_stop", &own), tally.overrun_stops);
        expect(&what("times lowered"), sum(|e| e.argument, "lowered", &own), tally.lowered);
        let line = |e: &Events| e.line == format!("{label} overruns");
        let overruns = history.overruns.iter().filter(|one| one.vcpu == id);
        let ns = overruns.map(|one| one.to - one.from).sum();
        expect(&what("ns of overruns"), sum(|e| e.ns, "overruns", &line), ns);
        expect(&what("injected"), sum(|e| e.argument, "inject", &own), tally.injected);
        expect(&what("exits"), sum(|e| e.count, "exit", &own), tally.exits.iter().sum());
        let has = |e: &Events| e.name.starts_with("grants ") && own(e);
        expect(&what("grants"), sum(|e| e.count, "grant", &has), tally.grants);
        let arrives = |e: &Events| e.name == format!("{label} arrives");
        expect(&what("migrations"), sum(|e| e.count, "migration", &arrives), tally.migrations);
        // Those in which it idles its budget away are of its time, too.
        let time = |e: &Events| e.name.starts_with(&label) && e.line.starts_with("pCPU");
        expect(&what("ns on cores"), sum(|e| e.ns, "run", &time), history.ran(id));
    }
    for (mutex, name) in trace.subject.mutexes.iter().enumerate() {
        let held = history.holds.iter().filter(|hold| hold.mutex == mutex);
        let on_line = |e: &Events| e.line == format!("mutex {name}");
        expect(
            &format!("holders of {name}"),
            sum(|e| e.count, "held", &on_line),
            held.count() as u64,
        );
    }
    let arrows = history.flows.iter().filter(|flow| flow.to.is_some()).count();
    expect("arrows", sum(|e| e.count, "flow", &any), arrows as u64);
    all
}
