//! Whose pieces come before whose guest.

use abi::MAX_VMS;
use sched::{VcpuId, VcpuSet};

/// A piece is done before any guest runs, as the vCPU that it wakes may be the one to run. Before
/// the guest of a real-time vCPU that cannot be for a *patient* one: its priority is below that of
/// all real-time vCPUs here, and it need not be reached while one of them runs. Its VM could make
/// them late otherwise, by pieces for all of its vCPUs. Nor can it be for a *lower* real-time vCPU before
/// the guest of one that is not.
///
/// Nor does a VM all of whose vCPUs here are below a real-time one stop or start in the time of that.
pub struct Precedence {
    known: VcpuSet,
    realtime: VcpuSet,
    patient: VcpuSet,
    lower: VcpuSet,
    /// The highest priority that vCPUs of each VM have here.
    tops: [u16; MAX_VMS],
}

/// What is known of a vCPU for that.
#[derive(Clone, Copy, Debug)]
pub struct Standing {
    /// The index of its VM.
    pub vm: usize,
    /// It is a real-time one.
    pub is_realtime: bool,
    /// It has to be reached while a real-time vCPU runs.
    pub is_urgent: bool,
    /// It is a real-time one, and another one of its core is above it.
    pub is_lower: bool,
    /// The larger the higher.
    pub priority: u16,
}

impl Precedence {
    /// Makes the part for a core that knows these vCPUs.
    pub fn new(known: VcpuSet, standing: impl Fn(VcpuId) -> Standing) -> Self {
        let realtime: VcpuSet = known.iter().filter(|&id| standing(id).is_realtime).collect();
        let lowest = realtime.iter().map(|id| standing(id).priority).min();
        let is_patient = |&id: &VcpuId| {
            let Standing { is_realtime, is_urgent, priority, .. } = standing(id);
            !is_realtime && !is_urgent && lowest.is_some_and(|lowest| priority < lowest)
        };
        let mut tops = [0; MAX_VMS];
        for id in known {
            let Standing { vm, priority, .. } = standing(id);
            tops[vm] = priority.max(tops[vm]);
        }
        let lower = known.iter().filter(|&id| standing(id).is_lower).collect();
        Self { known, realtime, patient: known.iter().filter(is_patient).collect(), lower, tops }
    }

    /// Returns the patient vCPUs; none if there are no real-time ones.
    #[must_use]
    #[inline]
    pub fn patient(&self) -> VcpuSet {
        self.patient
    }

    /// Returns the real-time vCPUs.
    #[must_use]
    #[inline]
    pub fn realtime(&self) -> VcpuSet {
        self.realtime
    }

    /// Returns the real-time vCPUs that another one of their core is above.
    #[must_use]
    #[inline]
    pub fn lower(&self) -> VcpuSet {
        self.lower
    }

    /// Returns those that are not patient.
    #[must_use]
    #[inline]
    pub fn urgent(&self) -> VcpuSet {
        self.known - self.patient
    }

    /// Returns true if what a VM needs waits until this vCPU sleeps, which has that priority.
    #[must_use]
    #[inline]
    pub fn waits(&self, vm: usize, id: VcpuId, priority: u16) -> bool {
        self.realtime.has(id) && self.tops.get(vm).is_some_and(|&top| top < priority)
    }

    /// Returns the vCPUs whose pieces are done before the guest of this one.
    #[must_use]
    #[inline]
    pub fn before(&self, id: VcpuId) -> VcpuSet {
        if !self.realtime.has(id) {
            self.known
        } else if self.lower.has(id) {
            self.urgent()
        } else {
            self.urgent() - self.lower
        }
    }

    /// Stops if a set has a vCPU that it cannot have.
    #[cfg(any(test, feature = "checked"))]
    pub fn check(&self) {
        let Self { known, realtime, patient, lower, tops: _ } = self;
        assert!((*realtime - *known).is_empty(), "a real-time vCPU is not known here");
        assert!((*patient - *known).is_empty(), "a patient vCPU is not known here");
        assert!(!patient.meets(*realtime), "a real-time vCPU is patient");
        assert!((*lower - *realtime).is_empty(), "a lower vCPU is not a real-time one");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_the_patient_wait_for_realtime_vcpus() {
        let standing = |vm, is_realtime, is_urgent, priority| Standing {
            vm,
            is_realtime,
            is_urgent,
            is_lower: is_realtime && priority < 10,
            priority,
        };
        let standings = [
            standing(0, true, true, 10),
            standing(0, true, true, 5),
            standing(1, false, false, 4),
            standing(1, false, true, 4),
            standing(2, false, false, 5),
        ];
        let known = VcpuSet::of_first(standings.len());
        let part = Precedence::new(known, |id| standings[usize::from(id.0)]);
        part.check();
        assert_eq!(part.before(VcpuId(1)), known - VcpuSet::of(VcpuId(2)));
        assert_eq!(part.before(VcpuId(0)), part.before(VcpuId(1)) - VcpuSet::of(VcpuId(1)));
        assert_eq!(part.before(VcpuId(2)), known, "whatever another one waits for");
        assert!(part.waits(1, VcpuId(1), 5) && part.waits(2, VcpuId(0), 10));
        assert!(!part.waits(2, VcpuId(1), 5), "an equal does not wait");
        assert!(!part.waits(0, VcpuId(1), 5), "nor does its own VM");
        assert!(!part.waits(1, VcpuId(4), 5), "only real-time vCPUs are waited for");
        let alone = Precedence::new(VcpuSet::of(VcpuId(2)), |id| standings[usize::from(id.0)]);
        assert_eq!(alone.before(VcpuId(2)), VcpuSet::of(VcpuId(2)));
    }
}
