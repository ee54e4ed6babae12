//! Runs a case, and takes the way of each interrupt apart.

use super::case::{Case, Load};
use super::fold::{self, COUNT, Found, RESPONSE, Way};
use super::machine::{self, FINE_QUANTUM_NS, LINUX, RTOS};
use super::marks::{self, VECTOR};
use crate::bench::store::measured;
use crate::bench::{ProgressView, Tell};
use crate::guests::{Images, LinuxProgress};
use crate::observe::{Distribution, Reports};
use crate::session::Run;
use crate::suite::Bench;
use abi::report::Sample;
use miette::{Context, IntoDiagnostic, Result, ensure};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use vtime::marks::{AllSequences, LONGEST, Marks, Noted};

/// Virtual time for the machine: many times what the longest needs.
const LIMIT: Duration = Duration::from_secs(60);
/// How often a machine is held to be judged.
const PERIOD: Duration = Duration::from_millis(5);
/// The file of what cores note.
const FILE: &str = "marks.json";
/// What FreeRTOS's vector executes until it has read the counter, and that instruction.
const READ_NS: u64 = 2;
/// The core that is measured.
const CORE: usize = 0;

/// Ways of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kind {
    pub found: Found,
    pub switched: bool,
    pub departed: bool,
    /// What each stage took, ns.
    pub stages: Vec<Distribution>,
    /// All stages but the guest's own, ns.
    pub response: Distribution,
    /// What each stage took of the interrupt with the longest response, ns.
    pub of_longest: Vec<u32>,
}

/// What a run brought.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    pub case: Case,
    pub real_s: f64,
    pub virtual_s: f64,
    pub kinds: Vec<Kind>,
    /// By how much the stages' sum is off the response that FreeRTOS measured, at most, ns.
    pub off_ns: u64,
    /// Activations that FreeRTOS told of.
    pub activations: u64,
}

measured!(Seen, case: Case, real_s);

/// Runs `case` with its files in the directory of `bench`, and tells how far it is.
///
/// # Errors
/// When the machine fails, a guest does not do its work, a mark is missing, or Ctrl-C comes.
pub fn run(case: &Case, bench: &Bench, tell: Tell<'_>) -> Result<Seen> {
    let system = bench.kept(&machine::description(case, &bench.root))?;
    let bundle = bench.pack(&system)?;
    let image = Images::of(&bench.root).rtos;
    let all = marks::find(&bundle, bench.hypervisor.of(&system), RTOS, &image)?;
    let file = bench.directory.join(FILE);
    let session = bench.session(&bundle, LIMIT)?.held_every(PERIOD);
    let session = session.with_marks(Marks { file: file.clone(), all });
    let finely = case.route.is_raised_elsewhere();
    let session = if finely { session.with_quantum(FINE_QUANTUM_NS) } else { session };
    let mut is_early = false;
    let run = session.shown_by(Box::new(ProgressView(tell))).run(|now| {
        let linux = now.said.guests.get(LINUX).map(|guest| &guest.linux);
        let header = now.observer.reports(RTOS).and_then(|reports| reports.header);
        let begun = header.is_some_and(|header| header.written > 0);
        is_early |= begun && !linux.is_none_or(|linux| is_at(case.load, linux));
        let over = now.observer.is_over(RTOS);
        is_early || over || linux.is_some_and(|linux| linux.failed.is_some())
    })?;
    ensure!(!bench.interrupt.requested(), "interrupted");
    ensure!(
        !is_early,
        "FreeRTOS began before Linux had set to work: BESIDE_LINUX_MS in \
         crates/lab/src/bench/kvm_rt/stages/machine.rs is too short for this Linux"
    );
    run.without_faults()?;
    let noted = AllSequences::read(&file).into_diagnostic();
    let noted = noted.wrap_err_with(|| format!("cannot read {}", file.display()))?;
    let seen = seen(case, &run, &noted)?;
    // It says nothing more.
    std::fs::remove_file(&file).into_diagnostic()?;
    Ok(seen)
}

/// Returns true if Linux does what it is to do all the time.
fn is_at(load: Load, linux: &LinuxProgress) -> bool {
    match load {
        Load::Alone | Load::Spin => true,
        Load::Idle => linux.done,
        Load::Compute => !linux.work_s.is_empty(),
        Load::Hackbench => linux.busy,
    }
}

/// Takes what the run left apart.
fn seen(case: &Case, run: &Run, noted: &AllSequences) -> Result<Seen> {
    let unfinished = |why: String| run.unfinished(&why);
    let reports = run.observer.reports(RTOS);
    let samples = samples(case, reports).map_err(unfinished)?;
    let slack_ns = if case.route.is_raised_elsewhere() { FINE_QUANTUM_NS } else { 0 };
    let (mut kinds, mut off_ns) = (Vec::new(), 0);
    for sample in &samples {
        let notes = sequence(noted, sample).map_err(unfinished)?;
        let way = fold::way(noted, notes, sample.raised.saturating_sub(slack_ns))
            .map_err(unfinished)?
            .without(slack_ns);
        let response: u64 = way.stages[..RESPONSE].iter().sum();
        off_ns = off_ns.max((response + READ_NS).abs_diff(sample.response.into()));
        add(&mut kinds, &way, response);
    }
    Ok(Seen {
        case: *case,
        real_s: run.elapsed.as_secs_f64(),
        virtual_s: run.virtual_time().unwrap_or_default().as_secs_f64(),
        kinds,
        off_ns,
        activations: samples.len() as u64,
    })
}

