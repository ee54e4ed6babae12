//! Runs one point.

use super::description;
use super::migration::as_f64;
use super::plan::CORES;
use super::point::{Experiment, Linux, Point};
use crate::bench::sample::Sample;
use crate::bench::store::{Measured, Named};
use crate::bench::vtime;
use crate::bench::vtime::case::{Case, Guest};
use crate::bench::vtime::figures::{Figures, hackbench, work};
use crate::bundle::{Bundle, channel};
use crate::demo::{LinuxProgress, LinuxWork};
use crate::machine::{Machine, MachineConfig, Time, VirtualTime};
use crate::observe::{Distribution, Observer};
use crate::session::{Limit, Session};
use crate::suite::Bench;
use crate::view::{Scene, View};
use ::vtime::stats::{Statistics, VcpuStatistics};
use miette::{Result, miette};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

/// Real time for one machine: long for the longest on a busy host, short for a
/// hang.
const LIMIT: Duration = Duration::from_secs(7_200);

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
    /// What the instrument counted.
    pub statistics: Option<Statistics>,
    /// Instructions that wait for another core, by what is waited for
    /// ([`description::SPINNING`]), if they were counted.
    pub spinning: BTreeMap<String, Spun>,
    /// Instructions of Linux's kernel that each core executed, from its boot
    /// on; none if they were not counted.
    pub kernel: Vec<u64>,
}

/// How late the RTOS was; times in ticks of 1 GHz, nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lateness {
    /// Activations that were measured.
    pub activations: u64,
    /// Those that began after their period was over.
    pub missed: u64,
    /// How often each interrupt response time occurred.
    pub response: BTreeMap<u32, u64>,
    /// How often each dispatch latency occurred.
    pub dispatch: BTreeMap<u32, u64>,
}

/// Instructions that only wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spun {
    /// So many, on all cores.
    pub waiting: u64,
    /// Of so many.
    pub all: u64,
}

