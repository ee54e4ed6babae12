//! Which vCPUs others displace, and which of them are awaited.

use sched::policy::Patience;
use sched::topology::{Placed, Topology};
use sched::{MAX_VCPUS, VcpuId, VcpuMap, VcpuSet};

/// The *residents*: vCPUs that are based at this core and whose policies decide something
/// when they are displaced. A resident is *awaited* while it has left, or its siblings have
/// stopped for it, until no vCPU on this core displaces it. Invariant: only residents are
/// awaited.
#[repr(C)]
pub struct Displacement {
    residents: VcpuSet,
    /// Residents that may move on from the core to which they have gone.
    relocatable: VcpuSet,
    awaited: VcpuSet,
    /// Residents that make way for any vCPU above them.
    make_way: VcpuSet,
    /// Other cores ask whether residents have lost this one.
    tells_taken: bool,
    /// Residents that wait before they leave, and for how long.
    patient: VcpuSet,
    patience: Patience,
    /// The vCPU that has displaced patient ones, if nothing was learned of that yet.
    observed: Option<VcpuId>,
    /// By vCPU: the residents that are displaced while it has the core.
    losers: VcpuMap<VcpuSet>,
}

/// What a switch means for the residents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnSwitch {
    /// Residents that are awaited, and for which the core is free again.
    pub free: VcpuSet,
    /// Residents that are displaced, and whose policies were not asked yet.
    pub displaced: VcpuSet,
    /// Some resident is displaced.
    pub taken: bool,
}

impl Displacement {
    /// Computes which vCPUs displace the residents of a core. `patience`: how long those wait that
    /// do so before they leave.
    #[must_use]
    pub fn new(topology: &Topology<'_>, core: usize, patience: Patience) -> Self {
        let based = topology.based_at(core);
        let residents = based & topology.which(&|vcpu| vcpu.needs().a_say);
        let patient = residents & topology.which(&|vcpu| vcpu.needs().observes);
        let asks_base = |vcpu: &Placed| vcpu.needs().asks_base;
        let mut losers = VcpuMap::new([VcpuSet::EMPTY; MAX_VCPUS]);
        for winner in topology.ids() {
            losers[winner] = topology.losers(winner) & residents;
        }
        Self {
            residents,
            losers,
            make_way: residents & topology.which(&|vcpu| vcpu.needs().for_realtime),
            relocatable: residents & topology.which(&|vcpu| vcpu.is_relocatable()),
            tells_taken: residents.meets(topology.which(&asks_base)),
            patient,
            patience,
            observed: None,
            awaited: VcpuSet::EMPTY,
        }
    }

    /// Returns the residents that may wait before they leave.
    #[must_use]
    #[inline]
    pub fn patient(&self) -> VcpuSet {
        self.patient
    }

    /// Returns for how long those wait.
    #[must_use]
    pub fn patience(&self) -> &Patience {
        &self.patience
    }

    /// Records that this vCPU displaces patient residents.
    #[inline]
    pub fn observe(&mut self, winner: VcpuId) {
        self.observed = Some(winner);
    }

    /// Returns the vCPU that has displaced patient residents, once.
    #[must_use]
    #[inline]
    pub fn take_observed(&mut self) -> Option<VcpuId> {
        self.observed.take()
    }

    /// Returns the residents.
    #[must_use]
    pub fn residents(&self) -> VcpuSet {
        self.residents
    }

    /// Records that a vCPU of a lower priority than any real-time one is above all others, or no
    /// longer.
    pub fn mark(&mut self, id: VcpuId, marked: bool) {
        self.losers[id] = if marked { self.make_way } else { VcpuSet::EMPTY };
    }

    /// Returns the residents that are displaced while this vCPU has the core.
    #[must_use]
    #[inline]
    pub fn losers(&self, winner: VcpuId) -> VcpuSet {
        self.losers[winner]
    }

    /// Returns the residents that are awaited.
    #[must_use]
    #[inline]
    pub fn awaited(&self) -> VcpuSet {
        self.awaited
    }

    /// Returns true if other cores ask whether residents have lost this one.
    #[must_use]
    pub fn tells_taken(&self) -> bool {
        self.tells_taken
    }

    /// Returns what it means that this vCPU has the core from now on.
    #[must_use]
    #[inline]
    pub fn on_switch(&self, current: VcpuId) -> OnSwitch {
        let losers = self.losers(current);
        OnSwitch {
            free: self.awaited - losers,
            displaced: losers - self.awaited,
            taken: !losers.is_empty(),
        }
    }

    /// Records that a resident is awaited.
    pub fn awaits(&mut self, id: VcpuId) {
        self.awaited.insert(id);
    }

