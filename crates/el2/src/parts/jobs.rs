//! Jobs: what EL2 does in pieces, in the time of a vCPU.

use sched::{VcpuId, VcpuMap, VcpuSet};

/// Something that takes too long for one stay at EL2. It is done in pieces, with a look at
/// the interrupts after each, in the time and at the priority of a vCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    /// Switching the DMA of the VM's devices off: none goes on with what an earlier life has asked of it.
    #[cfg(any(test, feature = "smmu"))]
    Silence {
        /// The next of the devices behind the SMMU.
        device: u8,
        /// The next of its functions.
        function: u16,
    },
    /// Comparing what the VM is filled with with its digests, before its first start.
    Inspect {
        /// The next of the image's parts.
        part: u16,
        /// Bytes of it that are read.
        done: u64,
    },
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
    /// Those that have jobs; those to which something was posted that they were not told of; those
    /// whose timers may be due; those that depart; and the loaded vCPU while the work at its list
    /// registers has stopped in its middle. A vCPU that was unloaded since may still be there, for
    /// nothing.
    before_guest: VcpuSet,
    pending: VcpuSet,
    untold: VcpuSet,
    due: VcpuSet,
    departing: VcpuSet,
    /// An interrupt was taken since interrupts of the loaded vCPU were listed.
    has_taken: bool,
    jobs: VcpuMap<Option<Job>>,
}

