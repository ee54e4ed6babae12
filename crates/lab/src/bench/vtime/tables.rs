//! What was found, as datasets.

use super::Vtime;
use super::case::{Case, Guest, Mode};
use super::checks::distance;
use super::figures::Figures;
use super::run::Measurement;
use crate::bench::sample::Sample;
use crate::bench::store::Case as _;
use crate::dataset::{Dataset, Unit};
use crate::observe::Distribution;
use crate::quantity::real;
use vtime::options::Options;

/// The first run of a boot is left out: Linux's caches fill in it.
type Steady = (String, Case, Sample);

impl Vtime {
    /// The steady runs of every machine with several, and those of several boots.
    pub(super) fn steady_runs(&self) -> Vec<Steady> {
        let within = self.hackbenches().map(|(case, sample)| {
            let busy = if case.busy_host { ", busy host" } else { "" };
            (format!("{}{busy}", mode(case.mode)), *case, sample.steady())
        });
        let over = self.hackbench_cores().into_iter().map(|cores| {
            let case = Case::new(Guest::ONE_STEADY_RUN, cores);
            ("in turns, one run of each boot".to_owned(), case, self.over_boots(cores))
        });
        within.chain(over.filter(|(_, _, boots)| !boots.0.is_empty())).collect()
    }

    /// How hackbench's runs agree.
    pub(super) fn hackbench_data(&self) -> Dataset {
        let title = "hackbench, virtual time, without each boot's first run";
        Dataset::of("hackbench", title, self.steady_runs())
            .name("mode", |(mode, ..)| mode.clone())
            .head("")
            .name("cores", |(_, case, _)| case.cores)
            .column("quantum", Unit::Nanoseconds, |(_, case, _)| {
                (case.mode != Mode::Plain).then_some(case.quantum_ns)
            })
            .name("runs", |(.., steady)| steady.0.len())
            .column("mean", Unit::Seconds, |(.., steady)| steady.mean())
            .shown_in(Unit::Milliseconds, 1)
            .column("deviation", Unit::Percent, |(.., steady)| steady.deviation_percent())
            .digits(2)
            .column("least", Unit::Seconds, |(.., steady)| steady.least())
            .shown_in(Unit::Milliseconds, 0)
            .column("most", Unit::Seconds, |(.., steady)| steady.most())
            .shown_in(Unit::Milliseconds, 0)
            .done()
    }

    /// Every steady run with the default quantum, for the plot.
    pub(super) fn runs_data(&self) -> Dataset {
        let default = |case: &Case| case.quantum_ns == Options::DEFAULT_QUANTUM_NS;
        let drawn = self.steady_runs().into_iter().filter(|(_, case, _)| default(case));
        let drawn = drawn.filter(|(_, case, _)| case.mode != Mode::Plain);
        let runs = drawn.flat_map(|(mode, case, steady)| {
            let each = steady.0.into_iter();
            each.map(|s| (mode.clone(), case.cores, s)).collect::<Vec<_>>()
        });
        Dataset::of("hackbench-runs", "", runs)
            .name("mode", |(mode, ..)| mode.clone())
            .name("cores", |(_, cores, _)| format!("{cores} cores"))
            .column("time", Unit::Milliseconds, |(.., s)| 1e3 * s)
            .done()
    }

    /// The first run of cyclictest, and the one that differs most from it.
    pub(super) fn cyclictest_data(&self) -> Dataset {
        let histograms = self.histograms();
        let farthest = histograms.split_first().and_then(|(first, rest)| {
            rest.iter().max_by_key(|other| distance(first, other)).copied()
        });
        let first = histograms.first().map(|first| ("first run", *first));
        let both = first.into_iter().chain(farthest.map(|other| ("the most different", other)));
        let bins = both.flat_map(|(name, h): (_, &Distribution)| h.iter().map(move |b| (name, b)));
        Dataset::of("cyclictest", "", bins)
            .name("run", |(name, _)| *name)
            .column("latency", Unit::Microseconds, |(_, (us, _))| *us)
            .name("wake_ups", |(_, (_, count))| *count)
            .done()
    }

    /// What a virtual second costs, cores in turns.
    pub(super) fn second_data(&self) -> Dataset {
        let kind = |case: &Case| match case.guest {
            Guest::Boot => Some("boot"),
            guest if guest.several_steady_runs() => Some("boot and hackbench"),
            _ => None,
        };
        let plainly = |case: &Case| {
            let default = case.quantum_ns == Options::DEFAULT_QUANTUM_NS;
            default && case.mode == Mode::Turns && !case.busy_host
        };
        let mut all: Vec<_> = self.measurements.iter().filter(|m| plainly(&m.case)).collect();
        all.sort_by_key(|m| m.case.cores);
        let shown = all.into_iter().filter_map(|m| Some((kind(&m.case)?, m, m.virtual_s()?)));
        Dataset::of("virtual-second", "", shown)
            .name("guest", |(guest, ..)| *guest)
            .name("cores", |(_, m, _)| format!("{} cores", m.case.cores))
            .column("processor_time", Unit::Seconds, |(_, m, virtual_s)| {
                m.processor_s() / virtual_s
            })
            .done()
    }

