//! Names and budgets of what is traced.

use abi::system::{System, server};
use sched::Duration;
use sched::server::{Server, ServerKind};
use serde::{Deserialize, Serialize};

/// What stands before the records of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// How many pCPUs there are.
    pub pcpus: usize,
    /// Names of the VMs.
    pub vms: Vec<String>,
    /// All vCPUs, in the order of the tables.
    pub vcpus: Vec<Vcpu>,
    /// Names of the mutexes.
    pub mutexes: Vec<String>,
    /// Ticks of the counter in a second.
    pub counter_hz: u64,
    /// The counter when EL2 began.
    pub boot: u64,
}

/// A vCPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vcpu {
    /// Index of its VM.
    pub vm: usize,
    /// The index in the VM.
    pub index: usize,
    /// The base.
    pub pcpu: usize,
    /// Larger is higher.
    pub priority: u64,
    /// What it may run in each period, nanoseconds; 0: nothing limits it.
    pub budget_ns: u64,
    /// From one replenishment to the next, nanoseconds.
    pub period_ns: u64,
    /// What critical sections may take beyond the budget, nanoseconds.
    pub overrun_ns: u64,
    /// When its first period begins, nanoseconds after EL2.
    pub offset_ns: u64,
    /// It idles away what it does not use of its budget.
    pub idles: bool,
}

impl Subject {
    /// Returns what packed tables say, which have hashes of the names `mutexes`.
    #[must_use]
    pub fn of(tables: &System, mutexes: &[String]) -> Self {
        let count = tables.header.vcpu_count as usize;
        Self {
            pcpus: tables.board.pcpu_count as usize,
            vms: tables.vms().iter().map(|vm| vm.name().to_owned()).collect(),
            vcpus: tables.vcpus.iter().take(count).map(Vcpu::of).collect(),
            mutexes: mutexes.into(),
            counter_hz: 0,
            boot: 0,
        }
    }

    /// Returns how people call a vCPU: `linux.0`.
    #[must_use]
    pub fn label(&self, vcpu: usize) -> String {
        match self.vcpus.get(vcpu) {
            Some(Vcpu { vm, index, .. }) => {
                format!("{}.{index}", self.vms.get(*vm).map_or("?", String::as_str))
            }
            None => format!("vCPU {vcpu}"),
        }
    }

    /// Returns how people call a mutex.
    #[must_use]
    pub fn mutex(&self, index: usize) -> String {
        self.mutexes.get(index).cloned().unwrap_or_else(|| format!("mutex {index}"))
    }

    /// Returns a time of the counter in nanoseconds since EL2 began.
    #[must_use]
    pub fn ns(&self, time: u64) -> u64 {
        let ticks = u128::from(time.saturating_sub(self.boot));
        u64::try_from(ticks * 1_000_000_000 / u128::from(self.counter_hz.max(1)))
            .unwrap_or(u64::MAX)
    }
}

impl Vcpu {
    fn of(table: &abi::system::Vcpu) -> Self {
        Self {
            vm: table.vm.into(),
            index: table.index.into(),
            pcpu: table.pcpu.into(),
            priority: table.priority.into(),
            budget_ns: table.budget_ns,
            period_ns: table.period_ns,
            overrun_ns: table.overrun_ns,
            offset_ns: table.offset_ns,
            idles: table.server == server::PERIODIC,
        }
    }

    /// Returns what limits it.
    #[must_use]
    pub fn server(&self) -> Option<Server> {
        let kind = if self.idles { ServerKind::Periodic } else { ServerKind::Deferrable };
        let [budget, period, overrun] =
            [self.budget_ns, self.period_ns, self.overrun_ns].map(Duration);
        (self.budget_ns > 0).then_some(Server { kind, budget, period, overrun })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A vCPU without a budget, on pCPU 0.
    pub(crate) fn vcpu(vm: usize, index: usize) -> Vcpu {
        Vcpu {
            vm,
            index,
            pcpu: 0,
            priority: 1,
            budget_ns: 0,
            period_ns: 0,
            overrun_ns: 0,
            offset_ns: 0,
            idles: false,
        }
    }
}
