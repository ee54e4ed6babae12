//! What an experiment is, and how one is conducted: its cases are run, or found where an
//! earlier run has kept them, and what they brought is answered.

use super::campaign::{Campaign, Findings, make};
use super::inputs::Inputs;
use super::store::{Case, Measured, Store};
use super::worker::{self, Points};
use super::{Label, Tell};
use crate::answer::Answer;
use crate::progress::Progress;
use crate::results::Check;
use crate::suite::{Bench, Scenario};
use clap::{ArgMatches, Args, Command};
use miette::{IntoDiagnostic, Result, miette};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::Path;

/// How thoroughly to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// As much as the papers measured, however long it takes; in most experiments that is
    /// [`Extent::Full`].
    Paper,
    /// Everything that is asked for.
    Full,
    /// The same, coarsely, in a few minutes.
    Quick,
}

impl Extent {
    /// Returns how many of so many things are measured: coarsely, a tenth of them.
    pub fn part(self, whole: u64) -> u64 {
        match self {
            Self::Paper | Self::Full => whole,
            Self::Quick => whole.div_ceil(10),
        }
    }
}

/// What can be asked of every experiment that has cases.
#[derive(Args, Clone, Debug)]
struct Request {
    /// Measure less, where it would take long
    #[arg(long)]
    quick: bool,
    /// Measure as much as the papers did, where that takes many hours
    #[arg(long, conflicts_with = "quick")]
    paper: bool,
    /// Measure again what has been measured already
    #[arg(long)]
    fresh: bool,
    /// Only the cases whose names begin so; one that does not exist makes it
    /// tell those that do
    #[arg(long = "point", value_name = "NAME")]
    only: Option<String>,
}

/// A measurement that is made of cases, each of which is kept and used again.
pub trait Experiment: Debug + Sync {
    /// What it is called.
    const LABEL: Label;
    /// The own options on the command line; `()` for none.
    type Options: Args;
    /// One run of a machine.
    type Case: Case;
    /// What a run brought.
    type Seen: Measured<Case = Self::Case>;

    /// Returns what measurements depend on besides their cases.
    ///
    /// # Errors
    /// When a file cannot be read.
    fn inputs(&self, bench: &Bench) -> Result<Inputs>;

    /// Returns how many machines may run at the same time.
    fn side_by_side(&self) -> usize {
        1
    }

    /// Returns the cases, in the order in which they are run.
    fn cases(&self, extent: Extent, options: &Self::Options) -> Vec<Self::Case>;

    /// Runs a case with its files in the directory of `bench`, and tells how far it is.
    ///
    /// # Errors
    /// When the machine fails, a guest does not do its work, or Ctrl-C comes.
    fn run(&self, case: &Self::Case, bench: &Bench, tell: Tell<'_>) -> Result<Self::Seen>;

    /// Answers: datasets, plots, goals.
    ///
    /// # Errors
    /// When something besides the cases cannot be measured.
    fn answer(&self, found: Findings<Self::Seen>, bench: &Bench) -> Result<Answer>;

    /// Returns parts of it that are machine tests.
    fn scenarios(&self) -> Vec<Scenario> {
        Vec::new()
    }
}

/// An experiment, whatever it is made of. One that has no cases implements this itself.
pub trait Conduct: Debug + Sync {
    /// Returns what it is called.
    fn label(&self) -> Label;

    /// Adds its options to those of `command`.
    fn options(&self, command: Command) -> Command {
        command
    }

    /// Returns the name of the directory that a call writes to.
    fn directory(&self, _: &ArgMatches) -> &'static str {
        self.label().name
    }

    /// Checks that there is something to measure with the options of a call.
    ///
    /// # Errors
    /// When no case is called so; names those that are there.
    fn check(&self, _: &ArgMatches) -> Result<()> {
        Ok(())
    }

    /// Measures and answers, with its files in the directory of `bench`. What an earlier run
    /// has measured with the same inputs is not measured again.
    ///
    /// # Errors
    /// When there is no such case, files cannot be read or written, and on Ctrl-C. A case
    /// that fails is no error: its goals are not met.
    fn conduct(&self, options: &ArgMatches, bench: &Bench) -> Result<Answer>;

    /// Returns the points of a call, each of which [`measure`](Conduct::measure) runs, or `None`
    /// when all of it is one.
    ///
    /// # Errors
    /// As [`Conduct::conduct`].
    fn points(&self, _: &ArgMatches, _: &Bench) -> Result<Option<Points>> {
        Ok(None)
    }

    /// Runs the point called `name`, beside others that share nothing with it but the directory of
    /// `bench`, and keeps what it brings. Returns why it brought nothing, if so.
    ///
    /// # Errors
    /// When there is no such point, files cannot be read or written, and on Ctrl-C.
    fn measure(&self, _: &ArgMatches, name: &str, _: &Bench) -> Result<Option<String>> {
        let whole = self.label().name;
        Err(miette!(
            help = format!("`cassata bench {whole}` runs it"),
            "there is no point `{name}`: {whole} is measured as a whole"
        ))
    }

