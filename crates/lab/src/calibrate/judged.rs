//! What was measured by what was counted.

use super::counted::{Counted, Counts};
use super::paths::{Own, PATHS, Path};
use crate::answer::Answer;
use crate::dataset::{Dataset, Unit};
use crate::guests::{Cache, Measurement, Times};
use crate::quantity::real;
use crate::report::Plot;
use crate::results::{Check, Goal};
use analysis::overheads::{PER_MILLE, VIRTUAL_INSTRUCTION_PS};
use miette::{Result, miette};
use system::calibration::{Calibration, Measured};

/// Nanoseconds by which the mean of a path may be off in virtual time: rounds of a guest that waits for a visit,
/// and instructions before the counter is read, which are not counted for each path of its own.
const NEAR_NS: f64 = 16.0;

/// A path on a board.
#[derive(Clone, Copy, Debug)]
struct Row {
    path: Path,
    counted: Counted,
    /// How often it was measured.
    repetitions: u64,
    /// The mean of the warm repetitions where all visits of the path are timed, else their median, ns.
    typical_ns: f64,
    /// Means of warm and cold repetitions, ns.
    means_ns: [Option<f64>; 2],
    /// The longest of all, ns.
    longest_ns: f64,
}

impl Row {
    /// Picoseconds for an instruction, typical of the warm repetitions; none where there is no typical one.
    fn typical_ps(&self) -> Option<f64> {
        let typical = self.typical_ns * 1e3 / self.counted.typical;
        (!self.path.has_two_lengths).then_some(typical)
    }

    /// Picoseconds for an instruction, longest repetition, rounded up.
    fn longest_ps(&self) -> u64 {
        (self.longest_ns * 1e3 / real(self.counted.longest)).ceil().max(1.0) as u64
    }
}

/// A board that was measured.
#[derive(Debug)]
pub struct Judged {
    /// What a description names.
    pub calibration: Calibration,
    rows: Vec<Row>,
}

/// Puts what was measured and what was counted together. `margin_permille` is that on the worst path.
///
/// # Errors
/// When a path is missing, or took less than the measuring itself.
pub fn judge(said: &Measurement, counts: &Counts, margin_permille: u64) -> Result<Judged> {
    let rows: Vec<Row> = PATHS.iter().map(|path| row(path, said, counts)).collect::<Result<_>>()?;
    let paths: Vec<_> = rows.iter().map(measured).collect();
    let worst = paths.iter().map(|path| path.instruction_ps).max().unwrap_or(0);
    let calibration = Calibration::new(
        said.board.clone(),
        said.hypervisor.clone(),
        said.counter_hz,
        (said.load.clone(), said.sweep_kib),
        (margin_permille, worst.saturating_mul(margin_permille).div_ceil(PER_MILLE)),
        paths,
    );
    calibration.check().map_err(|why| miette!("what was measured cannot be: {why}"))?;
    Ok(Judged { calibration, rows })
}

/// Returns what the guest takes for itself, ticks: the least that it was measured to take in the mean.
fn own(own: Own, said: &Measurement) -> Result<f64> {
    let (name, rounds) = own.path();
    let times = said.paths.get(&(name.to_owned(), Cache::Warm));
    let times = times.ok_or_else(|| missing(name))?;
    Ok(real(times.ticks) / real(times.repetitions * rounds))
}

fn missing(name: &str) -> miette::Report {
    miette!(
        help = "was the image made by this version of cassata?",
        "what was measured has no path `{name}`"
    )
}

fn row(path: &Path, said: &Measurement, counts: &Counts) -> Result<Row> {
    let of = |cache| said.paths.get(&(path.name.to_owned(), cache));
    let warm = of(Cache::Warm).ok_or_else(|| missing(path.name))?;
    let counted = *counts.get(path.name).ok_or_else(|| missing(path.name))?;
    let (own, tick_ns) = (own(path.own, said)?, 1e9 / real(said.counter_hz));
    let mean = |times: &Times| (real(times.ticks) / real(times.repetitions) - own) * tick_ns;
    // What lies between two reads that are n ticks apart took less than n + 1.
    let longest = |times: &Times| (real(times.max + 1) - own) * tick_ns;
    let all = || [Some(warm), of(Cache::Cold)].into_iter().flatten();
    if mean(warm) <= 0.0 {
        return Err(miette!(
            help = "does the counter count at the rate that CNTFRQ_EL0 says?",
            "path `{}` takes no longer than the measuring itself",
            path.name
        ));
    }
    Ok(Row {
        path: *path,
        counted,
        repetitions: all().map(|times| times.repetitions).sum(),
        typical_ns: if path.is_all { mean(warm) } else { (real(warm.median) - own) * tick_ns },
        means_ns: [Some(warm), of(Cache::Cold)].map(|times| times.map(mean)),
        longest_ns: all().map(longest).fold(0.0, f64::max),
    })
}

