//! Runs one point.

use super::plan::CORES;
use super::point::{Experiment, Linux, Point, Wake};
use super::{bare_rtos, description};
use crate::bench::sample::Sample;
use crate::bench::store::{Case as _, measured};
use crate::bench::vtime;
use crate::bench::vtime::case::{Case, Guest};
use crate::bench::vtime::figures::Figures;
use crate::bench::{ProgressView, Tell};
use crate::bundle::Bundle;
use crate::guests::{Build, LinuxProgress, LinuxWork, Locks, Wakes};
use crate::observe::{Lateness, Observer};
use crate::quantity::real;
use crate::session::Session;
use crate::suite::Bench;
use ::vtime::options::Options;
use ::vtime::stats::{Statistics, VcpuStatistics};
use abi::status::VcpuStatus;
use miette::{Result, miette};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

/// Virtual time for one machine: several times what the longest needs.
pub(super) const LIMIT: Duration = Duration::from_secs(600);

/// Places of the VMs in every description.
const LINUX: usize = 0;
const RTOS: usize = 1;

/// What a run brought.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The run.
    pub point: Point,
    /// Real time from start to end, in seconds.
    pub real_s: f64,
    /// Virtual time when the machine was stopped, in seconds.
    pub virtual_s: f64,
    /// The runs of hackbench or of timed work, in seconds.
    pub runs: Sample,
    /// What the RTOS measured, if there was one.
    pub rtos: Option<Lateness>,
    /// Each vCPU's doings, if there was a hypervisor.
    pub vcpus: Vec<Vcpu>,
    /// What the instrument counted: with the range of EL2, or of Linux's memory where it is counted how
    /// much of that only waits.
    pub statistics: Option<Statistics>,
    /// Instructions that wait for another core, by what is waited for
    /// ([`description::SPINNING`]), if they were counted.
    pub spinning: BTreeMap<String, Spun>,
    /// Instructions of Linux's kernel that each core executed, from its boot
    /// on; none if they were not counted.
    pub kernel: Vec<u64>,
    /// What Linux tells the hypervisor of its locks, if it was asked to.
    #[serde(default)]
    pub locks: Option<Locks>,
    /// The builds of a part of Linux, if there were any.
    #[serde(default)]
    pub builds: Vec<Build>,
    /// How late Linux's real-time process was, if it had one.
    #[serde(default)]
    pub wakes: Option<Wakes>,
}

/// Instructions that only wait, from Linux's boot on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spun {
    /// So many, on all cores.
    pub waiting: u64,
    /// Linux executed so many, its programs among them.
    pub of_linux: u64,
}

impl Spun {
    /// Returns the part of Linux's instructions that waited, 0 to 1.
    #[must_use]
    pub fn share(&self) -> f64 {
        real(self.waiting) / real(self.of_linux.max(1))
    }
}

/// What one vCPU did from boot to the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Vcpu {
    /// Such as `linux.0`.
    pub name: String,
    /// Time on a core, seconds.
    pub run_s: f64,
    /// Time it could have run while another vCPU did, seconds.
    pub stolen_s: f64,
    /// Times it was switched to.
    pub switches: u64,
    /// Times it arrived on another pCPU.
    pub migrations: u64,
    /// Times it was preempted in kernel mode.
    pub kernel_preemptions: u64,
    /// How long in all, seconds.
    pub kernel_preempted_s: f64,
}

measured!(Measurement, point: Point, real_s);

/// Runs `point` with its files in the directory of `bench`, and tells how far it is.
///
/// # Errors
/// When the machine fails, a guest does not do its work, or Ctrl-C comes.
pub fn run(point: &Point, bench: &Bench, tell: Tell<'_>) -> Result<Measurement> {
    let Some(text) = description::of(point, &bench.root) else {
        return match point.rtos {
            Some(rtos) => bare_rtos::run(point, rtos, bench, tell),
            None => native(point, bench, tell),
        };
    };
    let bundle = bench.pack(&bench.kept(&text)?)?;
    let session = bench.session(&bundle, LIMIT)?.with_quantum(quantum_ns(point));
    let session = if point.traps_wfe() { session.with_wfe_traps() } else { session };
    let session = if point.experiment == Experiment::Spinning {
        let linux = &bundle.tables.vms[LINUX];
        session.counting(linux.ram_pa..linux.ram_pa + linux.ram_size)
    } else {
        session
    };
    let first = boot(point, bench, session.shown_by(Box::new(ProgressView(tell))))?;
    let mut measurement = first.measurement.clone();
    if point.experiment.needs_symbols() {
        let mut counted = |what: &str, range| {
            let mut tell = |now: &str| tell(&format!("{what}: {now}"));
            let session = bench.session(&bundle, LIMIT)?.counting(range);
            let again = boot(point, bench, session.shown_by(Box::new(ProgressView(&mut tell))))?;
            measurement.real_s += again.measurement.real_s;
            let cores = again.measurement.statistics.map_or(vec![], |all| all.vcpus);
            if within(&cores).iter().all(|&executed| executed == 0) {
                return Err(miette!("{what}: nothing was counted: Linux lies elsewhere"));
            }
            Ok(cores)
        };
        if point.experiment == Experiment::Kernel {
            measurement.kernel = within(&counted("kernel", first.kernel(&bundle)?)?);
            return Ok(measurement);
        }
        // Each run is the same history again, so what they count can be compared.
        let executed = first.measurement.statistics.as_ref().map_or(&[][..], |all| &all.vcpus);
        let of_linux = within(executed).iter().sum();
        if of_linux == 0 {
            return Err(miette!("nothing was counted: Linux's memory lies elsewhere"));
        }
        for (name, functions) in description::SPINNING {
            let cores = counted(name, first.functions(functions, &bundle)?)?;
            let spun = Spun { waiting: within(&cores).iter().sum(), of_linux };
            measurement.spinning.insert(name.into(), spun);
        }
    }
    Ok(measurement)
}

