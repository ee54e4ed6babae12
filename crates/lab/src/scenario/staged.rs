//! A system description from `guests/probe/systems`, booted and judged.

use super::LIMIT;
use super::expect::{Expect, Seen};
use crate::bundle::Bundle;
use crate::figures;
use crate::guests::Transcript;
use crate::machine::Memory;
use crate::observe::Observer;
use crate::results::{Check, Outcome};
use crate::session::{End, Run};
use crate::suite::{Bench, Scenario};
use abi::status::vm_state;
use miette::Result;
use std::time::Duration;

/// A scenario with VMs and what is expected of each.
#[derive(Clone, Copy, Debug)]
pub struct Staged {
    /// The name, and that of its description: `guests/probe/systems/NAME.toml`.
    pub name: &'static str,
    /// One sentence: what it shows.
    pub about: &'static str,
    /// Every VM, by name.
    pub expect: &'static [(&'static str, Expect)],
    /// What must hold besides, at the end; the reason if it does not.
    pub besides: fn(&Observer) -> Option<String>,
    /// For how long its declared tasks have jobs, each within its period and its bound; none: it is not looked at
    /// tasks.
    pub tasks_for: Option<Duration>,
    /// A VM whose memory is to be filled and must not have been at the end: EL2 has done nothing but what comes
    /// before that.
    pub unfilled: Option<&'static str>,
    /// Virtual time at which it fails.
    pub limit: Duration,
    /// It runs the build that ships, see [`Scenario::shipped`].
    pub shipped: bool,
    /// A guest's WFE is taken to EL2 where that is asked for.
    pub wfe_traps: bool,
    /// How far apart the cores' clocks may be; none: the instrument's default.
    pub quantum_ns: Option<u64>,
    /// What QEMU is told besides, such as of a device of the board.
    pub qemu: &'static [&'static str],
}

impl From<Staged> for Scenario {
    fn from(staged: Staged) -> Self {
        let scenario = Self::new(staged.name, staged.about, move |bench: &Bench| {
            staged.run(bench, &[], staged.besides)
        });
        if staged.shipped { scenario.shipped() } else { scenario }
    }
}

/// Returns where the description `name` is, below the project's root.
pub fn description(name: &str) -> String {
    format!("guests/probe/systems/{name}.toml")
}

