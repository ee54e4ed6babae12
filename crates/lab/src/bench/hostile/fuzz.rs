//! Mixtures of all attacks by seed, as many as asked for. What an earlier call has run is not run
//! again, so that the next one goes on there.

use super::case::{Adversary, Case, NONE};
use super::seen::Seen;
use super::{VCPUS, inputs};
use crate::answer::Answer;
use crate::bench::campaign::Findings;
use crate::bench::experiment::{Experiment, Extent};
use crate::bench::inputs::Inputs;
use crate::bench::store::{self, measured};
use crate::bench::{Label, Tell};
use crate::dataset::{Dataset, Unit};
use crate::quantity::{count, real};
use crate::results::{Check, Goal};
use crate::suite::{Bench, side_by_side};
use clap::Args;
use miette::Result;
use sched::policy::MigrationPolicy;
use serde::{Deserialize, Serialize};

/// Operations of one machine.
const PER_MACHINE: u64 = 1_000_000;
/// Virtual time in which it must have done them, ms.
const LENGTH_MS: u64 = 60_000;

/// The experiment.
#[derive(Clone, Copy, Debug)]
pub struct Fuzz;

/// What can be asked of it.
#[derive(Args, Debug)]
pub struct Options {
    /// Hostile operations in all, at least; with --quick a tenth of them
    #[arg(long, value_name = "N", default_value_t = 10_000_000,
          value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000))]
    operations: u64,
    /// The seed of the first machine; each next one has the next
    #[arg(long, value_name = "SEED", default_value_t = 1,
          value_parser = clap::value_parser!(u64).range(1..=0xffff_ffff))]
    seed: u64,
}

/// One machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// From which its adversary follows.
    seed: u64,
}

impl Machine {
    /// Returns the adversary: each next seed has another number of vCPUs, each other one has all of
    /// them on FreeRTOS's core, each third one has another policy, and one in two rounds of all
    /// policies has the standing of a real-time VM and no policy. In two of four rounds another core
    /// wakes FreeRTOS; the first two are not among them, so seeds below 114 are what they were before.
    fn case(&self) -> Case {
        let (seed, policies) = (self.seed, MigrationPolicy::ALL);
        let vcpus = VCPUS[(seed % VCPUS.len() as u64) as usize];
        let round = seed / VCPUS.len() as u64;
        let policy = policies[(round % policies.len() as u64) as usize].name().to_owned();
        let needs_realtime =
            policies.iter().any(|one| one.name() == policy && one.needs().for_realtime);
        let lap = round / policies.len() as u64;
        let is_realtime = !needs_realtime && lap % 2 == 1;
        // A FreeRTOS that makes way has one vCPU.
        let is_woken = !needs_realtime && lap / 2 % 2 == 1;
        // A real-time VM is moved by no policy but those that are for it.
        let policy = if is_realtime { NONE.into() } else { policy };
        let mode = "mix".into();
        let crowds = seed % 2 == 1;
        let adversary = Adversary { mode, vcpus, crowds, policy, is_realtime, seed };
        Case { adversary: Some(adversary), is_woken, length_ms: LENGTH_MS }
    }
}

impl store::Case for Machine {
    fn name(&self) -> String {
        format!("seed-{}", self.seed)
    }

    fn config_text(&self) -> String {
        let case = self.case();
        format!("{case:?} {} {PER_MACHINE}", store::Case::config_text(&case))
    }
}

/// What a machine brought.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Brought {
    case: Machine,
    seen: Seen,
}

measured!(Brought, case: Machine, seen.real_s);

impl Experiment for Fuzz {
    const LABEL: Label = Label {
        name: "fuzz",
        about: "Attack the hypervisor by chance, for as many operations as asked for",
        details: "Runs machines, each with an adversary that mixes all attacks of `cassata bench \
                  hostile` by its seed, on one, two or eight vCPUs, under each policy in turn, \
                  beside FreeRTOS and a second real-time VM; from seed 114 on another core wakes \
                  FreeRTOS in half of the rounds. Fails if the hypervisor stops or \
                  meets what cannot happen, if a neighbour stops, misses an activation or finds \
                  something of its changed, and names the seed. A seed repeats to the \
                  instruction.\n\n\
                  What was run is kept: after Ctrl-C, or with more operations, another call goes \
                  on there.",
        examples: "  cassata fuzz                              ten million operations\n  \
                   cassata fuzz --operations 1000000000      a thousand million\n  \
                   cassata fuzz --seed 17 --operations 1     one machine again",
    };
    type Options = Options;
    type Case = Machine;
    type Seen = Brought;

    fn inputs(&self, bench: &Bench) -> Result<Inputs> {
        inputs(bench)
    }

    fn side_by_side(&self) -> usize {
        side_by_side()
    }

    fn cases(&self, extent: Extent, options: &Options) -> Vec<Machine> {
        let machines = extent.part(options.operations).div_ceil(PER_MACHINE);
        (options.seed..options.seed + machines).map(|seed| Machine { seed }).collect()
    }