/// Returns how far a core may run ahead of the others.
fn quantum_ns(point: &Point) -> u64 {
    point.rtos.map_or(Wake::Timer, |rtos| rtos.wake).quantum_ns()
}

/// What each core executed in the range that was counted.
fn within(cores: &[VcpuStatistics]) -> Vec<u64> {
    cores.iter().filter_map(|core| Some(core.range.as_ref()?.instructions)).collect()
}

/// A run, and where the kernel said that its functions are.
struct Booted {
    measurement: Measurement,
    symbols: BTreeMap<String, (u64, u64)>,
}

/// Runs `point` in `session` until its guests have done their work.
fn boot(point: &Point, bench: &Bench, session: Session<'_>) -> Result<Booted> {
    let ends_itself = point.experiment == Experiment::Migration;
    let awaits_rtos = matches!(point.linux, Linux::BusyHackbench | Linux::BusyWrite);
    let mut early = false;
    let run = session.run(|now| {
        let linux = &now.said.guests[LINUX].linux;
        early |= begins_early(point, linux, now.observer);
        if early {
            return true;
        }
        let rtos_over = point.rtos.is_some() && now.observer.is_over(RTOS);
        linux.failed.is_some()
            || awaits_rtos && rtos_over
            || !ends_itself && linux.is_over(LinuxWork::All)
    })?;
    if bench.interrupt.requested() {
        return Err(miette!("interrupted"));
    }
    run.without_faults()?;
    let linux = &run.said.guests[LINUX].linux;
    if early {
        return Err(miette!(
            "the RTOS began before Linux had set to work: START_MS in \
             crates/lab/src/bench/lhp/description.rs is too short for this Linux"
        ));
    }
    let consoles = bench.directory.join("console-linux.log");
    let unfinished = |what: &str| miette!("{what}; its console: {}", consoles.display());
    let runs = runs(&point.linux, linux).map_err(|why| unfinished(&why))?;
    if let Some((technique, policy)) = point.technique.zip(point.stage.policy())
        && !awaits_rtos
        && let Some(why) = technique.objection(policy.name, linux)
    {
        return Err(unfinished(&why));
    }
    let rtos =
        point.rtos.map(|rtos| lateness(&run.observer, RTOS, rtos.activations)).transpose()?;
    if rtos.as_ref().is_some_and(|rtos| rtos.activations == 0) {
        return Err(unfinished("the RTOS did not run beside Linux's work"));
    }
    if let (Linux::Realtime { wakes, .. }, Some(rtos)) = (&point.linux, &rtos)
        && rtos.activations < u64::from(*wakes)
    {
        let activations = rtos.activations;
        return Err(unfinished(&format!(
            "{activations} activations of the RTOS beside {wakes} wake-ups"
        )));
    }
    let virtual_s = run.virtual_time().unwrap_or_default().as_secs_f64();
    let measurement = Measurement {
        point: point.clone(),
        real_s: run.elapsed.as_secs_f64(),
        virtual_s,
        runs,
        rtos,
        vcpus: vcpus(&run.observer),
        statistics: run.instrument,
        spinning: BTreeMap::new(),
        kernel: Vec::new(),
        locks: linux.locks.clone(),
        builds: linux.builds.clone(),
        wakes: linux.all_wakes(),
    };
    Ok(Booted { measurement, symbols: linux.symbols.clone() })
}

