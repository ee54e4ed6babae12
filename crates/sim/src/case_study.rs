//! The system of the case study: Kim, Wang, Rajkumar, RTSS 2014, Section V-B.
//!
//! Two VMs with four vCPUs each share four cores, one vCPU of each VM on every
//! core. Every vCPU has a deferrable server of 3 ms in 10 ms and one task with
//! one critical section, all on the same resource.

use crate::system::{Costs, Execution, Need, Protocol, Segment, System, Task, Vcpu};
use sched::Duration;
use sched::server::{Server, ServerKind};

/// One millisecond in ns.
const MS: u64 = 1_000_000;

/// How many vCPUs there are, and tasks.
const COUNT: usize = 8;

/// The three schemes that the paper compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// The baseline that knows nothing of vCPUs.
    Mpcp,
    /// vMPCP with deferrable servers, without overrun.
    DeferrableNoOverrun,
    /// vMPCP with deferrable servers and overrun.
    DeferrableWithOverrun,
}

impl Scheme {
    /// In the order in which the paper shows them.
    pub const ALL: [Self; 3] = [Self::Mpcp, Self::DeferrableNoOverrun, Self::DeferrableWithOverrun];

    /// The paper's name for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mpcp => "MPCP",
            Self::DeferrableNoOverrun => "vMPCP+DSnO",
            Self::DeferrableWithOverrun => "vMPCP+DSwO",
        }
    }
}

/// The length of the critical section of a task, by its index from 0, ns.
#[must_use]
pub const fn gcs(index: usize) -> u64 {
    if index == 1 { MS + MS / 10 } else { MS }
}

/// The system under a scheme. The permitted overrun of a vCPU is its task's
/// critical section (Equation 1).
#[must_use]
pub fn system(scheme: Scheme) -> System {
    let (protocol, overruns) = match scheme {
        Scheme::Mpcp => (Protocol::Mpcp, false),
        Scheme::DeferrableNoOverrun => (Protocol::Vmpcp, false),
        Scheme::DeferrableWithOverrun => (Protocol::Vmpcp, true),
    };
    System {
        protocol,
        execution: Execution::Worst,
        costs: Costs::default(),
        displacements: Vec::new(),
        seed: 0,
        vcpus: (0..COUNT).map(|index| vcpu(index, overruns)).collect(),
        tasks: (0..COUNT).map(task).collect(),
    }
}

fn vcpu(index: usize, overruns: bool) -> Vcpu {
    let server = Server {
        kind: ServerKind::Deferrable,
        budget: Duration(3 * MS),
        period: Duration(10 * MS),
        overrun: Duration(if overruns { gcs(index) } else { 0 }),
    };
    Vcpu {
        name: format!("v{}", index + 1),
        core: index / 2,
        priority: index as u64,
        server: Some(server),
        offset: 0,
    }
}

fn task(index: usize) -> Task {
    let normal = Segment { wcet: 2 * MS, need: Need::Nothing };
    Task {
        name: format!("τ{}", index + 1),
        vcpu: index,
        priority: index as u64,
        handler: false,
        period: 200 * MS,
        offset: index as u64 * MS,
        jitter: 0,
        segments: vec![normal, Segment { wcet: gcs(index), need: Need::Global(0) }, normal],
    }
}
