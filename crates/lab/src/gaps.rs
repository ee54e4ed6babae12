//! Gaps: time in which a core executes nothing of ours, and EL2 is not the reason.
//!
//! On Arm that is firmware at EL3, a secure interrupt, or a core that stands still. A detector, which is
//! the probe in its role `gaps`, has each core of a board to itself and reads the counter without rest.

use crate::answer::Answer;
use crate::dataset::{Dataset, Unit};
use crate::figures;
use crate::guests::{GapsProgress, Images, Watched};
use crate::quantity::{duration, real};
use crate::report::Plot;
use crate::results::{Check, Goal};
use crate::session::Run;
use miette::Result;
use std::fmt::Write;
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;
use system::Checked;
use system::model::Machine;

/// What a gap is longer than, unless another length is asked for, nanoseconds.
pub const THRESHOLD_NS: u64 = 10_000;
/// What may be asked for. What the detector itself takes from one look to the next is below, in
/// virtual time as well as on slow hardware.
pub const THRESHOLDS_NS: RangeInclusive<u64> = 1_000..=10_000_000_000;
/// How long the detector of an image for a board watches before it tells again what it has seen so far.
const ROUND: Duration = Duration::from_secs(10);
/// How long a machine may take beyond what it watches, virtual time: it boots, and tells.
const MARGIN: Duration = Duration::from_secs(5);
/// The name of the detector's VM.
const NAME: &str = "gaps";

/// How a detector watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watch {
    /// What a gap is longer than, nanoseconds.
    pub threshold_ns: u64,
    /// How long; none: for ever, and it tells each ten seconds what it has seen so far.
    pub length: Option<Duration>,
}

impl Watch {
    /// Returns the description of the detector on all pCPUs of `machine`, for the project at `root`.
    #[must_use]
    pub fn description(self, machine: &Machine, root: &Path) -> String {
        let (kind, pcpus, memory) = (&machine.board.kind, machine.pcpus, machine.memory);
        let (length, rounds) = self.length.map_or((ROUND, 0), |length| (length, 1));
        let (threshold_ns, ms) = (self.threshold_ns, milliseconds(length));
        let images = Images::of(root);
        let kernel = if machine.board.gic.is_v2() { images.probe_gicv2 } else { images.probe };
        let mut text = format!(
            "# A detector of gaps on every pCPU.\n\n\
             [board]\nkind = {kind:?}\npcpus = {pcpus}\nmemory = \"{memory}\"\n\n\
             [hypervisor]\noff_when_done = true\n\n\
             [[vm]]\nname = {NAME:?}\nkernel = {kernel:?}\n\
             cmdline = \"probe.run=gaps probe.threshold_ns={threshold_ns} probe.for_ms={ms} \
             probe.rounds={rounds}\"\nmemory = {{ size = \"32M\" }}\nrealtime = true\nvcpus = [\n"
        );
        for pcpu in 0..pcpus {
            let _ = writeln!(text, "    {{ pcpu = {pcpu}, priority = 255 }},");
        }
        text + "]\n"
    }

    /// Returns the system that the description is of, in the place of the one at `path`.
    ///
    /// # Errors
    /// When that has too little memory, or the launcher has not built the detector.
    pub fn system(self, path: &Path, machine: &Machine, root: &Path) -> Result<Checked> {
        let name = format!("{}-gaps.toml", path.file_stem().unwrap_or_default().display());
        Ok(system::load_text(&path.with_file_name(name), &self.description(machine, root))?)
    }

    /// Returns how long a machine may run that watches so, in its own time.
    #[must_use]
    pub fn limit(self) -> Option<Duration> {
        self.length.map(|length| length + MARGIN)
    }
}

/// Returns so many whole milliseconds, at least one.
fn milliseconds(length: Duration) -> u128 {
    length.as_micros().div_ceil(1_000).max(1)
}

/// Returns what the detector of a run has said; nothing if it is not there.
#[must_use]
pub fn said(run: &Run) -> Option<&GapsProgress> {
    let vm = run.observer.layout.vm(NAME)?;
    run.said.guests.get(vm).map(|guest| &guest.gaps)
}

/// Returns what was found by a run called `name`.
#[must_use]
pub fn answer(run: &Run, watch: Watch, name: &str) -> Answer {
    let threshold = duration(Duration::from_nanos(watch.threshold_ns));
    let lead = format!(
        "Time in which a core executed nothing, longer than {threshold}, and which no stay at EL2 explains."
    );
    let mut answer = Answer::new(name, name, &lead);
    answer.outcome.figure("ended", run.end.about());
    answer.outcome.parameter("threshold_ns", watch.threshold_ns);
    let (nothing, asked) = (GapsProgress::default(), run.observer.layout.pcpus);
    let said = said(run).unwrap_or(&nothing);
    tell(&mut answer, said);
    let outcome = &mut answer.outcome;
    let complete = said.told > 0 && said.vcpus.len() == asked;
    outcome.check(Check::done("the detector told of every core", complete).as_premise());
    let gaps = complete.then(|| real(said.vcpus.values().map(|seen| seen.gaps).sum()));
    outcome.check(Check::new("gaps that EL2 does not explain", gaps, "", Goal::Exactly(0.0)));
    figures::check_bugs(outcome, &run.observer);
    answer
}

