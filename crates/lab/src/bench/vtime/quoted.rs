//! What the book quotes. Of real times it has only those that have a goal, because they contain how
//! long threads waited for a processor that other work had.

use super::Vtime;
use super::case::{Case, Guest, Mode};
use super::figures::Figures;
use super::matrix;
use super::run::Measurement;
use super::tables::mode;
use crate::bench::Extent;
use crate::dataset::{Dataset, Unit};
use crate::quantity::real;
use crate::results::Outcome;
use vtime::options::Options;

impl Vtime {
    /// Returns the tables, in Markdown, with the checks of `outcome`; nothing of a part of the bench.
    pub(super) fn quoted(&self, outcome: &Outcome) -> Option<String> {
        let mut tables = vec![self.quoted_sameness(), self.quoted_runs()];
        let quanta = self.quanta();
        if quanta.len() > 1 {
            tables.push(quoted_quanta(quanta));
        }
        tables.push(self.quoted_cost());
        let tables = tables.iter().map(|data| data.table().titled_markdown());
        let tables = tables.collect::<Vec<_>>().join("\n");
        let goals = outcome.table().markdown();
        Some(format!("{}\n\nFound, and the goals:\n\n{goals}\n{tables}", self.circumstances()?))
    }

    /// Says what was measured, and how busy the host was.
    fn circumstances(&self) -> Option<String> {
        let is_measured = |case: &Case| self.measurements.iter().any(|m| m.case == *case);
        let all = |extent| matrix::cases(extent).iter().all(is_measured);
        let how = if all(Extent::Full) {
            "Measured by a whole run"
        } else if all(Extent::Quick) {
            "Measured with `--quick`: fewer runs of everything, shorter ones, and no other quanta"
        } else {
            return None;
        };
        let alone = self.measurements.iter().filter(|m| !m.case.busy_host);
        let sum = |(waited, had), m: &Measurement| (waited + m.waited_s, had + m.processor_s());
        let (waited, had) = alone.fold((0.0, 0.0), sum);
        Some(format!(
            "{how}. For each second that QEMU's threads had a processor of the host, they waited \
             {:.1} s for one.",
            waited / had
        ))
    }

    /// Runs of the same, and how far apart they are.
    fn quoted_sameness(&self) -> Dataset {
        let mut all = self.repetitions();
        all.sort_by_key(|(first, _)| (first.case.words(), first.case.cores));
        let groups = all.chunk_by(|a, b| a.0.case == b.0.case);
        let most = |group: &[(&Measurement, &Measurement)]| {
            let apart = |(first, m): &(&Measurement, &Measurement)| {
                Some(first.instructions()?.abs_diff(m.instructions()?))
            };
            group.iter().map(apart).collect::<Option<Vec<_>>>()?.into_iter().max()
        };
        let title = "Runs of the same, cores in turns: the instructions of all cores";
        Dataset::of("same", title, groups)
            .name("machine", |group| group[0].0.case.words())
            .head("")
            .name("cores", |group| group[0].0.case.cores)
            .name("runs", |group| group.len() + 1)
            .name("of these on a busy host", |group| {
                group.iter().filter(|(_, m)| m.case.busy_host).count()
            })
            .name("instructions", |group| group[0].0.instructions())
            .name("apart", |group| most(group))
            .done()
    }

    /// Runs of hackbench within a boot and on several boots, with the default quantum.
    fn quoted_runs(&self) -> Dataset {
        let runs = self.steady_runs().into_iter();
        let runs = runs.filter(|(_, case, _)| case.quantum_ns == Options::DEFAULT_QUANTUM_NS);
        let runs = runs.filter(|(_, case, _)| case.mode != Mode::Plain);
        Dataset::of("runs", "hackbench in virtual time, without the first run of each boot", runs)
            .name("mode", |(mode, ..)| mode.clone())
            .head("")
            .name("cores", |(_, case, _)| case.cores)
            .name("runs", |(.., steady)| steady.0.len())
            .column("mean", Unit::Seconds, |(.., steady)| steady.mean())
            .shown_in(Unit::Milliseconds, 1)
            .column("deviation", Unit::Percent, |(.., steady)| {
                (steady.0.len() > 1).then(|| steady.deviation_percent())
            })
            .done()
    }

    /// Machines with hackbench on four cores in turns, by quantum.
    fn quanta(&self) -> Vec<&Measurement> {
        let four = self.measurements.iter().filter(|m| {
            let Case { guest, cores, mode, busy_host, .. } = m.case;
            guest.several_steady_runs() && (cores, mode, busy_host) == (4, Mode::Turns, false)
        });
        let mut four: Vec<_> = four.collect();
        four.sort_by_key(|m| m.case.quantum_ns);
        four
    }

