//! How tasksets are drawn: Table I of the paper, and what we chose where it
//! leaves something open.

use crate::model::Ns;

/// The least time there is in the paper's experiments: 10 µs.
pub const GRAIN_NS: Ns = 10_000;

/// How tasksets of one point are made: Table I and what varies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    /// Cores.
    pub pcpus: usize,
    /// vCPUs of each core.
    pub vcpus_per_pcpu: usize,
    /// Tasks of each vCPU.
    pub tasks_per_vcpu: usize,
    /// Period of every vCPU.
    pub vcpu_period_ns: Ns,
    /// Shortest period of a task, a multiple of [`GRAIN_NS`].
    pub min_period_ns: Ns,
    /// Longest period of a task, a multiple of [`GRAIN_NS`].
    pub max_period_ns: Ns,
    /// Utilization of the tasks of one vCPU together, from 0 to 1.
    pub utilization: f64,
    /// Global critical sections of each task.
    pub gcs_per_task: usize,
    /// Tasks that lock one mutex; divides the number of tasks.
    pub lockers_per_mutex: usize,
    /// How long each global critical section takes.
    pub gcs_ns: Ns,
}

impl Setting {
    /// Table I.
    pub const BASE: Self = Self {
        pcpus: 8,
        vcpus_per_pcpu: 2,
        tasks_per_vcpu: 3,
        vcpu_period_ns: 5_000_000,
        min_period_ns: 100_000_000,
        max_period_ns: 500_000_000,
        utilization: 0.15,
        gcs_per_task: 1,
        lockers_per_mutex: 2,
        gcs_ns: 10_000,
    };

    /// Returns how many tasks there are.
    pub fn tasks(&self) -> usize {
        self.vcpus() * self.tasks_per_vcpu
    }

    /// Returns how many vCPUs there are.
    pub fn vcpus(&self) -> usize {
        self.pcpus * self.vcpus_per_pcpu
    }
}

/// What the paper leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choices {
    /// "Split into k random-sized pieces".
    pub split: Split,
    /// "Ties are broken arbitrarily": all vCPUs have one period.
    pub order: Order,
    /// Which tasks share a mutex.
    pub lockers: Lockers,
    /// "We determine a VCPU budget value".
    pub budgets: Budgets,
}

impl Choices {
    /// Ours.
    pub const BASE: Self = Self {
        split: Split::Uniform,
        order: Order::Random,
        lockers: Lockers::Anywhere,
        budgets: Budgets::EachServer,
    };

    /// What its statements fit best: the paper seems to have done so.
    pub const PAPER: Self =
        Self { lockers: Lockers::Consecutive, budgets: Budgets::Deferrable, ..Self::BASE };

    /// Others that the paper's words allow, or that its figures suggest.
    pub const OTHERS: [(&str, Self); 7] = [
        (
            "utilization split in proportion to random weights",
            Self { split: Split::Weights, ..Self::BASE },
        ),
        ("vCPU priorities in layers of cores", Self { order: Order::Layers, ..Self::BASE }),
        ("equal vCPU priorities on different cores", Self { order: Order::Tied, ..Self::BASE }),
        ("lockers of a mutex on different vCPUs", Self { lockers: Lockers::Apart, ..Self::BASE }),
        (
            "lockers of a mutex consecutive, vCPU by vCPU",
            Self { lockers: Lockers::Consecutive, ..Self::BASE },
        ),
        (
            "periodic servers with the budgets of deferrable ones",
            Self { budgets: Budgets::Deferrable, ..Self::BASE },
        ),
        (
            "both: budgets of deferrable servers, equal vCPU priorities",
            Self { budgets: Budgets::Deferrable, order: Order::Tied, ..Self::BASE },
        ),
    ];
}

/// Which server's test a budget has to pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budgets {
    /// The scheme's own: Equation 5 lets periodic servers have more.
    EachServer,
    /// The deferrable server's, for both.
    Deferrable,
}

/// How a vCPU's utilization is split among its tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// Every split is equally likely (cut at random places, as UUniFast).
    Uniform,
    /// In proportion to random numbers from 0 to 1: pieces are more alike.
    Weights,
}

/// Priorities of vCPUs of one period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Drawn anew for each taskset.
    Random,
    /// All second vCPUs of cores above all first ones.
    Layers,
    /// Ties are broken on each core only: vCPUs of different cores with the same
    /// place count as neither higher nor lower.
    Tied,
}

/// Which tasks share a mutex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lockers {
    /// Any.
    Anywhere,
    /// Those of different vCPUs, as far as there are enough.
    Apart,
    /// The first L tasks the first mutex, the next L the second, in the order of the vCPUs.
    Consecutive,
}
