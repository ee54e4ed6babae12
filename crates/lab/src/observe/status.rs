//! The status area, read and reckoned.

use super::layout::Layout;
use crate::machine::Memory;
use abi::status::{EXIT_CAUSES, MAGIC, Status, VcpuStatus, VmStatus, vcpu_state, vm_state};
use miette::Result;
use std::time::Duration;

/// What the system had done by one instant.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// Ticks since EL2 was entered.
    pub now: u64,
    /// Counter when EL2 was entered.
    pub boot: u64,
    /// Frequency of the counter.
    pub counter_hz: u64,
    /// [`vm_state`] of each VM.
    pub vms: Vec<VmSnapshot>,
    /// Each vCPU.
    pub vcpus: Vec<VcpuSnapshot>,
    /// Each pCPU.
    pub pcpus: Vec<PcpuSnapshot>,
    /// Cases of what cannot happen that EL2 met.
    pub bugs: u64,
}

/// One VM by one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VmSnapshot {
    /// See [`vm_state`].
    pub state: u64,
    /// Times it started.
    pub starts: u64,
    /// It had started and will do no more.
    over: bool,
}

/// One vCPU by one instant; times in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VcpuSnapshot {
    /// See [`vcpu_state`].
    pub state: u64,
    /// pCPU that owns it.
    pub pcpu: usize,
    /// Time on its core, the current turn included.
    pub run: u64,
    /// Time it could have run while another did.
    pub stolen: u64,
    /// Times it was switched to.
    pub switches: u64,
    /// Virtual interrupts placed in list registers.
    pub injected: u64,
    /// Times it arrived on another pCPU.
    pub migrations: u64,
    /// Times it was taken off its core in kernel mode.
    pub kernel_preemptions: u64,
    /// Ticks from those times to when it ran again.
    pub kernel_preempted: u64,
    /// Longest single stay at EL2 on its behalf.
    pub longest_el2: u64,
    /// Exits by cause ([`abi::status::EXIT_NAMES`]).
    pub exits: [u64; EXIT_CAUSES],
}

/// One pCPU by one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PcpuSnapshot {
    /// Whether it is on: it has started, and is not powered down.
    pub online: bool,
    /// Ticks with nothing to run, the current rest included.
    pub idle: u64,
    /// Doorbells received.
    pub doorbells: u64,
    /// Interrupts without an owner.
    pub spurious: u64,
    /// Times it was powered down.
    pub power_downs: u64,
    /// Ticks it was powered down, which are part of `idle`.
    pub powered_down: u64,
}

/// Reads the area; `None` before EL2 has initialised it.
pub(super) fn read(memory: &Memory, layout: &Layout) -> Result<Option<Status>> {
    let status: Status = memory.read(layout.status_pa)?;
    Ok((status.magic == MAGIC && status.counter_hz > 0).then_some(status))
}

/// Latest timestamp in the area.
pub(super) fn latest(status: &Status) -> u64 {
    status.pcpus.iter().map(|pcpu| pcpu.since).fold(status.boot, u64::max)
}

impl Snapshot {
    /// Reckons what `status` says with the counter at `counter`.
    ///
    /// Words of one area may be of different instants: a turn that ends
    /// between two of them could make a sum step back, so sums never fall
    /// below those of `before`.
    pub(super) fn of(
        status: &Status,
        counter: u64,
        layout: &Layout,
        before: Option<&Self>,
    ) -> Self {
        let mut vcpus = Vec::with_capacity(layout.vcpus.len());
        for (index, vcpu) in status.vcpus.iter().take(layout.vcpus.len()).enumerate() {
            let known = before.map_or(0, |before| before.vcpus[index].run);
            let turn = current_turn(status, index as u64, vcpu, counter);
            vcpus.push(VcpuSnapshot::of(vcpu, (vcpu.run + turn).max(known)));
        }
        let pcpu = |(index, pcpu): (usize, &abi::status::PcpuStatus)| {
            // One that never started has all words zero.
            let resting = pcpu.current == u64::MAX;
            let rest = if resting { counter.saturating_sub(pcpu.since) } else { 0 };
            let known = before.map_or(0, |before| before.pcpus[index].idle);
            let down = if pcpu.online == 0 { rest } else { 0 };
            let known_down = before.map_or(0, |before| before.pcpus[index].powered_down);
            PcpuSnapshot {
                online: pcpu.online != 0,
                idle: (pcpu.idle + rest).max(known),
                doorbells: pcpu.doorbells,
                spurious: pcpu.spurious,
                power_downs: pcpu.power_downs,
                powered_down: (pcpu.powered_down + down).max(known_down),
            }
        };
        let known = |index: usize| before.map_or(0, |before| before.vms[index].starts);
        let vm = |(index, vm): (usize, &VmStatus)| VmSnapshot::of(vm, known(index));
        Self {
            now: counter.saturating_sub(status.boot),
            boot: status.boot,
            counter_hz: status.counter_hz,
            vms: status.vms.iter().take(layout.vms.len()).enumerate().map(vm).collect(),
            vcpus,
            pcpus: status.pcpus.iter().take(layout.pcpus).enumerate().map(pcpu).collect(),
            bugs: status.bugs,
        }
    }