    /// What machines cost: of several runs of the same, that which took least processor time.
    fn quoted_cost(&self) -> Dataset {
        let counts = |case: &Case| {
            let is_default = case.quantum_ns == Options::DEFAULT_QUANTUM_NS;
            is_default && !case.busy_host && case.guest != Guest::ONE_STEADY_RUN
        };
        let mut cheapest: Vec<&Measurement> = Vec::new();
        for m in self.measurements.iter().filter(|m| counts(&m.case)) {
            match cheapest.iter_mut().find(|known| known.case.repeats(&m.case)) {
                Some(known) if m.processor_s() < known.processor_s() => *known = m,
                Some(_) => {}
                None => cheapest.push(m),
            }
        }
        cheapest.sort_by_key(|m| (m.case.words(), mode(m.case.mode), m.case.cores));
        let second = Unit::Seconds;
        Dataset::of("cost", "Processor time of all threads of QEMU", cheapest)
            .name("machine", |m| m.case.words())
            .head("")
            .name("mode", |m| mode(m.case.mode))
            .head("")
            .name("cores", |m| m.case.cores)
            .column("virtual time", second, |m| m.virtual_s())
            .digits(2)
            .column("processor time", second, |m| m.processor_s())
            .digits(1)
            .column("for a virtual second", second, |m| m.virtual_s().map(|s| m.processor_s() / s))
            .digits(1)
            .column("for an instruction", Unit::Nanoseconds, |m| self.instruction_ns(m))
            .digits(1)
            .column("main loop", Unit::Share, |m| m.main_loop_s / m.processor_s())
            .done()
    }

    /// Returns the processor time of an instruction. A plain run does not count its instructions;
    /// they are those of the same work in virtual time.
    fn instruction_ns(&self, m: &Measurement) -> Option<f64> {
        let counted = Case { mode: Mode::Turns, ..m.case };
        let counted = || self.measurements.iter().find(|other| other.case.repeats(&counted));
        let instructions = m.instructions().or_else(|| counted()?.instructions())?;
        Some(1e9 * m.processor_s() / real(instructions))
    }
}

fn quoted_quanta(machines: Vec<&Measurement>) -> Dataset {
    let steady = |m: &Measurement| match &m.figures {
        Figures::Hackbench(sample) => Some(sample.steady()),
        _ => None,
    };
    Dataset::of("quanta", "hackbench on four cores in turns, by quantum", machines)
        .column("quantum", Unit::Nanoseconds, |m| real(m.case.quantum_ns))
        .digits(0)
        .name("runs", |m| Some(steady(m)?.0.len()))
        .column("mean", Unit::Seconds, |m| Some(steady(m)?.mean()))
        .shown_in(Unit::Milliseconds, 1)
        .column("deviation", Unit::Percent, |m| Some(steady(m)?.deviation_percent()))
        .name("quanta per virtual second", |m| {
            Some((real(m.statistics.as_ref()?.counts.quanta) / m.virtual_s()?) as u64)
        })
        .column("processor time of an instruction", Unit::Nanoseconds, |m| m.ns_per_instruction())
        .digits(1)
        .done()
}

impl Case {
    /// Returns in words what runs.
    fn words(&self) -> String {
        match self.guest {
            Guest::Boot => "boot".into(),
            Guest::Hackbench { runs } => format!("boot and {runs} runs of hackbench"),
            Guest::Cyclictest { .. } => "boot and cyclictest".into(),
            Guest::Work { work, .. } => format!("boot and work of kind {}", work.name()),
            Guest::Builds { runs } => format!("boot and {runs} builds"),
            Guest::Metronome { .. } => "metronome".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::sample::Sample;
    use crate::observe::Distribution;

    /// Everything that a run of this extent measures, but for one case.
    fn vtime(extent: Extent, without: usize) -> Vtime {
        let planned = matrix::cases(extent);
        let measured = |case: &Case| {
            let figures = match case.guest {
                Guest::Hackbench { runs } => Figures::Hackbench(Sample(
                    (1..=runs).map(|n| 0.08 + 1e-3 * f64::from(n)).collect(),
                )),
                Guest::Metronome { .. } => Figures::Metronome(vtime::metronome::Report::default()),
                Guest::Cyclictest { .. } => Figures::Cyclictest(Distribution::default()),
                _ => Figures::Booted,
            };
            let mut m = Measurement::bare(*case, f64::from(case.repetition), figures);
            let counts = || crate::testing::statistics([(1_000_000_000, ())]);
            m.statistics = (case.mode != Mode::Plain).then(counts);
            m.waited_s = m.real_s / 5.0;
            m
        };
        let measurements = planned.iter().map(measured).collect::<Vec<_>>();
        Vtime::of(planned, measurements.into_iter().skip(without).collect())
    }

    #[test]
    fn a_whole_run_and_a_quick_one_say_which_they_are_and_a_part_is_not_quoted() {
        let quoted = |vtime: &Vtime| vtime.quoted(&vtime.answer().outcome);
        let [full, quick] = [Extent::Full, Extent::Quick].map(|extent| quoted(&vtime(extent, 0)));
        let (full, quick) = (full.unwrap(), quick.unwrap());
        assert!(full.starts_with("Measured by a whole run. For"), "{full}");
        assert!(full.contains("they waited 0.2 s for one."), "{full}");
        assert!(quick.starts_with("Measured with `--quick`: "), "{quick}");
        assert!(full.contains("by quantum:") && !quick.contains("by quantum:"));
        assert_eq!(quoted(&vtime(Extent::Quick, 1)), None);
    }

    #[test]
    fn of_runs_of_the_same_the_cheapest_stands_in_the_book() {
        let text = vtime(Extent::Full, 0).quoted_cost().table().markdown();
        let boots = text.lines().filter(|line| line.starts_with("| boot | "));
        let boots: Vec<_> = boots.collect();
        assert_eq!(boots.len(), 5, "{text}");
        let plain = "| boot | plain QEMU | 1 | - | 1.0 s | - | 1.0 ns | 0.0 % |";
        assert!(boots.contains(&plain), "{text}");
        let parallel = text.lines().filter(|line| line.contains("in parallel"));
        assert!(parallel.map(|line| line.contains("| - |")).all(|lacks| !lacks), "{text}");
    }
}
