//! What EL2 takes of a pCPU in a window of time.
//!
//! Everything that EL2 does on a pCPU is caused by one of these, and each causes a limited
//! number of visits:
//!
//! - a job of one of its tasks: its release, its end, and its global critical sections;
//! - an interrupt of one of its vCPUs for which no task is released: it comes, and its handler ends;
//! - a period of one of its servers: replenishment, depletion, end of an overrun;
//! - vCPUs that are displaced, here or on another pCPU ([`super::traffic`]);
//! - other duties, which are a distance apart.
//!
//! A job that meets its deadline is active for a period at most, so that the jobs active in
//! a window of length t are ceil(t / T) + 1, and so are the periods of a server. Visits are
//! not preempted, and none waits while the core does something else. What EL2 does in a window
//! may have been caused before it, but after EL2 was last idle: the window is lengthened by
//! the longest time that EL2 is busy without a break.

use super::arithmetic::{Computed, Uncomputable, fixed_point};
use super::traffic::{Source, active};
use super::workload::Workload;
use crate::model::{Ns, Section, System};
use crate::overheads::Overheads;
use std::ops::Range;

/// How often EL2's timer fires for a server in one period: it is replenished, its budget ends,
/// the timer is early once if it is replenished while it runs, and its overrun ends.
const TIMERS: u64 = 4;

/// EL2's time on each pCPU. Empty if it takes none, and there are no handlers.
#[derive(Clone, Debug, Default)]
pub(super) struct El2 {
    overheads: Overheads,
    /// One for each pCPU that has vCPUs.
    pcpus: Vec<Pcpu>,
    /// By vCPU: the index of its pCPU in `pcpus`.
    pcpu_of: Vec<usize>,
    /// By task: what EL2 takes for a job.
    job: Vec<Ns>,
    /// What EL2 takes for an interrupt that releases no task.
    interrupt: Ns,
    /// What makes EL2 visit pCPUs, besides jobs, periods and other duties there.
    sources: Vec<Source>,
    /// No time that matters is longer.
    horizon: Ns,
}

#[derive(Clone, Debug)]
struct Pcpu {
    number: u32,
    /// In `on_pcpu`: its vCPUs.
    vcpus: Range<usize>,
    /// Indices in `sources`, each with what EL2 takes here each time.
    traffic: Vec<(usize, Ns)>,
    /// The longest that EL2 is busy without a break.
    busy: Ns,
}

impl El2 {
    /// Sums up what EL2 takes for each job.
    fn new(system: &System, overheads: Overheads) -> Self {
        let of = &overheads;
        let switch = of.switch_ns();
        // It waits, is granted, is lowered.
        let section = of.section_ns(3);
        let job = sum([1, 1, 2], [of.release_ns, of.timer_advance_ns, switch]);
        let jobs = system.tasks.iter().map(|task| {
            let global = |section| matches!(section, Section::Global(_));
            let sections = task.segments.iter().filter(|segment| global(segment.section)).count();
            job.saturating_add(section.saturating_mul(sections as u64))
        });
        let longest = system.tasks.iter().map(|task| task.period_ns).max().unwrap_or(0);
        let servers = system.vcpus.iter().map(|vcpu| vcpu.period_ns).max().unwrap_or(0);
        Self {
            overheads,
            pcpus: Vec::new(),
            pcpu_of: vec![0; system.vcpus.len()],
            job: jobs.collect(),
            interrupt: job,
            sources: system.traffic.iter().map(|one| Source::new(system, one)).collect(),
            horizon: longest.max(servers),
        }
    }
}

/// So many of each of these times.
fn sum<const N: usize>(counts: [u64; N], times: [Ns; N]) -> Ns {
    let each = counts.into_iter().zip(times).map(|(count, time)| time.saturating_mul(count));
    each.fold(0, Ns::saturating_add)
}

/// What traffic makes EL2 take of a pCPU each time, by its index.
fn traffic_at(system: &System, pcpu: u32, overheads: &Overheads) -> Vec<(usize, Ns)> {
    let all = system.traffic.iter().enumerate();
    let here = all.flat_map(|(source, traffic)| {
        let visits = traffic.visits.iter().filter(|visits| visits.pcpu == pcpu);
        visits.map(move |visits| (source, overheads.visits_ns(visits)))
    });
    here.collect()
}