fn measured(row: &Row) -> Measured {
    let ps = |ns: f64| (ns * 1e3).ceil().max(0.0) as u64;
    // What is counted of it, times this, is not less than what was measured.
    let instruction_ps = row.longest_ps();
    Measured {
        name: row.path.name.to_owned(),
        repetitions: row.repetitions,
        instructions: row.counted.longest,
        mean_ps: row.means_ns[0].map_or(0, ps),
        longest_ps: ps(row.longest_ns).min(instruction_ps * row.counted.longest),
        instruction_ps,
    }
}

impl Judged {
    /// Returns the page, of a run called `name`. In virtual time each path has to take a nanosecond for an
    /// instruction; on a board nothing is demanded.
    #[must_use]
    pub fn answer(&self, name: &str, is_virtual: bool) -> Answer {
        let calibration = &self.calibration;
        let title = format!("How long EL2 takes: {}", calibration.board);
        let lead = "What a guest measured of each path by the counter, without what it needs itself, and the \
                    instructions of the same path in virtual time. The longest that was measured is no worst \
                    case.";
        let mut answer = Answer::new(name, &title, lead);
        answer.tile(
            format!("{} ps", calibration.instruction_ps),
            "for an instruction, with the margin",
        );
        answer.tile(format!("{} ps", calibration.worst_ps()), "in the worst path");
        let data = self.data();
        answer.data(&data);
        let plot = Plot::bars(&data, "path", "longest_ps");
        let drawn = answer.plot(
            "paths",
            &plot,
            "Picoseconds for an instruction, longest repetition of each path.",
        );
        answer.section("Which path is the worst?", drawn);
        for (name, text) in [
            ("board", &calibration.board),
            ("hypervisor", &calibration.hypervisor),
            ("load", &calibration.load),
        ] {
            answer.outcome.parameter(name, text.as_str());
        }
        answer.outcome.parameter("counter_hz", calibration.counter_hz);
        answer.outcome.parameter("sweep_kib", calibration.sweep_kib);
        answer.outcome.parameter("margin_permille", calibration.margin_permille);
        answer.outcome.figure("instruction_ps", calibration.instruction_ps);
        answer
            .outcome
            .check(Check::done("every path was measured", self.rows.len() == PATHS.len()));
        if is_virtual {
            self.rows.iter().for_each(|row| answer.outcome.check(row.check()));
        }
        answer
    }

    fn data(&self) -> Dataset {
        Dataset::of("paths", "Paths of EL2", &self.rows)
            .name("path", |row| row.path.name)
            .name("repetitions", |row| row.repetitions)
            .column("instructions", Unit::Instructions, |row| row.counted.longest)
            .head("instructions")
            .column("mean", Unit::Nanoseconds, |row| row.means_ns[0])
            .head("mean, warm")
            .column("cold", Unit::Nanoseconds, |row| row.means_ns[1])
            .head("mean, cold")
            .column("longest", Unit::Nanoseconds, |row| row.longest_ns)
            .column("typical_ps", Unit::None, |row| row.typical_ps())
            .head("ps for an instruction, typical")
            .digits(0)
            .column("longest_ps", Unit::None, |row| real(row.longest_ps()))
            .head("longest")
            .digits(0)
            .done()
    }
}

