//! The detector of gaps finds those that are made, where they are made, and no others.

use crate::gaps::{Watch, answer, said};
use crate::guests::GapsProgress;
use crate::machine::Time;
use crate::results::{Check, Outcome};
use crate::session::Session;
use crate::suite::{Bench, Scenario, gicv2};
use miette::{IntoDiagnostic, Result, miette};
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use vtime::stall::Stall;

/// The system on whose board it watches.
const SYSTEM: &str = "systems/demo.toml";
/// How long: the detector of that board begins to watch some 50 ms after the machine.
const WATCH: Watch = Watch { threshold_ns: 10_000, length: Some(Duration::from_millis(100)) };
/// When cores stall, virtual time: the detector watches.
const AT_NS: u64 = 80_000_000;
/// What the detector takes from one look at the counter to the next, and what EL2 takes before it may
/// go on, at most.
const NEAR_NS: u64 = 1_000;

/// All of them.
pub fn scenarios() -> impl Iterator<Item = Scenario> {
    let detects = |name: &'static str, about: &'static str, stalls: &'static [(usize, u64)]| {
        Scenario::new(name, about, move |bench: &Bench| detect(bench, name, &[], stalls)).shipped()
    };
    let about = "a gap is found on a board with a GICv2, by the detector for such a board";
    let older = Scenario::new("gaps-gicv2", about, |bench: &Bench| {
        let edits = gicv2::edits([gicv2::BOARD, gicv2::FREERTOS]);
        detect(bench, "gaps-gicv2", &edits, &[(1, 500_000)])
    });
    [
        detects("gaps-none", "a board on which nothing stalls has no gaps", &[]),
        detects("gaps-stall", "a gap of 500 us on one core is found there", &[(1, 500_000)]),
        detects("gaps-short", "a gap below the threshold is not reported", &[(0, 9_000)]),
        detects(
            "gaps-two",
            "gaps of two cores are told apart, beside one that is too short",
            &[(0, 40_000), (1, 11_000), (1, 5_000)],
        ),
        older.shipped(),
        Scenario::new("gaps-options", "options that cannot be get one clear error", options)
            .shipped(),
    ]
    .into_iter()
}

/// Stalls cores, each for so many nanoseconds, one after the other, and demands that the detector tells
/// of those above the threshold. `edits` make the description one of another board.
fn detect(
    bench: &Bench,
    name: &str,
    edits: &[(String, String)],
    stalls: &[(usize, u64)],
) -> Result<()> {
    let path = bench.root.join(SYSTEM);
    let machine = bench.described(SYSTEM, edits)?.machine;
    let bundle = bench.pack(&WATCH.system(&path, &machine, &bench.root)?)?;
    let places = stalls.iter().zip(0..).map(|(&(core, for_ns), turn)| Stall {
        core,
        at_ns: AT_NS + 10_000_000 * turn,
        for_ns,
    });
    let stalls = Vec::from_iter(places);
    let time = Time::Virtual(bench.virtual_time()?.with_stalls(&stalls));
    let session = Session::of(&bundle, &bench.qemu, &time, &bench.directory).within(WATCH.limit());
    let run = session.interrupted_by(bench.interrupt.clone()).run(|_| false)?;
    let objections = said(&run).map_or_else(
        || vec!["there is no detector".into()],
        |said| objections(said, machine.pcpus, &stalls),
    );
    let mut outcome = answer(&run, WATCH, name).outcome;
    // That there are gaps is no fault here.
    let found = outcome.figures.clone();
    outcome = Outcome::new(name);
    found.into_iter().for_each(|(name, figure)| outcome.figure(&name, figure));
    outcome.check(Check::done("the gaps that were made are found", objections.is_empty()));
    bench.judge(&run, outcome, &objections)
}

fn objections(said: &GapsProgress, pcpus: usize, stalls: &[Stall]) -> Vec<String> {
    let mut all = Vec::new();
    if said.told != 1 || said.vcpus.len() != pcpus {
        all.push(format!("it told {} times, of {} cores", said.told, said.vcpus.len()));
    }
    for (&core, seen) in &said.vcpus {
        let is_made = |stall: &&Stall| stall.core == core && stall.for_ns > WATCH.threshold_ns;
        let made: Vec<_> = stalls.iter().filter(is_made).collect();
        let is_found = |(stall, &(at_ns, length_ns)): (&&Stall, &(u64, u64))| {
            at_ns.abs_diff(stall.at_ns) <= NEAR_NS && length_ns.abs_diff(stall.for_ns) <= NEAR_NS
        };
        let found = seen.first.len() == made.len() && made.iter().zip(&seen.first).all(is_found);
        if !found || seen.gaps != made.len() as u64 || seen.explained != 0 {
            all.push(format!("core {core} was made to stall by {made:?}, and saw {seen:?}"));
        }
        if seen.watched_ns.abs_diff(100_000_000) > 1_000_000 {
            all.push(format!("core {core} watched for {} ns", seen.watched_ns));
        }
    }
    all
}

/// Each of these is refused, with one error that names what is wrong.
fn options(bench: &Bench) -> Result<()> {
    let system = bench.root.join(SYSTEM);
    let cases: [(&[&str], &str); 9] = [
        (&["--gaps=soon"], "is not a unit of time"),
        (&["--gaps=10"], "a time has a unit"),
        (&["--gaps=999ns"], "must be from 1us to 10s"),
        (&["--gaps", "--for", "0"], "must be more than 0 seconds"),
        (&["--gaps", "--console", "linux"], "cannot be used with"),
        (&["--gaps", "--stall", "1@200ms:500us"], "--vtime"),
        (&["--gaps", "--vtime", "--stall", "1@200ms"], "give CORE@TIME:DURATION"),
        (&["--gaps", "--vtime", "--stall", "1@200ms:500ns"], "a stall lasts from 1 us"),
        (&["--gaps", "--vtime", "--stall", "2@200ms:500us"], "has 2 pCPUs"),
    ];
    let objections = cases.iter().map(|(words, wanted)| refusal(bench, &system, words, wanted));
    let objections: Vec<String> = objections.collect::<Result<Vec<_>>>()?.concat();
    let mut outcome = Outcome::new("gaps-options");
    outcome.check(Check::done("each is refused", objections.is_empty()));
    bench.keep(&outcome)?;
    if objections.is_empty() { Ok(()) } else { Err(miette!("{}", objections.join("\n"))) }
}

/// Calls the command line, which must refuse `words` with a message that has `wanted`.
fn refusal(bench: &Bench, system: &Path, words: &[&str], wanted: &str) -> Result<Vec<String>> {
    let mut command = Command::new("/proc/self/exe");
    command.arg("run").arg(system).args(words).env("CASSATA_ROOT", &bench.directory);
    let output = command.output().into_diagnostic()?;
    let said = String::from_utf8_lossy(&output.stderr);
    // Long messages are wrapped.
    let flat = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_refused = output.status.code().is_some_and(|code| code > 1) && flat.contains(wanted);
    let objection =
        || format!("{words:?} ended with {}, not with {wanted:?}:\n{said}", output.status);
    Ok(if is_refused { vec![] } else { vec![objection()] })
}
