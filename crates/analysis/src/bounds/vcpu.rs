//! Section IV-A: does each vCPU get its budget?

use super::arithmetic::{Computed, add, fixed_point, multiply, sum, try_sum};
use super::workload::Workload;
use crate::model::{Ns, ServerKind};

impl Workload {
    /// Equation 1, ght(v): the longest that a vCPU can hold global resources
    /// without executing anything else, one gcs for each of its tasks.
    #[must_use]
    pub fn global_resource_holding_time(&self, vcpu: usize) -> Ns {
        self.vcpus[vcpu].ght
    }

    /// Equation 2: the longest that vCPUs of lower priority block this one, under
    /// periodic servers. A vCPU of higher priority leaves no room for them to
    /// request anything: what blocks are gcs's that they waited for before.
    ///
    /// # Errors
    /// When a sum overflows.
    pub fn blocking_periodic(&self, vcpu: usize) -> Computed<Ns> {
        sum(self.lower_vcpus(vcpu).map(|lower| self.vcpus[lower].ght))
    }

    /// Equation 3, sum_ght(v, t): the longest that all gcs's of a vCPU can take
    /// in `time`, those of one job begun before included for each task.
    ///
    /// # Errors
    /// When a sum overflows.
    pub fn accumulated_holding_time(&self, vcpu: usize, time: Ns) -> Computed<Ns> {
        let tasks = self.on_vcpu[self.vcpus[vcpu].tasks.clone()].iter();
        try_sum(tasks.map(|&task| &self.tasks[task]).filter(|task| task.all_gcs > 0).map(|task| {
            let jobs = add(time.div_ceil(task.period), 1)?;
            multiply(jobs, task.all_gcs)
        }))
    }

    /// Equation 4: the longest that vCPUs of lower priority block this one in
    /// `time`, under deferrable servers, which suspend themselves.
    ///
    /// # Errors
    /// When a sum overflows.
    pub fn blocking_deferrable(&self, vcpu: usize, time: Ns) -> Computed<Ns> {
        let lower = self.lower_vcpus(vcpu);
        try_sum(lower.map(|lower| self.accumulated_holding_time(lower, time)))
    }

    /// B^v(t): Equation 2 or 4, whichever the vCPU's own server asks for. A vCPU with a
    /// periodic one leaves no room to those below it, whatever servers they have.
    ///
    /// # Errors
    /// When a sum overflows.
    pub fn vcpu_blocking(&self, vcpu: usize, time: Ns) -> Computed<Ns> {
        match self.vcpus[vcpu].service.kind {
            ServerKind::Periodic => self.blocking_periodic(vcpu),
            ServerKind::Deferrable => self.blocking_deferrable(vcpu, time),
        }
    }

    /// O^v: the longest that a vCPU may run beyond its budget in one period. What EL2 and handlers
    /// take while it finishes one gcs of each task is taken from it, too.
    #[must_use]
    pub fn overrun_time(&self, vcpu: usize) -> Ns {
        let load = &self.vcpus[vcpu];
        if !load.service.overrun || self.nothing_passes() {
            return if load.service.overrun { load.ght } else { 0 };
        }
        let tasks = self.on_vcpu[load.tasks.clone()].iter();
        let passed = |time| self.passed(vcpu, time).unwrap_or(Ns::MAX);
        let meanwhile = tasks.map(|&task| {
            let responses = self
                .sections(task)
                .map(|section| self.gcs_response_deferrable_overrun(section).unwrap_or(Ns::MAX));
            responses.max().map_or(0, passed)
        });
        let meanwhile = meanwhile.fold(0, Ns::saturating_add).min(passed(load.period));
        load.ght.saturating_add(if load.ght == 0 { 0 } else { meanwhile })
    }

    /// J^v: how late in its period a vCPU may begin to use its budget.
    #[must_use]
    pub fn vcpu_jitter(&self, vcpu: usize) -> Ns {
        match self.vcpus[vcpu].service.kind {
            ServerKind::Periodic => 0,
            ServerKind::Deferrable => self.vcpus[vcpu].period - self.vcpus[vcpu].budget,
        }
    }

    /// One term of Equation 5: the longest that vCPU `higher` runs in `time`.
    ///
    /// # Errors
    /// When a product overflows.
    pub fn vcpu_interference(&self, higher: usize, time: Ns) -> Computed<Ns> {
        let vcpu = &self.vcpus[higher];
        let periods = add(time, self.vcpu_jitter(higher))?.div_ceil(vcpu.period);
        multiply(periods, add(vcpu.budget, self.overrun_time(higher))?)
    }

    /// Equation 5: the longest from the beginning of a vCPU's period until it has
    /// had its budget and overrun, whatever EL2 takes, and handlers of vCPUs of lower priority while
    /// a gcs raises them; nothing if that is longer than the period.
    /// Without global resources, this is the response time of a fixed-priority
    /// server (Joseph and Pandya 1986).
    ///
    /// # Errors
    /// When a time overflows, or when iterating takes for ever.
    pub fn vcpu_response(&self, vcpu: usize) -> Computed<Option<Ns>> {
        let own = add(self.vcpus[vcpu].budget, self.overrun_time(vcpu))?;
        fixed_point(own, self.vcpus[vcpu].period, |time| {
            let blocked = add(own, self.vcpu_blocking(vcpu, time)?)?;
            let blocked = add(blocked, self.el2_time(vcpu, time))?;
            let below = self.raised_handler_time(self.lower_vcpus(vcpu), time);
            let blocked = add(blocked, below)?;
            let higher = self.higher_vcpus(vcpu);
            add(blocked, try_sum(higher.map(|higher| self.vcpu_interference(higher, time)))?)
        })
    }

    /// vCPUs on the same pCPU with a higher priority, the highest first.
    pub fn higher_vcpus(&self, vcpu: usize) -> impl Iterator<Item = usize> + '_ {
        self.on_pcpu[self.vcpus[vcpu].higher.clone()].iter().copied()
    }

    /// vCPUs on the same pCPU with a lower priority, the highest first.
    pub fn lower_vcpus(&self, vcpu: usize) -> impl Iterator<Item = usize> + '_ {
        self.on_pcpu[self.vcpus[vcpu].lower.clone()].iter().copied()
    }
}
