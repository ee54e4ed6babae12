//! Section IV-B, second half: waiting for global resources that others hold.
//!
//! A section is an index in the list of all gcs's, task by task in the order of
//! their segments.

use super::Bounds;
use super::arithmetic::{Computed, add, fixed_point, multiply, try_sum};
use super::workload::Workload;
use crate::model::{Ns, ServerKind};
use std::ops::Range;

impl Workload {
    /// The gcs's of a task.
    #[must_use]
    pub fn sections(&self, task: usize) -> Range<usize> {
        self.tasks[task].sections.clone()
    }

    /// Which segment of its task a gcs is.
    #[must_use]
    pub fn segment(&self, section: usize) -> usize {
        self.sections[section].segment
    }

    /// Whose gcs it is.
    #[must_use]
    pub fn task_of(&self, section: usize) -> usize {
        self.sections[section].task
    }

    /// Equation 12, load: the budget that a gcs can take, with one gcs of each
    /// task of higher priority on the same vCPU before it.
    #[must_use]
    pub fn load(&self, section: usize) -> Ns {
        self.sections[section].load
    }

    /// Equation 13, vcpu_prm: the longest that gcs's of vCPUs of higher priority
    /// on the same pCPU keep a gcs from running.
    #[must_use]
    pub fn vcpu_preemption(&self, section: usize) -> Ns {
        self.sections[section].vcpu_preemption
    }

    /// Equation 14: response time of a gcs from the moment it gets its resource,
    /// under a periodic server with overrun. At worst its vCPU has just been
    /// suspended; from its next period on it runs to the end.
    ///
    /// # Errors
    /// When it overflows.
    pub fn gcs_response_periodic_overrun(&self, section: usize) -> Computed<Ns> {
        self.beside_el2(section, |load| add(self.gap(section), load))
    }

    /// Equation 15: the same under a deferrable server with overrun, where the
    /// gcs runs at once.
    ///
    /// # Errors
    /// When it overflows.
    pub fn gcs_response_deferrable_overrun(&self, section: usize) -> Computed<Ns> {
        self.beside_el2(section, Ok)
    }

    /// Equation 16: the same without overrun, under either server, where the gcs
    /// may take several periods of its vCPU.
    ///
    /// # Errors
    /// When it overflows.
    pub fn gcs_response_no_overrun(&self, section: usize) -> Computed<Ns> {
        let budget = self.vcpus[self.vcpu_of(section)].budget;
        self.beside_el2(section, |load| {
            let gaps = multiply(load.div_ceil(budget), self.gap(section))?;
            add(gaps, load)
        })
    }

    /// The time from a grant to the end of a gcs. `takes` says how long the vCPU takes to
    /// execute a load; EL2 adds to that load what it takes meanwhile, and so do handlers of the
    /// vCPU. Those of vCPUs above it whose gcs's come first execute in these, too. A time beyond
    /// every period is told as just that.
    fn beside_el2(&self, section: usize, takes: impl Fn(Ns) -> Computed<Ns>) -> Computed<Ns> {
        let (load, vcpu) = (self.load(section), self.vcpu_of(section));
        let first = add(takes(load)?, self.vcpu_preemption(section))?;
        if self.nothing_passes() {
            return Ok(first);
        }
        let limit = self.horizon().max(first);
        let response = fixed_point(first, limit, |time| {
            let load = add(load, self.passed(vcpu, time)?)?;
            let above = self.raised_handler_time(self.higher_vcpus(vcpu), time);
            add(add(takes(load)?, self.vcpu_preemption(section))?, above)
        })?;
        Ok(response.unwrap_or(limit.saturating_add(1)))
    }

    /// W^gcs: Equation 14, 15 or 16, whichever the server of the gcs's vCPU asks for.
    ///
    /// # Errors
    /// When it overflows.
    pub fn gcs_response(&self, section: usize) -> Computed<Ns> {
        let service = self.vcpus[self.vcpu_of(section)].service;
        match (service.kind, service.overrun) {
            (ServerKind::Periodic, true) => self.gcs_response_periodic_overrun(section),
            (ServerKind::Deferrable, true) => self.gcs_response_deferrable_overrun(section),
            (_, false) => self.gcs_response_no_overrun(section),
        }
    }

