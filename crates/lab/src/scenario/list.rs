//! All scenarios.

use super::expect::Expect::{Endures, Fails, Passes, Rhythm, RhythmWithin, Starts, Starves, Turns};
use super::staged::Staged;
use super::{
    board_devices, boards, boot_loader, budgets, calibrate, campaign, conformance, console, cycles,
    damaged, debian, dma, embassy, fault, gaps, gathered, hang, io_load, limits, links, locks,
    long, moved, operated, overrun, preemption, reference, sharing, sharing_linux, signed, stock,
    traced, traced_guests, typed, virtio,
};
use crate::bench::{self, Conduct};
use crate::observe::{Distribution, Observer, Reports};
use crate::suite::{Bench, Scenario};
use abi::status::{Exit, VcpuStatus};
use std::time::Duration;

/// All of them: first those that tell whether the probe is right.
#[must_use]
pub fn all() -> Vec<Scenario> {
    let reference = [
        reference::scenario(1, "the probe's tests hold on one core without a hypervisor"),
        reference::scenario(2, "the probe's tests hold on two cores without a hypervisor"),
        reference::scenario(4, "the probe's tests hold on four cores without a hypervisor"),
    ];
    let staged = STAGED.iter().map(|&staged| Scenario::from(staged));
    let others = [
        damaged::scenario(),
        damaged::elsewhere(),
        fault::scenario(),
        hang::scenario(),
        io_load::scenario(),
        limits::hung(),
        limits::stalled(),
        sharing::scenario(),
        sharing_linux::scenario(),
        sharing_linux::dying(),
        sharing_linux::without(),
        traced_guests::scenario(),
        cycles::scenario(),
        debian::scenario(),
        embassy::scenario(),
        locks::stock(),
        locks::own(),
        preemption::module(),
        tasks_late(),
        wfe_not_trapped(),
        campaign::local(),
        campaign::slurm(),
    ];
    let policies = moved::scenarios().chain(gathered::scenarios()).chain(stock::scenarios());
    let policies = budgets::scenarios().chain(overrun::scenarios()).chain(policies);
    let others = others
        .into_iter()
        .chain(traced::scenarios())
        .chain(links::scenarios())
        .chain(boards::scenarios())
        .chain(board_devices::scenarios())
        .chain(signed::scenarios())
        .chain(dma::scenarios())
        .chain(virtio::scenarios())
        .chain(typed::scenarios())
        .chain(console::scenarios())
        .chain(operated::scenarios())
        .chain(calibrate::scenarios())
        .chain(gaps::scenarios())
        .chain(boot_loader::scenarios())
        .chain(conformance::scenarios());
    let others = others.chain(preemption::scenarios());
    let experiments = bench::all().into_iter().flat_map(Conduct::scenarios);
    let scenarios = reference.into_iter().chain(others).chain(staged).chain(policies);
    scenarios.chain(experiments).map(long::marked).collect()
}

/// Tasks that begin when the counter, at 1 GHz, has more nanoseconds than can be multiplied by its
/// frequency in 64 bits.
fn tasks_late() -> Scenario {
    const ABOUT: &str = "tasks keep to their periods however long the machine has run";
    const LATE: Duration = Duration::from_secs(19);
    let staged = Staged::new("tasks", ABOUT, &[("one", Passes), ("two", Passes)]);
    let staged = staged.with_tasks(TASKS_FOR);
    let staged = Staged { limit: staged.limit + LATE, ..staged };
    let edit =
        ("probe.for_ms".to_owned(), format!("probe.begin_ms={} probe.for_ms", LATE.as_millis()));
    Scenario::new("tasks-late", ABOUT, move |bench: &Bench| {
        staged.run(bench, std::slice::from_ref(&edit), |_| None)
    })
    .shipped()
}

/// A vCPU that waits with WFE, in QEMU as it is.
fn wfe_not_trapped() -> Scenario {
    const ABOUT: &str =
        "where WFE does not trap, a vCPU that spins keeps the core until its quantum is over";
    let staged = Staged::new("wfe", ABOUT, &[("probe", Passes)]);
    let edit = ("probe.trapped=1".to_owned(), "probe.trapped=0".to_owned());
    Scenario::new("wfe-not-trapped", ABOUT, move |bench: &Bench| {
        staged.run(bench, std::slice::from_ref(&edit), |_| None)
    })
}

