//! A real-time hypervisor measured as the paper on KVM does (Ma and others, "Performance Tuning Towards a
//! KVM-based Embedded Real-Time Virtualization System").
//!
//! | module | story |
//! | --- | --- |
//! | [`stages`] | the way of an interrupt to its guest, stage by stage |
//! | [`boosts`] | soft real-time work beside a guest that uses what is left |
//! | [`dispatch`] | how late a real-time process of Linux's is, on the board and as a guest |
//! | [`pair`], [`program`] | the system of the last two: two guests that share a core, and what the other one does |

mod boosts;
mod dispatch;
mod pair;
mod program;
mod stages;

use super::campaign::Findings;
use super::experiment::{Experiment, Extent};
use super::inputs::Inputs;
use super::store::{self, Measured};
use super::{Conduct, Label, Tell};
use crate::answer::Answer;
use crate::guests::Images;
use crate::results::{Check, Outcome};
use crate::suite::{Bench, Scenario};
use miette::Result;
use program::Program;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A ratio is of *little change*, as the paper says of some, when it is within a fifth.
const LITTLE: [f64; 2] = [0.8, 1.2];
/// Section 6: tuned, the longest latency is below a millisecond.
const SUB_MS_NS: f64 = 1e6;

/// What is conducted from here.
pub(super) const EXPERIMENTS: &[&dyn Conduct] = &[&KvmRt];

/// The experiment.
#[derive(Clone, Copy, Debug)]
pub struct KvmRt;

/// It has no options of its own.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Options {}

/// One run of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Case {
    Stages(stages::Case),
    Boosts(boosts::Case),
    Dispatch(dispatch::Case),
}

/// What a run brought, and which it was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Seen {
    Stages(Case, stages::Seen),
    Boosts(Case, boosts::Seen),
    Dispatch(Case, dispatch::Seen),
}

impl store::Case for Case {
    fn name(&self) -> String {
        match self {
            Self::Stages(case) => case.name(),
            Self::Boosts(case) => case.name(),
            Self::Dispatch(case) => case.name(),
        }
    }

    fn work(&self) -> f64 {
        match self {
            Self::Stages(case) => case.work(),
            Self::Boosts(case) => case.work(),
            Self::Dispatch(case) => case.work(),
        }
    }

    fn config_text(&self) -> String {
        match self {
            Self::Stages(case) => case.config_text(),
            Self::Boosts(case) => case.config_text(),
            Self::Dispatch(case) => case.config_text(),
        }
    }
}

impl Measured for Seen {
    type Case = Case;

    fn case(&self) -> &Case {
        match self {
            Self::Stages(case, _) | Self::Boosts(case, _) | Self::Dispatch(case, _) => case,
        }
    }

    fn real_s(&self) -> f64 {
        match self {
            Self::Stages(_, seen) => seen.real_s(),
            Self::Boosts(_, seen) => seen.real_s(),
            Self::Dispatch(_, seen) => seen.real_s(),
        }
    }
}

impl Experiment for KvmRt {
    const LABEL: Label = Label {
        name: "kvm-rt",
        about: "interrupts' ways stage by stage, boosts, and Linux's latencies, as the paper on KVM has them",
        details: "Marks in the hypervisor and in FreeRTOS tell when each of 2,000 interrupts comes \
                  to them, by each way that one can take, beside a Linux that sleeps and one that \
                  works. A Linux or a FreeRTOS with real-time work and other work shares a core \
                  with another Linux, by priorities and by boosts, beside computing, a disk and six \
                  programs. And cyclictest measures stock and PREEMPT_RT Linux, on the board and as \
                  a guest. It takes an hour or two, and goes on where it was stopped; with \
                  --quick it takes a part of that.",
        examples: "  cassata bench kvm-rt --quick\n  \
                   cassata bench kvm-rt --point stages-departure",
    };
    type Options = Options;
    type Case = Case;
    type Seen = Seen;

    fn inputs(&self, bench: &Bench) -> Result<Inputs> {
        let images = Images::of(&bench.root);
        let inputs = Inputs::of(bench)?.hypervisor(bench).linux(bench)?;
        let inputs = inputs.files("freertos", &[&images.rtos])?;
        // The launcher makes them for points that need them.
        let packed = Program::packed().map(Program::name).chain([dispatch::CYCLICTEST]);
        let packed: Vec<_> = packed.map(|name| images.program(name)).collect();
        let all: Vec<_> =
            [&images.rt_kernel].into_iter().chain(&packed).map(PathBuf::as_path).collect();
        if all.iter().all(|path| path.exists()) {
            inputs.files("programs", &all)
        } else {
            Ok(inputs)
        }
    }