impl Jobs {
    /// Makes the part without a job.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            before_guest: VcpuSet::EMPTY,
            pending: VcpuSet::EMPTY,
            untold: VcpuSet::EMPTY,
            due: VcpuSet::EMPTY,
            departing: VcpuSet::EMPTY,
            has_taken: false,
            jobs: VcpuMap::new([None; sched::MAX_VCPUS]),
        }
    }

    /// Returns the vCPUs for which something may be left to do before their guests run.
    #[must_use]
    #[inline]
    pub fn before_guest(&self) -> VcpuSet {
        self.before_guest
    }

    /// Records that not all interrupts of the loaded vCPU are listed: its guest must not run
    /// before they are. It has no job, and may leave.
    pub fn list_later(&mut self, id: VcpuId) {
        self.before_guest.insert(id);
    }

    /// Records that something was posted to a vCPU, of which it is told before any guest runs: a
    /// guest may post to all its siblings at once.
    pub fn tell_later(&mut self, id: VcpuId) {
        self.before_guest.insert(id);
        self.untold.insert(id);
    }

    /// Returns one of these vCPUs to which something was posted, once; none if all were told.
    #[must_use]
    pub fn next_untold(&mut self, of: VcpuSet) -> Option<VcpuId> {
        let id = (self.untold & of).first()?;
        self.untold.remove(id);
        Some(id)
    }

    /// Records that timers of these vCPUs may be due, which is looked at before any guest runs.
    pub fn look_later(&mut self, all: VcpuSet) {
        self.before_guest |= all;
        self.due |= all;
    }

    /// Returns those of these vCPUs whose timers may be due, once.
    #[must_use]
    pub fn take_due(&mut self, of: VcpuSet) -> VcpuSet {
        let due = self.due & of;
        self.due -= due;
        due
    }

    /// Records that these vCPUs depart before any guest runs: their core is to be powered down,
    /// their policies want them elsewhere, or their bases have recalled them.
    pub fn depart_later(&mut self, all: VcpuSet) {
        self.before_guest |= all;
        self.departing |= all;
    }

    /// Returns a vCPU that departs, once; none if all have but those that have jobs, which come
    /// first.
    #[must_use]
    pub fn next_departing(&mut self) -> Option<VcpuId> {
        let id = (self.departing - self.pending).iter().next()?;
        self.departing.remove(id);
        Some(id)
    }

    /// Returns true if some of these vCPUs have to be told of something, or their timers have to be
    /// looked at, or if vCPUs are left that depart and have no jobs.
    #[must_use]
    #[inline]
    pub fn has_pieces(&self, of: VcpuSet) -> bool {
        !((self.untold | self.due) & of | (self.departing - self.pending)).is_empty()
    }

    /// Returns true if interrupts of this vCPU have to be listed, if it is the loaded one: when
    /// it is loaded, the core looks anyway.
    #[must_use]
    pub fn must_list(&mut self, id: VcpuId, loaded: Option<VcpuId>) -> bool {
        let loaded = loaded.map_or(VcpuSet::EMPTY, VcpuSet::of);
        self.before_guest = self.before_guest & loaded | self.pending;
        self.before_guest = self.before_guest | self.untold | self.due | self.departing;
        (self.before_guest - self.pending).has(id)
    }

    /// Returns whether an interrupt is taken before a piece of work. If interrupts always pend, it
    /// is each other time: none of them can keep the work from being done.
    #[must_use]
    pub fn gives_way(&mut self, pends: bool) -> bool {
        self.has_taken = pends && !self.has_taken;
        self.has_taken
    }

    /// Records that the interrupts of this vCPU are listed.
    pub fn lists(&mut self, id: VcpuId) {
        if !self.has(id) {
            self.before_guest.remove(id);
        }
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
        self.before_guest.insert(id);
        self.pending.insert(id);
        self.jobs[id] = Some(job);
    }

    /// Ends a vCPU's job, if it has one. What was posted to it is told to no vCPU, and its timers
    /// are looked at when EL2's timer fires.
    #[inline(never)]
    pub fn end(&mut self, id: VcpuId) {
        self.pending.remove(id);
        self.untold.remove(id);
        self.due.remove(id);
        if !self.departing.has(id) {
            self.before_guest.remove(id);
        }
        self.jobs[id] = None;
    }

    /// Asserts what stands at the type. `owned`: the vCPUs of this core.
    #[cfg(any(test, feature = "checked"))]
    pub fn check(&self, owned: VcpuSet) {
        for id in owned {
            assert_eq!(self.has(id), self.jobs[id].is_some(), "the set and the job of {id:?}");
        }
        assert!(self.pending.is_within(owned), "a vCPU with a job has left");
        assert!(self.pending.is_within(self.before_guest), "a guest runs before its job is done");
        assert!(self.untold.is_within(self.before_guest), "a vCPU is never told of an interrupt");
        assert!(self.due.is_within(self.before_guest), "a vCPU's timer is not looked at");
        assert!(self.departing.is_within(self.before_guest), "a vCPU never departs");
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

    const ALL: VcpuSet = VcpuSet::from_bits(u64::MAX);

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
    fn what_is_listed_later_is_no_job() {
        let (mut jobs, id, other) = (Jobs::new(), VcpuId(3), VcpuId(5));
        jobs.list_later(id);
        assert!(jobs.before_guest().has(id) && !jobs.has(id) && jobs.pending().is_empty());
        assert!(jobs.must_list(id, Some(id)) && !jobs.must_list(other, Some(id)));
        jobs.lists(id);
        assert!(!jobs.must_list(id, Some(id)) && jobs.before_guest().is_empty());
        jobs.list_later(id);
        assert!(!jobs.must_list(id, Some(other)), "it is listed when it is loaded");
        jobs.set(id, Job::Report { line: 0 });
        assert!(!jobs.must_list(id, Some(other)) && jobs.before_guest().has(id));
    }

    #[test]
    fn each_vcpu_is_told_once() {
        let (mut jobs, id, other) = (Jobs::new(), VcpuId(3), VcpuId(63));
        jobs.tell_later(other);
        jobs.tell_later(id);
        jobs.tell_later(id);
        assert!(jobs.has_pieces(ALL) && jobs.before_guest().has(other));
        jobs.check(VcpuSet::EMPTY);
        let told: Vec<_> = core::iter::from_fn(|| jobs.next_untold(ALL)).collect();
        assert_eq!(told, [id, other]);
        assert!(!jobs.has_pieces(ALL) && !jobs.must_list(id, None));
        assert!(jobs.before_guest().is_empty(), "nothing is left to do for those");
        jobs.tell_later(id);
        jobs.end(id);
        assert_eq!(jobs.next_untold(ALL), None, "it is off");
        jobs.depart_later(VcpuSet::of(id) | VcpuSet::of(other));
        jobs.end(id);
        jobs.check(VcpuSet::EMPTY);
        jobs.set(other, Job::Report { line: 0 });
        assert_eq!(jobs.next_departing(), Some(id), "off or not");
        assert_eq!(jobs.next_departing(), None, "its job comes first");
        assert!(!jobs.has_pieces(ALL));
        jobs.end(other);
        assert!(jobs.has_pieces(ALL) && jobs.before_guest().has(other));
        assert_eq!(jobs.next_departing(), Some(other));
    }

    #[test]
    fn timers_are_looked_at_once_before_any_guest_runs() {
        let (mut jobs, id, other) = (Jobs::new(), VcpuId(3), VcpuId(63));
        jobs.look_later(VcpuSet::of(id) | VcpuSet::of(other));
        assert!(jobs.has_pieces(ALL) && jobs.must_list(id, None), "no guest runs before");
        jobs.check(VcpuSet::EMPTY);
        jobs.end(other);
        jobs.check(VcpuSet::EMPTY);
        assert_eq!(jobs.take_due(ALL), VcpuSet::of(id));
        assert!(!jobs.has_pieces(ALL) && jobs.take_due(ALL).is_empty());
        assert!(!jobs.must_list(id, None) && jobs.before_guest().is_empty());
    }

    #[test]
    #[should_panic(expected = "has left")]
    fn a_job_without_its_vcpu_is_noticed() {
        let mut jobs = Jobs::new();
        jobs.set(VcpuId(1), Job::Report { line: 0 });
        jobs.check(VcpuSet::of(VcpuId(2)));
    }
}