/// How late a VM's handler may begin that is no real-time one: its core hears the doorbells of neighbours, and each
/// timer's interrupt may wait for such a visit to EL2, and another one comes behind it before the guest runs.
const BEHIND_A_DOORBELL_NS: u64 = 10_000;

/// For how long `tasks` and `moved-tasks` release jobs: `probe.for_ms`.
const TASKS_FOR: Duration = Duration::from_millis(500);

const STAGED: &[Staged] = &[
    Staged::new("alone-1", "one vCPU on one pCPU: every test", &[("probe", Passes)]),
    Staged::new("alone-2", "two vCPUs on two pCPUs: every test", &[("probe", Passes)]),
    Staged::new("alone-4", "four vCPUs on four pCPUs: every test", &[("probe", Passes)]),
    Staged::new("crowded-2", "two vCPUs of a VM on one pCPU: every test", &[("probe", Passes)]),
    Staged::new("crowded-4", "four vCPUs of a VM on two pCPUs: every test", &[("probe", Passes)]),
    Staged::new("wide-8", "a VM with the most vCPUs there can be", &[("probe", Passes)]),
    Staged::new("unequal-2", "SGIs between vCPUs of unequal priority", &[("probe", Passes)]),
    Staged::new(
        "state-apart",
        "floating-point and system registers of four vCPUs on one pCPU",
        &[("one", Passes), ("two", Passes)],
    ),
    Staged::new(
        "isolated",
        "every forbidden address faults, from two VMs at once",
        &[("one", Passes), ("two", Passes)],
    ),
    Staged::new(
        "shared",
        "two VMs see what each writes into shared memory, and a third one reaches none of it",
        &[("writer", Passes), ("reader", Passes), ("other", Passes)],
    ),
    Staged::new(
        "link",
        "two VMs ring at each other by a link, where each may do what it may",
        &[("caller", Passes), ("answerer", Passes)],
    ),
    Staged::new(
        "link-running",
        "two VMs ring at each other while both run, and their memory may be cached",
        &[("caller", Passes), ("answerer", Passes)],
    )
    .with_quantum(LINK_QUANTUM_NS)
    .besides(rings_in_time)
    .shipped(),
    Staged::new(
        "link-flooded",
        "VMs that ring all the time cost their peers what these ask for",
        &[("near", Passes), ("far", Passes), ("flooder", Endures), ("far-flooder", Endures)],
    )
    .besides(floods_cost_what_is_asked_for),
    Staged::new(
        "link-lives",
        "a VM's doorbells are not armed when it starts again, and its peer sees each life",
        &[("lives", Passes), ("watches", Passes), ("other", Passes)],
    ),
    Staged::new(
        "passed-through",
        "a device interrupts the vCPU its guest says, running, asleep or suspended",
        &[("probe", Passes), ("busy", Endures)],
    ),
    Staged::new(
        "interrupts-to",
        "a device's interrupts come to the core that the description says",
        &[("probe", Passes), ("taker", Endures)],
    )
    .besides(takes_others_interrupts),
    Staged::new(
        "disturbed",
        "timers and SGIs of vCPUs that lie suspended behind others",
        &[("probe", Passes), ("busy", Endures), ("rtos", Endures)],
    ),
    Staged::new(
        "stolen",
        "stolen time grows while another has the core",
        &[("probe", Passes), ("busy", Endures)],
    ),
    Staged::new(
        "preempted",
        "a vCPU counts when it is preempted in kernel mode, and not when it sleeps",
        &[("probe", Passes), ("rtos", Endures)],
    ),
    Staged::new(
        "yields",
        "two vCPUs of a VM alternate because they give up their turns",
        &[("probe", Passes)],
    ),
    Staged::new(
        "delayed-call",
        "a vCPU whose guest says by calls that it holds a lock is not preempted, up to a limit",
        &[("probe", Passes), ("rtos", Endures)],
    ),
    Staged::new(
        "delayed-page",
        "a vCPU whose guest says in memory that it holds a lock is not preempted, up to a limit",
        &[("probe", Passes), ("rtos", Endures)],
    ),
    Staged::new(
        "delayed-peek",
        "a vCPU whose kernel counts a lock is not preempted, up to a limit; what cannot be read is no count",
        &[("probe", Passes), ("rtos", Endures)],
    ),
    Staged::new(
        "wfe",
        "a vCPU whose WFE traps gives the core to a sibling that was preempted in its kernel",
        &[("probe", Passes)],
    )
    .with_wfe_traps(),
    Staged::new("turns", "equal vCPUs of a VM get equal shares", &[("probe", Passes)]),
    Staged::new(
        "turns-of-vms",
        "equal VMs get equal shares, a lower one nothing",
        &[("one", Turns(60)), ("two", Turns(60)), ("three", Starves)],
    )
    .besides(|observer| equal_shares(observer, 0, 1)),
    Staged::new(
        "visitor-gone",
        "a core that is idle because a visitor has returned says so to others'",
        &[
            ("first", Endures),
            ("second", Endures),
            // Two of its vCPUs are off.
            ("quiet", Turns(0)),
            ("busy", Endures),
            ("rtos-a", Endures),
            ("rtos-b", Turns(500)),
        ],
    )
    .besides(little_stolen),
    Staged::new(
        "visitor-rotates",
        "a visitor that shares every core it comes to is borne by all siblings alike",
        &[("rotating", Turns(300)), ("rtos", Endures)],
    )
    .besides(|observer| equal_shares(observer, 1, 2).or_else(|| equal_shares(observer, 1, 3))),
    Staged::new(
        "beside-busy",
        "priority preemption: a real-time VM above one that never rests",
        &[("rtos", Rhythm(3000)), ("busy", Endures)],
    ),
    Staged::new(
        "beside-digest",
        "EL2 computes the digest of a VM and leaves another one's registers as they are",
        &[("rtos", Passes), ("linux", Endures)],
    )
    .with_unfilled("linux"),
    Staged::new(
        "beside-masking",
        "a neighbour that masks everything delays no other VM",
        &[("rtos", Rhythm(3000)), ("masking", Endures)],
    ),
    Staged::new(
        "beside-crash",
        "a neighbour that cannot go on is stopped, and the rest runs on",
        &[("rtos", Rhythm(3000)), ("crash", Fails)],
    ),
    Staged::new(
        "beside-reset",
        "a neighbour that resets for ever disturbs no other VM",
        &[("rtos", Rhythm(3000)), ("resetting", Starts(20))],
    ),
    Staged::new(
        "beside-flood",
        "a neighbour that plays with interrupts, without priority separation",
        &[("rtos", Rhythm(3000)), ("probe", Passes)],
    ),
    Staged::new(
        "beside-pestering",
        "interrupts for a neighbour's vCPU that is off do not interrupt a real-time one",
        // The sibling never has a core.
        &[("rtos", Rhythm(1000)), ("pestering", Turns(0))],
    )
    .besides(|observer| interrupted_by_its_timer_only(observer, "pestering")),
    Staged::new(
        "beside-waiting",
        "interrupts for a neighbour's vCPU that waits for a core do not interrupt another one",
        &[("rtos", RhythmWithin(300, BEHIND_A_DOORBELL_NS)), ("flood", Endures)],
    )
    .besides(|observer| interrupted_by_its_timer_only(observer, "flood")),
    Staged::new(
        "beside-gic-pending",
        "a neighbour with every interrupt pending keeps EL2 from no real-time interrupt",
        &[("rtos", Rhythm(1000)), ("storm", Endures)],
    )
    .besides(storms_delay_little)
    .shipped(),
    Staged::new(
        "beside-gic-ends",
        "a neighbour with every interrupt active keeps EL2 from no real-time interrupt",
        &[("rtos", Rhythm(1000)), ("storm", Endures)],
    )
    .besides(storms_delay_little)
    .shipped(),
    Staged::new(
        "beside-reports",
        "a core that carries reports of neighbours leaves off when a vCPU is woken",
        &[("rtos", Rhythm(500)), ("crash", Starts(10)), ("wreck", Starts(10))],
    )
    .besides(reports_delay_little)
    .shipped(),
    Staged::new(
        "mutex",
        "mutexes of several VMs go to the highest that waits, also from holders that die",
        &[("probe", Passes), ("busy", Endures), ("dies", Starts(4))],
    ),
    Staged::new(
        "mutex-abandoned",
        "a VM is told of tasks of another one that die with a mutex while their vCPU goes on",
        &[("told", Passes), ("abandons", Endures)],
    ),
    Staged::new(
        "intra",
        "tasks on three vCPUs of a VM share its own mutexes, and raise their vCPUs",
        &[("intra", Passes), ("busy", Endures)],
    )
    .besides(|observer| raised_and_lowered(observer, "intra", 1_000)),
    Staged::new(
        "freertos-resources",
        "tasks of FreeRTOS run in the order of each protocol for resources of one VM",
        &[("rtos", Passes)],
    )
    .besides(|observer| raised_and_lowered(observer, "rtos", 100)),
    Staged::new(
        "tasks",
        "tasks that are declared run by their priorities, within their bounds",
        &[("one", Passes), ("two", Passes)],
    )
    .with_tasks(TASKS_FOR)
    .shipped(),
    Staged::new(
        "moved-tasks",
        "tasks stay within their bounds where a vCPU comes and goes for those of another core",
        &[("leaves", Endures), ("beside", Passes), ("rtos", Passes)],
    )
    .besides(comes_and_goes)
    .with_tasks(TASKS_FOR)
    .shipped(),
    Staged::new(
        "outranked",
        "a real-time VM moves when a vCPU above it takes its core",
        &[("rtos", Rhythm(3000)), ("above", Endures), ("busy", Endures)],
    )
    .besides(moves)
    .shipped(),
    Staged::new(
        "marked",
        "a vCPU that marks itself is before a real-time one, which makes way",
        &[("probe", Passes), ("rtos", Endures)],
    ),
    Staged::new(
        "boosted",
        "a guest that says what it runs is boosted, and a guest that lies gets no more than its limit",
        &[("probe", Passes), ("busy", Endures)],
    )
    .shipped(),
    Staged::new(
        "boosted-silent",
        "interrupts boost a vCPU whose guest says nothing",
        &[("probe", Passes), ("busy", Endures)],
    )
    .shipped(),
    Staged::new(
        "timer-advance",
        "a vCPU that gets its core before its timer fires does not notice",
        &[("probe", Passes), ("busy", Endures)],
    )
    .besides(gives_its_core_up),
    Staged::new(
        "timer-advance-adapted",
        "nor does one whose timer advance is adapted",
        &[("probe", Passes), ("busy", Endures)],
    )
    .besides(gives_its_core_up),
    Staged::new(
        "timer-advance-none",
        "a due timer that can tell its guest nothing wakes it once at most",
        &[("probe", Passes), ("busy", Endures)],
    )
    .besides(gives_its_core_up),
    Staged::new(
        "timer-advance-reset",
        "a VM is reset while it has its core before its timer fires",
        &[("probe", Starts(20)), ("busy", Endures)],
    )
    .besides(is_ahead_in_each_life),
    Staged::new(
        "reset",
        "a VM resets itself out of a mess and begins fresh",
        &[("probe", Passes), ("rtos", Rhythm(1000))],
    ),
    Staged::new(
        "restart",
        "a VM that cannot go on is restarted",
        &[("crash", Starts(10)), ("rtos", Rhythm(1000))],
    ),
    Staged::new(
        "power-off",
        "a VM's power-off is its own",
        &[("short", Passes), ("rtos", Rhythm(2000))],
    ),
    Staged::new(
        "many",
        "eight VMs with two vCPUs each on two pCPUs",
        &[
            ("vm-0", Passes),
            ("vm-1", Passes),
            ("vm-2", Passes),
            ("vm-3", Passes),
            ("vm-4", Passes),
            ("vm-5", Passes),
            ("vm-6", Passes),
            ("vm-7", Passes),
        ],
    ),
];

