//! When a core gives its vCPUs away and is powered down, and when it is called back.

use super::NEVER;
use abi::system::parts;
use sched::consolidation::{Leaver, Load, Target};
use sched::topology::Topology;
use sched::{CoreSet, Duration, Instant, VcpuSet};

/// This image powers cores down. In one that does not, no core has a target or is one.
pub const BUILT: bool = parts::has(parts::CONSOLIDATION);

/// Looks at the load when a window of time is over: always on a core that may be powered
/// down, and on a consolidation target while it has vCPUs of other cores. All other cores
/// have no window.
///
/// Invariant: a core that is leaving has no window, and a core that stays on is never
/// leaving.
pub struct Consolidation {
    /// This core may leave, or is the consolidation target of one that may.
    takes_part: bool,
    /// The consolidation target of this core; none: it stays on.
    target: Option<usize>,
    /// The vCPUs that are based here.
    mine: VcpuSet,
    /// The cores whose consolidation target is this one.
    consolidated: CoreSet,
    /// Cores among `consolidated` that the firmware does not switch on again.
    lost: CoreSet,
    /// When the present window ends; never: there is none.
    look_at: Instant,
    window: Duration,
    /// When the present window began, and what was idle by then.
    since: Instant,
    idled: Idled,
    leaver: Leaver,
    as_target: Target,
    leaving: bool,
}

/// How long two cores have idled in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Idled {
    /// This core.
    pub here: Duration,
    /// The consolidation target.
    pub target: Duration,
}

/// What to do when a window is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing.
    GoOn,
    /// The core hands its vCPUs over to its consolidation target, and then is powered down.
    Leave,
    /// These cores are switched on again.
    Call(CoreSet),
}

impl Consolidation {
    /// Computes the consolidation target of a core, and the cores whose target it is.
    /// `may_leave`: the core has no other duty than its vCPUs.
    #[must_use]
    pub fn new(topology: &Topology<'_>, core: usize, window: Duration, may_leave: bool) -> Self {
        let mine = topology.based_at(core);
        let target = mine.first().map(|id| topology.vcpu(id).target);
        let target = target.filter(|&target| target != core && may_leave);
        let consolidated = topology.consolidated_at(core);
        Self {
            takes_part: target.is_some() || !consolidated.is_empty(),
            target,
            mine,
            consolidated,
            lost: CoreSet::EMPTY,
            look_at: NEVER,
            window,
            since: Instant(0),
            idled: Idled::default(),
            leaver: Leaver::new(),
            as_target: Target::new(),
            leaving: false,
        }
    }

    /// Returns when the present window ends.
    #[must_use]
    #[inline(always)]
    pub fn look_at(&self) -> Instant {
        if BUILT { self.look_at } else { NEVER }
    }

    /// Returns true if the present window is over.
    #[must_use]
    #[inline(always)]
    pub fn is_due(&self, now: Instant) -> bool {
        BUILT && now >= self.look_at
    }

    /// Returns this core's consolidation target; none if it stays on.
    #[must_use]
    #[inline(always)]
    pub fn target(&self) -> Option<usize> {
        if BUILT { self.target } else { None }
    }

    /// Returns the vCPUs that are based here.
    #[must_use]
    pub fn mine(&self) -> VcpuSet {
        self.mine
    }

    /// Returns true if this is the consolidation target of `core`.
    #[must_use]
    #[inline(always)]
    pub fn is_target_of(&self, core: usize) -> bool {
        BUILT && self.consolidated.has(core)
    }

    /// Returns the cores that can be called back when they are away.
    #[must_use]
    pub fn callable(&self) -> CoreSet {
        self.consolidated - self.lost
    }

    /// Returns true if this core may leave, or is the consolidation target of one that may.
    #[must_use]
    #[inline(always)]
    pub fn takes_part(&self) -> bool {
        BUILT && self.takes_part
    }

