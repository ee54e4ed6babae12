//! Facts that follow from where a description places vCPUs.
//!
//! The host derives these facts to check a description and to build its page
//! tables, EL2 to set its cores up. Both do it here: if they disagreed, a vCPU
//! could come to a core that does not expect it.

use crate::VcpuId;
use crate::policy::{self, Contender, Displaced, MigrationPolicy, Needs, PolicySet, Then, View};
use crate::sets::{CoreSet, Member, VcpuSet};

/// A vCPU as a description places it.
#[derive(Clone, Copy, Debug)]
pub struct Placed {
    /// Index of its VM.
    pub vm: usize,
    /// Scheduling priority; larger is higher.
    pub priority: u16,
    /// The VM is a real-time one.
    pub realtime: bool,
    /// The migration policy of its VM.
    pub policy: MigrationPolicy,
    /// Policies that its VM may have from some moment on.
    pub others: PolicySet,
    /// The base.
    pub base: usize,
    /// The fallback; its base if it stays.
    pub fallback: usize,
    /// The affinity: the cores where its policy may place it, its base included.
    pub affinity: CoreSet,
    /// The consolidation target of its base; its base if that stays on.
    pub target: usize,
}

impl Placed {
    /// Returns the cores of its affinity besides its base.
    #[must_use]
    pub fn elsewhere(&self) -> CoreSet {
        self.affinity - CoreSet::of(self.base)
    }

    /// Returns all cores that may come to own it.
    #[must_use]
    pub fn places(&self) -> CoreSet {
        self.affinity | CoreSet::of(self.base) | CoreSet::of(self.target)
    }

    /// Returns true if it is on this core while nothing displaces it: the core is its base, or it may be
    /// asked to go there.
    #[must_use]
    pub fn may_settle_at(&self, core: usize) -> bool {
        self.base == core || self.policy == MigrationPolicy::OnRequest && self.places().has(core)
    }

    /// Returns the cores that it and `other` may share.
    #[must_use]
    pub fn shared_with(&self, other: &Self) -> CoreSet {
        self.places() & other.places()
    }

    /// Returns true if it displaces `loser` when it has the base of `loser`.
    #[must_use]
    #[inline(never)]
    pub fn displaces(&self, loser: &Self) -> bool {
        policy::displaces(self.contender(), loser.contender(), loser.policy)
    }

    /// Returns what its policy needs; that of all that its VM may have, if that may change.
    #[must_use]
    #[inline(never)]
    pub fn needs(&self) -> Needs {
        if self.others.is_empty() { self.policy.needs() } else { Needs::SWITCHABLE }
    }

    /// Returns true if its siblings stop when it is displaced, or may do so.
    #[must_use]
    #[inline(never)]
    pub fn stops_siblings(&self) -> bool {
        let policy = self.policy.policy();
        let stops = |seen| policy.displaced(seen) == Then::StopOthers;
        self.others.has(MigrationPolicy::Coscheduling) || Displaced::ALL.into_iter().any(stops)
    }

    /// Returns true if a vCPU that displaces it may have to wait.
    #[must_use]
    pub fn delays(&self) -> bool {
        self.policy.delays()
    }

    /// Returns true if it could leave for more than one core: then these cores have to say
    /// when they have nothing to run.
    #[must_use]
    #[inline(never)]
    pub fn has_choice(&self) -> bool {
        let (needs, others) = (self.needs(), self.elsewhere().len());
        needs.wanders && (others > 1 || others == 1 && !needs.fallback)
    }

    /// Returns true if, away from its base, it may move on, or back without a recall by its base.
    #[must_use]
    pub fn is_relocatable(&self) -> bool {
        let needs = self.needs();
        let goes_by_itself = needs.asks_base || needs.moves_on_request;
        self.has_choice() || goes_by_itself && !self.elsewhere().is_empty()
    }

    /// Returns its view at its base, or elsewhere. A vCPU whose affinity is only its base
    /// never leaves it, so it has the full view.
    #[must_use]
    pub fn usual_view(&self, at_base: bool) -> View {
        if self.elsewhere().is_empty() { View::Full } else { self.policy.policy().view(at_base) }
    }