/// Returns the objection that there is nothing to judge.
pub(super) fn unseen(what: &str) -> Option<String> {
    Some(format!("nothing was seen of {what}"))
}

/// Returns what EL2 counts of the first vCPU of VM `vm`.
fn first_vcpu<'a>(observer: &'a Observer, vm: &str) -> Option<&'a VcpuStatus> {
    observer.latest()?.vcpus.get(observer.layout.vms[observer.layout.vm(vm)?].vcpus.start)
}

/// Two vCPUs that always wanted to run had the same of it, give or take a
/// quarter: a turn more or less, and what the host took from one of them.
fn equal_shares(observer: &Observer, one: usize, other: usize) -> Option<String> {
    let Some(now) = observer.latest() else { return unseen("the vCPUs") };
    let (a, b) = (now.vcpus[one].run, now.vcpus[other].run);
    (a.abs_diff(b) * 4 > a.max(b)).then(|| format!("vCPUs that are equal ran {a} and {b} ticks"))
}

/// A vCPU waited for less than a sixth of the time it ran, for a visitor that could
/// have gone on: a quarter if that goes on when a turn is over only.
fn little_stolen(observer: &Observer) -> Option<String> {
    let Some(busy) = first_vcpu(observer, "busy") else { return unseen("busy") };
    let (run, stolen) = (busy.run, busy.stolen);
    (stolen * 6 > run).then(|| format!("it waited {stolen} ticks and ran {run}"))
}