    /// Equation 11, B^r_{i,j}: the longest that a task waits for the resource of
    /// one gcs; nothing if that is longer than the task's period. `responses` are
    /// those of tasks of higher priority on the same vCPU, from Equation 6.
    ///
    /// As published, only gcs's of *other* vCPUs lengthen the wait. But tasks of
    /// higher priority on the same vCPU are served first too, and while they are,
    /// those of higher vCPUs come again. [`Corrected`](Bounds::Corrected) lengthens
    /// the window by them; what they execute is in Equation 6 already, so it is
    /// not counted here again.
    ///
    /// # Errors
    /// When a time overflows, or when iterating takes for ever.
    pub fn remote_wait(&self, section: usize, responses: &[Option<Ns>]) -> Computed<Option<Ns>> {
        let task = self.task_of(section);
        let unbounded = self.higher_tasks(task).any(|higher| responses[higher].is_none());
        if self.bounds == Bounds::Corrected && unbounded {
            return Ok(None);
        }
        let limit = self.tasks[task].period.saturating_mul(self.reach);
        let first = self.longest_lower(section)?;
        let window = fixed_point(first, limit, |window| {
            let wait = add(first, self.served_before(section, window)?)?;
            match self.bounds {
                Bounds::Published => Ok(wait),
                Bounds::Corrected => add(wait, self.served_locally(section, window, responses)?),
            }
        })?;
        window.map(|window| add(first, self.served_before(section, window)?)).transpose()
    }

    /// The first term of Equation 11: one gcs of a vCPU of lower priority, which
    /// holds the resource already.
    ///
    /// # Errors
    /// When it overflows.
    pub fn longest_lower(&self, section: usize) -> Computed<Ns> {
        let mut longest = 0;
        let priority = self.vcpu_priority(section);
        for &other in self.users(section).filter(|&&other| self.vcpu_priority(other) < priority) {
            longest = self.gcs_response(other)?.max(longest);
        }
        Ok(longest)
    }

    /// The second term of Equation 11: gcs's of vCPUs of higher priority that
    /// are served in `window`.
    fn served_before(&self, section: usize, window: Ns) -> Computed<Ns> {
        let priority = self.vcpu_priority(section);
        let higher = self.users(section).filter(|&&other| self.vcpu_priority(other) > priority);
        try_sum(higher.map(|&other| {
            let jobs = add(window.div_ceil(self.tasks[self.task_of(other)].period), 1)?;
            multiply(jobs, self.gcs_response(other)?)
        }))
    }

    /// What Equation 11 leaves out: gcs's of tasks of higher priority on the same
    /// vCPU that are served in `window`.
    fn served_locally(&self, section: usize, window: Ns, responses: &[Option<Ns>]) -> Computed<Ns> {
        let task = &self.tasks[self.task_of(section)];
        try_sum(self.on_vcpu[task.higher.clone()].iter().map(|&higher| {
            let own = self.tasks[higher].sections.clone();
            let mut shared = self.users(section).filter(|user| own.contains(user)).peekable();
            if shared.peek().is_none() {
                return Ok(0);
            }
            let jobs = self.jobs_in(higher, window, responses[higher].unwrap_or(Ns::MAX))?;
            multiply(jobs, try_sum(shared.map(|&user| self.gcs_response(user)))?)
        }))
    }

    /// All gcs's that use the resource of this one.
    fn users(&self, section: usize) -> impl Iterator<Item = &usize> + '_ {
        self.users[self.sections[section].users.clone()].iter()
    }

    fn vcpu_of(&self, section: usize) -> usize {
        self.tasks[self.task_of(section)].vcpu
    }

    fn vcpu_priority(&self, section: usize) -> i64 {
        self.vcpus[self.vcpu_of(section)].priority
    }

    /// T^v - C^v of the vCPU of a gcs.
    fn gap(&self, section: usize) -> Ns {
        let vcpu = &self.vcpus[self.vcpu_of(section)];
        vcpu.period - vcpu.budget
    }
}
