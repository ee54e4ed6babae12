//! What the calls of vMPCP take a guest: Table II of Kim, Wang and Rajkumar (RTSS 2014, section
//! V-B), from FreeRTOS and from Linux.
//!
//! | module | story |
//! | --- | --- |
//! | [`rows`] | what is measured, and what the paper measured |

mod rows;

use super::campaign::Findings;
use super::experiment::{Experiment, Extent};
use super::inputs::Inputs;
use super::store::{self, Measured};
use super::{Label, ProgressView, Tell};
use crate::answer::Answer;
use crate::bundle::channel;
use crate::dataset::{Dataset, Unit};
use crate::guests::Images;
use crate::quantity::{count, real};
use crate::results::{Check, Goal, Outcome};
use crate::suite::Bench;
use miette::{Result, miette};
use rows::{ROWS, Row, Taken};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// How often the descriptions of the systems make each call.
const DESCRIBED: u64 = 10_000;
/// The VM that makes the calls, the only one.
const VM: usize = 0;
/// Virtual time for the machine: FreeRTOS needs half a second, Linux some three.
const LIMIT: Duration = Duration::from_secs(20);

/// The experiment.
#[derive(Clone, Copy, Debug)]
pub struct Calls;

/// The guest that makes the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Caller {
    Freertos,
    Linux,
}

impl Caller {
    const ALL: [Self; 2] = [Self::Freertos, Self::Linux];

    const fn name(self) -> &'static str {
        match self {
            Self::Freertos => "FreeRTOS",
            Self::Linux => "Linux",
        }
    }

    /// The system, below the project's root, and what precedes the repetitions in it.
    const fn system(self) -> (&'static str, &'static str) {
        match self {
            Self::Freertos => ("systems/bench/vmpcp.toml", "bench="),
            Self::Linux => ("systems/bench/vmpcp-linux.toml", "--rounds "),
        }
    }
}

/// One boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    caller: Caller,
    /// How often each call is made.
    repetitions: u64,
}

/// What a boot brought.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    case: Case,
    real_s: f64,
    taken: Vec<Taken>,
}

impl store::Case for Case {
    fn name(&self) -> String {
        format!("{}-{}", self.caller.name().to_lowercase(), self.repetitions)
    }
}

impl Measured for Seen {
    type Case = Case;

    fn case(&self) -> &Case {
        &self.case
    }

    fn real_s(&self) -> f64 {
        self.real_s
    }
}

impl Experiment for Calls {
    const LABEL: Label = Label {
        name: "vmpcp",
        about: "Table II of vMPCP (Kim, Wang and Rajkumar, RTSS 2014): what its calls take",
        details: "FreeRTOS, and then a program of Linux, opens, locks, unlocks and destroys \
                  mutexes of its VM and of the hypervisor, and raises and lowers its vCPU, ten \
                  thousand times each, alone on a core. Beside it stands what the paper measured \
                  on KVM.",
        examples: "  cassata bench vmpcp\n  cassata bench vmpcp --quick",
    };
    type Options = ();
    type Case = Case;
    type Seen = Seen;

    fn inputs(&self, bench: &Bench) -> Result<Inputs> {
        let images = Images::of(&bench.root);
        let systems = Caller::ALL.map(|caller| bench.root.join(caller.system().0));
        let inputs = Inputs::of(bench)?.hypervisor(bench).files("rtos", &[&images.rtos])?;
        let inputs = inputs.files("linux", &[&images.kernel, &images.initramfs])?;
        inputs.files("systems", &systems.each_ref().map(AsRef::as_ref))
    }

    fn cases(&self, extent: Extent, (): &()) -> Vec<Case> {
        let repetitions = match extent {
            Extent::Full => DESCRIBED,
            Extent::Quick => DESCRIBED / 10,
        };
        Caller::ALL.map(|caller| Case { caller, repetitions }).into()
    }