impl Staged {
    /// Returns a scenario in which `expect` is all that must hold, within [`LIMIT`].
    pub const fn new(
        name: &'static str,
        about: &'static str,
        expect: &'static [(&'static str, Expect)],
    ) -> Self {
        Self {
            name,
            about,
            expect,
            besides: |_| None,
            tasks_for: None,
            unfilled: None,
            limit: LIMIT,
            shipped: false,
            wfe_traps: false,
            quantum_ns: None,
            qemu: &[],
        }
    }

    /// Returns a scenario in which `besides` must hold too.
    pub const fn besides(self, besides: fn(&Observer) -> Option<String>) -> Self {
        Self { besides, ..self }
    }

    /// Returns a scenario in which each task that is declared has a job in each of its periods for `tasks_for`, and
    /// each job ends within its period and its bound.
    pub const fn with_tasks(self, tasks_for: Duration) -> Self {
        Self { tasks_for: Some(tasks_for), ..self }
    }

    /// Returns a scenario in which nothing is in the memory of VM `unfilled` at the end.
    pub const fn with_unfilled(self, unfilled: &'static str) -> Self {
        Self { unfilled: Some(unfilled), ..self }
    }

    /// Returns a scenario in which a guest's WFE is taken to EL2 where EL2 asks for that.
    pub const fn with_wfe_traps(self) -> Self {
        Self { wfe_traps: true, ..self }
    }

    /// Returns a scenario in which clocks of cores are no further apart than this: what it judges is a time
    /// from one core to another.
    pub const fn with_quantum(self, quantum_ns: u64) -> Self {
        Self { quantum_ns: Some(quantum_ns), ..self }
    }

    /// Returns a scenario that runs the build that ships: what it judges is a time.
    pub const fn shipped(self) -> Self {
        Self { shipped: true, ..self }
    }

    /// Runs it with the first of each of `edits` replaced by the second in the description,
    /// until all that is awaited has come, or cannot come any more; at the end, `besides` must
    /// have no objection.
    pub fn run(
        &self,
        bench: &Bench,
        edits: &[(String, String)],
        besides: impl Fn(&Observer) -> Option<String>,
    ) -> Result<()> {
        let bundle = bench.pack(&bench.described(&description(self.name), edits)?)?;
        let session = bench.session(&bundle, self.limit)?;
        let session = session.with_qemu_arguments(self.qemu.iter().map(ToString::to_string));
        let session = if self.wfe_traps { session.with_wfe_traps() } else { session };
        let session = match self.quantum_ns {
            Some(quantum_ns) => session.with_quantum(quantum_ns),
            None => session,
        };
        let session = match self.unfilled {
            Some(vm) => session.inspected_by(Box::new(move |memory| filled(vm, &bundle, memory))),
            None => session,
        };
        let run = session.run(|now| self.is_over(now.said, now.observer))?;
        let objections = self.objections(&run, besides(&run.observer));
        bench.judge(&run, self.outcome(&run, objections.is_empty()), &objections)
    }

    /// Nothing more is awaited, or something that endures has ended.
    fn is_over(&self, said: &Transcript, observer: &Observer) -> bool {
        let settled = |(name, expect): &(&str, Expect)| {
            Seen::of(name, said, observer).is_none_or(|seen| expect.settled(&seen))
        };
        let (awaited, others): (Vec<_>, Vec<_>) =
            self.expect.iter().partition(|(_, expect)| expect.is_awaited());
        let Some(now) = observer.latest() else { return false };
        // With no VM left, the machine has yet to switch itself off.
        now.vms.iter().any(|vm| matches!(vm.state, vm_state::RUNNING | vm_state::LOADING))
            && (awaited.into_iter().all(settled) || others.into_iter().any(settled))
    }

    /// Returns everything it found, by which it is compared with another run.
    fn outcome(&self, run: &Run, is_good: bool) -> Outcome {
        let mut outcome = figures::outcome(self.name, run);
        outcome.figure("ended", run.end.about());
        outcome.figure("hypervisor_console", run.said.hypervisor.lines.clone());
        for (vm, guest) in run.observer.layout.vms.iter().zip(&run.said.guests) {
            let passed = serde_json::json!(guest.probe.passed);
            outcome.figure(&format!("{} passed", vm.name), passed);
            outcome.figure(&format!("{} failed", vm.name), guest.probe.failed.clone());
        }
        outcome.check(Check::done("every VM did what is expected", is_good));
        outcome
    }

    fn objections(&self, run: &Run, besides: Option<String>) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for (name, expect) in self.expect {
            let objection = match Seen::of(name, &run.said, &run.observer) {
                None => Some("there is no such VM".into()),
                Some(seen) => expect.objection(&seen),
            };
            all.extend(objection.map(|why| format!("{name}: {why}")));
        }
        if self.expect.len() != run.observer.layout.vms.len() {
            all.push("there are VMs of which nothing is expected".into());
        }
        let all_end = self.expect.iter().all(|(_, expect)| expect.ends());
        if all_end && run.end != End::PoweredOff {
            all.push("it did not switch itself off when no VM was left".into());
        }
        if matches!(run.end, End::TimeOver | End::AtRest) {
            all.push(run.end.about().into());
        }
        all.extend(self.tasks_for.iter().flat_map(|&tasks_for| tasks_broken(run, tasks_for)));
        all.extend(run.inspected.iter().cloned());
        all.into_iter().chain(besides).collect()
    }
}

/// Returns an objection if something is in the memory of VM `vm` where the first thing is loaded.
fn filled(vm: &str, bundle: &Bundle, memory: &Memory) -> Result<Vec<String>> {
    let table = &bundle.tables.vms[bundle.layout().vm_called(vm)?];
    let load = &bundle.tables.loads[usize::from(table.load_first)];
    let mut begin = [0; 64];
    memory.read_bytes(load.dst_pa, &mut begin)?;
    let is_filled = begin.iter().any(|&byte| byte != 0);
    Ok(Vec::from_iter(is_filled.then(|| format!("{vm}: its memory is filled already"))))
}

/// Returns what is wrong with the declared tasks of `run`, other than a response beyond its bound, which
/// [`Bench::judge`] looks for.
fn tasks_broken(run: &Run, tasks_for: Duration) -> Vec<String> {
    let (promises, observer) = (&run.promises, &run.observer);
    let uncertain = (!promises.schedulable()).then(|| "no bound is certain".to_owned());
    let unseen = promises.unseen(observer).into_iter().map(|task| format!("{task} was not seen"));
    let broken = promises.responses(observer).into_iter().filter_map(|seen| {
        let least = tasks_for.as_nanos() / seen.period.as_nanos().max(1);
        let (jobs, late, bound) = (seen.jobs, seen.late, seen.bound);
        (u128::from(jobs) < least || late > 0 || bound.is_none()).then(|| {
            let task = seen.task;
            format!("{task} had {jobs} jobs, of at least {least}, and {late} were late ({bound:?})")
        })
    });
    uncertain.into_iter().chain(unseen).chain(broken).collect()
}
