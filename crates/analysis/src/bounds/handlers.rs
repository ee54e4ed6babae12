//! Handlers of interrupts, which execute before all tasks of their vCPU and have no deadline.
//!
//! An interrupt comes whether its vCPU runs or not, and waits until that runs. So the interrupts
//! of a while may be handled one after the other, and how many there are in a window depends on
//! how long the first of them has waited.
//!
//! It waits no longer than two periods of the server. Any stretch of that length contains a whole
//! period of the server, and if handlers and EL2 take no more than the budget in it, they are done
//! within that period, for nothing else of the vCPU executes before them. Whether that is so,
//! [`Workload::handlers_end`] tells.

use super::arithmetic::{Computed, add};
use super::traffic::active;
use super::workload::{VcpuLoad, Workload};
use crate::model::Ns;

/// An interrupt waits for its handler, and for the end of it, so many periods of its vCPU's server.
const PERIODS: u64 = 2;

impl VcpuLoad {
    /// Returns how often each handler is active in a window, with what is asked of it. One more is
    /// counted than waits: a guest may delay a handler itself, with its interrupts masked.
    pub(super) fn handled(
        &self,
        time: Ns,
        each: impl Fn(&super::workload::HandlerLoad) -> Ns,
    ) -> Ns {
        let time = time.saturating_add(self.period.saturating_mul(PERIODS));
        let all = self.handlers.iter();
        let all = all.map(|one| active(time, one.period).saturating_mul(each(one)));
        all.fold(0, Ns::saturating_add)
    }
}

impl Workload {
    /// Returns the longest that handlers of a vCPU execute in a window of length `time`.
    #[must_use]
    pub fn handler_time(&self, vcpu: usize, time: Ns) -> Ns {
        self.vcpus[vcpu].handled(time, |handler| handler.wcet)
    }

    /// Returns the same with the visits to EL2 by which their interrupts come, while the vCPU runs.
    #[must_use]
    pub fn handler_visits_time(&self, vcpu: usize, time: Ns) -> Ns {
        let release = self.overheads().release_ns;
        self.vcpus[vcpu].handled(time, |handler| handler.wcet.saturating_add(release))
    }

    /// Returns the longest that handlers of those of `vcpus` execute that have global critical sections:
    /// while such a section raises a vCPU, its handlers keep others from running.
    pub(super) fn raised_handler_time(&self, vcpus: impl Iterator<Item = usize>, time: Ns) -> Ns {
        let raised = vcpus.filter(|&vcpu| self.vcpus[vcpu].ght > 0);
        raised.map(|vcpu| self.handler_time(vcpu, time)).fold(0, Ns::saturating_add)
    }

    /// Returns the longest that handlers of a vCPU, and EL2, take of two periods of its server; 0
    /// without handlers.
    #[must_use]
    pub fn handlers_demand(&self, vcpu: usize) -> Ns {
        let load = &self.vcpus[vcpu];
        if load.handlers.is_empty() {
            return 0;
        }
        let time = load.period.saturating_mul(PERIODS);
        self.handler_time(vcpu, time).saturating_add(self.el2_time(vcpu, time))
    }

    /// Returns true if handlers of a vCPU end in time: other bounds say nothing unless they do.
    #[must_use]
    pub fn handlers_end(&self, vcpu: usize) -> bool {
        self.handlers_demand(vcpu) <= self.vcpus[vcpu].budget
    }

    /// Returns what a task or gcs of a vCPU has to let pass in a window: EL2 and handlers.
    pub(super) fn passed(&self, vcpu: usize, time: Ns) -> Computed<Ns> {
        add(self.el2_time(vcpu, time), self.handler_time(vcpu, time))
    }
}
