//! The design question that the paper leaves open: which budgets, and which
//! periods, of vCPUs?
//!
//! More budget never makes a task later (a test says so for random systems), so
//! budgets shrink from whole periods down, by steps that halve, as long as all
//! tasks hold. Under deferrable servers with overrun no budget matters
//! to another vCPU's tasks, and the result has the least total bandwidth there
//! is, to the grain. Under the others a budget also shortens others' waits, and
//! the order in which budgets shrink matters. Several are tried; then budgets are
//! traded: one grows where that lets the others shrink by more. In the result no
//! single budget can shrink, and nearly always it is the least there is: a test
//! compares it with all budgets of small systems.
//!
//! | module | story |
//! | --- | --- |
//! | `shrink` | the least budgets for periods that are given |
//! | `trade` | one budget grows so that others shrink |
//! | `periods` | other periods |

mod periods;
mod shrink;
mod trade;

use crate::bounds::{AnalysisError, Bounds, Computed, Workload};
use crate::model::{Ns, ServerKind, Service, System};
use crate::overheads::Overheads;

/// What a search for budgets ends with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Search {
    /// The system with other budgets, and everything holds.
    Found(System),
    /// This task has no bound within its period even when every vCPU always
    /// has budget.
    TaskCannotBeHelped(usize),
    /// What the tasks of this vCPU need does not fit beside what others need.
    VcpuDoesNotFit {
        /// Which.
        vcpu: usize,
        /// The least budget, with which its tasks would hold.
        needs_ns: Ns,
    },
}

/// The least budgets, and on request periods, with which all of `system` holds;
/// budgets are multiples of 1 µs where periods are 1 ms or longer.
///
/// # Errors
/// When a time overflows, or when iterating takes for ever.
pub fn find(
    system: &System,
    bounds: Bounds,
    overheads: Overheads,
    periods: bool,
) -> Result<Search, AnalysisError> {
    let compute = || {
        let workload = Workload::with_overheads(system, bounds, overheads)?;
        let servers = system.vcpus.iter().map(|vcpu| (vcpu.budget_ns, vcpu.period_ns)).collect();
        let mut budgets = Budgets { workload, servers, responses: vec![None; system.tasks.len()] };
        let mut found = budgets.least(system)?;
        if periods {
            found = budgets.choose_periods(system, found)?;
        }
        budgets.trade(system, found)
    };
    let of = |cause| AnalysisError { of: "a vCPU or task with other budgets".into(), cause };
    let found = compute().map_err(of)?;
    Ok(match found {
        Least::Fits { servers, .. } => Search::Found(with_servers(system, &servers)),
        Least::Late(task) => Search::TaskCannotBeHelped(task),
        Least::TooMuch { vcpu, servers } => {
            Search::VcpuDoesNotFit { vcpu, needs_ns: servers[vcpu].0 }
        }
    })
}

/// Total bandwidth, the sum of budgets over periods.
#[must_use]
#[allow(clippy::cast_precision_loss)] // a share
pub fn bandwidth(system: &System) -> f64 {
    system.vcpus.iter().map(|vcpu| vcpu.budget_ns as f64 / vcpu.period_ns as f64).sum()
}

struct Budgets {
    workload: Workload,
    /// Budget and period of each vCPU.
    servers: Vec<(Ns, Ns)>,
    responses: Vec<Option<Ns>>,
}

enum Least {
    /// All of it fits.
    Fits { servers: Vec<(Ns, Ns)>, bandwidth: f64 },
    /// A task that is late even with whole periods.
    Late(usize),
    /// All tasks hold, but this vCPU does not get its budget.
    TooMuch { vcpu: usize, servers: Vec<(Ns, Ns)> },
}

/// Returns true if no budget matters to another vCPU's tasks (Equation 15).
#[must_use]
pub fn independent(system: &System) -> bool {
    let frees = Service { kind: ServerKind::Deferrable, overrun: true };
    (0..system.vcpus.len()).all(|vcpu| system.service(vcpu) == frees)
}

impl Budgets {
    fn first_that_does_not_fit(&self) -> Computed<Option<usize>> {
        for vcpu in 0..self.servers.len() {
            if !self.workload.vcpu_schedulable(vcpu)? {
                return Ok(Some(vcpu));
            }
        }
        Ok(None)
    }

    fn set(&mut self, vcpu: usize, budget: Ns) -> Computed<()> {
        self.servers[vcpu].0 = budget;
        self.workload.set_server_of(vcpu, budget, self.servers[vcpu].1)
    }

    fn restore(&mut self, servers: &[(Ns, Ns)]) -> Computed<()> {
        self.servers.clone_from_slice(servers);
        servers.iter().enumerate().try_for_each(|(vcpu, &(budget, _))| self.set(vcpu, budget))
    }

    fn tasks_hold(&mut self) -> Computed<bool> {
        self.responses.fill(None);
        self.workload.tasks_schedulable(&mut self.responses)
    }

    #[allow(clippy::cast_precision_loss)] // a share
    fn bandwidth(&self) -> f64 {
        self.servers.iter().map(|&(budget, period)| budget as f64 / period as f64).sum()
    }
}

fn with_servers(system: &System, servers: &[(Ns, Ns)]) -> System {
    let mut system = system.clone();
    for (vcpu, &(budget, period)) in system.vcpus.iter_mut().zip(servers) {
        (vcpu.budget_ns, vcpu.period_ns) = (budget, period);
    }
    system
}

#[cfg(test)]
mod tests;