/// Adds the tables and the histogram.
fn tell(answer: &mut Answer, said: &GapsProgress) {
    answer.data(&cores(said));
    let bins = said.vcpus.iter().flat_map(|(core, seen)| {
        seen.bins.iter().map(move |&(from_us, count)| (*core, from_us, count))
    });
    let bins = Dataset::of("histogram", "Gaps by length", bins)
        .name("pcpu", |row| row.0.to_string())
        .column("from", Unit::Microseconds, |row| real(row.1))
        .column("below", Unit::Microseconds, |row| real(if row.1 == 0 { 2 } else { 2 * row.1 }))
        .name("gaps", |row| row.2)
        .done();
    answer.data(&bins);
    let first = said.vcpus.iter().flat_map(|(core, seen)| {
        seen.first.iter().map(move |&(at_ns, length_ns)| (*core, at_ns, length_ns))
    });
    let first = Dataset::of("gaps", "The first gaps of each core", first)
        .name("pcpu", |row| row.0.to_string())
        .column("at", Unit::Nanoseconds, |row| real(row.1))
        .column("length", Unit::Nanoseconds, |row| real(row.2))
        .done();
    answer.data(&first);
    if !bins.is_empty() {
        let plot = Plot::bars(&bins, "from_us", "gaps").by("pcpu");
        let drawn = answer.plot("gaps", &plot, "Gaps by length in µs: from this to twice as long.");
        answer.section("Gaps by length", drawn);
    }
}

/// Returns a row for each core.
fn cores(said: &GapsProgress) -> Dataset {
    type Row<'a> = (&'a usize, &'a Watched);
    let ns = |of: fn(&Watched) -> u64| move |row: &Row| real(of(row.1));
    Dataset::of("cores", "Gaps, core by core", &said.vcpus)
        .name("pcpu", |row: &Row| row.0.to_string())
        .column("watched", Unit::Nanoseconds, ns(|seen| seen.watched_ns))
        .column("between_looks", Unit::Nanoseconds, |row: &Row| {
            real(row.1.watched_ns) / real(row.1.looks.max(1))
        })
        .name("gaps", |row: &Row| row.1.gaps)
        .column("longest", Unit::Nanoseconds, ns(|seen| seen.longest_ns))
        .column("lost", Unit::Nanoseconds, ns(|seen| seen.lost_ns))
        .name("explained_by_el2", |row: &Row| row.1.explained)
        .column("longest_explained", Unit::Nanoseconds, ns(|seen| seen.explained_longest_ns))
        .column("longest_stay_at_el2", Unit::Nanoseconds, ns(|seen| seen.el2_longest_ns))
        .done()
}

#[cfg(test)]
mod tests {
    use super::*;
    use system::board::Board;

    /// The guest of the other kind finds no CPU interface.
    #[test]
    fn each_board_has_the_detector_for_its_interrupt_controller() {
        let watch = Watch { threshold_ns: 10_000, length: None };
        for board in Board::all() {
            let machine = Machine { board, pcpus: 1, memory: 256 << 20 };
            let text = watch.description(&machine, Path::new("root"));
            let has = |name: &str| text.contains(&format!("/{name}\""));
            let is_v2 = board.gic.is_v2();
            assert_eq!([has("probe.elf"), has("probe-gicv2.elf")], [!is_v2, is_v2], "{text}");
        }
    }

    #[test]
    fn the_description_has_a_detector_on_every_core() {
        let board = Board::find("qemu-virt").unwrap();
        let machine = Machine { board, pcpus: 3, memory: 256 << 20 };
        let watch = Watch { threshold_ns: 20_000, length: Some(Duration::from_micros(1_500)) };
        let root = crate::testing::root();
        let system = watch.system(Path::new("a/demo.toml"), &machine, root).unwrap();
        assert_eq!((system.vms.len(), system.vms[0].vcpus.len()), (1, 3));
        assert_eq!(system.path, Path::new("a/demo-gaps.toml"));
        let told = &system.vms[0].cmdline;
        for word in ["probe.threshold_ns=20000", "probe.for_ms=2 ", "probe.rounds=1"] {
            assert!(format!("{told} ").contains(word), "{told}");
        }
        let endless = Watch { length: None, ..watch };
        assert!(endless.description(&machine, root).contains("for_ms=10000 probe.rounds=0"));
        assert_eq!(endless.limit(), None);
    }
}