/// The real-time VM waited for one piece of what EL2 did for the neighbour and for one switch, and
/// not for all of it: that would be 20 us and more.
fn storms_delay_little(observer: &Observer) -> Option<String> {
    later_than(observer, 5_000, |reports| &reports.dispatch)
}

/// The real-time VM's handler waited for a character that was under way at most, and
/// not for the report: that would be 130 us.
fn reports_delay_little(observer: &Observer) -> Option<String> {
    later_than(observer, 3_000, |reports| &reports.response)
}

/// Returns how late the real-time VM was at most, if that is more than `most_ns`; [`Rhythm`] demands that all of it
/// was seen.
fn later_than(
    observer: &Observer,
    most_ns: u64,
    of: fn(&Reports) -> &Distribution,
) -> Option<String> {
    let reports = observer.layout.vm("rtos").and_then(|vm| observer.reports(vm));
    let seen = reports.and_then(|reports| reports.header.zip(of(reports).max()));
    let Some((header, latest)) = seen else { return unseen("rtos") };
    let latest_ns = u64::from(latest) * 1_000_000_000 / header.counter_hz;
    (latest_ns > most_ns).then(|| format!("rtos was {latest_ns} ns late, of at most {most_ns}"))
}

/// Each vCPU of VM `vm` was raised so often at least, not for too long, and EL2 refused none of its
/// calls but the last one, by which it learns that nothing raises it any more.
fn raised_and_lowered(observer: &Observer, vm: &str, least: u64) -> Option<String> {
    let layout = observer.layout.vm(vm).map(|vm| &observer.layout.vms[vm]);
    let Some((layout, now)) = layout.zip(observer.latest()) else { return unseen(vm) };
    let odd = now.vcpus[layout.vcpus.clone()].iter().find(|vcpu| {
        vcpu.raised < least || (vcpu.lowered, vcpu.overrun_stops, vcpu.misuses) != (0, 0, 1)
    })?;
    let (raised, lowered, misuses) = (odd.raised, odd.lowered, odd.misuses);
    let stops = odd.overrun_stops;
    Some(format!(
        "a vCPU was raised {raised} times, lowered {lowered} times and stopped {stops} times, and \
         made {misuses} calls that EL2 refused"
    ))
}

