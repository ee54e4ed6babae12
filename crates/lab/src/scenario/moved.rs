//! vCPUs that migrate while something else happens, under each policy that moves
//! them; and the same under policies that do something else instead.

use super::expect::Expect::{self, Endures, Passes, Rhythm, RhythmWithin, Starts};
use super::list::unseen;
use super::staged::Staged;
use crate::observe::Observer;
use crate::suite::{Bench, Scenario};
use abi::status::Exit;
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

/// What a policy must have done at least.
#[derive(Clone, Copy, Debug)]
enum Effect {
    /// A vCPU, by identifier, has arrived on another core so many times.
    Moves(usize, u64),
    /// A vCPU has nowhere to go, and stays.
    Stays(usize),
    /// The real-time VM waits while the kernel of the vCPU that it displaces runs, as all of the probe does, and none
    /// of its vCPUs moves.
    Delays,
    /// A vCPU, which has its core alone, is taken off it while a sibling is displaced, and none moves.
    HoldsBack(usize),
}

use Effect::{Delays, HoldsBack, Moves, Stays};

/// Scenarios under other policies that move vCPUs, those that are cheap. All of
/// the probe is kernel: under `trap-based` a vCPU leaves when it is switched on,
/// and comes back when its VM is stopped.
const UNDER: &[(&str, &str, Effect)] = &[
    ("trap-based", "moved-reset", Moves(0, 300)),
    ("trap-based", "moved-mess", Moves(0, 80)),
    ("trap-based", "moved-float", Moves(0, 1)),
    ("trap-based", "moved-power", Moves(1, 1)),
    ("trap-based-deferred", "moved-power", Moves(1, 1)),
    ("trap-based-paper", "moved-power", Moves(1, 1)),
    ("on-demand-fixed", "moved-power", Moves(1, 1)),
    ("on-demand-lazy", "moved-power", Moves(1, 1)),
    ("on-demand-lazy", SGIS, Moves(0, 1)),
    ("balance", "moved-power", Moves(1, 1)),
    ("balance", SGIS, Moves(0, 1)),
    ("adaptive", "moved-power", Moves(1, 1)),
    ("adaptive", "moved-float", Moves(0, 1)),
    ("adaptive", SGIS, Moves(0, 1)),
];

/// Scenarios under policies that move none, and what each then shows.
const UNMOVED: &[(&str, &str, Effect, &str)] = &[
    ("safe-unsafe", "moved-reset", Delays, "a VM resets for ever while an RTOS waits for it"),
    (
        "safe-unsafe",
        "moved-mess",
        Delays,
        "a VM for which an RTOS waits resets itself out of a mess and begins fresh",
    ),
    ("safe-unsafe", SGIS, Delays, "SGIs, directed and to all, find vCPUs for which an RTOS waits"),
    (
        "coscheduling",
        "moved-power",
        HoldsBack(0),
        "vCPUs that are held back while a sibling is displaced are switched on and off",
    ),
    (
        "coscheduling",
        SGIS,
        HoldsBack(1),
        "SGIs, directed and to all, find vCPUs that are held back while a sibling is displaced",
    ),
];

/// A scenario whose description has `migration_policy = "on-demand"`.
#[derive(Clone, Copy, Debug)]
struct Moved {
    staged: Staged,
    effect: Effect,
}

const fn moved(
    name: &'static str,
    about: &'static str,
    expect: &'static [(&'static str, Expect)],
    effect: Effect,
) -> Moved {
    Moved { staged: Staged::new(name, about, expect), effect }
}

const MOVED: &[Moved] = &[
    moved(
        "moved",
        "a vCPU that migrates all the time: every test",
        &[("probe", Passes), ("rtos", Endures)],
        Moves(0, 10_000),
    ),
    MIGRANT,
    moved(
        "moved-on",
        "a vCPU that goes from core to core returns each time its base is free",
        &[("wandering", Endures), ("busy", Endures), ("beat", Passes), ("rtos", Endures)],
        Moves(0, 2_000),
    ),
    moved(
        SGIS,
        "SGIs, directed and to all, find vCPUs that migrate all the time",
        &[("probe", Passes), ("rtos", Endures)],
        Moves(0, 1_000),
    ),
    moved(
        "moved-budgets",
        "SGIs, directed and to all, find vCPUs that have budgets and migrate all the time",
        &[("probe", Passes), ("rtos", Endures)],
        Moves(0, 1_000),
    ),
    moved(
        "moved-timer",
        "the timers of a vCPU that migrates all the time",
        &[("probe", Passes), ("rtos", Endures)],
        Moves(0, 10_000),
    ),
    moved(
        "moved-float",
        "floating-point and system registers of vCPUs that migrate all the time",
        &[("one", Passes), ("two", Passes), ("rtos", Endures)],
        Moves(0, 1_000),
    ),
    moved(
        "moved-device",
        "a device's interrupt finds a vCPU that migrates all the time",
        &[("probe", Passes), ("busy", Endures), ("rtos", Endures)],
        Moves(0, 500),
    ),
    moved(
        "moved-device-stays",
        "a device's interrupts come to one core, and find a vCPU that migrates all the time",
        &[("probe", Passes), ("busy", Endures), ("rtos", Endures)],
        Moves(0, 500),
    ),
    moved(
        "moved-device-sibling",
        "a device's interrupts do not follow a vCPU that is not the first",
        &[("probe", Passes), ("rtos", Endures)],
        Moves(1, 10),
    ),
    moved(
        "moved-nowhere",
        "a vCPU that has nowhere to go stays, and disturbs no other",
        &[("rtos", Rhythm(1000)), ("stranded", Endures)],
        Stays(1),
    ),
    moved(
        "moved-power",
        "vCPUs that migrate all the time are switched on and off",
        &[("probe", Passes), ("rtos", Endures)],
        Moves(1, 1_000),
    ),
    moved(
        "moved-reset",
        "a VM resets for ever while a vCPU of it migrates",
        &[("resetting", Starts(200)), ("rtos", Endures)],
        Moves(0, 1_000),
    ),
    moved(
        "moved-mess",
        "a VM whose vCPUs migrate resets itself out of a mess and begins fresh",
        &[("probe", Passes), ("rtos", Endures)],
        Moves(0, 1_000),
    ),
    moved(
        "moved-crash",
        "neighbours of a vCPU that migrates cannot go on and are restarted",
        &[("probe", Passes), ("moving", Starts(50)), ("staying", Starts(50)), ("rtos", Endures)],
        Moves(0, 5_000),
    ),
];