/// Returns all activations that FreeRTOS told of.
fn samples(case: &Case, reports: Option<&Reports>) -> Result<Vec<Sample>, String> {
    let samples: Vec<Sample> = reports.iter().flat_map(|reports| reports.latest()).collect();
    let wanted = case.activations as usize;
    if samples.len() != wanted {
        return Err(format!("FreeRTOS told of {} of {wanted} activations", samples.len()));
    }
    Ok(samples)
}

/// Returns the marks that led to the activation.
fn sequence<'a>(noted: &'a AllSequences, sample: &Sample) -> Result<&'a [Noted], String> {
    let vector_ns = (sample.raised + u64::from(sample.response)).saturating_sub(READ_NS);
    let all = noted.vcpus.get(CORE).map(|core| &core.kept);
    let all = all.ok_or("the instrument noted nothing")?;
    let at = all.partition_point(|notes| notes.last().is_some_and(|last| last.2 < vector_ns));
    let notes = all.get(at).map(Vec::as_slice);
    let is_its = |notes: &&[Noted]| {
        let vector = notes.iter().rev().find(|one| noted.name(one) == VECTOR);
        vector.is_some_and(|vector| vector.2 == vector_ns)
    };
    let notes = notes
        .filter(is_its)
        .ok_or_else(|| format!("no sequence of marks has the guest's vector at {vector_ns} ns"))?;
    // A vCPU that waits may wait for longer than the instrument remembers.
    if notes.len() == LONGEST && notes[0].2 > sample.raised {
        return Err(format!("marks that led to the guest's vector at {vector_ns} ns are lost"));
    }
    Ok(notes)
}

impl Way {
    /// Takes off what was added to look for marks that another core's clock has before the raise.
    fn without(mut self, slack_ns: u64) -> Self {
        self.stages[0] = self.stages[0].saturating_sub(slack_ns);
        self
    }
}

fn add(kinds: &mut Vec<Kind>, way: &Way, response: u64) {
    let is_it = |kind: &Kind| {
        (kind.found, kind.switched, kind.departed) == (way.found, way.switched, way.departed)
    };
    let at = kinds.iter().position(is_it).unwrap_or_else(|| {
        kinds.push(Kind {
            found: way.found,
            switched: way.switched,
            departed: way.departed,
            stages: vec![Distribution::default(); COUNT],
            response: Distribution::default(),
            of_longest: Vec::new(),
        });
        kinds.len() - 1
    });
    let narrow = |ns: u64| u32::try_from(ns).unwrap_or(u32::MAX);
    let kind = &mut kinds[at];
    for (all, &ns) in kind.stages.iter_mut().zip(&way.stages) {
        all.record(narrow(ns));
    }
    if kind.response.max().is_none_or(|longest| longest < narrow(response)) {
        kind.of_longest = way.stages.map(narrow).into();
    }
    kind.response.record(narrow(response));
}

#[cfg(test)]
mod tests {
    use super::super::marks::HANDLER;
    use super::*;
    use vtime::marks::Sequences;

    #[test]
    fn the_stages_of_the_longest_response_are_of_one_interrupt() {
        let mut kinds = Vec::new();
        for stages in [[1, 2, 90, 4, 5, 6, 7], [1, 2, 3, 200, 5, 6, 7], [1, 2, 3, 4, 150, 6, 900]] {
            let (found, switched, departed) = (Found::Idle, false, false);
            let way = Way { stages, found, switched, departed };
            add(&mut kinds, &way, stages[..RESPONSE].iter().sum());
        }
        assert_eq!(kinds[0].of_longest, [1, 2, 3, 200, 5, 6, 7]);
        assert_eq!(kinds[0].response.max(), Some(217));
    }

    #[test]
    fn an_activation_is_found_by_its_vector() {
        let mut core = Sequences::default();
        for at in [1_000, 2_000] {
            core.note(Noted(0, None, at), false);
            core.note(Noted(1, None, at + 50), true);
        }
        let names = vec![VECTOR.into(), HANDLER.into()];
        let noted = AllSequences { names, vcpus: vec![core] };
        let sample = |response| Sample { raised: 1_900, response, dispatch: 0 };
        assert_eq!(sequence(&noted, &sample(102)).unwrap()[0].2, 2_000);
        assert!(sequence(&noted, &sample(103)).unwrap_err().contains("at 2001 ns"));
        assert!(sequence(&noted, &sample(1_000)).is_err());
    }

    #[test]
    fn marks_that_are_lost_are_no_stages() {
        let mut core = Sequences::default();
        for at in 0..LONGEST as u64 - 2 {
            core.note(Noted(2, None, 1_000 + at), false);
        }
        core.note(Noted(0, None, 2_000), false);
        core.note(Noted(1, None, 2_050), true);
        let names = vec![VECTOR.into(), HANDLER.into(), "resume".into()];
        let noted = AllSequences { names, vcpus: vec![core] };
        let sample = |raised| Sample { raised, response: 2_002 - raised as u32, dispatch: 0 };
        assert!(sequence(&noted, &sample(1_000)).is_ok());
        assert!(sequence(&noted, &sample(999)).unwrap_err().contains("2000 ns are lost"));
    }
}