impl Spun {
    /// The part of all that waited, 0 to 1.
    #[must_use]
    pub fn share(&self) -> f64 {
        as_f64(self.waiting) / as_f64(self.all.max(1))
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

impl Measured for Measurement {
    type Case = Point;

    fn case(&self) -> &Point {
        &self.point
    }

    fn real_s(&self) -> f64 {
        self.real_s
    }
}

/// A distribution of what was stored.
#[must_use]
pub fn distribution(counts: &BTreeMap<u32, u64>) -> Distribution {
    let mut distribution = Distribution::default();
    counts.iter().for_each(|(&value, &count)| distribution.record_many(value, count));
    distribution
}

/// Runs `point` with its files in `directory`, which exists, and tells how far
/// it is.
///
/// # Errors
/// When the machine fails, a guest does not do its work, or Ctrl-C comes.
pub fn run(
    point: &Point,
    bench: &Bench,
    directory: &Path,
    tell: &mut dyn FnMut(&str),
) -> Result<Measurement> {
    let Some(text) = description::of(point, &bench.root) else {
        return native(point, bench, directory, tell);
    };
    let path = directory.join("system.toml");
    crate::results::write_file(&path, text.as_bytes())?;
    let checked = system::load_text(&path, &text)?;
    let bundle = Bundle::pack(&checked, bench.hypervisor, &directory.join("system.elf"))?;
    let time = VirtualTime::new(&bench.instrument, &bench.qemu, directory)?;
    let config = bundle.machine_in(&Time::Virtual(time.clone()));
    let mut watched = Watch { bundle: &bundle, bench, directory };
    let first = watched.run(point, &config, tell)?;
    let mut measurement = first.measurement.clone();
    if point.experiment.needs_symbols() {
        let mut counted = |what: &str, range| {
            let time = Time::Virtual(time.clone().counting(range));
            let config = MachineConfig { time, ..bundle.machine() };
            let again = watched.run(point, &config, &mut |now| tell(&format!("{what}: {now}")))?;
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
        for (name, functions) in description::SPINNING {
            let cores = counted(name, first.physical(functions, &bundle)?)?;
            let all = cores.iter().map(|core| core.instructions).sum();
            let spun = Spun { waiting: within(&cores).iter().sum(), all };
            measurement.spinning.insert(name.into(), spun);
        }
    }
    Ok(measurement)
}

/// What each core executed in the range that was counted.
fn within(cores: &[VcpuStatistics]) -> Vec<u64> {
    cores.iter().filter_map(|core| Some(core.range.as_ref()?.instructions)).collect()
}

struct Watch<'a> {
    bundle: &'a Bundle,
    bench: &'a Bench,
    directory: &'a Path,
}

/// A run, and where the kernel said that its functions are.
struct Run {
    measurement: Measurement,
    symbols: BTreeMap<String, (u64, u64)>,
}

impl Watch<'_> {
    fn run(
        &mut self,
        point: &Point,
        config: &MachineConfig,
        tell: &mut dyn FnMut(&str),
    ) -> Result<Run> {
        let consoles = self.bundle.consoles(Some(self.directory.into()));
        let begin = Instant::now();
        let mut machine = Machine::start(&self.bench.qemu, config, &consoles)?;
        let mut observer = Observer::new(self.bundle.layout(), config.time.pace());
        let mut linux = LinuxProgress::default();
        let mut said = Vec::new();
        let ends_itself = point.experiment == Experiment::Migration;
        let awaits_rtos = matches!(point.linux, Linux::BusyHackbench | Linux::BusyWrite);
        Session {
            machine: &mut machine,
            observer: &mut observer,
            view: &mut Telling(tell),
            interrupt: self.bench.interrupt.clone(),
            limit: Some(Limit::Real(LIMIT)),
        }
        .run(|lines, observer| {
            for line in lines.iter().filter(|line| line.channel == channel(LINUX)) {
                linux.hear(&line.text);
                said.push(line.text.clone());
            }
            let rtos_over = point.rtos.is_some()
                && observer.latest().is_some_and(|now| now.vms[RTOS].is_over());
            linux.failed.is_some()
                || awaits_rtos && rtos_over
                || !ends_itself && linux.is_over(LinuxWork::All)
        })?;
        if self.bench.interrupt.requested() {
            return Err(miette!("interrupted"));
        }
        let consoles = self.directory.join("console-linux.log");
        let unfinished = |what: &str| miette!("{what}; its console: {}", consoles.display());
        if let Some(why) = linux.failed {
            return Err(unfinished(&format!("Linux gave up: {why}")));
        }
        if !awaits_rtos && !linux.done {
            return Err(unfinished("Linux did not do its work"));
        }
        let statistics = machine.statistics();
        let measurement = Measurement {
            point: point.clone(),
            real_s: begin.elapsed().as_secs_f64(),
            virtual_s: statistics
                .as_ref()
                .map_or(0.0, |counts| Duration::from_nanos(counts.virtual_ns).as_secs_f64()),
            runs: match point.linux {
                Linux::Timed { .. } => work(&said),
                _ => hackbench(&said),
            },
            rtos: point.rtos.map(|rtos| lateness(&observer, rtos.activations)).transpose()?,
            vcpus: vcpus(&observer),
            statistics,
            spinning: BTreeMap::new(),
            kernel: Vec::new(),
        };
        Ok(Run { measurement, symbols: said.iter().filter_map(|line| symbol(line)).collect() })
    }
}

impl Run {
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
    fn physical(&self, [first, last]: [&str; 2], bundle: &Bundle) -> Result<Range<u64>> {
        let (image, (from, _), (_, to)) = (self.image()?, self.symbol(first)?, self.symbol(last)?);
        if !(image..to).contains(&from) {
            return Err(miette!("{last} does not lie behind {first}"));
        }
        let begin = begin_of_kernel(bundle);
        Ok(begin + (from - image)..begin + (to - image))
    }