/// The vCPU left for each of 250 jobs, but for a few at both ends, and came back.
fn comes_and_goes(observer: &Observer) -> Option<String> {
    const MIGRATIONS: u64 = 450;
    let Some(vcpu) = first_vcpu(observer, "leaves") else { return unseen("leaves") };
    let migrations = vcpu.migrations;
    (migrations < MIGRATIONS).then(|| format!("it migrated {migrations} times, not {MIGRATIONS}"))
}

/// The neighbour had the core in most of 600 sleeps, which last up to 90 us, and lost it each time: all that are
/// longer than an advance of 20 us and the way there and back.
fn gives_its_core_up(observer: &Observer) -> Option<String> {
    const TIMES: u64 = 440;
    let Some(busy) = first_vcpu(observer, "busy") else { return unseen("busy") };
    let times = busy.kernel_preemptions;
    (times < TIMES).then(|| format!("its neighbour lost the core {times} times only"))
}

/// A vCPU whose VM has started 20 times had the core once in each life, and again before its timer fired: the neighbour
/// had it meanwhile. It is reset before its timer would have woken it. The last life has only begun.
fn is_ahead_in_each_life(observer: &Observer) -> Option<String> {
    const TIMES: u64 = 2 * 19;
    let Some(probe) = first_vcpu(observer, "probe") else { return unseen("probe") };
    let times = probe.switches;
    (times < TIMES).then(|| format!("it had the core {times} times, not {TIMES}"))
}

