//! One machine, run and judged.

use super::description::{BEGIN_MS, mutex_name, vm_name};
use super::machine::Machine;
use crate::bench::store::{self, measured};
use crate::bench::{ProgressView, Tell};
use crate::figures::promises;
use crate::guests::Images;
use crate::promises::{Claim, SeenResponse};
use crate::quantity::ns;
use crate::results::{Outcome, write_file};
use crate::session::{End, PERIOD, Run};
use crate::suite::Bench;
use abi::status::vm_state;
use analysis::model::{Section, Task};
use miette::{Result, miette};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Virtual time in which tasks arrive: most have ten jobs or more.
const LENGTH_MS: u64 = 300;

/// Which machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// From which its systems are drawn.
    pub seed: u64,
}

/// What a machine brought.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// The machine.
    pub case: Case,
    /// Real time from start to end, in seconds.
    pub real_s: f64,
    /// How many systems it ran.
    pub systems: u64,
    /// Every task.
    pub tasks: Vec<SeenTask>,
    /// Global critical sections, and how many of them a task waited for.
    pub sections: [u64; 2],
    /// vCPUs of which it was seen what they had in each period, and all vCPUs: all have budgets.
    pub supplies: [u64; 2],
    /// What did not hold, a sentence each.
    pub broken: Vec<String>,
}

/// The worst that was seen of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenTask {
    /// The name in the description.
    pub name: String,
    /// Jobs that are complete.
    pub jobs: u64,
    /// The longest response, ns.
    pub longest_ns: u64,
    /// What it must not exceed, ns.
    pub bound_ns: u64,
}

impl store::Case for Case {
    fn name(&self) -> String {
        format!("machine-{}", self.seed)
    }

    fn config_text(&self) -> String {
        Machine::draw(self.seed).text("probe".as_ref())
    }
}

measured!(Seen, case: Case, real_s);

impl Case {
    /// Runs the machine, with its description and its logs in the directory of `bench`.
    pub fn run(&self, bench: &Bench, tell: Tell<'_>) -> Result<Seen> {
        let start = Instant::now();
        let machine = Machine::draw(self.seed);
        let run = boot(&machine, bench, tell)?;
        if run.end == End::Interrupted {
            return Err(miette!("interrupted"));
        }
        let mut broken = promises::check(&mut Outcome::new("x"), &run);
        let responses = run.promises.responses(&run.observer);
        let claims = run.promises.claims(&run.observer);
        broken.extend(unseen(&machine, &responses, &claims));
        let budgets = run.promises.budgets(&run.observer);
        let judged = budgets.iter().filter(|seen| seen.most().is_some()).count();
        broken.extend(strange(&run, &responses));
        let vcpus = machine.systems.iter().map(|drawn| drawn.system.vcpus.len()).sum::<usize>();
        let task = |seen: SeenResponse| SeenTask {
            name: seen.task,
            jobs: seen.jobs,
            longest_ns: ns(seen.longest),
            bound_ns: seen.bound.map_or(0, ns),
        };
        Ok(Seen {
            case: *self,
            real_s: start.elapsed().as_secs_f64(),
            systems: machine.systems.len() as u64,
            sections: run.promises.sections(&run.observer),
            supplies: [judged, vcpus].map(|count| count as u64),
            tasks: responses.into_iter().map(task).collect(),
            broken,
        })
    }
}

/// Returns which of the drawn tasks were not seen, and which of those seen did not report a section of
/// each mutex that they use for each of their jobs: without those no order would be judged.
fn unseen(
    machine: &Machine,
    responses: &[SeenResponse],
    claims: &[(&str, Vec<Claim>)],
) -> Vec<String> {
    let mut all = Vec::new();
    for (number, drawn) in machine.systems.iter().enumerate() {
        for task in &drawn.system.tasks {
            let name = format!("{}/{}", vm_name(number, drawn, task.vcpu), task.id);
            let Some(seen) = responses.iter().find(|seen| seen.task == name) else {
                all.push(format!("{name} was not seen"));
                continue;
            };
            for (mutex, sections) in mutexes(number, task) {
                let due = seen.jobs * sections;
                let found = claims.iter().find(|(name, _)| *name == mutex);
                let claim = found.and_then(|(_, all)| all.iter().find(|c| c.task == name));
                let reported = claim.map_or(0, |claim| claim.sections.len() as u64);
                // Of the sections for which there is no room, only the number is reported.
                let is_whole = claim.is_none_or(|claim| claim.until == u64::MAX);
                if reported == 0 || (is_whole && reported < due) {
                    all.push(format!(
                        "{name} reported {reported} of {due} sections in which it held {mutex}"
                    ));
                }
            }
        }
    }
    all
}

fn boot(machine: &Machine, bench: &Bench, tell: Tell<'_>) -> Result<Run> {
    let text = machine.text(&Images::of(&bench.root).probe);
    let path = bench.directory.join("machine.toml");
    write_file(&path, text.as_bytes())?;
    let bundle = bench.pack(&system::load_text(&path, &text)?)?;
    if !bundle.promises.schedulable() {
        return Err(miette!("its systems are schedulable one by one, and not together"));
    }
    let limit = Duration::from_millis(BEGIN_MS + LENGTH_MS);
    let mut session = bench.session(&bundle, limit)?.shown_by(Box::new(ProgressView(tell)));
    // Budgets may be shorter than those for which any run is looked at so often: this one is short.
    if let Some(period) = bundle.promises.look_every() {
        session = session.held_every(period.min(PERIOD));
    }
    session.run(|_| false)
}

/// Returns what keeps the run from saying anything of the bounds, and faults of the hypervisor.
fn strange(run: &Run, responses: &[SeenResponse]) -> Vec<String> {
    let mut all = run.hypervisor_faults();
    if run.end != End::TimeOver {
        all.push(run.end.about().into());
    }
    let Some(now) = run.observer.latest() else { return all };
    for (vm, layout) in run.observer.layout.vms.iter().enumerate() {
        all.extend(run.said.guests[vm].probe.failed.iter().cloned());
        if now.vms[vm].state != vm_state::RUNNING {
            all.push(format!("{} does not run any more", layout.name));
        }
        if run.observer.tasks(vm).is_none_or(|tasks| tasks.header.is_none()) {
            all.push(format!("{} does not report of tasks", layout.name));
        }
    }
    let idle = responses.iter().filter(|seen| seen.jobs == 0);
    all.extend(idle.map(|seen| format!("{} has completed no job", seen.task)));
    all
}

/// Returns the global mutexes that a task of system `number` uses, each with how many sections of a job hold it.
fn mutexes(number: usize, task: &Task) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for segment in &task.segments {
        if let Section::Global(resource) = segment.section {
            *all.entry(mutex_name(number, resource)).or_default() += 1;
        }
    }
    all
}