    /// Records that these are awaited no longer. Returns those that may have moved on, and
    /// have to be recalled from the core where they are.
    #[must_use]
    pub fn release(&mut self, free: VcpuSet) -> VcpuSet {
        self.awaited -= free;
        free & self.relocatable
    }

    /// Records that a resident is back.
    pub fn returned(&mut self, id: VcpuId) {
        self.awaited.remove(id);
    }

    /// Asserts what stands at the type.
    #[cfg(any(test, feature = "checked"))]
    pub fn check(&self) {
        assert!(self.awaited.is_within(self.residents), "a vCPU is awaited that does not leave");
        assert!(self.patient.is_within(self.residents), "it is not displaced here");
        assert!(self.relocatable.is_within(self.residents), "it does not belong here");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched::CoreSet;
    use sched::policy::{MigrationPolicy, PolicySet};

    const RTOS: VcpuId = VcpuId(0);
    const LINUX_0: VcpuId = VcpuId(1);
    const LINUX_1: VcpuId = VcpuId(2);

    /// An RTOS on core 1, beside the second vCPU of a Linux with this policy.
    fn at(core: usize, policy: MigrationPolicy) -> Displacement {
        let vcpu = |vm, priority, base, affinity| Placed {
            vm,
            priority,
            realtime: vm == 0,
            policy: if vm == 0 { MigrationPolicy::None } else { policy },
            others: PolicySet::EMPTY,
            base,
            fallback: base,
            affinity: CoreSet::from_bits(affinity),
            target: base,
        };
        let vcpus = [vcpu(0, 9, 1, 0), vcpu(1, 1, 0, 0), vcpu(1, 1, 1, 0b101)];
        Displacement::new(&Topology::new(&vcpus, 3), core, Patience::new(|ns| ns))
    }

    #[test]
    fn a_resident_is_displaced_awaited_and_free_again() {
        let mut part = at(1, MigrationPolicy::OnDemand);
        assert_eq!(part.losers(RTOS), VcpuSet::of(LINUX_1));
        assert_eq!(part.on_switch(RTOS).displaced, VcpuSet::of(LINUX_1));
        part.awaits(LINUX_1);
        part.check();
        let again = part.on_switch(RTOS);
        assert!(again.displaced.is_empty() && again.taken, "it has left already");
        let switch = part.on_switch(LINUX_0);
        assert_eq!((switch.free, switch.taken), (VcpuSet::of(LINUX_1), false));
        assert_eq!(part.release(switch.free), VcpuSet::of(LINUX_1), "it may have gone on");
        assert!(part.awaited().is_empty());
    }

    #[test]
    fn what_makes_way_does_so_for_a_marked_vcpu() {
        let vcpu = |vm, priority, policy| Placed {
            vm,
            priority,
            realtime: vm == 0,
            policy,
            others: PolicySet::EMPTY,
            base: 0,
            fallback: 1 - vm,
            affinity: CoreSet::from_bits(0b11),
            target: 0,
        };
        let vcpus = [vcpu(0, 9, MigrationPolicy::RtVcpu), vcpu(1, 1, MigrationPolicy::None)];
        let mut part = Displacement::new(&Topology::new(&vcpus, 2), 0, Patience::new(|ns| ns));
        let (rtos, linux) = (VcpuId(0), VcpuId(1));
        assert!(part.losers(linux).is_empty());
        part.mark(linux, true);
        assert_eq!(part.on_switch(linux).displaced, VcpuSet::of(rtos));
        part.awaits(rtos);
        part.mark(linux, false);
        assert_eq!(part.on_switch(linux).free, VcpuSet::of(rtos));
    }

    #[test]
    fn a_core_whose_residents_have_no_say_has_nothing_to_do() {
        let part = at(1, MigrationPolicy::None);
        assert!(part.residents().is_empty());
        let switch = part.on_switch(RTOS);
        assert!(switch.free.is_empty() && switch.displaced.is_empty() && !switch.taken);
    }

    #[test]
    fn what_displaces_residents_is_observed_where_their_policy_asks_for_it() {
        let mut part = at(1, MigrationPolicy::Adaptive);
        assert_eq!(part.patient(), VcpuSet::of(LINUX_1));
        part.observe(RTOS);
        assert_eq!((part.take_observed(), part.take_observed()), (Some(RTOS), None));
        assert!(at(1, MigrationPolicy::OnDemand).patient().is_empty());
    }

    #[test]
    fn residents_of_another_core_are_not_displaced_here() {
        let part = at(0, MigrationPolicy::OnDemand);
        assert_eq!(part.residents(), VcpuSet::of(LINUX_0));
        assert_eq!(part.losers(RTOS), VcpuSet::of(LINUX_0), "should the RTOS come here");
    }
}