    fn run(&self, case: &Case, bench: &Bench, tell: Tell<'_>) -> Result<Seen> {
        let begin = Instant::now();
        let (system, before) = case.caller.system();
        let edit = (format!("{before}{DESCRIBED}"), format!("{before}{}", case.repetitions));
        let bundle = bench.pack(&bench.described(system, &[edit])?)?;
        let session = bench.session(&bundle, LIMIT)?.shown_by(Box::new(ProgressView(tell)));
        let run = session.run(|_| false)?;
        let taken: Vec<_> = run.lines_of(channel(VM)).filter_map(Taken::of).collect();
        if taken.len() != ROWS.len() {
            return Err(miette!(
                help = format!("the logs of its consoles: {}", bench.directory.display()),
                "{} measured {} calls of {}: {}",
                case.caller.name(),
                taken.len(),
                ROWS.len(),
                run.end.about()
            ));
        }
        Ok(Seen { case: case.clone(), real_s: begin.elapsed().as_secs_f64(), taken })
    }

    fn answer(&self, found: Findings<Seen>, _: &Bench) -> Result<Answer> {
        let repetitions = found.planned.first().map_or(DESCRIBED, |case| case.repetitions);
        let seen = found.measurements.into_iter().map(|seen| (seen.case.caller, seen.taken));
        Ok(Table { repetitions, seen: seen.collect() }.answer())
    }
}

/// Everything that was measured.
#[derive(Debug)]
struct Table {
    repetitions: u64,
    seen: Vec<(Caller, Vec<Taken>)>,
}

impl Table {
    fn of(&self, caller: Caller, key: &str) -> Option<&Taken> {
        let (_, taken) = self.seen.iter().rev().find(|seen| seen.0 == caller)?;
        taken.iter().find(|taken| taken.key == key)
    }

    fn answer(&self) -> Answer {
        let lead = "How long a guest's calls take, as FreeRTOS and a program of Linux measure \
                    them, alone on a core; beside the figures of the paper, from Linux. Ours are \
                    virtual: an instruction at any exception level is a nanosecond. The paper's \
                    are microseconds of a Core i7-2600 at 3.4 GHz under KVM. So the two may be \
                    compared by their ratios only. Linux's longest contain its timer's \
                    interrupts.";
        let mut answer = Answer::new("vmpcp", "vMPCP, what its calls take", lead);
        answer.outcome.parameter("paper", "Kim, Wang, Rajkumar: vMPCP, RTSS 2014, Table II");
        answer.outcome.parameter("repetitions", self.repetitions);
        for caller in Caller::ALL {
            for (key, call) in [("intra_lock", "intra-VM lock"), ("inter_lock", "inter-VM lock")] {
                let mean = self.of(caller, key).map_or_else(|| "-".into(), |t| count(t.mean_ns));
                answer.tile(mean, &format!("ns, {call}, {}", caller.name()));
            }
        }
        answer.data(&self.data());
        self.judge(&mut answer.outcome);
        answer
    }

    fn data(&self) -> Dataset {
        let rows = ROWS.iter().map(|row| {
            let [rtos, linux] = Caller::ALL.map(|caller| self.of(caller, row.key));
            (row, rtos, linux)
        });
        Dataset::of("calls", "Calls from FreeRTOS and Linux, and the paper's from Linux", rows)
            .name("key", |(row, _, _): &(&Row, _, _)| row.key)
            .for_programs()
            .name("call", |(row, _, _)| row.name)
            .head("")
            .column("min", Unit::Nanoseconds, |(_, taken, _)| taken.map(|taken| taken.min_ns))
            .head("FreeRTOS: min")
            .column("mean", Unit::Nanoseconds, |(_, taken, _)| taken.map(|taken| taken.mean_ns))
            .head("mean")
            .column("max", Unit::Nanoseconds, |(_, taken, _)| taken.map(|taken| taken.max_ns))
            .head("max")
            .column("linux_min", Unit::Nanoseconds, |(_, _, t)| t.map(|taken| taken.min_ns))
            .head("Linux: min")
            .column("linux_mean", Unit::Nanoseconds, |(_, _, t)| t.map(|taken| taken.mean_ns))
            .head("mean")
            .column("linux_max", Unit::Nanoseconds, |(_, _, t)| t.map(|taken| taken.max_ns))
            .head("max")
            .column("paper_mean", Unit::Microseconds, |(row, _, _)| row.paper_us[0])
            .head("the paper: mean")
            .digits(2)
            .column("paper_max", Unit::Microseconds, |(row, _, _)| row.paper_us[1])
            .head("max")
            .digits(2)
            .done()
    }