/// Returns true if the RTOS has reported something before Linux has booted, or before Linux does
/// the endless work that it is to do meanwhile.
fn begins_early(point: &Point, linux: &LinuxProgress, observer: &Observer) -> bool {
    let is_set = match point.linux {
        Linux::BusyHackbench | Linux::BusyWrite => linux.busy,
        _ => linux.boot_s.is_some(),
    };
    let header = observer.reports(RTOS).and_then(|reports| reports.header);
    !is_set && header.is_some_and(|header| header.written > 0)
}

impl Booted {
    fn symbol(&self, name: &str) -> Result<(u64, u64)> {
        let found = self.symbols.get(name).copied();
        found.ok_or_else(|| miette!("Linux did not say where {name} is"))
    }

    /// Where Linux's image begins, as its kernel sees it.
    fn image(&self) -> Result<u64> {
        let (text, behind) = description::TEXT;
        Ok(self.symbol(text)?.0 - behind)
    }

    /// Where the functions of Linux's from the first to the last lie in the
    /// machine's memory.
    fn functions(&self, [first, last]: [&str; 2], bundle: &Bundle) -> Result<Range<u64>> {
        let range = self.physical(self.symbol(first)?.0..self.symbol(last)?.1, bundle)?;
        range.ok_or_else(|| miette!("{last} does not lie behind {first}"))
    }

    /// Where its kernel's code lies. What stands before it, the Image's header,
    /// is memory for programs soon.
    fn kernel(&self, bundle: &Bundle) -> Result<Range<u64>> {
        let text = self.symbol(description::TEXT.0)?.0..self.symbol(description::TEXT_END)?.0;
        let range = self.physical(text, bundle)?;
        range.ok_or_else(|| miette!("Linux's code ends before it begins"))
    }

    /// Returns where virtual addresses of the kernel lie in the machine's memory, if they are a
    /// range in it. The kernel is the first thing that is loaded, and runs where it lies.
    fn physical(&self, code: Range<u64>, bundle: &Bundle) -> Result<Option<Range<u64>>> {
        let (image, begin) = (self.image()?, bundle.tables.loads[0].dst_pa);
        let is_sound = (image..code.end).contains(&code.start);
        Ok(is_sound.then(|| begin + (code.start - image)..begin + (code.end - image)))
    }
}

/// Returns the times of the runs that `wanted` asks for, or says what Linux did not do:
/// a run that is missing must not pass for one that was never asked for.
fn runs(wanted: &Linux, linux: &LinuxProgress) -> Result<Sample, String> {
    if let Some(why) = &linux.failed {
        return Err(format!("Linux gave up: {why}"));
    }
    if let Linux::Realtime { wakes, .. } = *wanted {
        let told = linux.all_wakes().filter(|told| linux.done && told.count == u64::from(wakes));
        told.ok_or_else(|| format!("Linux did not tell of {wakes} wake-ups"))?;
        // As many runs as there was time for; the last is not over.
        return Ok(Sample(linux.hackbench_s.clone()));
    }
    let builds: Vec<f64> = linux.builds.iter().map(|build| build.seconds).collect();
    let (seconds, runs) = match *wanted {
        Linux::Absent | Linux::BusyHackbench | Linux::BusyWrite => return Ok(Sample::default()),
        Linux::Hackbench { runs, .. } => (&linux.hackbench_s, runs),
        Linux::Timed { runs, .. } => (&linux.work_s, runs),
        Linux::Builds { runs } => (&builds, runs),
        Linux::Realtime { .. } => return Err("a real-time process has no runs".into()),
    };
    if !linux.done {
        return Err("Linux did not say that it is done".into());
    }
    if seconds.len() != runs as usize {
        return Err(format!("Linux finished {} of {runs} runs", seconds.len()));
    }
    Ok(Sample(seconds.clone()))
}

/// Returns what VM `vm` reported, if that is all of so many activations (0: however many).
pub(super) fn lateness(observer: &Observer, vm: usize, wanted: u32) -> Result<Lateness> {
    let reports = observer.reports(vm).and_then(|reports| Some((reports, reports.lateness()?)));
    let (reports, lateness) = reports.ok_or_else(|| miette!("the RTOS reported nothing"))?;
    let (written, lost) = (lateness.activations, reports.lost());
    if lost > 0 || (wanted > 0 && written != u64::from(wanted)) {
        return Err(miette!("the RTOS has {written} of {wanted} activations, {lost} unread"));
    }
    Ok(lateness)
}

fn vcpus(observer: &Observer) -> Vec<Vcpu> {
    let Some(now) = observer.latest() else { return Vec::new() };
    let vcpu = |(index, vcpu): (usize, &VcpuStatus)| Vcpu {
        name: observer.layout.vcpu_label(index),
        run_s: now.time(vcpu.run).as_secs_f64(),
        stolen_s: now.time(vcpu.stolen).as_secs_f64(),
        switches: vcpu.switches,
        migrations: vcpu.migrations,
        kernel_preemptions: vcpu.kernel_preemptions,
        kernel_preempted_s: now.time(vcpu.kernel_preempted).as_secs_f64(),
    };
    now.vcpus.iter().enumerate().map(vcpu).collect()
}