    /// Share of one core that vCPU `index` had since `before` (0.0 to 1.0); in
    /// total when `before` is `None`.
    #[must_use]
    pub fn share(&self, index: usize, before: Option<&Self>) -> f64 {
        let (run, now) = before.map_or((0, 0), |b| (b.vcpus[index].run, b.now));
        ratio(self.vcpus[index].run.saturating_sub(run), self.now.saturating_sub(now))
    }

    /// Ticks since the counter stood at `counter`; 0 for a time to come.
    #[must_use]
    pub fn since(&self, counter: u64) -> u64 {
        (self.boot + self.now).saturating_sub(counter)
    }

    /// Ticks as time.
    #[must_use]
    pub fn time(&self, ticks: u64) -> Duration {
        super::time(ticks, self.counter_hz)
    }
}

impl VmSnapshot {
    /// `known` are the starts that the look before has seen. A VM that starts
    /// just when it is looked at may seem to be off after a start: only one
    /// whose last start was seen before has ended.
    fn of(vm: &VmStatus, known: u64) -> Self {
        let (state, starts) = (vm.state, vm.starts);
        let ended = state == vm_state::OFF && starts > 0 && starts == known;
        Self { state, starts, over: state == vm_state::FAILED || ended }
    }

    /// Whether it had started and will do no more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.over
    }
}

impl VcpuSnapshot {
    fn of(vcpu: &VcpuStatus, run: u64) -> Self {
        Self {
            state: vcpu.state,
            pcpu: usize::try_from(vcpu.pcpu).unwrap_or(usize::MAX),
            run,
            stolen: vcpu.stolen,
            switches: vcpu.switches,
            injected: vcpu.injected,
            migrations: vcpu.migrations,
            kernel_preemptions: vcpu.kernel_preemptions,
            kernel_preempted: vcpu.kernel_preempted,
            longest_el2: vcpu.longest_el2,
            exits: vcpu.exits,
        }
    }
}

/// How people call a [`vcpu_state`].
#[must_use]
pub fn vcpu_state_name(state: u64) -> &'static str {
    match state {
        vcpu_state::OFF => "off",
        vcpu_state::RUNNING => "running",
        vcpu_state::SUSPENDED => "suspended",
        vcpu_state::SLEEPING => "sleeping",
        _ => "unknown",
    }
}

/// How people call a [`vm_state`].
#[must_use]
pub fn vm_state_name(state: u64) -> &'static str {
    match state {
        vm_state::OFF => "off",
        vm_state::RUNNING => "running",
        vm_state::LOADING => "loading",
        vm_state::FAILED => "failed",
        _ => "unknown",
    }
}

/// Ticks of the turn vCPU `index` has now, 0 when it has none.
fn current_turn(status: &Status, index: u64, vcpu: &VcpuStatus, counter: u64) -> u64 {
    let pcpu = usize::try_from(vcpu.pcpu).ok().and_then(|pcpu| status.pcpus.get(pcpu));
    let running = pcpu.filter(|pcpu| pcpu.online != 0 && pcpu.current == index);
    running.map_or(0, |pcpu| counter.saturating_sub(pcpu.since))
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { (part as f64 / whole as f64).min(1.0) }
}