/// The real-time VM took no more than two interrupts for each activation, its timer's and
/// what may come just then, while VM `pest` sent SGIs all the time: it would be hundreds.
fn interrupted_by_its_timer_only(observer: &Observer, pest: &str) -> Option<String> {
    const SGIS: u64 = 50;
    let reports = observer.layout.vm("rtos").and_then(|vm| observer.reports(vm));
    let header = reports.and_then(|reports| reports.header);
    let Some((header, vcpu)) = header.zip(first_vcpu(observer, "rtos")) else {
        return unseen("rtos");
    };
    let (activations, interrupts) = (header.written, vcpu.exits[Exit::Interrupt as usize]);
    let Some(sender) = first_vcpu(observer, pest) else { return unseen(pest) };
    let sent = sender.exits[Exit::Sgi as usize];
    (interrupts > 2 * activations || sent < SGIS * activations).then(|| {
        format!(
            "{interrupts} interrupts came in {activations} activations, and {pest} sent {sent} SGIs"
        )
    })
}

/// A vCPU that gets no interrupts was interrupted by each of another VM's device. Those to which they are
/// handed on are interrupted, too, by doorbells.
fn takes_others_interrupts(observer: &Observer) -> Option<String> {
    const INTERRUPTS: u64 = 500;
    let Some(vcpu) = first_vcpu(observer, "taker") else { return unseen("taker") };
    let interrupts = vcpu.exits[Exit::Interrupt as usize];
    (interrupts < INTERRUPTS)
        .then(|| format!("only {interrupts} interrupts came where they are to"))
}

/// A VM that asks for so many doorbells leaves its guest for each at most, and besides where its turn ends, while
/// its peer rings many times as often.
fn floods_cost_what_is_asked_for(observer: &Observer) -> Option<String> {
    /// `probe.rounds`, where a description does not have it.
    const ASKED: u64 = 1_000;
    /// How often each is rung for at least.
    const RUNG: u64 = 20;
    /// Interrupts while a VM begins.
    const BEGINNING: u64 = 10;
    [("near", "flooder"), ("far", "far-flooder")].into_iter().find_map(|(vm, flooder)| {
        let Some((seen, rings)) = first_vcpu(observer, vm).zip(first_vcpu(observer, flooder)) else {
            return unseen(vm);
        };
        // Each doorbell interrupts the core once at most, and so does the end of each turn.
        let interrupts = seen.exits[Exit::Interrupt as usize];
        let most = ASKED + seen.switches + BEGINNING;
        let (injected, rung) = (seen.injected, rings.exits[Exit::Mmio as usize]);
        (interrupts > most || injected > ASKED + BEGINNING || rung < RUNG * ASKED).then(|| {
            format!(
                "{vm} was interrupted {interrupts} times, of at most {most}, and had {injected} interrupts of \
                 {ASKED}, while {flooder} rang {rung} times"
            )
        })
    })
}

/// How far apart the clocks of two cores may be where VMs ring at each other.
const LINK_QUANTUM_NS: u64 = 10;
/// How much later the guest may have read the counter than its handler would begin: it looks at ISR_EL1 in a loop of
/// two instructions, sees the interrupt with the next look, and reads the counter behind a barrier.
const LINK_LOOK_NS: u64 = 7;