    /// Where its kernel's code lies. What stands before it, the Image's header,
    /// is memory for programs soon.
    fn kernel(&self, bundle: &Bundle) -> Result<Range<u64>> {
        let (image, from) = (self.image()?, self.symbol(description::TEXT.0)?.0);
        let to = self.symbol(description::TEXT_END)?.0;
        if to <= from {
            return Err(miette!("Linux's code ends before it begins"));
        }
        let begin = begin_of_kernel(bundle);
        Ok(begin + (from - image)..begin + (to - image))
    }
}

/// The kernel is the first thing that is loaded, and runs where it lies.
fn begin_of_kernel(bundle: &Bundle) -> u64 {
    bundle.tables.loads[0].dst_pa
}

/// Reads `cassata: symbol NAME from=0x.. to=0x..`.
fn symbol(line: &str) -> Option<(String, (u64, u64))> {
    let (name, rest) = line.strip_prefix("cassata: symbol ")?.split_once(' ')?;
    let (from, to) = rest.trim_end().strip_prefix("from=0x")?.split_once(" to=0x")?;
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    Some((name.into(), (hex(from)?, hex(to)?)))
}

fn lateness(observer: &Observer, wanted: u32) -> Result<Lateness> {
    let reports = observer.reports(RTOS).and_then(|reports| Some((reports, reports.header()?)));
    let (reports, header) = reports.ok_or_else(|| miette!("the RTOS reported nothing"))?;
    if reports.lost() > 0 || (wanted > 0 && header.written != u64::from(wanted)) {
        let (written, lost) = (header.written, reports.lost());
        return Err(miette!("the RTOS has {written} of {wanted} activations, {lost} unread"));
    }
    Ok(Lateness {
        activations: header.written,
        missed: header.missed,
        response: reports.response().iter().collect(),
        dispatch: reports.dispatch().iter().collect(),
    })
}

fn vcpus(observer: &Observer) -> Vec<Vcpu> {
    let Some(now) = observer.latest() else { return Vec::new() };
    let layout = observer.layout();
    let named = layout.vcpus.iter().zip(&now.vcpus);
    let vcpu = |(name, vcpu): (&crate::observe::VcpuName, &crate::observe::VcpuSnapshot)| Vcpu {
        name: format!("{}.{}", layout.vms[name.vm].name, name.index),
        run_s: now.time(vcpu.run).as_secs_f64(),
        stolen_s: now.time(vcpu.stolen).as_secs_f64(),
        switches: vcpu.switches,
        migrations: vcpu.migrations,
        kernel_preemptions: vcpu.kernel_preemptions,
        kernel_preempted_s: now.time(vcpu.kernel_preempted).as_secs_f64(),
    };
    named.map(vcpu).collect()
}

/// A point that runs without hypervisor.
fn native_case(point: &Point) -> Option<Case> {
    let Linux::Timed { work, count, runs } = point.linux else { return None };
    Some(Case::new(Guest::Work { work, count, runs }, CORES))
}

/// What a point's machine is told, wherever the project is.
#[must_use]
pub fn recipe(point: &Point) -> String {
    let described = description::of(point, Path::new(""));
    described.or_else(|| Some(native_case(point)?.recipe())).unwrap_or_default()
}

/// Without hypervisor.
fn native(
    point: &Point,
    bench: &Bench,
    directory: &Path,
    tell: &mut dyn FnMut(&str),
) -> Result<Measurement> {
    let Some(case) = native_case(point) else {
        return Err(miette!("only timed work runs without hypervisor"));
    };
    let found = vtime::run::run(&case, bench, directory, tell)?;
    let virtual_s = found.virtual_s().unwrap_or_default();
    let Figures::Work(runs) = found.figures else {
        return Err(miette!("Linux did other work"));
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
    })
}

/// Tells how far a machine is.
struct Telling<'a>(&'a mut dyn FnMut(&str));

impl View for Telling<'_> {
    fn show(&mut self, scene: &Scene) {
        let virtual_s = scene.virtual_time.unwrap_or_default().as_secs_f64();
        (self.0)(&format!("{:.0} s for {virtual_s:.2} s", scene.elapsed.as_secs_f64()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_where_functions_are() {
        let line = "cassata: symbol queued_spin_lock_slowpath from=0xffff800008ce9ad0 to=0xffff800008ce9f00";
        let (name, range) = symbol(line).unwrap();
        assert_eq!(name, "queued_spin_lock_slowpath");
        assert_eq!(range, (0xffff_8000_08ce_9ad0, 0xffff_8000_08ce_9f00));
        assert_eq!(symbol("cassata: symbol gone from=0x to=0x"), None);
        assert_eq!(symbol("cassata: linux done"), None);
    }

    #[test]
    fn distributions_are_what_was_stored() {
        let counts = BTreeMap::from([(700, 3), (900, 1)]);
        assert_eq!(distribution(&counts).iter().collect::<BTreeMap<_, _>>(), counts);
    }
}