    /// Returns how many times as long the mean of one call is as that of another.
    fn ratio(&self, caller: Caller, one: &str, other: &str) -> Option<f64> {
        let [one, other] = [self.of(caller, one)?, self.of(caller, other)?];
        Some(real(one.mean_ns) / real(other.mean_ns.max(1)))
    }

    fn judge(&self, outcome: &mut Outcome) {
        for caller in Caller::ALL {
            let often = |row: &Row| self.of(caller, row.key).map(|taken| taken.count);
            let all = ROWS.iter().all(|row| often(row) == Some(self.repetitions));
            let name = format!("{} made every call as often as asked for", caller.name());
            outcome.check(Check::done(&name, all));
        }
        let about_equal = Goal::Between(1.0 / 1.5, 1.5);
        let dearer = Goal::AtLeast(1.0);
        for caller in Caller::ALL {
            for (name, one, other, goal) in [
                (
                    "open (create), intra-VM is dearer",
                    "intra_open_create",
                    "inter_open_create",
                    dearer,
                ),
                ("destroy, intra-VM is dearer", "intra_destroy", "inter_destroy", dearer),
                ("lock, about equal", "intra_lock", "inter_lock", about_equal),
                ("trylock, about equal", "intra_trylock", "inter_trylock", about_equal),
                ("unlock, about equal", "intra_unlock", "inter_unlock", about_equal),
                (
                    "vmpcp_start_gcs is most of an intra-VM lock",
                    "start_gcs",
                    "intra_lock",
                    Goal::Between(0.5, 1.0),
                ),
            ] {
                let name = format!("{}: {name}", caller.name());
                let check = Check::new(&name, self.ratio(caller, one, other), "times", goal);
                outcome.check(check.as_statement());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(mean_ns: impl Fn(&Row) -> u64) -> Table {
        let taken = |row: &Row| {
            let mean_ns = mean_ns(row);
            let (min_ns, max_ns) = (mean_ns, 2 * mean_ns);
            Taken { key: row.key.into(), count: 100, min_ns, mean_ns, max_ns }
        };
        let taken: Vec<_> = ROWS.iter().map(taken).collect();
        Table { repetitions: 100, seen: Caller::ALL.map(|caller| (caller, taken.clone())).into() }
    }

    fn verdicts(table: &Table) -> Vec<bool> {
        table.answer().outcome.checks().iter().map(Check::holds).collect()
    }

    #[test]
    fn the_papers_own_figures_agree_with_its_statements() {
        assert_eq!(verdicts(&table(|row| (1_000.0 * row.paper_us[0]) as u64)), [true; 14]);
    }

    #[test]
    fn statements_may_differ_and_fail_nothing() {
        let odd = table(|row| if row.key.starts_with("intra") { 100 } else { 1_000 });
        let found = verdicts(&odd);
        assert_eq!((&found[..2], &found[2..]), (&[true; 2][..], &[false; 12][..]));
        assert_eq!(odd.answer().outcome.exit_code(false), 0);
    }

    #[test]
    fn a_call_that_was_not_measured_fails() {
        let mut few = table(|_| 100);
        few.seen[1].1.pop();
        assert_eq!(few.answer().outcome.exit_code(false), 1);
        let mut seldom = table(|_| 100);
        seldom.seen[0].1[0].count = 99;
        assert_eq!(seldom.answer().outcome.exit_code(false), 1);
        let mut one = table(|_| 100);
        one.seen.pop();
        assert_eq!(one.answer().outcome.exit_code(false), 1);
    }
}
