//! For people: tables.

use super::Vtime;
use super::case::{Case, Guest, Mode};
use super::checks::distance;
use super::figures::Figures;
use super::run::Measurement;
use crate::bench::sample::Sample;
use crate::bench::store::Named;
use crate::quantity::count;
use crate::table::Table;

impl Vtime {
    /// Every table there is something to put in.
    pub(super) fn tables(&self) -> Vec<Table> {
        let tables =
            [self.hackbench_table(), self.cost_table(), self.ladder(), self.repetition_table()];
        tables.into_iter().filter(|table| !table.rows.is_empty()).collect()
    }

    fn hackbench_table(&self) -> Table {
        let head = ["", "cores", "quantum", "runs", "mean", "deviation", "least", "most"];
        let mut table = Table::new("hackbench, virtual time, without each boot's first run", head);
        for (case, sample) in self.hackbenches() {
            let busy = if case.busy_host { ", busy host" } else { "" };
            let name = format!("{}{busy}", mode(case.mode));
            table.row(hackbench_row(name, case, &sample.steady()));
        }
        for cores in self.hackbench_cores() {
            let boots = self.over_boots(cores);
            if !boots.0.is_empty() {
                let case = Case::new(Guest::ONE_STEADY_RUN, cores);
                table.row(hackbench_row("in turns, one run of each boot".into(), &case, &boots));
            }
        }
        table
    }

    /// What a case costs. The first run of each.
    fn cost_table(&self) -> Table {
        let head = [
            "",
            "virtual",
            "real",
            "a virtual second",
            "processor",
            "an instruction",
            "main loop",
            "quanta",
            "leaves",
        ];
        let mut table = Table::new("Cost", head);
        for m in self.measurements.iter().filter(|m| m.case.repetition == 1) {
            let virtual_s = m.virtual_s();
            let leaves = m.statistics.as_ref().map(|counts| {
                let all = counts.vcpus.iter().map(|vcpu| vcpu.forced_leaves);
                count(all.map(|l| l.stall + l.main_loop + l.timeout).sum())
            });
            table.row([
                m.case.name(),
                text(virtual_s.map(|s| format!("{s:.2} s"))),
                format!("{:.1} s", m.real_s),
                text(virtual_s.map(|s| format!("{:.1} s", m.real_s / s))),
                format!("{:.1} s", m.processor_s()),
                text(m.ns_per_instruction().map(|ns| format!("{ns:.1} ns"))),
                format!("{:.1} %", 100.0 * m.main_loop_s / m.processor_s()),
                text(m.statistics.as_ref().map(|counts| count(counts.counts.quanta))),
                text(leaves),
            ]);
        }
        table
    }

    /// Where a hackbench instruction's processor time goes.
    fn ladder(&self) -> Table {
        let head = ["", "boot", "hackbench"];
        let mut table = Table::new("Where it goes: processor time of an instruction", head);
        let boot = |cores, mode| self.first(cores, mode, |g| g == Guest::Boot);
        let hackbench = |cores, mode| self.first(cores, mode, Guest::several_steady_runs);
        // A plain run does not count its instructions; they are those of the
        // same work in virtual time.
        let plain = |plain: Option<&Measurement>, counted: Option<&Measurement>| {
            Some(1e9 * plain?.processor_s() / as_f64(counted?.instructions()?))
        };
        let ns = |value: Option<f64>| text(value.map(|ns| format!("{ns:.1} ns")));
        table.row([
            "plain QEMU, 1 core".into(),
            ns(plain(boot(1, Mode::Plain), boot(1, Mode::Turns))),
            ns(plain(hackbench(1, Mode::Plain), hackbench(1, Mode::Turns))),
        ]);
        for (name, cores, mode) in [
            ("counted, 1 core", 1, Mode::Turns),
            ("in turns, 2 cores", 2, Mode::Turns),
            ("in turns, 4 cores", 4, Mode::Turns),
            ("in parallel, 2 cores", 2, Mode::Parallel),
            ("in parallel, 4 cores", 4, Mode::Parallel),
        ] {
            let of = |m: Option<&Measurement>| ns(m.and_then(Measurement::ns_per_instruction));
            table.row([name.into(), of(boot(cores, mode)), of(hackbench(cores, mode))]);
        }
        table
    }

    fn first(&self, cores: u32, mode: Mode, guest: impl Fn(Guest) -> bool) -> Option<&Measurement> {
        self.measurements.iter().find(|m| {
            let kind = (m.case.cores, m.case.mode, m.case.busy_host) == (cores, mode, false);
            kind && guest(m.case.guest)
        })
    }

    /// How much runs of the same differ: the greatest difference of any from the
    /// first.
    fn repetition_table(&self) -> Table {
        let head = ["", "runs", "instructions", "apart", "wake-ups in another bin"];
        let mut table = Table::new("Runs of the same", head);
        let mut repetitions = self.repetitions();
        repetitions.sort_by_key(|(first, _)| first.case.name());
        let same = |a: &(&Measurement, &Measurement), b: &(&Measurement, &Measurement)| {
            a.0.case == b.0.case
        };
        for group in repetitions.chunk_by(same) {
            let (first, _) = group[0];
            let most = |apart: &dyn Fn(&Measurement) -> Option<u64>| {
                let all: Option<Vec<u64>> = group.iter().map(|(_, m)| apart(m)).collect();
                all.and_then(|all| all.into_iter().max()).map(count)
            };
            let instructions = most(&|m| Some(first.instructions()?.abs_diff(m.instructions()?)));
            let bins = most(&|m| match (&first.figures, &m.figures) {
                (Figures::Cyclictest(a), Figures::Cyclictest(b)) => Some(distance(a, b)),
                _ => None,
            });
            table.row([
                first.case.name(),
                (group.len() + 1).to_string(),
                text(first.instructions().map(count)),
                text(instructions),
                text(bins),
            ]);
        }
        table
    }
}

impl Measurement {
    /// Processor time per instruction, nanoseconds; nothing in a plain run.
    fn ns_per_instruction(&self) -> Option<f64> {
        Some(1e9 * self.processor_s() / as_f64(self.instructions()?))
    }
}

fn hackbench_row(name: String, case: &Case, steady: &Sample) -> [String; 8] {
    [
        name,
        case.cores.to_string(),
        quantum(case.mode, case.quantum_ns),
        steady.0.len().to_string(),
        format!("{:.1} ms", 1e3 * steady.mean()),
        format!("{:.2} %", steady.deviation_percent()),
        format!("{:.0} ms", 1e3 * steady.least()),
        format!("{:.0} ms", 1e3 * steady.most()),
    ]
}

fn text(value: Option<String>) -> String {
    value.unwrap_or_else(|| "-".into())
}

/// In words.
pub(super) fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Turns => "in turns",
        Mode::Parallel => "in parallel",
        Mode::Plain => "plain QEMU",
    }
}

fn quantum(mode: Mode, quantum_ns: u64) -> String {
    if mode == Mode::Plain { "-".into() } else { format!("{} ns", count(quantum_ns)) }
}

#[allow(clippy::cast_precision_loss)] // counts
fn as_f64(count: u64) -> f64 {
    count as f64
}
