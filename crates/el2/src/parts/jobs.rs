//! Jobs: what EL2 does in pieces, in the time of a vCPU.

use sched::{VcpuId, VcpuMap, VcpuSet};

/// Something that takes too long for one stay at EL2. It is done in pieces, with a look at
/// the interrupts after each, in the time and at the priority of a vCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    /// Filling the VM's memory.
    Load {
        /// The next among the VM's loads.
        piece: u16,
        /// Bytes of it that are done.
        done: u64,
    },
    /// Reporting why the VM cannot go on.
    Report {
        /// The next line.
        line: u16,
    },
}

/// Why a guest cannot go on.
#[derive(Clone, Copy, Debug)]
pub struct Cause {
    /// In words.
    pub what: &'static str,
    /// ESR_EL2.
    pub syndrome: u64,
    /// FAR_EL2.
    pub address: u64,
}

/// The jobs of a core's vCPUs: a vCPU is in the set exactly if it has one. A vCPU with
/// a job does not leave the core: elsewhere its guest would run before the job is done.
#[repr(C)]
pub struct Jobs {
    pending: VcpuSet,
    jobs: VcpuMap<Option<Job>>,
}

impl Jobs {
    /// Makes the part without a job.
    #[must_use]
    pub const fn new() -> Self {
        Self { pending: VcpuSet::EMPTY, jobs: VcpuMap::new([None; sched::MAX_VCPUS]) }
    }

    /// Returns the vCPUs that have jobs.
    #[must_use]
    #[inline]
    pub fn pending(&self) -> VcpuSet {
        self.pending
    }

    /// Returns true if this vCPU has a job.
    #[must_use]
    #[inline]
    pub fn has(&self, id: VcpuId) -> bool {
        self.pending.has(id)
    }

    /// Returns a vCPU's job.
    #[must_use]
    pub fn of(&self, id: VcpuId) -> Option<Job> {
        self.jobs[id]
    }

    /// Gives a vCPU a job, in place of one that it may have.
    #[inline(never)]
    pub fn set(&mut self, id: VcpuId, job: Job) {
        self.pending.insert(id);
        self.jobs[id] = Some(job);
    }

    /// Ends a vCPU's job, if it has one.
    #[inline(never)]
    pub fn end(&mut self, id: VcpuId) {
        self.pending.remove(id);
        self.jobs[id] = None;
    }

    /// Asserts what stands at the type. `owned`: the vCPUs of this core.
    #[cfg(any(test, feature = "checked"))]
    pub fn check(&self, owned: VcpuSet) {
        for id in owned {
            assert_eq!(self.has(id), self.jobs[id].is_some(), "the set and the job of {id:?}");
        }
        assert!(self.pending.is_within(owned), "a vCPU with a job has left");
    }
}

impl Default for Jobs {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vcpu_is_in_the_set_while_it_has_a_job() {
        let (mut jobs, id) = (Jobs::new(), VcpuId(63));
        jobs.check(VcpuSet::EMPTY);
        jobs.set(id, Job::Load { piece: 0, done: 0 });
        jobs.set(id, Job::Report { line: 3 });
        assert!(jobs.has(id) && jobs.of(id) == Some(Job::Report { line: 3 }));
        jobs.check(VcpuSet::of(id));
        jobs.end(id);
        assert!(jobs.pending().is_empty() && jobs.of(id).is_none());
        jobs.check(VcpuSet::EMPTY);
    }

    #[test]
    #[should_panic(expected = "has left")]
    fn a_job_without_its_vcpu_is_noticed() {
        let mut jobs = Jobs::new();
        jobs.set(VcpuId(1), Job::Report { line: 0 });
        jobs.check(VcpuSet::of(VcpuId(2)));
    }
}
