//! Section IV-B, the frame: when is each task done?

use super::arithmetic::{Computed, add, fixed_point, multiply, try_sum};
use super::workload::Workload;
use crate::model::Ns;

impl Workload {
    /// Equation 10, B^r: the longest that a job waits for global resources in
    /// all; nothing if Equation 11 has no answer for one of its gcs's.
    ///
    /// # Errors
    /// When a time overflows, or when iterating takes for ever.
    pub fn remote_blocking(&self, task: usize, responses: &[Option<Ns>]) -> Computed<Option<Ns>> {
        let mut total = 0;
        for section in self.sections(task) {
            let Some(wait) = self.remote_wait(section, responses)? else { return Ok(None) };
            total = add(total, wait)?;
        }
        Ok(Some(total))
    }

    /// Equation 6, W_i, as corrected in 2015: the longest from a release of a
    /// task to the end of its job; nothing if the deadline passes before, or if
    /// a task of higher priority on the vCPU has no bound. `responses` are those
    /// of these tasks. Without shared resources, this is the response time of
    /// tasks in a hierarchy (Saewong et al. 2002).
    ///
    /// What EL2 takes counts as if it were all taken from the vCPU's budget. Handlers of the vCPU
    /// take theirs from it, and there is no bound if they take too much.
    ///
    /// With a jitter of its own a task has that much less time until its
    /// deadline, and comes that much later for those below it.
    ///
    /// # Errors
    /// When a time overflows, or when iterating takes for ever.
    pub fn task_response(&self, task: usize, responses: &[Option<Ns>]) -> Computed<Option<Ns>> {
        let higher = || self.higher_tasks(task);
        let crowded = !self.handlers_end(self.tasks[task].vcpu);
        if crowded || higher().any(|higher| responses[higher].is_none()) {
            return Ok(None);
        }
        let Some(remote) = self.remote_blocking(task, responses)? else { return Ok(None) };
        let load = &self.tasks[task];
        let own = add(add(load.wcet, self.local_blocking(task)?)?, remote)?;
        let limit = load.period.saturating_mul(self.reach) - load.jitter;
        fixed_point(own, limit, |time| {
            let preempted = try_sum(higher().map(|higher| {
                self.task_interference(higher, time, responses[higher].unwrap_or(Ns::MAX))
            }))?;
            let executed = add(add(own, preempted)?, self.passed(load.vcpu, time)?)?;
            add(executed, self.supply_gaps(load.vcpu, time)?)
        })
    }

    /// One term of Equation 6: the longest that task `higher`, whose response
    /// time is `response`, runs in `time`.
    ///
    /// # Errors
    /// When it overflows.
    pub fn task_interference(&self, higher: usize, time: Ns, response: Ns) -> Computed<Ns> {
        multiply(self.jobs_in(higher, time, response)?, self.tasks[higher].wcet)
    }

    /// The last term of Equation 6: how long a vCPU does not run in `time`.
    ///
    /// # Errors
    /// When it overflows.
    pub fn supply_gaps(&self, vcpu: usize, time: Ns) -> Computed<Ns> {
        let vcpu = &self.vcpus[vcpu];
        let gaps = add(time, vcpu.budget)?.div_ceil(vcpu.period);
        multiply(gaps, vcpu.period - vcpu.budget)
    }

    /// Tasks on the same vCPU with a higher priority, the highest first.
    pub fn higher_tasks(&self, task: usize) -> impl Iterator<Item = usize> + '_ {
        self.on_vcpu[self.tasks[task].higher.clone()].iter().copied()
    }

    /// How many jobs of a task run in `time`: with the jitter that its vCPU
    /// adds, and back to back after a wait (W_h - C_h).
    pub(super) fn jobs_in(&self, task: usize, time: Ns, response: Ns) -> Computed<u64> {
        let task = &self.tasks[task];
        let vcpu = &self.vcpus[task.vcpu];
        let jitter = add(vcpu.period - vcpu.budget, task.jitter)?;
        let back_to_back = response.saturating_sub(task.wcet);
        Ok(add(time, add(jitter, back_to_back)?)?.div_ceil(task.period))
    }
}