impl Row {
    /// Demands that an instruction takes a nanosecond.
    fn check(&self) -> Check {
        let ps = real(VIRTUAL_INSTRUCTION_PS);
        let (what, value, instructions) = match self.typical_ps() {
            Some(typical) => ("typical", typical, self.counted.typical),
            None => ("longest", real(self.longest_ps()), real(self.counted.longest)),
        };
        let near = NEAR_NS * 1e3 / instructions;
        let name = format!("{}: {what} for an instruction", self.path.name);
        Check::new(&name, value, "ps", Goal::Between((ps - near).floor(), (ps + near).ceil()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guests::Cache::{Cold, Warm};
    use std::collections::BTreeMap;

    const TICK_NS: u64 = 10;

    fn times(ticks: u64, max: u64) -> Times {
        Times {
            repetitions: 1_000,
            ticks: 1_000 * ticks,
            min: ticks,
            median: ticks,
            p999: max,
            max,
        }
    }

    /// A board on which each instruction takes 2 ns, warm, and the longest one 4 ns.
    fn measurement() -> (Measurement, Counts) {
        let mut paths = BTreeMap::new();
        paths.insert(("own".to_owned(), Warm), times(3, 4));
        paths.insert(("own-gap".to_owned(), Warm), times(2 * 64, 2 * 64));
        let mut counts = Counts::new();
        for path in PATHS {
            let own = if path.own == Own::Entry { 3 } else { 2 };
            let [warm, cold] = match path.has_two_lengths {
                true => [times(own + 100, own + 199), times(own + 100, own + 199)],
                false => [times(own + 200, own + 210), times(own + 300, own + 399)],
            };
            paths.insert((path.name.to_owned(), Warm), warm);
            paths.insert((path.name.to_owned(), Cold), cold);
            counts.insert(path.name, Counted { typical: 1_000.0, longest: 1_000 });
        }
        let said = Measurement {
            board: "zcu102".into(),
            pcpus: 4,
            hypervisor: "00ff".into(),
            counter_hz: 1_000_000_000 / TICK_NS,
            load: "memory".into(),
            sweep_kib: 2048,
            paths,
        };
        (said, counts)
    }

    #[test]
    fn the_longest_repetition_of_the_worst_path_decides() {
        let (mut said, counts) = measurement();
        let judged = judge(&said, &counts, 1_200).unwrap();
        let file = &judged.calibration;
        // 399 ticks and one that is not known.
        assert_eq!((file.worst_ps(), file.instruction_ps), (4_000, 4_800));
        let null = file.paths.iter().find(|path| path.name == "null").unwrap();
        assert_eq!(
            (null.mean_ps, null.longest_ps, null.repetitions),
            (2_000_000, 4_000_000, 2_000)
        );
        said.paths.insert(("wake".into(), Cold), times(600, 801));
        let judged = judge(&said, &counts, 1_000).unwrap();
        assert_eq!(judged.calibration.instruction_ps, 8_000);
        assert_eq!(judged.calibration.paces().switch_on_wake.instruction_ps, 8_000);
        assert_eq!(judged.calibration.paces().doorbell.instruction_ps, 4_000);
    }

    #[test]
    fn what_is_missing_or_cannot_be_is_refused() {
        let (said, counts) = measurement();
        let refusal = |said: &Measurement, counts: &Counts| {
            judge(said, counts, 1_200).unwrap_err().to_string()
        };
        for name in ["null", "grant", "own", "own-gap"] {
            let mut less = said.clone();
            less.paths.remove(&(name.to_owned(), Warm));
            assert_eq!(refusal(&less, &counts), format!("what was measured has no path `{name}`"));
        }
        let mut nothing = said.clone();
        nothing.paths.insert(("null".into(), Warm), times(3, 3));
        assert_eq!(
            refusal(&nothing, &counts),
            "path `null` takes no longer than the measuring itself"
        );
        let mut less = counts.clone();
        less.remove("sleep");
        assert!(refusal(&said, &less).contains("`sleep`"));
    }

    /// In virtual time a path that takes another time than its instructions is noticed; on a board it is not.
    #[test]
    fn virtual_time_has_a_nanosecond_for_an_instruction() {
        let (said, counts) = measurement();
        let failing = |judged: &Judged, is_virtual| {
            let outcome = judged.answer("calibrate", is_virtual).outcome;
            outcome.checks().iter().filter(|check| !check.holds()).count()
        };
        let judged = judge(&said, &counts, 1_000).unwrap();
        assert_eq!((failing(&judged, true), failing(&judged, false)), (PATHS.len(), 0));
        let said = Measurement { counter_hz: 2_000_000_000 / TICK_NS, ..said };
        assert_eq!(failing(&judge(&said, &counts, 1_000).unwrap(), true), 0);
    }
}