    fn run(&self, machine: &Machine, bench: &Bench, tell: Tell<'_>) -> Result<Brought> {
        let mut seen = machine.case().run_for(PER_MACHINE, &[], bench, tell)?;
        if seen.operations < PER_MACHINE {
            let done = seen.operations;
            seen.broken.push(format!("the adversary did {done} operations, and then no more"));
        }
        Ok(Brought { case: machine.clone(), seen })
    }

    fn answer(&self, found: Findings<Brought>, _: &Bench) -> Result<Answer> {
        Ok(answer(&found.measurements))
    }
}

fn answer(machines: &[Brought]) -> Answer {
    let lead = "Machines with an adversary that mixes all attacks by a seed.";
    let mut answer = Answer::new("fuzz", "Hostile by chance", lead);
    let operations: u64 = machines.iter().map(|machine| machine.seen.operations).sum();
    let exits: u64 = machines.iter().map(|machine| machine.seen.exits).sum();
    answer.tile(count(operations), "hostile operations");
    answer.tile(count(exits), "exits to EL2");
    answer.outcome.figure("operations", operations);
    answer.outcome.figure("exits", exits);
    answer.data(&data(machines));
    let bad: Vec<_> = machines.iter().filter(|one| !one.seen.objections().is_empty()).collect();
    let seeds: Vec<u64> = bad.iter().map(|machine| machine.case.seed).collect();
    answer.outcome.figure("seeds_that_found_something", seeds);
    let zero = Goal::Exactly(0.0);
    let found = real(bad.len() as u64);
    answer.outcome.check(Check::new("seeds that found something", found, "", zero));
    for machine in bad {
        let said = machine.seen.objections().join("\n  ");
        answer.remark(&format!("Seed {}:\n  {said}", machine.case.seed));
    }
    answer
}

fn data(machines: &[Brought]) -> Dataset {
    let adversary = |machine: &Brought| machine.case.case().adversary;
    let us = |ns: Option<u64>| ns.map(|ns| real(ns) / 1e3);
    Dataset::of("machines", "Machines", machines)
        .name("seed", |machine: &&Brought| machine.case.seed)
        .name("vcpus", move |machine| adversary(machine).map(|a| u64::from(a.vcpus)))
        .head("vCPUs")
        .name("policy", move |machine| adversary(machine).map_or_else(String::new, |a| a.policy))
        .name(
            "woken_by",
            |machine| {
                if machine.case.case().is_woken { "another core" } else { "its timer" }
            },
        )
        .head("woken by")
        .name("operations", |machine| machine.seen.operations)
        .name("exits", |machine| machine.seen.exits)
        .name("starts", |machine| machine.seen.starts)
        .column("dispatch", Unit::Microseconds, move |machine| {
            us(machine.seen.rtos.worst_dispatch_ns())
        })
        .head("worst dispatch")
        .column("longest_at_el2", Unit::Microseconds, |machine| {
            real(machine.seen.longest_el2_ns) / 1e3
        })
        .head("longest at EL2")
        .name("found", |machine| machine.seen.objections().len() as u64)
        .done()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn seeds_come_to_every_policy_with_every_number_of_vcpus() {
        let all = MigrationPolicy::ALL.len() * VCPUS.len();
        let cases = (1..=2 * all as u64).map(|seed| Machine { seed }.case());
        let adversaries: Vec<_> = cases.filter_map(|case| case.adversary).collect();
        let kinds: BTreeSet<_> = adversaries.iter().map(|a| (a.vcpus, a.policy.clone())).collect();
        assert_eq!(kinds.len(), all);
        assert!(adversaries.iter().any(|a| a.is_realtime));
        assert!(
            adversaries.iter().all(|a| !a.is_realtime || a.policy == NONE),
            "`check` refuses it"
        );
    }

    #[test]
    fn another_core_wakes_freertos_under_every_policy_that_lets_it() {
        let all = MigrationPolicy::ALL.len() * VCPUS.len();
        let cases: Vec<_> = (1..=4 * all as u64).map(|seed| Machine { seed }.case()).collect();
        assert!(cases[..2 * all - 1].iter().all(|case| !case.is_woken), "they stay what they were");
        let of = |case: &Case| {
            let adversary = case.adversary.as_ref().unwrap();
            (adversary.vcpus, adversary.policy.clone())
        };
        let woken = cases.iter().filter(|case| case.is_woken);
        let kinds: BTreeSet<_> = woken.clone().map(of).collect();
        let may = |policy: &&MigrationPolicy| !policy.needs().for_realtime;
        let policies = MigrationPolicy::ALL.iter().filter(may).count();
        assert_eq!(kinds.len(), policies * VCPUS.len());
        assert!(woken.clone().any(|case| case.adversary.as_ref().unwrap().is_realtime));
        woken.for_each(Case::assert_understood);
    }

    #[test]
    fn more_operations_are_more_machines_and_the_first_stay() {
        let of = |operations| Fuzz.cases(Extent::Full, &Options { operations, seed: 5 });
        let (few, many) = (of(1), of(3 * PER_MACHINE));
        assert_eq!((few.len(), many.len()), (1, 3));
        assert_eq!(few[0], many[0]);
    }
}