impl Workload {
    /// Like [`Workload::new`], but EL2 takes time.
    ///
    /// # Errors
    /// When a sum overflows, or EL2 alone takes all of a pCPU.
    pub fn with_overheads(
        system: &System,
        bounds: super::Bounds,
        overheads: Overheads,
    ) -> Computed<Self> {
        let mut workload = Self::new(system, bounds)?;
        if overheads.is_none() && system.handlers.is_empty() {
            return Ok(workload);
        }
        workload.el2 = El2::new(system, overheads);
        for vcpu in 0..workload.vcpus.len() {
            let load = &workload.vcpus[vcpu];
            let group = load.higher.start..load.lower.end;
            let known = workload.el2.pcpus.iter().position(|pcpu| pcpu.vcpus == group);
            workload.el2.pcpu_of[vcpu] = known.unwrap_or(workload.el2.pcpus.len());
            if known.is_none() {
                let number = system.vcpus[vcpu].pcpu;
                let traffic = traffic_at(system, number, &overheads);
                workload.el2.pcpus.push(Pcpu { number, vcpus: group, traffic, busy: 0 });
            }
        }
        workload.measure_busy()?;
        Ok(workload)
    }

    /// Returns true if neither EL2 nor handlers take any time.
    pub(super) fn nothing_passes(&self) -> bool {
        self.el2.pcpus.is_empty()
    }

    /// What EL2 takes.
    #[must_use]
    pub fn overheads(&self) -> Overheads {
        self.el2.overheads
    }

    /// The longest that EL2 takes of the pCPU of a vCPU in a window of length `time`,
    /// whatever it is for.
    #[must_use]
    pub fn el2_time(&self, vcpu: usize, time: Ns) -> Ns {
        if self.el2.pcpus.is_empty() {
            return 0;
        }
        let pcpu = &self.el2.pcpus[self.el2.pcpu_of[vcpu]];
        self.caused_in(pcpu, time.saturating_add(pcpu.busy))
    }

    /// No window is longer that a bound is computed for.
    pub(super) fn horizon(&self) -> Ns {
        self.el2.horizon.saturating_mul(self.reach)
    }

    /// The longest visits, in sum, that are caused in a window.
    fn caused_in(&self, pcpu: &Pcpu, time: Ns) -> Ns {
        self.causes_in(pcpu, time).into_iter().fold(0, |sum, (_, part)| sum.saturating_add(part))
    }

    /// The same by what causes them.
    fn causes_in(&self, pcpu: &Pcpu, time: Ns) -> [(&'static str, Ns); 5] {
        let of = &self.el2.overheads;
        let count = |every: Ns| active(time, every);
        let duties = match of.duty_every_ns {
            0 => 0,
            every => count(every).saturating_mul(of.duty_ns),
        };
        let traffic = pcpu.traffic.iter().map(|&(source, each)| {
            self.times(&self.el2.sources[source], time).saturating_mul(each)
        });
        let visit = of.timer_ns.saturating_add(of.switch_ns());
        let (mut periods, mut jobs, mut handled): (Ns, Ns, Ns) = (0, 0, 0);
        for &vcpu in &self.on_pcpu[pcpu.vcpus.clone()] {
            let vcpu = &self.vcpus[vcpu];
            let timers = count(vcpu.period).saturating_mul(TIMERS).saturating_mul(visit);
            periods = periods.saturating_add(timers);
            let tasks = self.on_vcpu[vcpu.tasks.clone()].iter();
            let own = tasks
                .map(|&task| count(self.tasks[task].period).saturating_mul(self.el2.job[task]));
            jobs = own.fold(jobs, Ns::saturating_add);
            handled = handled.saturating_add(vcpu.handled(time, |_| self.el2.interrupt));
        }
        [
            ("for other duties", duties),
            ("because vCPUs are displaced", traffic.fold(0, Ns::saturating_add)),
            ("for periods of servers", periods),
            ("for jobs of tasks", jobs),
            ("for interrupts with handlers", handled),
        ]
    }

    /// Computes how long EL2 is busy without a break, for the periods that servers have.
    ///
    /// # Errors
    /// When EL2 alone takes all of a pCPU.
    pub(super) fn measure_busy(&mut self) -> Computed<()> {
        let limit = self.el2.horizon;
        for index in 0..self.el2.pcpus.len() {
            let pcpu = &self.el2.pcpus[index];
            let busy = fixed_point(1, limit, |time| Ok(self.caused_in(pcpu, time)))?;
            self.el2.pcpus[index].busy = busy.ok_or_else(|| self.no_time(pcpu, limit))?;
        }
        Ok(())
    }

    fn no_time(&self, pcpu: &Pcpu, window_ns: Ns) -> Uncomputable {
        let causes = self.causes_in(pcpu, window_ns);
        let (most, most_ns) = causes.into_iter().max_by_key(|(_, time)| *time).unwrap_or_default();
        let el2_ns = self.caused_in(pcpu, window_ns);
        Uncomputable::NoTime { pcpu: pcpu.number, window_ns, el2_ns, most, most_ns }
    }
}