const MIGRANT: Moved = moved(
    "moved-migrant",
    "a vCPU that migrates all the time computes what it should and loses no interrupt",
    &[("probe", Passes), ("rtos", Endures)],
    Moves(0, MIGRATIONS),
);
/// How often it has migrated then.
const MIGRATIONS: u64 = 10_000;

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

/// How often a vCPU is held back at least: for each activation of the real-time VM that displaces a sibling, which
/// are thousands.
const HELD_BACK: u64 = 1_000;

/// [`MIGRANT`], for longer: minutes on a small computer.
const LONG: (&str, u64) = ("moved-migrant-100000", 100_000);

/// All of them under `on-demand`, and those of [`UNDER`] and [`UNMOVED`].
pub fn scenarios() -> impl Iterator<Item = Scenario> {
    let always = MOVED.iter().map(|moved| moved.under(ALWAYS));
    let moving = UNDER.iter().filter_map(|&(policy, name, effect)| {
        let about = find(name)?.staged.about;
        scenario_under(policy, name, effect, about)
    });
    let unmoved = UNMOVED
        .iter()
        .filter_map(|&(policy, name, effect, about)| scenario_under(policy, name, effect, about));
    let others = moving.chain(unmoved);
    let asked = ASKED.besides(|observer| migrated(observer, (1, 100)));
    let learned = LEARNED.besides(|observer| migrated(observer, (0, LEARNED_LONG)));
    let more = [long(ALWAYS), asked.into(), asked_for_long(), learned.into(), learned_to_stay()];
    always.chain(others).chain(more)
}

fn find(name: &str) -> Option<Moved> {
    MOVED.iter().copied().find(|moved| moved.staged.name == name)
}

fn scenario_under(
    policy: &'static str,
    name: &str,
    effect: Effect,
    about: &'static str,
) -> Option<Scenario> {
    let staged = Staged { about, ..find(name)?.staged };
    let many = if name == SGIS { MANY } else { &[] };
    let edits = many.iter().map(|&(many, fewer)| (many.into(), fewer.into())).collect();
    Some(Moved { staged, effect }.scenario(name, policy, edits))
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
    let (few, many) = (MIGRATIONS, format!("probe.migrations={count}"));
    let moved = Moved { effect: Moves(0, count), ..MIGRANT };
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
        let Self { staged, effect } = self;
        edits.push((WRITTEN.into(), format!("migration_policy = \"{policy}\"")));
        let about = format!("{} ({policy})", staged.about);
        Scenario::new(format!("{name}.{policy}"), about, move |bench: &Bench| {
            staged.run(bench, &edits, |observer| effect.objection(observer))
        })
    }
}

impl Effect {
    /// Returns what the policy has not done, or has done and must not.
    fn objection(self, observer: &Observer) -> Option<String> {
        let Some(now) = observer.latest() else { return unseen("the vCPUs") };
        let migrations = |vcpu: usize| now.vcpus[vcpu].migrations;
        let moved = (0..now.vcpus.len()).find(|&vcpu| migrations(vcpu) > 0);
        let moved = moved.map(|vcpu| format!("vCPU {vcpu} migrated"));
        match self {
            Moves(vcpu, wanted) => migrated(observer, (vcpu, wanted)),
            Stays(vcpu) => (migrations(vcpu) > 0).then(|| "a vCPU found where to go".into()),
            Delays => moved.or_else(|| delayed(observer)),
            HoldsBack(vcpu) => {
                let vcpu = &now.vcpus[vcpu];
                // It is switched to once when it begins, and after each sleep: any other time it was held back.
                let held = vcpu.switches.saturating_sub(vcpu.exits[Exit::Wait as usize] + 1);
                moved.or_else(|| {
                    (held < HELD_BACK).then(|| format!("a vCPU was held back {held} times"))
                })
            }
        }
    }
}

/// The real-time VM waited for a tenth of the time at least, and each time no longer than the policy's limit and
/// what EL2 takes to preempt then.
fn delayed(observer: &Observer) -> Option<String> {
    /// `delay_limit` where a description does not have it.
    const LIMIT_NS: u64 = 1_000_000;
    const PREEMPTION_NS: u64 = 10_000;
    let rtos = observer.layout.vm("rtos");
    let vcpu = rtos.map(|vm| observer.layout.vms[vm].vcpus.start);
    let latest = rtos.and_then(|vm| observer.reports(vm)?.response.max());
    let Some(((now, vcpu), latest)) = observer.latest().zip(vcpu).zip(latest) else {
        return unseen("rtos");
    };
    // In virtual time a tick is a nanosecond.
    let (waited, latest) = (now.vcpus[vcpu].stolen, u64::from(latest));
    (waited * 10 < now.now || latest > LIMIT_NS + PREEMPTION_NS)
        .then(|| format!("rtos waited for {waited} ns of {}, {latest} ns once", now.now))
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
