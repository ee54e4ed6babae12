//! vCPUs that migrate while something else happens, under each policy that moves
//! them.

use super::expect::Expect::{self, Endures, Passes, Rhythm, RhythmWithin, Starts};
use super::list::unseen;
use super::staged::Staged;
use crate::observe::Observer;
use crate::suite::{Bench, Scenario};
use std::time::Duration;

/// What a description says of a VM that the policies are for.
pub(super) const WRITTEN: &str = "migration_policy = \"on-demand\"";
/// The policy, as a description names it, under which a vCPU leaves whenever a
/// real-time one wakes on its core. All scenarios hold under it.
const ALWAYS: &str = "on-demand";

/// The description in which SGIs are sent.
const SGIS: &str = "moved-sgi";
/// What it says of how many, and what under another policy is enough: that none is lost is the
/// same code's doing under each.
const MANY: &[(&str, &str)] = &[
    ("ping_pong=16000", "ping_pong=4000"),
    ("ring=16000", "ring=4000"),
    ("storm=600", "storm=150"),
];

/// Scenarios under other policies, those that are cheap, with a vCPU, by
/// identifier, and how often it must have arrived on another core at least. All of
/// the probe is kernel: under `trap-based` a vCPU leaves when it is switched on,
/// and comes back when its VM is stopped.
const UNDER: &[(&str, &str, (usize, u64))] = &[
    ("trap-based", "moved-reset", (0, 300)),
    ("trap-based", "moved-mess", (0, 80)),
    ("trap-based", "moved-float", (0, 1)),
    ("trap-based", "moved-power", (1, 1)),
    ("trap-based-deferred", "moved-power", (1, 1)),
    ("trap-based-paper", "moved-power", (1, 1)),
    ("on-demand-fixed", "moved-power", (1, 1)),
    ("on-demand-lazy", "moved-power", (1, 1)),
    ("on-demand-lazy", SGIS, (0, 1)),
    ("safe-unsafe", "moved-reset", (0, 0)),
    ("safe-unsafe", "moved-mess", (0, 0)),
    ("safe-unsafe", SGIS, (0, 0)),
    ("coscheduling", "moved-power", (1, 0)),
    ("coscheduling", SGIS, (0, 0)),
    ("balance", "moved-power", (1, 1)),
    ("balance", SGIS, (0, 1)),
    ("adaptive", "moved-power", (1, 1)),
    ("adaptive", "moved-float", (0, 1)),
    ("adaptive", SGIS, (0, 1)),
];

/// A scenario whose description has `migration_policy = "on-demand"`.
#[derive(Clone, Copy, Debug)]
struct Moved {
    staged: Staged,
    /// A vCPU, by identifier, and how often it must have arrived on another
    /// core.
    migrations: (usize, u64),
}

const fn moved(
    name: &'static str,
    about: &'static str,
    expect: &'static [(&'static str, Expect)],
    migrations: (usize, u64),
) -> Moved {
    Moved { staged: Staged::new(name, about, expect), migrations }
}

const MOVED: &[Moved] = &[
    moved(
        "moved",
        "a vCPU that migrates all the time: every test",
        &[("probe", Passes), ("rtos", Endures)],
        (0, 10_000),
    ),
    MIGRANT,
    moved(
        "moved-on",
        "a vCPU that goes from core to core returns each time its base is free",
        &[("wandering", Endures), ("busy", Endures), ("beat", Passes), ("rtos", Endures)],
        (0, 2_000),
    ),
    moved(
        SGIS,
        "SGIs, directed and to all, find vCPUs that migrate all the time",
        &[("probe", Passes), ("rtos", Endures)],
        (0, 1_000),
    ),
    moved(
        "moved-budgets",
        "SGIs, directed and to all, find vCPUs that have budgets and migrate all the time",
        &[("probe", Passes), ("rtos", Endures)],
        (0, 1_000),
    ),
    moved(
        "moved-timer",
        "the timers of a vCPU that migrates all the time",
        &[("probe", Passes), ("rtos", Endures)],
        (0, 10_000),
    ),
    moved(
        "moved-float",
        "floating-point and system registers of vCPUs that migrate all the time",
        &[("one", Passes), ("two", Passes), ("rtos", Endures)],
        (0, 1_000),
    ),
    moved(
        "moved-device",
        "a device's interrupt finds a vCPU that migrates all the time",
        &[("probe", Passes), ("busy", Endures), ("rtos", Endures)],
        (0, 500),
    ),
    moved(
        "moved-device-stays",
        "a device's interrupts come to one core, and find a vCPU that migrates all the time",
        &[("probe", Passes), ("busy", Endures), ("rtos", Endures)],
        (0, 500),
    ),
    moved(
        "moved-device-sibling",
        "a device's interrupts do not follow a vCPU that is not the first",
        &[("probe", Passes), ("rtos", Endures)],
        (1, 10),
    ),
    moved(
        "moved-nowhere",
        "a vCPU that has nowhere to go stays, and disturbs no other",
        &[("rtos", Rhythm(1000)), ("stranded", Endures)],
        (1, 0),
    ),
    moved(
        "moved-power",
        "vCPUs that migrate all the time are switched on and off",
        &[("probe", Passes), ("rtos", Endures)],
        (1, 1_000),
    ),
    moved(
        "moved-reset",
        "a VM resets for ever while a vCPU of it migrates",
        &[("resetting", Starts(200)), ("rtos", Endures)],
        (0, 1_000),
    ),
    moved(
        "moved-mess",
        "a VM whose vCPUs migrate resets itself out of a mess and begins fresh",
        &[("probe", Passes), ("rtos", Endures)],
        (0, 1_000),
    ),
    moved(
        "moved-crash",
        "neighbours of a vCPU that migrates cannot go on and are restarted",
        &[("probe", Passes), ("moving", Starts(50)), ("staying", Starts(50)), ("rtos", Endures)],
        (0, 5_000),
    ),
];