    fn contender(&self) -> Contender {
        Contender { vm: self.vm, priority: self.priority, realtime: self.realtime }
    }
}

/// All vCPUs of a system, in the order of their identifiers.
#[derive(Clone, Copy, Debug)]
pub struct Topology<'a> {
    vcpus: &'a [Placed],
    cores: usize,
}

impl<'a> Topology<'a> {
    /// Makes the topology of a system with these vCPUs on so many cores.
    #[must_use]
    pub const fn new(vcpus: &'a [Placed], cores: usize) -> Self {
        Self { vcpus, cores }
    }

    /// Returns all identifiers, in ascending order.
    pub fn ids(&self) -> impl Iterator<Item = VcpuId> + use<> {
        (0..self.vcpus.len()).map(VcpuId::numbered)
    }

    /// Returns the vCPU with this identifier.
    #[must_use]
    pub fn vcpu(&self, id: VcpuId) -> &'a Placed {
        &self.vcpus[id.number()]
    }

    /// Returns the vCPUs that may be handed over: to another core than their base, or because of
    /// their view.
    #[must_use]
    pub fn migrants(&self) -> VcpuSet {
        self.which(&|vcpu| vcpu.places().len() > 1 || vcpu.needs().views)
    }

    /// Returns the vCPUs that may have to leave their core, or come to another one, or whose
    /// policies decide something when they are displaced.
    #[must_use]
    pub fn candidates(&self) -> VcpuSet {
        self.migrants() | self.which(&|vcpu| vcpu.needs().a_say)
    }

    /// Returns the vCPUs whose siblings are held back while they are displaced.
    #[must_use]
    pub fn stop_others(&self) -> VcpuSet {
        self.which(&Placed::stops_siblings)
    }

    /// Returns all vCPUs for which this holds. Not inlined, because only the start of a core
    /// calls it.
    #[must_use]
    #[inline(never)]
    pub fn which(&self, holds: &dyn Fn(&Placed) -> bool) -> VcpuSet {
        let all = self.vcpus.iter().enumerate();
        all.filter(|(_, vcpu)| holds(vcpu)).map(|(id, _)| VcpuId::numbered(id)).collect()
    }

    /// Returns the vCPUs that are based at a core.
    #[must_use]
    pub fn based_at(&self, core: usize) -> VcpuSet {
        self.which(&|vcpu| vcpu.base == core)
    }

    /// Returns the vCPUs that a core may ever own.
    #[must_use]
    pub fn known_at(&self, core: usize) -> VcpuSet {
        self.which(&|vcpu| vcpu.places().has(core))
    }

    /// Returns the cores where vCPUs of a VM may be.
    #[must_use]
    #[inline(never)]
    pub fn places_of_vm(&self, vm: usize) -> CoreSet {
        let own = self.vcpus.iter().filter(|vcpu| vcpu.vm == vm);
        own.fold(CoreSet::EMPTY, |all, vcpu| all | vcpu.places())
    }

    /// Returns true if vCPUs may come to this core from others, or leave it for them.
    #[must_use]
    #[inline(never)]
    pub fn vcpus_change_at(&self, core: usize) -> bool {
        let here = CoreSet::of(core);
        self.vcpus.iter().any(|vcpu| vcpu.places().has(core) && vcpu.places() != here)
    }

    /// Returns the vCPUs that `winner` displaces at their bases.
    #[must_use]
    pub fn losers(&self, winner: VcpuId) -> VcpuSet {
        self.which(&|vcpu| self.vcpu(winner).displaces(vcpu))
    }

    /// Returns the other vCPUs of its VM with which this one may share a core.
    #[must_use]
    #[inline(never)]
    pub fn siblings_met(&self, id: VcpuId) -> VcpuSet {
        let me = self.vcpu(id);
        let met = self.which(&|vcpu| vcpu.vm == me.vm && !vcpu.shared_with(me).is_empty());
        met - VcpuSet::of(id)
    }

    /// Returns true if two vCPUs of one VM may share this core.
    #[must_use]
    #[inline(never)]
    pub fn siblings_meet_at(&self, core: usize) -> bool {
        let here = self.known_at(core);
        here.iter().any(|id| {
            let vm = self.vcpu(id).vm;
            (here - VcpuSet::of(id)).iter().any(|other| self.vcpu(other).vm == vm)
        })
    }

    /// Returns true if preemption may be delayed on this core: a policy says so, or two vCPUs
    /// of a VM may share the core, which take turns at the boundary of their kernel.
    #[must_use]
    pub fn delays_at(&self, core: usize) -> bool {
        let delays = |vcpu: &Placed| vcpu.base == core && vcpu.delays();
        self.vcpus.iter().any(delays) || self.siblings_meet_at(core)
    }

    /// Returns true if a vCPU that has a choice may come to this core: then the core has to
    /// let others know when it has nothing to run. The same holds of a vCPU that goes back by
    /// itself: then the core has to look, when it has nothing to run, whether that may go.
    #[must_use]
    #[inline(never)]
    pub fn must_tell_idle(&self, core: usize) -> bool {
        let asks = |vcpu: &Placed| vcpu.has_choice() || vcpu.needs().returns_by_itself;
        self.vcpus.iter().any(|vcpu| vcpu.elsewhere().has(core) && asks(vcpu))
    }

    /// Returns the other cores whose consolidation target is `core`.
    #[must_use]
    pub fn consolidated_at(&self, core: usize) -> CoreSet {
        let moved = |vcpu: &&Placed| vcpu.target == core && vcpu.base != core;
        self.vcpus.iter().filter(moved).map(|vcpu| vcpu.base).collect()
    }

    /// Returns the core that drives the UART: the first at which no real-time vCPU is based, or to
    /// which one may be asked to go, else core 0.
    #[must_use]
    #[inline(never)]
    pub fn uart_core(&self) -> usize {
        let has_realtime =
            |core: usize| self.vcpus.iter().any(|vcpu| vcpu.realtime && vcpu.may_settle_at(core));
        (0..self.cores).find(|&core| !has_realtime(core)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTOS: Placed = Placed {
        vm: 0,
        priority: 10,
        realtime: true,
        policy: MigrationPolicy::None,
        others: PolicySet::EMPTY,
        base: 1,
        fallback: 1,
        affinity: CoreSet::EMPTY,
        target: 1,
    };

    /// vCPU `base` of a Linux with `policy` that may also go to `others`.
    fn linux(base: usize, policy: MigrationPolicy, others: &[usize]) -> Placed {
        let fallback = others.first().copied().unwrap_or(base);
        let affinity = others.iter().copied().collect::<CoreSet>() | CoreSet::of(base);
        Placed {
            vm: 1,
            priority: 1,
            realtime: false,
            policy,
            others: PolicySet::EMPTY,
            base,
            fallback,
            affinity,
            target: base,
        }
    }

    fn ids<const N: usize>(ids: [u8; N]) -> VcpuSet {
        ids.into_iter().map(VcpuId).collect()
    }

    #[test]
    fn what_stays_at_its_base_is_nowhere_else() {
        let resting = Placed { target: 3, ..linux(2, MigrationPolicy::None, &[]) };
        let vcpus = [RTOS, linux(1, MigrationPolicy::OnDemand, &[0]), resting];
        let topology = Topology::new(&vcpus, 5);
        assert_eq!(topology.places_of_vm(0), CoreSet::of(1));
        assert_eq!(topology.places_of_vm(1), CoreSet::from_bits(0b1111));
        assert_eq!(topology.places_of_vm(2), CoreSet::EMPTY);
        let change: CoreSet = (0..5).filter(|&core| topology.vcpus_change_at(core)).collect();
        assert_eq!(change, CoreSet::from_bits(0b1111));
        assert!(!Topology::new(&[RTOS], 2).vcpus_change_at(1));
    }

    #[test]
    fn the_rtos_displaces_linux_and_not_the_reverse() {
        let vcpus = [
            RTOS,
            linux(0, MigrationPolicy::OnDemand, &[]),
            linux(1, MigrationPolicy::OnDemand, &[0]),
        ];
        let topology = Topology::new(&vcpus, 2);
        assert_eq!(topology.losers(VcpuId(0)), ids([1, 2]), "wherever it may meet them");
        assert_eq!(topology.losers(VcpuId(2)), ids([]));
        assert_eq!(topology.based_at(1), ids([0, 2]));
        assert_eq!(topology.known_at(0), ids([1, 2]));
    }

    #[test]
    fn siblings_meet_where_one_may_come() {
        let vcpus = [
            RTOS,
            linux(0, MigrationPolicy::OnDemand, &[]),
            linux(1, MigrationPolicy::OnDemand, &[0]),
            linux(2, MigrationPolicy::OnDemand, &[]),
        ];
        let topology = Topology::new(&vcpus, 3);
        assert_eq!(topology.siblings_met(VcpuId(1)), ids([2]));
        assert_eq!(topology.siblings_met(VcpuId(3)), ids([]));
        assert!(topology.siblings_meet_at(0));
        assert!(!topology.siblings_meet_at(1), "the RTOS is no sibling");
        assert!(topology.delays_at(0) && !topology.delays_at(1), "they take turns");
    }

    #[test]
    fn preemption_is_delayed_at_the_base_of_a_vcpu_whose_policy_says_so() {
        let vcpus = [RTOS, linux(1, MigrationPolicy::SafeUnsafe, &[0])];
        let topology = Topology::new(&vcpus, 2);
        assert!(topology.delays_at(1) && !topology.delays_at(0));
        let stops = |policy: &&MigrationPolicy| linux(1, **policy, &[]).stops_siblings();
        assert!(MigrationPolicy::ALL.iter().filter(stops).eq(&[MigrationPolicy::Coscheduling]));
    }

    #[test]
    fn siblings_meet_where_their_cores_are_consolidated() {
        let moved = Placed { target: 0, ..linux(1, MigrationPolicy::None, &[]) };
        let vcpus = [linux(0, MigrationPolicy::None, &[]), moved];
        let topology = Topology::new(&vcpus, 2);
        assert_eq!(topology.siblings_met(VcpuId(0)), ids([1]));
        assert!(topology.siblings_meet_at(0) && !topology.siblings_meet_at(1));
        assert_eq!(topology.consolidated_at(0), CoreSet::of(1));
        assert_eq!(topology.consolidated_at(1), CoreSet::EMPTY);
    }

    #[test]
    fn the_uart_is_driven_where_no_real_time_vcpu_belongs() {
        let at = |base| Placed { base, ..RTOS };
        assert_eq!(Topology::new(&[at(1)], 2).uart_core(), 0);
        assert_eq!(Topology::new(&[at(0)], 2).uart_core(), 1);
        assert_eq!(Topology::new(&[at(0), at(1)], 2).uart_core(), 0, "there is no better one");
    }

    #[test]
    fn one_other_core_is_a_choice_only_for_a_policy_without_a_fallback() {
        assert!(!linux(1, MigrationPolicy::OnDemand, &[0]).has_choice());
        assert!(linux(1, MigrationPolicy::OnDemand, &[0, 2]).has_choice());
        assert!(linux(1, MigrationPolicy::Balance, &[0]).has_choice());
        assert!(!linux(1, MigrationPolicy::None, &[0, 2]).has_choice());
        let vcpus = [linux(1, MigrationPolicy::Balance, &[0])];
        let topology = Topology::new(&vcpus, 2);
        assert!(topology.must_tell_idle(0) && !topology.must_tell_idle(1));
        for (policy, tells) in
            [(MigrationPolicy::OnDemandFixed, false), (MigrationPolicy::OnDemandLazy, true)]
        {
            let vcpus = [linux(1, policy, &[0])];
            assert!(!vcpus[0].has_choice());
            let topology = Topology::new(&vcpus, 2);
            assert_eq!(topology.must_tell_idle(0), tells, "{}", policy.name());
        }
    }

    #[test]
    fn a_vcpu_that_stays_executes_everything() {
        assert_eq!(linux(1, MigrationPolicy::TrapBased, &[]).usual_view(true), View::Full);
        assert_eq!(linux(1, MigrationPolicy::TrapBased, &[0]).usual_view(true), View::UserOnly);
    }
}
