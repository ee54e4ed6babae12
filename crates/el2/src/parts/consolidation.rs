//! When a core gives its vCPUs away and is powered down, and when it is called back.

use super::NEVER;
use sched::consolidation::{Leaver, Load, Target};
use sched::topology::Topology;
use sched::{CoreSet, Duration, Instant, VcpuSet};

/// Looks at the load when a window of time is over: on a core that may be powered down
/// always, on one that shelters others' vCPUs while it has some. All others find that
/// there is nothing to look at, ever.
///
/// A core that is leaving looks at nothing until it is back, and one that may not leave
/// never is.
pub struct Consolidation {
    /// This core may leave, or shelters others' vCPUs.
    takes_part: bool,
    /// Where this core's vCPUs go; none: it stays on.
    shelter: Option<usize>,
    /// The vCPUs that belong here.
    mine: VcpuSet,
    /// The cores whose vCPUs this one shelters.
    sheltered: CoreSet,
    /// Those of them that the firmware does not switch on again.
    lost: CoreSet,
    /// When the present window ends; never: there is none.
    look_at: Instant,
    window: Duration,
    /// When the present window began, and what was idle by then.
    since: Instant,
    idled: Idled,
    leaver: Leaver,
    target: Target,
    leaving: bool,
}

/// How long cores have idled in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Idled {
    /// This one.
    pub here: Duration,
    /// The one that would shelter its vCPUs.
    pub shelter: Duration,
}

/// What to do when a window is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing.
    GoOn,
    /// The core's vCPUs go to this one, and then the core is powered down.
    Leave(usize),
    /// These cores are switched on again.
    Call(CoreSet),
}

impl Consolidation {
    /// Works out what a core is for others, and others for it. `may_leave`: it has nothing
    /// to do besides its vCPUs.
    #[must_use]
    pub fn new(topology: &Topology<'_>, core: usize, window: Duration, may_leave: bool) -> Self {
        let mine = topology.based_at(core);
        let shelter = mine.first().map(|id| topology.vcpu(id).target);
        let shelter = shelter.filter(|&shelter| shelter != core && may_leave);
        let sheltered = topology.consolidated_at(core);
        Self {
            takes_part: shelter.is_some() || !sheltered.is_empty(),
            shelter,
            mine,
            sheltered,
            lost: CoreSet::EMPTY,
            look_at: NEVER,
            window,
            since: Instant(0),
            idled: Idled::default(),
            leaver: Leaver::new(),
            target: Target::new(),
            leaving: false,
        }
    }

    /// Returns when the present window ends.
    #[must_use]
    #[inline]
    pub fn look_at(&self) -> Instant {
        self.look_at
    }

    /// Returns the core to which this one's vCPUs go; none if it stays on.
    #[must_use]
    pub fn shelter(&self) -> Option<usize> {
        self.shelter
    }

    /// Returns the vCPUs that belong here.
    #[must_use]
    pub fn mine(&self) -> VcpuSet {
        self.mine
    }

    /// Returns true if the vCPUs of this core come here when it leaves.
    #[must_use]
    pub fn shelters(&self, core: usize) -> bool {
        self.sheltered.has(core)
    }

    /// Returns the cores that can be called back when they are away.
    #[must_use]
    pub fn callable(&self) -> CoreSet {
        self.sheltered - self.lost
    }

    /// Returns true if this core may leave, or shelters the vCPUs of one that may.
    #[must_use]
    #[inline]
    pub fn takes_part(&self) -> bool {
        self.takes_part
    }

    /// Returns true if this core's vCPUs are gone, and it goes off when it is idle.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        self.leaving
    }

    /// A window begins.
    pub fn begin_window(&mut self, now: Instant, idled: Idled) {
        (self.since, self.look_at, self.idled) = (now, now.after(self.window), idled);
    }

    /// A vCPU has come whose core leaves. Returns true if a window has to begin.
    #[must_use]
    pub fn begins_to_shelter(&mut self) -> bool {
        let begins = self.look_at == NEVER;
        if begins {
            self.target = Target::new();
        }
        begins
    }

    /// The window of a core that may leave is over. `held`: something keeps it here.
    #[must_use]
    pub fn look_as_leaver(&mut self, now: Instant, idled: Idled, held: bool) -> Verdict {
        let length = now.since(self.since);
        let own = Load::of(length, grown(idled.here, self.idled.here));
        let there = Load::of(length, grown(idled.shelter, self.idled.shelter));
        self.begin_window(now, idled);
        let Some(shelter) = self.shelter else { return Verdict::GoOn };
        if held {
            self.leaver.stays();
            return Verdict::GoOn;
        }
        if !self.leaver.window(own, there) {
            return Verdict::GoOn;
        }
        self.leaving = true;
        self.look_at = NEVER;
        Verdict::Leave(shelter)
    }

    /// The window of a core that shelters others' vCPUs is over. `away`: of those it can
    /// call, the cores that have left.
    #[must_use]
    pub fn look_as_host(&mut self, now: Instant, idled: Idled, away: CoreSet) -> Verdict {
        if away.is_empty() {
            self.look_at = NEVER;
            return Verdict::GoOn;
        }
        let own = Load::of(now.since(self.since), grown(idled.here, self.idled.here));
        self.begin_window(now, idled);
        if self.target.window(own) { Verdict::Call(away) } else { Verdict::GoOn }
    }

    /// A core does not start again: its vCPUs stay here.
    pub fn lost(&mut self, core: usize) {
        self.lost.insert(core);
    }

    /// This core was powered down for so long, and is back.
    pub fn was_away(&mut self, away: Duration) {
        self.leaver.back(away.0 / self.window.0.max(1));
    }

    /// The firmware does not power this core down: it stays on. Returns where its vCPUs
    /// are.
    #[must_use]
    pub fn stays_on(&mut self) -> Option<usize> {
        self.shelter.take()
    }

    /// This core takes its vCPUs back.
    pub fn is_back(&mut self) {
        self.leaving = false;
    }

    /// Asserts what stands at the type.
    #[cfg(any(test, feature = "checked"))]
    pub fn check(&self) {
        assert!(!self.leaving || self.shelter.is_some(), "a core leaves that stays on");
        assert!(!self.leaving || self.look_at == NEVER, "a core that leaves looks at its load");
    }
}

/// What was idle within the window: none, if a count was read as it changed.
fn grown(now: Duration, before: Duration) -> Duration {
    Duration(now.0.saturating_sub(before.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched::policy::MigrationPolicy;
    use sched::topology::Placed;

    const WINDOW: Duration = Duration(1_000);

    /// Core 1, whose only vCPU is sheltered by core 0; and core 0.
    fn cores() -> [Consolidation; 2] {
        let vcpu = |base| Placed {
            vm: 0,
            priority: 1,
            realtime: false,
            policy: MigrationPolicy::None,
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
            let idled = Idled { here: Duration(now.0), shelter: Duration(now.0) };
            let leaves = core.look_as_leaver(now, idled, held) == Verdict::Leave(0);
            core.check();
            leaves
        })
    }

    #[test]
    fn an_idle_core_leaves_for_its_shelter_and_looks_no_more() {
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
    fn a_busy_shelter_calls_the_cores_back_that_it_has_not_lost() {
        let [mut host, _] = cores();
        assert!(host.shelters(1) && host.shelter().is_none() && host.begins_to_shelter());
        host.begin_window(Instant(0), Idled::default());
        assert!(!host.begins_to_shelter(), "it does already");
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