const MIGRANT: Moved = moved(
    "moved-migrant",
    "a vCPU that migrates all the time computes what it should and loses no interrupt",
    &[("probe", Passes), ("rtos", Endures)],
    (0, 10_000),
);

/// The probe asks.
const ASKED: Staged = Staged::new(
    "moved-asked",
    "vCPUs go where they ask to go, compute what they should and lose no interrupt",
    &[("probe", Passes), ("rtos", Endures)],
);

/// The real-time VM takes the core often, and keeps it for long or not.
const LEARNED: Staged = Staged::new(
    "moved-learned",
    "a vCPU leaves for a real-time VM that keeps its core for long, as EL2 has learned",
    &[("learned", Endures), ("rtos", RhythmWithin(1_000, BEHIND_A_DEPARTURE_NS))],
);
/// How late the real-time VM's handler may begin: in the visit to EL2 that its timer brings, the vCPU that it displaces
/// is sent off to another core first.
const BEHIND_A_DEPARTURE_NS: u64 = 10_000;
/// What makes its activations short.
const SHORTLY: (&str, &str) = ("probe.burn_us=50", "probe.burn_us=1");
/// How often the vCPU has to migrate at least: to and fro for each activation since it is on, of which the first
/// quarter or so passes while its memory is filled. And how often at most where they are short: until that is learned.
const LEARNED_LONG: u64 = 1_400;
const LEARNED_SHORT: u64 = 100;

/// [`MIGRANT`], for longer: minutes on a small computer.
const LONG: (&str, u64) = ("moved-migrant-100000", 100_000);

/// All of them under `on-demand`, and those of [`UNDER`].
pub fn scenarios() -> impl Iterator<Item = Scenario> {
    let always = MOVED.iter().map(|moved| moved.under(ALWAYS));
    let others = UNDER.iter().filter_map(|&(policy, name, migrations)| {
        let moved = MOVED.iter().find(|moved| moved.staged.name == name)?;
        let many = if name == SGIS { MANY } else { &[] };
        let edits = many.iter().map(|&(many, fewer)| (many.into(), fewer.into())).collect();
        Some(Moved { migrations, ..*moved }.scenario(name, policy, edits))
    });
    let asked = ASKED.besides(|observer| migrated(observer, (1, 100)));
    let learned = LEARNED.besides(|observer| migrated(observer, (0, LEARNED_LONG)));
    let more = [long(ALWAYS), asked.into(), asked_for_long(), learned.into(), learned_to_stay()];
    always.chain(others).chain(more)
}

/// [`LEARNED`] with short activations.
fn learned_to_stay() -> Scenario {
    let about = "a vCPU stays for a real-time VM that soon gives its core back, as EL2 has learned";
    Scenario::new("moved-learned-short", about, |bench: &Bench| {
        let (long, short) = SHORTLY;
        LEARNED.run(bench, &[(long.into(), short.into())], |observer| {
            let Some(now) = observer.latest() else { return unseen("the vCPU") };
            let migrations = now.vcpus[0].migrations;
            let is_learned = migrations <= LEARNED_SHORT;
            (!is_learned)
                .then(|| format!("a vCPU migrated {migrations} times: nothing was learned"))
        })
    })
}

fn long(policy: &'static str) -> Scenario {
    let (name, count) = LONG;
    let (few, many) = (MIGRANT.migrations.1, format!("probe.migrations={count}"));
    let mut moved = MIGRANT;
    moved.migrations.1 = count;
    moved.scenario(name, policy, vec![(format!("probe.migrations={few}"), many)]).by_name()
}

/// [`ASKED`] a hundred thousand times.
fn asked_for_long() -> Scenario {
    const LONG: Staged = Staged { limit: Duration::from_secs(60), ..ASKED };
    let many = [("probe.migrations=3000".into(), "probe.migrations=100000".into())];
    Scenario::new("moved-asked-100000", LONG.about, move |bench: &Bench| {
        LONG.run(bench, &many, |observer| migrated(observer, (0, 100_000)))
    })
    .by_name()
}

impl Moved {
    fn under(self, policy: &'static str) -> Scenario {
        self.scenario(self.staged.name, policy, Vec::new())
    }

    fn scenario(
        self,
        name: &str,
        policy: &'static str,
        mut edits: Vec<(String, String)>,
    ) -> Scenario {
        let Self { staged, migrations } = self;
        edits.push((WRITTEN.into(), format!("migration_policy = \"{policy}\"")));
        let about = format!("{} ({policy})", staged.about);
        Scenario::new(format!("{name}.{policy}"), about, move |bench: &Bench| {
            staged.run(bench, &edits, |observer| migrated(observer, migrations))
        })
    }
}

/// A vCPU arrived on another core at least so many times.
fn migrated(observer: &Observer, (vcpu, wanted): (usize, u64)) -> Option<String> {
    let Some(now) = observer.latest() else { return unseen("the vCPUs") };
    let migrations = now.vcpus[vcpu].migrations;
    (migrations < wanted).then(|| format!("a vCPU migrated {migrations} times, not {wanted}"))
}

/// The names of their descriptions.
#[cfg(test)]
pub fn descriptions() -> impl Iterator<Item = &'static str> {
    MOVED.iter().map(|moved| moved.staged.name).chain([ASKED.name, LEARNED.name])
}