/// Each ring comes in time from one running vCPU to another on another core, there and back: from before the store
/// until the peer's handler would begin. A clock that is ahead makes one way seem longer by as much at most.
fn rings_in_time(observer: &Observer) -> Option<String> {
    const GOAL_NS: u64 = 1_000;
    const MOST_NS: u64 = GOAL_NS + LINK_QUANTUM_NS + LINK_LOOK_NS;
    let Some(reports) = observer.layout.vm("caller").and_then(|vm| observer.reports(vm)) else {
        return unseen("the caller");
    };
    // In virtual time a tick is a nanosecond.
    let Some((there, back)) = reports.response.max().zip(reports.dispatch.max()) else {
        return unseen("the caller");
    };
    let lost = reports.lost();
    (lost > 0 || u64::from(there.max(back)) > MOST_NS).then(|| {
        format!("a ring takes {there} ns, and {back} ns back, and {lost} reports were lost")
    })
}

/// The real-time VM arrived on another core some thousand times. Its handler would wait for up to 50 us if it
/// stayed: [`Rhythm`] objects to that.
fn moves(observer: &Observer) -> Option<String> {
    const MIGRATIONS: u64 = 1_000;
    let Some(vcpu) = first_vcpu(observer, "rtos") else { return unseen("rtos") };
    let migrations = vcpu.migrations;
    (migrations < MIGRATIONS).then(|| format!("it migrated {migrations} times, not {MIGRATIONS}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::Asked;
    use crate::suite::Build;
    use std::collections::BTreeSet;

    /// Every description is used, every scenario has one, and all VMs in it
    /// are expected to do something.
    #[test]
    fn descriptions_and_scenarios_agree() {
        let root = crate::testing::root();
        let files: BTreeSet<_> =
            std::fs::read_dir(root.join(super::super::staged::description("x")).parent().unwrap())
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .filter(|name| name.ends_with(".toml"))
                .collect();
        let staged = STAGED.iter().map(|staged| staged.name).chain([
            typed::NAME,
            operated::NAME,
            overrun::NAME,
            stock::NAME,
            traced::NAME,
            traced_guests::NAME,
            cycles::NAME,
            "dma",
            "dma-lives",
        ]);
        let names = staged
            .chain(moved::descriptions())
            .chain(gathered::descriptions())
            .chain(budgets::descriptions());
        let named: BTreeSet<_> = names.map(|name| format!("{name}.toml")).collect();
        assert_eq!(files, named);
    }

    #[test]
    fn names_are_unique() {
        let names: BTreeSet<_> = all().into_iter().map(|scenario| scenario.name).collect();
        assert_eq!(names.len(), all().len());
    }

    /// The book and CAVEATS.md say that about half of them run the checked build.
    #[test]
    fn about_half_run_the_checked_build() {
        let asked = Asked { filter: "", all: true };
        let usual: Vec<_> =
            all().into_iter().filter(|scenario| scenario.is_asked_for(asked)).collect();
        let checked = usual.iter().filter(|scenario| matches!(scenario.build, Build::Checked));
        let percent = 100 * checked.count() / usual.len();
        assert!((45..=55).contains(&percent), "{percent} % of {}", usual.len());
    }

    fn names_in(text: &str) -> Vec<&str> {
        text.split('`').skip(1).step_by(2).collect()
    }

    /// The checked build is slower, and no bound holds for it: the document says which tests
    /// run what ships, and why.
    #[test]
    fn the_document_says_what_runs_the_build_that_ships() {
        let root = crate::testing::root();
        let text = std::fs::read_to_string(root.join("docs/src/developing.md")).unwrap();
        let list = text.split_once("Scenarios marked `.shipped()`").expect("the list begins").1;
        let list = list.split_once(". So do the").expect("the list ends").0;
        let (listed, not) = list.split_once("but not").expect("there are exceptions");
        let (listed, not) = (names_in(listed), names_in(not));
        let means = |listed: &str, name: &str| match listed.strip_suffix('*') {
            Some(begin) => name.starts_with(begin),
            None => name == listed,
        };
        let is_listed = |name: &str| {
            listed.iter().any(|one| means(one, name)) && !not.iter().any(|one| means(one, name))
        };
        let all = all();
        for Scenario { name, build, .. } in &all {
            let is_shipped = matches!(build, Build::Shipped);
            assert_eq!(is_shipped, is_listed(name), "{name} runs the build that ships, or not");
        }
        for one in listed.iter().chain(&not) {
            assert!(all.iter().any(|scenario| means(one, &scenario.name)), "`{one}` is no test");
        }
    }
}