    /// Answers what points have brought, and runs none. What is one point is conducted.
    ///
    /// # Errors
    /// As [`Conduct::conduct`].
    fn merge(&self, options: &ArgMatches, bench: &Bench) -> Result<Answer> {
        self.conduct(options, bench)
    }

    /// Returns parts of it that are machine tests.
    fn scenarios(&self) -> Vec<Scenario> {
        Vec::new()
    }
}

impl<E: Experiment> Conduct for E {
    fn label(&self) -> Label {
        E::LABEL
    }

    fn scenarios(&self) -> Vec<Scenario> {
        Experiment::scenarios(self)
    }

    fn options(&self, command: Command) -> Command {
        Request::augment_args(E::Options::augment_args(command))
    }

    fn check(&self, options: &ArgMatches) -> Result<()> {
        cases(self, options).map(drop)
    }

    fn conduct(&self, options: &ArgMatches, bench: &Bench) -> Result<Answer> {
        let store = store(self, bench)?;
        let (asked, others) = cases(self, options)?;
        let host = std::thread::available_parallelism().map_or(1, usize::from);
        let campaign = Campaign {
            store: &store,
            fresh: read::<Request>(options)?.fresh,
            side_by_side: self.side_by_side().min(host),
            interrupt: &bench.interrupt,
        };
        let run =
            |case: &E::Case, logs: &Path, tell: Tell<'_>| self.run(case, &bench.at(logs), tell);
        let mut progress = Progress::new(&format!("bench {}", E::LABEL.name));
        let found = campaign.run(&asked, &mut progress, run)?;
        drop(progress);
        answer(self, found, &others, &store, bench)
    }

    fn points(&self, options: &ArgMatches, bench: &Bench) -> Result<Option<Points>> {
        let (store, fresh) = (store(self, bench)?, read::<Request>(options)?.fresh);
        let (asked, _) = cases(self, options)?;
        let kept = |case: &E::Case| !fresh && store.find::<E::Seen>(case).is_some();
        let points = asked.iter().map(|case| worker::Point { name: case.name(), kept: kept(case) });
        Ok(Some(Points { alone: self.side_by_side() == 1, points: points.collect() }))
    }

    fn measure(&self, options: &ArgMatches, name: &str, bench: &Bench) -> Result<Option<String>> {
        let (asked, _) = cases(self, options)?;
        let names = || asked.iter().map(Case::name).collect::<Vec<_>>();
        let case = asked.iter().find(|case| case.name() == name).ok_or_else(|| {
            miette!(help = names_like(name, &names()), "no case is called `{name}`")
        })?;
        let store = store(self, bench)?;
        if !read::<Request>(options)?.fresh && store.find::<E::Seen>(case).is_some() {
            return Ok(None);
        }
        let mut progress = Progress::new(&format!("bench {}", E::LABEL.name));
        let mut tell = |what: &str| progress.now(&format!("{name}: {what}"));
        worker::measure(&store, case, bench, |bench| self.run(case, bench, &mut tell))
    }

    fn merge(&self, options: &ArgMatches, bench: &Bench) -> Result<Answer> {
        let (store, (asked, others)) = (store(self, bench)?, cases(self, options)?);
        worker::clear(bench)?;
        answer(self, worker::merged(&store, asked), &others, &store, bench)
    }
}

/// Opens what has been measured of `experiment`.
fn store<E: Experiment>(experiment: &E, bench: &Bench) -> Result<Store> {
    let directory = bench.directory.join("cases");
    make(&directory)?;
    Ok(Store::new(directory, experiment.inputs(bench)?))
}

/// Answers what was found of the cases that were asked for, beside what is known of `others`: a case
/// is compared with them.
fn answer<E: Experiment>(
    experiment: &E,
    mut found: Findings<E::Seen>,
    others: &[E::Case],
    store: &Store,
    bench: &Bench,
) -> Result<Answer> {
    found.all += others.len();
    let known: Vec<E::Seen> = others.iter().filter_map(|case| store.find(case)).collect();
    found.planned.splice(..0, known.iter().map(|seen| seen.case().clone()));
    found.measurements.splice(..0, known);
    let mut answer = experiment.answer(found.clone(), bench)?;
    store.inputs().record(&mut answer.outcome);
    conclude(&mut answer, &found);
    Ok(answer)
}

