//! What there is to show, and its pieces as text.

use crate::guests::Transcript;
use crate::observe::{Observer, Reports, Snapshot, time, vm_state_name};
use crate::quantity::{count, duration};
use crate::trace::{Latest, LatestTurn};
use abi::status::PcpuStatus;
use std::collections::VecDeque;
use std::time::Duration;

/// A running system at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    /// How long it has been running, in our own time.
    pub elapsed: Duration,
    /// How long it has been running in virtual time, if it does.
    pub virtual_time: Option<Duration>,
    /// How long it may run, in its own time.
    pub limit: Option<Duration>,
    /// What was seen so far.
    pub observer: &'a Observer,
    /// What the guests have said so far.
    pub said: &'a Transcript,
    /// The latest turns of each core, if there is a trace.
    pub latest: Option<&'a Latest>,
}

impl Scene<'_> {
    /// Returns how long it has been running and may run: `12.0 s, 2.31 of 5 s of virtual time`.
    pub(crate) fn time(&self) -> String {
        let elapsed = self.elapsed.as_secs_f64();
        let limit = self.limit.map(|limit| format!(" of {:.0}", limit.as_secs_f64()));
        let limit = limit.unwrap_or_default();
        match self.virtual_time.map(|time| time.as_secs_f64()) {
            None => format!("{elapsed:.1}{limit} s"),
            Some(time) => format!("{elapsed:.1} s, {time:.2}{limit} s of virtual time"),
        }
    }
}

/// Remembers snapshots so that shares can be over the last second or so.
#[derive(Debug)]
pub(super) struct Recent {
    span: Duration,
    kept: VecDeque<(Duration, Snapshot)>,
}

impl Recent {
    pub(super) fn over(span: Duration) -> Self {
        Self { span, kept: VecDeque::new() }
    }

    /// Takes the scene's snapshot; answers the one to compare it with.
    pub(super) fn before(&mut self, scene: &Scene) -> Option<Snapshot> {
        let latest = scene.observer.latest()?;
        while self.kept.len() > 1 && self.kept[1].0 + self.span <= scene.elapsed {
            self.kept.pop_front();
        }
        let before = self.kept.front().map(|(_, snapshot)| snapshot.clone());
        self.kept.push_back((scene.elapsed, latest.clone()));
        before
    }
}

/// `running`, or `running (3 starts)` when it is not the first time.
pub(super) fn vm_state(snapshot: Option<&Snapshot>, vm: usize) -> String {
    let Some(vm) = snapshot.map(|snapshot| snapshot.vms[vm]) else { return "waiting".into() };
    let name = vm_state_name(vm.state);
    if vm.starts > 1 { format!("{name} ({} starts)", vm.starts) } else { name.into() }
}

/// Share of each vCPU of VM `vm`: (index in the VM, pCPU, share).
pub(super) fn vcpu_shares(
    scene: &Scene,
    before: Option<&Snapshot>,
    vm: usize,
) -> Vec<(usize, usize, f64)> {
    let Some(now) = scene.observer.latest() else { return Vec::new() };
    let layout = &scene.observer.layout;
    let share =
        |v: usize| (layout.vcpus[v].index, now.vcpus[v].pcpu as usize, now.share(v, before));
    layout.vms[vm].vcpus.clone().map(share).collect()
}

/// What a core does at present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Core {
    /// The VM that has it, and what to say of it: `rtos.0 measure`, `idle`.
    pub now: (Option<usize>, String),
    /// What had it before, the latest first: `linux.1 310 µs`. Only a trace tells.
    pub before: Vec<String>,
}

/// Returns what each core does at present; nothing before EL2 has begun.
///
/// Without a trace this is what EL2 counts: the vCPU that has the core, and for how long.
pub(super) fn cores(scene: &Scene) -> Vec<Core> {
    let Some(seen) = scene.observer.latest() else { return Vec::new() };
    let core = |(pcpu, status): (usize, &PcpuStatus)| {
        let mut turns: Vec<&LatestTurn> =
            scene.latest.into_iter().flat_map(|latest| latest.turns(pcpu)).collect();
        let vcpu = usize::try_from(status.current).ok();
        // The trace is read behind the status area, and may know more.
        let latest = turns.first().copied().filter(|turn| turn.to.is_none());
        let vcpu = if turns.is_empty() { vcpu } else { latest.map(|turn| turn.vcpu) };
        if latest.is_some() {
            turns.remove(0);
        }
        Core {
            now: now(scene, seen, status, vcpu, latest.is_some_and(|turn| turn.idles)),
            before: turns.iter().map(|t| turn(scene, seen, t)).collect(),
        }
    };
    seen.pcpus.iter().enumerate().map(core).collect()
}

/// Returns what is said of a core that this vCPU has, working or idling its budget away, and its VM.
fn now(
    scene: &Scene,
    seen: &Snapshot,
    status: &PcpuStatus,
    vcpu: Option<usize>,
    idles: bool,
) -> (Option<usize>, String) {
    let layout = &scene.observer.layout;
    let Some(vcpu) = vcpu.filter(|&vcpu| vcpu < layout.vcpus.len()) else {
        return (None, if status.online == 0 { "powered down" } else { "idle" }.into());
    };
    let label = layout.vcpu_label(vcpu);
    let text = match scene.latest.map(|latest| latest.task(vcpu)) {
        _ if idles => format!("{label} (idles)"),
        Some(Some(task)) => format!("{label} {task}"),
        Some(None) => label,
        // Without a trace there is the time since when it has the core.
        None => format!("{label} for {}", duration(seen.time(seen.since(status.since)))),
    };
    (Some(layout.vcpus[vcpu].vm), text)
}

/// Returns how people read a turn that is over: `linux.1 310 µs`.
fn turn(scene: &Scene, seen: &Snapshot, turn: &LatestTurn) -> String {
    let layout = &scene.observer.layout;
    let known = turn.vcpu < layout.vcpus.len();
    let label = if known { layout.vcpu_label(turn.vcpu) } else { format!("vCPU {}", turn.vcpu) };
    let length = turn.to.map(|to| seen.time(to.saturating_sub(turn.from)));
    let length = length.map_or_else(|| "-".into(), duration);
    if turn.idles { format!("{label} (idles) {length}") } else { format!("{label} {length}") }
}

/// What a guest's report says so far, or nothing.
pub(super) fn latency(reports: &Reports) -> Option<String> {
    let header = reports.header?;
    let at = |ticks: Option<u32>| {
        ticks.map_or_else(|| "-".into(), |t| duration(time(t.into(), header.counter_hz)))
    };
    let dispatch = &reports.dispatch;
    let (p50, p99) = (at(dispatch.percentile(500)), at(dispatch.told_percentile(990)));
    let counts = format!("{} activations, {} missed", count(header.written), header.missed);
    Some(format!("{counts}, dispatch p50 {p50}, p99 {p99}, max {}", at(dispatch.max())))
}