    /// Cores take turns, so one machine uses little more than one processor.
    fn side_by_side(&self) -> usize {
        2
    }

    fn cases(&self, extent: Extent, _: &Options) -> Vec<Case> {
        let stages = stages::cases(extent).into_iter().map(Case::Stages);
        let boosts = boosts::cases(extent).into_iter().map(Case::Boosts);
        let dispatch = dispatch::cases(extent).into_iter().map(Case::Dispatch);
        stages.chain(boosts).chain(dispatch).collect()
    }

    fn run(&self, case: &Case, bench: &Bench, tell: Tell<'_>) -> Result<Seen> {
        Ok(match case {
            Case::Stages(one) => Seen::Stages(*case, stages::run(one, bench, tell)?),
            Case::Boosts(one) => Seen::Boosts(*case, boosts::run(one, bench, tell)?),
            Case::Dispatch(one) => Seen::Dispatch(*case, dispatch::run(one, bench, tell)?),
        })
    }

    fn answer(&self, found: Findings<Seen>, _: &Bench) -> Result<Answer> {
        let stages: stages::All = found.part(
            |case| if let Case::Stages(case) = case { Some(*case) } else { None },
            |seen| if let Seen::Stages(_, seen) = seen { Some(seen.clone()) } else { None },
        );
        let boosts: boosts::All = found.part(
            |case| if let Case::Boosts(case) = case { Some(*case) } else { None },
            |seen| if let Seen::Boosts(_, seen) = seen { Some(seen.clone()) } else { None },
        );
        let dispatch: dispatch::All = found.part(
            |case| if let Case::Dispatch(case) = case { Some(*case) } else { None },
            |seen| if let Seen::Dispatch(_, seen) = seen { Some(seen.clone()) } else { None },
        );
        let lead = "What the paper on KVM measures. The way of an interrupt to FreeRTOS's handler is taken \
                    apart as its Section 3.1 does, beside a Linux that sleeps and one that works; a guest \
                    with real-time work and other work shares a core with a Linux as in Sections 4 and 5; and \
                    cyclictest runs in Linux, on the board and as a guest, as in Section 5.3. Time is \
                    virtual: a nanosecond is an instruction of a core. An exception takes none, so \
                    the paper's first stage is part of the second.";
        let mut answer = Answer::new("kvm-rt", "The paper on KVM, here", lead);
        let checks = stages.checks().into_iter().chain(boosts.checks()).chain(dispatch.checks());
        answer.judged(checks, found.measurements.len(), found.all);
        stages.add_to(&mut answer);
        boosts.add_to(&mut answer);
        dispatch.add_to(&mut answer);
        Ok(answer)
    }

    fn scenarios(&self) -> Vec<Scenario> {
        stages::scenarios()
            .into_iter()
            .chain(boosts::scenarios())
            .chain([dispatch::scenario()])
            .collect()
    }
}

/// The first process of Linux, by default.
const INIT: &str = "/init";
/// That of a Linux whose only work is a program that `guests/programs` packs.
const PROGRAMS_INIT: &str = "/programs/init";

/// What a Linux does that is there, and nothing else.
const SLEEPS: &str = "cassata.run=demo cassata.repeat=0 cassata.stay";
/// What one does that computes on each of its CPUs without end.
const COMPUTES: &str =
    "cassata.run=work cassata.work=cpu cassata.count=1024 cassata.repeat=1000000";

/// Returns the command line of a Linux whose first process does this work.
fn command_line(init: &str, work: &str) -> String {
    format!("console=ttyAMA0 rdinit={init} quiet loglevel=4 nokaslr {work}")
}

/// Returns what stands below the tables in a document.
fn verdicts(checks: Vec<Check>) -> String {
    let mut outcome = Outcome::new("kvm-rt");
    checks.into_iter().for_each(|check| outcome.check(check));
    let table = outcome.table().markdown();
    format!("\nFound, beside what is demanded and what the paper says:\n\n{table}")
}
