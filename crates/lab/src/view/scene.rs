//! What there is to show, and its pieces as text.

use crate::console::Line;
use crate::observe::{Observer, Reports, Snapshot, time, vm_state_name};
use crate::quantity::{count, duration};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Last lines kept of each console.
const TAIL: usize = 4;

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
    /// The last console lines.
    pub tail: &'a Tail,
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

/// The last lines of every console.
#[derive(Clone, Debug, Default)]
pub struct Tail {
    lines: BTreeMap<u8, VecDeque<String>>,
}

impl Tail {
    /// Takes new lines; empty ones are not worth their place.
    pub fn extend(&mut self, lines: &[Line]) {
        for line in lines.iter().filter(|line| !line.text.is_empty()) {
            let tail = self.lines.entry(line.channel).or_default();
            if tail.len() == TAIL {
                tail.pop_front();
            }
            tail.push_back(line.text.clone());
        }
    }

    /// The last lines of `channel`, oldest first.
    pub fn of(&self, channel: u8) -> impl DoubleEndedIterator<Item = &str> {
        self.lines.get(&channel).into_iter().flatten().map(String::as_str)
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

/// What a guest's report says so far, or nothing.
pub(super) fn latency(reports: &Reports) -> Option<String> {
    let header = reports.header?;
    let at = |ticks: Option<u32>| {
        ticks.map_or_else(|| "-".into(), |t| duration(time(t.into(), header.counter_hz)))
    };
    let dispatch = &reports.dispatch;
    let (p50, p99) = (at(dispatch.percentile(500)), at(dispatch.percentile(990)));
    let counts = format!("{} activations, {} missed", count(header.written), header.missed);
    Some(format!("{counts}, dispatch p50 {p50}, p99 {p99}, max {}", at(dispatch.max())))
}
