//! All runs.

use super::case::{Case, Load, Measure};
use super::system::{Advance, Policy, Scheduler, System};
use crate::bench::Extent;
use std::path::Path;

/// How much of each core the guest burns beside hackbench, percent.
const LOADS_PERCENT: [u32; 4] = [0, 30, 50, 80];
const QUICK_LOADS_PERCENT: [u32; 1] = [50];
/// Cores of the board where Linux is one of several cores.
pub const CORES: u32 = 4;

const ON_DEMAND: System = System::Cassata { policy: Policy::OnDemand, advance: Advance::None };
const ON_DEMAND_ADAPTED: System =
    System::Cassata { policy: Policy::OnDemand, advance: Advance::Adapted };
/// Cassata as a description of an SMP Linux beside an RTOS would have it. Linux's throughput is compared
/// under it.
pub const ON_DEMAND_ADVANCED: System =
    System::Cassata { policy: Policy::OnDemand, advance: Advance::Default };
const CREDIT2: System = System::Xen(Scheduler::Credit2);
const RTDS: System = System::Xen(Scheduler::Rtds);

/// Systems on which latency is measured on one core.
const LATE: [System; 9] = [
    System::PLAIN,
    System::ADVANCED,
    System::ADAPTED,
    CREDIT2,
    System::Xen(Scheduler::Credit2Untuned),
    System::Xen(Scheduler::Credit),
    RTDS,
    System::KVM,
    System::KVM_RT,
];
/// Systems on which latency is measured on four cores.
const LATE_ON_FOUR: [System; 12] = [
    System::PLAIN,
    System::ADVANCED,
    System::ADAPTED,
    ON_DEMAND,
    ON_DEMAND_ADVANCED,
    ON_DEMAND_ADAPTED,
    CREDIT2,
    RTDS,
    System::Xen(Scheduler::Credit2Throughput),
    System::Xen(Scheduler::CreditThroughput),
    System::KVM,
    System::KVM_RT,
];
/// Systems of which calls and traps are measured.
const CALLED: [System; 6] =
    [System::Board, System::PLAIN, CREDIT2, RTDS, System::KVM, System::KVM_RT];
/// Systems of which is measured what an activation takes from Linux.
const TAKING: [System; 6] =
    [System::PLAIN, System::ADVANCED, System::ADAPTED, CREDIT2, RTDS, System::KVM];
/// Systems on which hackbench runs beside the guest. Xen is tuned for latency there, and for throughput, as
/// `on-demand` is to let Linux leave the core that the guest takes.
const BUSY: [System; 7] = [
    System::ADVANCED,
    ON_DEMAND_ADVANCED,
    CREDIT2,
    System::Xen(Scheduler::Credit2Throughput),
    System::Xen(Scheduler::CreditThroughput),
    RTDS,
    System::KVM,
];

/// Systems on which latency is measured where no clock foretells the interrupt: a timer advance
/// changes nothing there.
const SURPRISED: [System; 6] =
    [System::Board, System::PLAIN, CREDIT2, RTDS, System::KVM, System::KVM_RT];

/// Systems that give the guest a core of its own: on one core there is nothing to measure.
const APART: [System; 1] = [System::Bao];
/// Systems on which FreeRTOS and a Linux with PREEMPT_RT are the real-time guest; first that without Linux beside it.
/// A quick run is without the last.
const OTHER_GUESTS: [System; 9] = [
    System::Board,
    System::PLAIN,
    System::ADVANCED,
    System::ADAPTED,
    CREDIT2,
    RTDS,
    System::KVM,
    System::KVM_RT,
    System::Xen(Scheduler::Credit),
];
/// Systems whose start is measured.
const STARTED: [System; 5] = [System::PLAIN, CREDIT2, RTDS, System::KVM, System::KVM_RT];

/// How much of each there is.
struct Sizes {
    periods: u32,
    interrupts: u32,
    repetitions: u32,
    taken_runs: u32,
    hackbench_runs: u32,
    loads: &'static [u32],
    /// The periods on four cores, if they are measured there.
    periods_on_four: Option<u32>,
    activations: u32,
    wakes: u32,
}

impl Sizes {
    const fn of(extent: Extent) -> Self {
        match extent {
            Extent::Full | Extent::Paper => Self {
                periods: 2_000,
                interrupts: 1_000,
                repetitions: 1_000,
                taken_runs: 4,
                hackbench_runs: 11,
                loads: &LOADS_PERCENT,
                periods_on_four: Some(1_000),
                activations: 2_000,
                wakes: 1_000,
            },
            Extent::Quick => Self {
                periods: 500,
                interrupts: 200,
                repetitions: 100,
                taken_runs: 2,
                hackbench_runs: 11,
                loads: &QUICK_LOADS_PERCENT,
                periods_on_four: None,
                activations: 300,
                wakes: 200,
            },
        }
    }
}

/// What the user has, which runs what Debian's images cannot.
#[derive(Clone, Copy, Debug, Default)]
pub struct Own<'a> {
    /// A Xen with every scheduler.
    pub xen: Option<&'a Path>,
    /// A kernel with PREEMPT_RT and KVM.
    pub kernel: Option<&'a Path>,
    /// A checkout of Bao.
    pub bao: Option<&'a Path>,
}