    /// Returns true if this core's vCPUs are gone, and it is powered down when it idles.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        self.leaving
    }

    /// Begins a window.
    pub fn begin_window(&mut self, now: Instant, idled: Idled) {
        (self.since, self.look_at, self.idled) = (now, now.after(self.window), idled);
    }

    /// Records that a vCPU has come whose core leaves. Returns true if a window has to begin.
    #[must_use]
    pub fn begins_as_target(&mut self) -> bool {
        let begins = self.look_at == NEVER;
        if begins {
            self.as_target = Target::new();
        }
        begins
    }

    /// Decides at the end of a window on a core that may leave. `held`: it must stay on now.
    #[must_use]
    pub fn look_as_leaver(&mut self, now: Instant, idled: Idled, held: bool) -> Verdict {
        let length = now.since(self.since);
        let own = Load::of(length, grown(idled.here, self.idled.here));
        let there = Load::of(length, grown(idled.target, self.idled.target));
        self.begin_window(now, idled);
        if self.target.is_none() {
            return Verdict::GoOn;
        }
        if held {
            self.leaver.stays();
            return Verdict::GoOn;
        }
        if !self.leaver.window(own, there) {
            return Verdict::GoOn;
        }
        self.leaving = true;
        self.look_at = NEVER;
        Verdict::Leave
    }

    /// Decides at the end of a window on a consolidation target. `away`: the
    /// [callable](Self::callable) cores that have left.
    #[must_use]
    pub fn look_as_host(&mut self, now: Instant, idled: Idled, away: CoreSet) -> Verdict {
        if away.is_empty() {
            self.look_at = NEVER;
            return Verdict::GoOn;
        }
        let own = Load::of(now.since(self.since), grown(idled.here, self.idled.here));
        self.begin_window(now, idled);
        if self.as_target.window(own) { Verdict::Call(away) } else { Verdict::GoOn }
    }

    /// Records that a core does not start again: its vCPUs stay here.
    pub fn lost(&mut self, core: usize) {
        self.lost.insert(core);
    }

    /// Records that this core was powered down for so long, and is back.
    pub fn was_away(&mut self, away: Duration) {
        self.leaver.back(away.0 / self.window.0.max(1));
    }

    /// Makes this core stay on for good: it coordinates a VM, or the firmware did not power it
    /// down. Returns the core that has its vCPUs then.
    #[must_use]
    pub fn stays_on(&mut self) -> Option<usize> {
        self.target.take()
    }

    /// Ends the leaving of this core, which takes its vCPUs back.
    pub fn is_back(&mut self) {
        self.leaving = false;
    }

    /// Asserts what stands at the type.
    #[cfg(any(test, feature = "checked"))]
    pub fn check(&self) {
        assert!(!self.leaving || self.target.is_some(), "a core leaves that stays on");
        assert!(!self.leaving || self.look_at == NEVER, "a core that leaves looks at its load");
    }
}

/// Returns how long a core idled within the window: 0 if its count was read while it changed.
fn grown(now: Duration, before: Duration) -> Duration {
    Duration(now.0.saturating_sub(before.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched::policy::{MigrationPolicy, PolicySet};
    use sched::topology::Placed;

    const WINDOW: Duration = Duration(1_000);

    /// Core 1, whose consolidation target is core 0, with its only vCPU; and core 0.
    fn cores() -> [Consolidation; 2] {
        let vcpu = |base| Placed {
            vm: 0,
            priority: 1,
            realtime: false,
            policy: MigrationPolicy::None,
            others: PolicySet::EMPTY,
            base,
            fallback: base,
            affinity: CoreSet::EMPTY,
            target: 0,
        };
        let vcpus = [vcpu(0), vcpu(1)];
        let topology = Topology::new(&vcpus, 2);
        [0, 1].map(|core| Consolidation::new(&topology, core, WINDOW, true))
    }

    /// Windows in which both cores were idle until the core leaves, or `most`.
    fn windows_until_leaving(core: &mut Consolidation, most: u64, held: bool) -> Option<u64> {
        core.begin_window(Instant(0), Idled::default());
        (1..=most).find(|&window| {
            let now = Instant(window * WINDOW.0);
            let idled = Idled { here: Duration(now.0), target: Duration(now.0) };
            let leaves = core.look_as_leaver(now, idled, held) == Verdict::Leave;
            core.check();
            leaves
        })
    }

    #[test]
    fn an_idle_core_leaves_for_its_target_and_looks_no_more() {
        let [_, mut core] = cores();
        assert!(windows_until_leaving(&mut core, 1_000, false).is_some());
        assert!(core.is_leaving() && core.look_at() == NEVER);
        core.was_away(Duration(5));
        core.is_back();
        core.begin_window(Instant(9), Idled::default());
        core.check();
    }

    #[test]
    fn a_core_that_is_held_stays() {
        let [_, mut core] = cores();
        assert_eq!(windows_until_leaving(&mut core, 1_000, true), None);
    }

    #[test]
    fn a_busy_target_calls_the_cores_back_that_it_has_not_lost() {
        let [mut host, _] = cores();
        assert!(host.is_target_of(1) && host.target().is_none() && host.begins_as_target());
        host.begin_window(Instant(0), Idled::default());
        assert!(!host.begins_as_target(), "it does already");
        let called = (1..1_000).find_map(|window| {
            let now = Instant(window * WINDOW.0);
            match host.look_as_host(now, Idled::default(), CoreSet::of(1)) {
                Verdict::Call(cores) => Some(cores),
                _ => None,
            }
        });
        assert_eq!(called, Some(CoreSet::of(1)));
        host.lost(1);
        assert!(host.callable().is_empty());
        assert_eq!(host.look_as_host(Instant(0), Idled::default(), CoreSet::EMPTY), Verdict::GoOn);
        assert_eq!(host.look_at(), NEVER, "there is nothing to look at");
    }
}
