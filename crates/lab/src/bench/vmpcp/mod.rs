//! What the calls of vMPCP take a guest: Table II of Kim, Wang and Rajkumar (RTSS 2014, section
//! V-B), from FreeRTOS.
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

/// The system, below the project's root.
const SYSTEM: &str = "systems/bench/vmpcp.toml";
/// How often the description of the system makes each call.
const DESCRIBED: u64 = 10_000;
/// The VM that makes the calls, the only one.
const RTOS: usize = 0;
/// Virtual time for the machine: it needs half a second.
const LIMIT: Duration = Duration::from_secs(20);

/// The experiment.
#[derive(Clone, Copy, Debug)]
pub struct Calls;

/// One boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
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
        format!("freertos-{}", self.repetitions)
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
        details: "FreeRTOS opens, locks, unlocks and destroys mutexes of its VM and of the \
                  hypervisor, and raises and lowers its vCPU, ten thousand times each, alone on a \
                  core. Beside it stands what the paper measured on KVM.",
        examples: "  cassata bench vmpcp\n  cassata bench vmpcp --quick",
    };
    type Options = ();
    type Case = Case;
    type Seen = Seen;

    fn inputs(&self, bench: &Bench) -> Result<Inputs> {
        let rtos = Images::of(&bench.root).rtos;
        let inputs = Inputs::of(bench)?.hypervisor(bench);
        inputs.files("rtos", &[&rtos])?.files("system", &[&bench.root.join(SYSTEM)])
    }

    fn cases(&self, extent: Extent, (): &()) -> Vec<Case> {
        let repetitions = match extent {
            Extent::Full => DESCRIBED,
            Extent::Quick => DESCRIBED / 10,
        };
        vec![Case { repetitions }]
    }

    fn run(&self, case: &Case, bench: &Bench, tell: Tell<'_>) -> Result<Seen> {
        let begin = Instant::now();
        let edit = (format!("bench={DESCRIBED} "), format!("bench={} ", case.repetitions));
        let bundle = bench.pack(&bench.described(SYSTEM, &[edit])?)?;
        let session = bench.session(&bundle, LIMIT)?.shown_by(Box::new(ProgressView(tell)));
        let run = session.run(|_| false)?;
        let taken: Vec<_> = run.lines_of(channel(RTOS)).filter_map(Taken::of).collect();
        if taken.len() != ROWS.len() {
            let log = bench.directory.join("console-rtos.log");
            return Err(miette!(
                help = format!("its console: {}", log.display()),
                "FreeRTOS measured {} calls of {}: {}",
                taken.len(),
                ROWS.len(),
                run.end.about()
            ));
        }
        Ok(Seen { case: case.clone(), real_s: begin.elapsed().as_secs_f64(), taken })
    }

    fn answer(&self, found: Findings<Seen>, _: &Bench) -> Result<Answer> {
        let repetitions = found.planned.first().map_or(DESCRIBED, |case| case.repetitions);
        let taken = found.measurements.into_iter().next_back().map(|seen| seen.taken);
        Ok(Table { repetitions, taken: taken.unwrap_or_default() }.answer())
    }
}

/// Everything that was measured.
#[derive(Debug)]
struct Table {
    repetitions: u64,
    taken: Vec<Taken>,
}

impl Table {
    fn of(&self, key: &str) -> Option<&Taken> {
        self.taken.iter().find(|taken| taken.key == key)
    }

    fn answer(&self) -> Answer {
        let lead = "How long a guest's calls take, as FreeRTOS measures them, alone on a core; \
                    beside the figures of the paper. Ours are virtual: an instruction at EL1 or \
                    EL2 is a nanosecond. The paper's are microseconds of a Core i7-2600 at 3.4 \
                    GHz under KVM. So the two may be compared by their ratios only. Linux's rows \
                    are not measured yet.";
        let mut answer = Answer::new("vmpcp", "vMPCP, what its calls take", lead);
        answer.outcome.parameter("paper", "Kim, Wang, Rajkumar: vMPCP, RTSS 2014, Table II");
        answer.outcome.parameter("repetitions", self.repetitions);
        let mean = |key| self.of(key).map_or_else(|| "-".into(), |taken| count(taken.mean_ns));
        answer.tile(mean("intra_lock"), "ns, intra-VM lock");
        answer.tile(mean("inter_lock"), "ns, inter-VM lock");
        answer.data(&self.data());
        self.judge(&mut answer.outcome);
        answer
    }

    fn data(&self) -> Dataset {
        let rows = ROWS.iter().map(|row| (row, self.of(row.key)));
        Dataset::of("calls", "Calls from FreeRTOS, and the paper's from Linux", rows)
            .name("key", |(row, _): &(&Row, _)| row.key)
            .for_programs()
            .name("call", |(row, _)| row.name)
            .head("")
            .column("min", Unit::Nanoseconds, |(_, taken)| taken.map(|taken| taken.min_ns))
            .column("mean", Unit::Nanoseconds, |(_, taken)| taken.map(|taken| taken.mean_ns))
            .column("max", Unit::Nanoseconds, |(_, taken)| taken.map(|taken| taken.max_ns))
            .column("paper_mean", Unit::Microseconds, |(row, _)| row.paper_us[0])
            .head("the paper: mean")
            .digits(2)
            .column("paper_max", Unit::Microseconds, |(row, _)| row.paper_us[1])
            .head("the paper: max")
            .digits(2)
            .done()
    }

    /// Returns how many times as long the mean of one call is as that of another.
    fn ratio(&self, one: &str, other: &str) -> Option<f64> {
        let [one, other] = [self.of(one)?, self.of(other)?];
        Some(real(one.mean_ns) / real(other.mean_ns.max(1)))
    }

    fn judge(&self, outcome: &mut Outcome) {
        let all =
            ROWS.iter().all(|row| self.of(row.key).is_some_and(|t| t.count == self.repetitions));
        outcome.check(Check::done("every call was measured as often as asked for", all));
        let about_equal = Goal::Between(1.0 / 1.5, 1.5);
        let dearer = Goal::AtLeast(1.0);
        for (name, one, other, goal) in [
            ("open (create), intra-VM is dearer", "intra_open_create", "inter_open_create", dearer),
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
            let check = Check::new(name, self.ratio(one, other), "times", goal);
            outcome.check(check.as_statement());
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
        Table { repetitions: 100, taken: ROWS.iter().map(taken).collect() }
    }

    fn verdicts(table: &Table) -> Vec<bool> {
        table.answer().outcome.checks().iter().map(Check::holds).collect()
    }

    #[test]
    fn the_papers_own_figures_agree_with_its_statements() {
        assert_eq!(verdicts(&table(|row| (1_000.0 * row.paper_us[0]) as u64)), [true; 7]);
    }

    #[test]
    fn statements_may_differ_and_fail_nothing() {
        let odd = table(|row| if row.key.starts_with("intra") { 100 } else { 1_000 });
        let found = verdicts(&odd);
        assert_eq!(found, [true, false, false, false, false, false, false]);
        assert_eq!(odd.answer().outcome.exit_code(false), 0);
    }

    #[test]
    fn a_call_that_was_not_measured_fails() {
        let mut few = table(|_| 100);
        few.taken.pop();
        assert_eq!(few.answer().outcome.exit_code(false), 1);
        let mut seldom = table(|_| 100);
        seldom.taken[0].count = 99;
        assert_eq!(seldom.answer().outcome.exit_code(false), 1);
    }
}