impl<'a> Own<'a> {
    /// Returns what these runs had.
    pub fn of_cases(cases: &'a [Case]) -> Self {
        let image = |system| cases.iter().find(|case| case.system == system)?.image.as_deref();
        Self {
            xen: image(System::Xen(Scheduler::Rtds)),
            kernel: image(System::KVM_RT),
            bao: image(System::Bao),
        }
    }

    /// Returns the image that a system needs, and whether it needs one.
    fn of(self, system: System) -> (bool, Option<&'a Path>) {
        match system {
            System::Xen(Scheduler::Rtds) => (true, self.xen),
            System::KVM_RT => (true, self.kernel),
            System::Bao => (true, self.bao),
            _ => (false, None),
        }
    }
}

/// Returns all runs, first those of one or two cores.
pub fn cases(extent: Extent, own: Own<'_>) -> Vec<Case> {
    let sizes = Sizes::of(extent);
    let mut all = Vec::new();
    let mut add = |systems: &[System], cores, measure| {
        for &system in systems {
            let (is_needed, image) = own.of(system);
            if !is_needed || image.is_some() {
                let image = image.map(Path::to_path_buf);
                all.push(Case { image, ..Case::new(system, cores, measure) });
            }
        }
    };
    let periods = sizes.periods;
    add(&[System::Board], 1, Measure::Wake { load: Load::Idle, periods });
    add(&CALLED, 1, Measure::Call { repetitions: sizes.repetitions });
    for load in Load::ALL {
        add(&LATE, 1, Measure::Wake { load, periods });
        let of_all = if load == Load::Idle { 0 } else { 1 };
        let interrupts = sizes.interrupts;
        add(&SURPRISED[of_all..], 2, Measure::Woken { load, interrupts });
        let Sizes { activations, wakes, .. } = sizes;
        let others = OTHER_GUESTS.len() - usize::from(extent == Extent::Quick);
        add(&OTHER_GUESTS[of_all..others], 1, Measure::Freertos { load, activations });
        add(&OTHER_GUESTS[of_all..others], 1, Measure::Cyclictest { load, wakes });
    }
    add(&STARTED, 1, Measure::Boot);
    for is_awake in [false, true] {
        add(&TAKING, 1, Measure::Taken { is_awake, runs: sizes.taken_runs });
    }
    let runs = sizes.hackbench_runs;
    add(&[System::Board], CORES, Measure::Hackbench { burn_percent: None, runs });
    for &percent in sizes.loads {
        add(&BUSY, CORES, Measure::Hackbench { burn_percent: Some(percent), runs });
    }
    for load in Load::ALL {
        add(&APART, CORES, Measure::Wake { load, periods });
    }
    add(&APART, CORES, Measure::Boot);
    add(&APART, CORES, Measure::Call { repetitions: sizes.repetitions });
    for &percent in sizes.loads {
        add(&APART, CORES, Measure::Hackbench { burn_percent: Some(percent), runs });
    }
    if let Some(periods) = sizes.periods_on_four {
        add(&LATE_ON_FOUR, CORES, Measure::Wake { load: Load::Hackbench, periods });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::store::Case as _;
    use std::collections::BTreeSet;

    fn own_images() -> Own<'static> {
        let [xen, kernel, bao] = ["/tmp/xen", "/tmp/kernel", "/tmp/bao"].map(Path::new).map(Some);
        Own { xen, kernel, bao }
    }

    /// Returns how long they take on two processors.
    fn minutes(extent: Extent, own: Own<'_>) -> f64 {
        cases(extent, own).iter().map(|case| case.work()).sum::<f64>() / 2.0 / 60.0
    }

    #[test]
    fn a_quick_run_takes_twenty_minutes_and_a_whole_one_two_hours_at_most() {
        let (quick, full) =
            (minutes(Extent::Quick, Own::default()), minutes(Extent::Full, own_images()));
        assert!(quick < 20.0 && full < 120.0, "{quick:.0} min, {full:.0} min");
    }

    #[test]
    fn names_tell_cases_apart() {
        let all = cases(Extent::Full, own_images());
        let names: BTreeSet<_> = all.iter().map(|case| case.name()).collect();
        assert_eq!(names.len(), all.len());
        assert!(names.contains("wake-idle-2000-1-xen-rtds"), "{names:?}");
    }

    #[test]
    fn what_debians_images_cannot_run_is_run_by_the_users_own_and_nothing_else_is() {
        let without = cases(Extent::Quick, Own::default());
        let needs_own = |case: &Case| Own::default().of(case.system).0;
        assert!(without.iter().all(|case| !needs_own(case) && case.image.is_none()));
        let Own { xen, kernel, bao } = own_images();
        let none = Own::default();
        for own in [Own { xen, ..none }, Own { kernel, ..none }, Own { bao, ..none }] {
            let with = cases(Extent::Quick, own);
            let more: Vec<_> = with.iter().filter(|case| !without.contains(case)).collect();
            let image = own.xen.or(own.kernel).or(own.bao);
            assert!(!more.is_empty() && more.iter().all(|case| case.image.as_deref() == image));
            assert_eq!(with.len(), without.len() + more.len());
        }
    }
}