/// Adds what every answer says of its cases.
fn conclude<M: Measured>(answer: &mut Answer, found: &Findings<M>) {
    let outcome = &mut answer.outcome;
    outcome.parameter("cases", found.planned.len());
    let failures = found.failures.iter();
    let failures = failures.map(|(case, why)| json!({ "case": case.name(), "why": why }));
    outcome.figure("failures", failures.collect::<Vec<_>>());
    let real = found.measurements.iter().map(|m| (m.case().name(), Value::from(m.real_s())));
    outcome.figure("real_s", Value::Object(real.collect()));
    if found.planned.len() < found.all {
        // Goals that need cases which were not asked for are not missed.
        outcome.forget_unknown();
    }
    outcome.check(Check::done("every case asked for was measured", found.failures.is_empty()));
}

/// Reads options that stand on the command line.
///
/// # Errors
/// When the command line was parsed for other options.
pub(super) fn read<O: Args>(options: &ArgMatches) -> Result<O> {
    O::from_arg_matches(options).into_diagnostic()
}

/// Cases that were asked for, and all others.
type Parted<C> = (Vec<C>, Vec<C>);

/// Parts the cases of `experiment` by what was asked for.
fn cases<E: Experiment>(experiment: &E, options: &ArgMatches) -> Result<Parted<E::Case>> {
    let (request, own) = (read::<Request>(options)?, read(options)?);
    let extent = match (request.quick, request.paper) {
        (true, _) => Extent::Quick,
        (false, true) => Extent::Paper,
        (false, false) => Extent::Full,
    };
    asked(experiment.cases(extent, &own), request.only.as_deref())
}

/// Parts `cases`: asked for are those whose names begin with `only`, or all.
fn asked<C: Case>(cases: Vec<C>, only: Option<&str>) -> Result<Parted<C>> {
    let Some(only) = only else { return Ok((cases, Vec::new())) };
    let (asked, others): (Vec<_>, Vec<_>) =
        cases.into_iter().partition(|case| case.name().starts_with(only));
    if asked.is_empty() {
        let names: Vec<_> = others.iter().map(Case::name).collect();
        return Err(miette!(help = names_like(only, &names), "no case is called `{only}`"));
    }
    Ok((asked, others))
}

/// Returns which cases there are: all that begin with the same word, or one of each.
fn names_like(only: &str, names: &[String]) -> String {
    let kind = |name: &str| name.split('-').next().unwrap_or_default().to_owned();
    let (mut of_wanted, mut one_of_each) = (String::new(), BTreeMap::new());
    for name in names {
        if kind(name) == kind(only) {
            of_wanted += &format!("\n  {name}");
        }
        one_of_each.entry(kind(name)).or_insert(name);
    }
    if of_wanted.is_empty() {
        let example = |(of, name)| format!("\n  {of}-, for example {name}");
        of_wanted = one_of_each.into_iter().map(example).collect();
    }
    format!("these are there, and the beginning of a name is enough:{of_wanted}")
}

#[cfg(test)]
mod tests {
    use super::super::store::tests::{Found, Plain};
    use super::*;
    use crate::results::Goal;

    fn plan() -> Vec<Plain> {
        let names = ["throughput-none-f5", "throughput-on-demand-f5", "latency-none"];
        names.map(|name| Plain(name.into(), 0)).into()
    }

    #[test]
    fn a_case_is_found_by_the_beginning_of_its_name() {
        let (found, others) = asked(plan(), Some("throughput-none")).unwrap();
        assert_eq!((found.len(), others.len()), (1, 2));
        let help = |only| asked(plan(), Some(only)).unwrap_err().help().unwrap().to_string();
        let of_wanted = help("throughput-nothing");
        assert!(of_wanted.contains("throughput-none-f5"), "{of_wanted}");
        assert!(!of_wanted.contains("latency-none"), "{of_wanted}");
        let kinds = help("thruput");
        assert!(kinds.contains("  latency-, for example latency-none"), "{kinds}");
    }

    #[test]
    fn a_part_is_not_judged_by_goals_that_need_the_rest() {
        let seen = Found { case: plan()[0].clone(), value: 1.5 };
        let found = |all, failures| Findings {
            planned: vec![seen.case.clone()],
            measurements: vec![seen.clone()],
            failures,
            all,
        };
        let conclusion = |found: &Findings<Found>| {
            let mut answer = Answer::new("x", "", "");
            answer.outcome.check(Check::new("ratio", None, "", Goal::AtMost(1.0)));
            conclude(&mut answer, found);
            answer.outcome
        };
        let (part, whole) = (conclusion(&found(3, vec![])), conclusion(&found(1, vec![])));
        assert!(part.holds() && part.checks().len() == 1);
        assert!(!whole.holds() && whole.checks().len() == 2);
        assert_eq!(part.figures["real_s"]["throughput-none-f5"], 1.5);
        let failed = conclusion(&found(3, vec![(plan()[1].clone(), "no".into())]));
        assert!(!failed.holds());
        assert_eq!(failed.figures["failures"][0]["case"], "throughput-on-demand-f5");
    }
}