/// A point that runs without hypervisor.
fn native_case(point: &Point) -> Option<Case> {
    let guest = match point.linux {
        Linux::Timed { work, count, runs } => Guest::Work { work, count, runs },
        Linux::Builds { runs } => Guest::Builds { runs },
        _ => return None,
    };
    Some(Case::new(guest, CORES))
}

/// What a point's machine is told, wherever the project is.
#[must_use]
pub fn config_text(point: &Point) -> String {
    let described = description::of(point, Path::new(""));
    let native = || match point.rtos {
        Some(rtos) => Some(bare_rtos::command_line(rtos)),
        None => Some(native_case(point)?.config_text()),
    };
    let told = described.or_else(native).unwrap_or_default();
    let told = if point.traps_wfe() { format!("{told}\nwfe-traps") } else { told };
    match quantum_ns(point) {
        Options::DEFAULT_QUANTUM_NS => told,
        finer => format!("{told}\nquantum {finer}"),
    }
}

/// Without hypervisor.
fn native(point: &Point, bench: &Bench, tell: Tell<'_>) -> Result<Measurement> {
    let Some(case) = native_case(point) else {
        return Err(miette!("only timed work runs without hypervisor"));
    };
    let found = vtime::run::run(&case, bench, tell)?;
    let virtual_s = found.virtual_s().unwrap_or_default();
    let (runs, builds) = match found.figures {
        Figures::Work(runs) => (runs, Vec::new()),
        Figures::Builds(builds) => {
            (Sample(builds.iter().map(|build| build.seconds).collect()), builds)
        }
        _ => return Err(miette!("Linux did other work")),
    };
    Ok(Measurement {
        point: point.clone(),
        real_s: found.real_s,
        virtual_s,
        runs,
        rtos: None,
        vcpus: Vec::new(),
        statistics: found.statistics,
        spinning: BTreeMap::new(),
        kernel: Vec::new(),
        locks: None,
        builds,
        wakes: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_rtos_that_begins_before_linux_is_noticed() {
        use crate::bench::Extent;
        use crate::bench::lhp::{plan, policy::Policy};
        use crate::testing;
        let points = plan::points(Extent::Quick, &Policy::all());
        let late = |of: &Linux| {
            let is_it = |p: &&Point| p.linux == *of && p.rtos.is_some();
            points.iter().find(is_it).unwrap().clone()
        };
        let heard = |line: &str| {
            let mut linux = LinuxProgress::default();
            linux.hear(line);
            linux
        };
        let [sleeping, reporting] =
            [0, 1].map(|n| testing::observer(&testing::status(), &testing::report(n, 0)));
        let ready = heard("cassata: linux ready uptime=0.81 cpus=4 kernel=6.1");
        let busy = late(&Linux::BusyHackbench);
        assert!(begins_early(&busy, &ready, &reporting));
        assert!(!begins_early(&busy, &ready, &sleeping));
        assert!(!begins_early(&busy, &heard("cassata: busy work=hackbench"), &reporting));
        let timed = points.iter().find(|p| p.experiment == Experiment::Migration).unwrap();
        assert!(!begins_early(timed, &ready, &reporting));
        assert!(begins_early(timed, &LinuxProgress::default(), &reporting));
    }

    #[test]
    fn a_run_that_is_missing_is_an_error() {
        let wanted = Linux::Hackbench { loops: 100, runs: 2 };
        let of = |lines: &[&str]| {
            let mut linux = LinuxProgress::default();
            lines.iter().for_each(|line| linux.hear(line));
            runs(&wanted, &linux)
        };
        let first = "cassata: hackbench run=1 seconds=0.412";
        let behind_the_kernel = "random: crng init donecassata: hackbench run=2 seconds=0.398";
        let done = "cassata: linux done";
        assert_eq!(of(&[first, behind_the_kernel, done]), Ok(Sample(vec![0.412, 0.398])));
        assert_eq!(of(&[first, done]).unwrap_err(), "Linux finished 1 of 2 runs");
        assert_eq!(
            of(&[first, behind_the_kernel]).unwrap_err(),
            "Linux did not say that it is done"
        );
        let failed = of(&[first, "cassata: linux failed: hackbench run=2 status=1"]);
        assert_eq!(failed.unwrap_err(), "Linux gave up: hackbench run=2 status=1");
        assert_eq!(runs(&Linux::BusyWrite, &LinuxProgress::default()), Ok(Sample::default()));
    }
}
