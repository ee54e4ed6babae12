//! The status area, read and reckoned.

use super::layout::Layout;
use crate::machine::Memory;
use abi::status::{MAGIC, PcpuStatus, Status, VcpuStatus, VmStatus, vcpu_state, vm_state};
use miette::Result;
use std::time::Duration;

/// EL2 has booked a turn when so much has gone by since its end, of time in which an instruction
/// takes a nanosecond or less: it does so within 3,000 instructions after it has looked at the counter, as
/// it looks for interrupts in between, and cores that are held may be 2 µs apart.
pub(super) const BOOKED_AFTER: Duration = Duration::from_micros(5);

/// What the system had done by one instant.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Ticks since EL2 was entered.
    pub now: u64,
    /// Counter when EL2 was entered.
    pub boot: u64,
    /// Frequency of the counter.
    pub counter_hz: u64,
    /// The migration policy of each VM, by its number.
    pub policies: Vec<u8>,
    /// [`vm_state`] of each VM.
    pub vms: Vec<VmSnapshot>,
    /// Each vCPU, its current turn included.
    pub vcpus: Vec<VcpuStatus>,
    /// Each pCPU, its current rest included.
    pub pcpus: Vec<PcpuStatus>,
    /// Cases of what cannot happen that EL2 met.
    pub bugs: u64,
    /// pCPUs that others found to take no interrupts, a bit each.
    pub hung: u64,
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
        let vcpu = |(index, vcpu): (usize, &VcpuStatus)| {
            let known = before.map_or(0, |before| before.vcpus[index].run);
            let turn = current_turn(status, index as u64, vcpu, counter);
            // A guest's time, which says what the counter shows, may be any.
            VcpuStatus { run: vcpu.run.saturating_add(turn).max(known), ..*vcpu }
        };
        let pcpu = |(index, pcpu): (usize, &PcpuStatus)| {
            // One that never started has all words zero.
            let resting = pcpu.current == u64::MAX;
            let rest = if resting { counter.saturating_sub(pcpu.since) } else { 0 };
            let down = if pcpu.online == 0 { rest } else { 0 };
            let known = before.map(|before| before.pcpus[index]);
            let idle = pcpu.idle.saturating_add(rest).max(known.map_or(0, |known| known.idle));
            let powered_down = pcpu.powered_down.saturating_add(down);
            let powered_down = powered_down.max(known.map_or(0, |known| known.powered_down));
            PcpuStatus { idle, powered_down, ..*pcpu }
        };
        let known = |index: usize| before.map_or(0, |before| before.vms[index].starts);
        let vm = |(index, vm): (usize, &VmStatus)| VmSnapshot::of(vm, known(index));
        Self {
            now: counter.saturating_sub(status.boot),
            boot: status.boot,
            counter_hz: status.counter_hz,
            policies: status.policies.iter().take(layout.vms.len()).copied().collect(),
            vms: status.vms.iter().take(layout.vms.len()).enumerate().map(vm).collect(),
            vcpus: status.vcpus.iter().take(layout.vcpus.len()).enumerate().map(vcpu).collect(),
            pcpus: status.pcpus.iter().take(layout.pcpus).enumerate().map(pcpu).collect(),
            bugs: status.bugs,
            hung: status.hung,
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
        self.boot.saturating_add(self.now).saturating_sub(counter)
    }

    /// Returns true if the sum of vCPU `index` is whole: its core has not changed hands just now.
    /// EL2 says first which vCPU has the core, and books the turn that has ended some instructions later,
    /// and both later than what it takes for the end of the turn. A look in between misses that turn.
    pub(super) fn is_booked(&self, index: usize) -> bool {
        let pcpu = usize::try_from(self.vcpus[index].pcpu).ok();
        let since = pcpu.and_then(|pcpu| self.pcpus.get(pcpu)).map_or(0, |pcpu| pcpu.since);
        self.since(since) >= super::clock::ticks(BOOKED_AFTER, self.counter_hz)
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

    /// Returns true if it had started and will do no more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.over
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