    /// What a case costs. The first run of each.
    pub(super) fn cost_data(&self) -> Dataset {
        let first = self.measurements.iter().filter(|m| m.case.repetition == 1);
        Dataset::of("cost", "Cost", first)
            .name("case", |m| m.case.name())
            .head("")
            .column("virtual", Unit::Seconds, |m| m.virtual_s())
            .digits(2)
            .column("real", Unit::Seconds, |m| m.real_s)
            .digits(1)
            .column("a_virtual_second", Unit::Seconds, |m| m.virtual_s().map(|s| m.real_s / s))
            .digits(1)
            .column("processor", Unit::Seconds, |m| m.processor_s())
            .digits(1)
            .column("an_instruction", Unit::Nanoseconds, |m| m.ns_per_instruction())
            .digits(1)
            .column("main_loop", Unit::Share, |m| m.main_loop_s / m.processor_s())
            .name("quanta", |m| m.statistics.as_ref().map(|counts| counts.counts.quanta))
            .name("leaves", |m| {
                m.statistics.as_ref().map(|counts| {
                    let all = counts.vcpus.iter().map(|vcpu| vcpu.forced_leaves);
                    all.map(|l| l.stall + l.main_loop + l.timeout).sum::<u64>()
                })
            })
            .done()
    }

    /// Where a hackbench instruction's processor time goes.
    pub(super) fn ladder(&self) -> Dataset {
        let boot = |cores, mode| self.first(cores, mode, |g| g == Guest::Boot);
        let hackbench = |cores, mode| self.first(cores, mode, Guest::several_steady_runs);
        // A plain run does not count its instructions; they are those of the
        // same work in virtual time.
        let plain = |plain: Option<&Measurement>, counted: Option<&Measurement>| {
            Some(1e9 * plain?.processor_s() / real(counted?.instructions()?))
        };
        let of = |m: Option<&Measurement>| m.and_then(Measurement::ns_per_instruction);
        let mut rungs = vec![(
            "plain QEMU, 1 core",
            plain(boot(1, Mode::Plain), boot(1, Mode::Turns)),
            plain(hackbench(1, Mode::Plain), hackbench(1, Mode::Turns)),
        )];
        for (name, cores, mode) in [
            ("counted, 1 core", 1, Mode::Turns),
            ("in turns, 2 cores", 2, Mode::Turns),
            ("in turns, 4 cores", 4, Mode::Turns),
            ("in parallel, 2 cores", 2, Mode::Parallel),
            ("in parallel, 4 cores", 4, Mode::Parallel),
        ] {
            rungs.push((name, of(boot(cores, mode)), of(hackbench(cores, mode))));
        }
        let title = "Where it goes: processor time of an instruction";
        Dataset::of("instruction", title, rungs)
            .name("cores", |(name, ..)| *name)
            .head("")
            .column("boot", Unit::Nanoseconds, |(_, boot, _)| *boot)
            .digits(1)
            .column("hackbench", Unit::Nanoseconds, |(.., hackbench)| *hackbench)
            .digits(1)
            .done()
    }

    fn first(&self, cores: u32, mode: Mode, guest: impl Fn(Guest) -> bool) -> Option<&Measurement> {
        self.measurements.iter().find(|m| {
            let kind = (m.case.cores, m.case.mode, m.case.busy_host) == (cores, mode, false);
            kind && guest(m.case.guest)
        })
    }

    /// How much runs of the same differ: the greatest difference of any from the
    /// first.
    pub(super) fn repetition_data(&self) -> Dataset {
        let mut repetitions = self.repetitions();
        repetitions.sort_by_key(|(first, _)| first.case.name());
        let same = |a: &(&Measurement, &Measurement), b: &(&Measurement, &Measurement)| {
            a.0.case == b.0.case
        };
        let most = |group: &[(&Measurement, &Measurement)], apart: Apart| {
            let all: Option<Vec<u64>> = group.iter().map(|(first, m)| apart(first, m)).collect();
            all.and_then(|all| all.into_iter().max())
        };
        Dataset::of("repetitions", "Runs of the same", repetitions.chunk_by(same))
            .name("case", |group| group[0].0.case.name())
            .head("")
            .name("runs", |group| group.len() + 1)
            .name("instructions", |group| group[0].0.instructions())
            .name("apart", |group| {
                most(group, |first, m| Some(first.instructions()?.abs_diff(m.instructions()?)))
            })
            .name("wake-ups in another bin", |group| {
                most(group, |first, m| match (&first.figures, &m.figures) {
                    (Figures::Cyclictest(a), Figures::Cyclictest(b)) => Some(distance(a, b)),
                    _ => None,
                })
            })
            .done()
    }
}

/// How far a run is from another one of the same.
type Apart = fn(&Measurement, &Measurement) -> Option<u64>;

impl Measurement {
    /// Returns the processor time per instruction, nanoseconds; nothing in a plain run.
    pub(super) fn ns_per_instruction(&self) -> Option<f64> {
        Some(1e9 * self.processor_s() / real(self.instructions()?))
    }
}

/// Returns a mode in words.
pub(super) fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Turns => "in turns",
        Mode::Parallel => "in parallel",
        Mode::Plain => "plain QEMU",
    }
}
