//! What a run brought, and what must hold whatever its figures are.

use super::case::Case;
use crate::bench::store::measured;
use crate::guests::Beat;
use crate::observe::{Lateness, Observer, RefusedDma, Reports};
use crate::quantity::ns;
use crate::session::{End, Moment, Run};
use abi::report::Header;
use abi::status::vm_state;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Fewer operations than that are none: resets are the fewest, one in a millisecond. Machine tests, whose length is
/// known, demand more of each attack.
const LEAST_OPERATIONS: u64 = 5;
/// Activations of the neighbour from one line of its console to the next.
const LINES: u64 = 8;
/// Lines that may be on their way at the end: the last. The one before was written eight periods earlier, 4 ms.
const ON_THEIR_WAY: u64 = 1;

/// What a run brought.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// The machine.
    pub case: Case,
    /// Real time from start to end, in seconds.
    pub real_s: f64,
    /// Virtual time that passed, ns.
    pub virtual_ns: u64,
    /// What the adversary has done.
    pub operations: u64,
    /// How long it had done nothing more at the end, ns.
    #[serde(default)]
    pub idle_ns: u64,
    /// Its VM is on at the end, or starts again.
    #[serde(default)]
    pub is_on: bool,
    /// Starts of its VM.
    pub starts: u64,
    /// Exits to EL2 of its vCPUs.
    pub exits: u64,
    /// FreeRTOS, which shares a core with it.
    pub rtos: Lateness,
    /// The other real-time VM, whose dispatch latency ends when it has done its work.
    pub neighbour: Lateness,
    /// The longest stay at EL2 for any vCPU, ns.
    pub longest_el2_ns: u64,
    /// Bytes of the neighbour's console that did not arrive.
    pub console_lost: u64,
    /// What did not hold, a sentence each.
    pub broken: Vec<String>,
}

measured!(Seen, case: Case, real_s);

/// When the adversary has done something last, as far as looks at the machine show.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    operations: u64,
    at: Duration,
}

impl Progress {
    /// Looks at it.
    pub fn look(&mut self, now: &Moment) {
        let (operations, at) = (operations(now.observer), now.virtual_time.unwrap_or_default());
        if operations != self.operations {
            *self = Self { operations, at };
        }
    }
}

/// Returns the area in which the adversary counts what it does.
fn deeds(observer: &Observer) -> Option<Header> {
    observer.reports(observer.layout.vm("adversary")?)?.header
}

/// Returns how many operations the adversary has done.
pub fn operations(observer: &Observer) -> u64 {
    deeds(observer).map_or(0, |header| header.load_units)
}

/// Returns how late VM `name` was, with what it missed and does not count itself; none if it
/// reports nothing.
fn lateness(observer: &Observer, name: &str) -> Option<Lateness> {
    let reports: &Reports = observer.reports(observer.layout.vm(name)?)?;
    let missed = reports.header?.missed + reports.lost() + reports.overdue(observer.latest()?)?;
    Some(Lateness { missed, ..reports.lateness()? })
}

impl Seen {
    /// Reads what `run` of `case` brought, in which the adversary did something last as `progress` says.
    pub fn of(case: &Case, run: &Run, progress: Progress, real_s: f64) -> Self {
        let (observer, mut broken) = (&run.observer, run.hypervisor_faults());
        if !matches!(run.end, End::TimeOver | End::Reached) {
            broken.push(format!("the machine did not run on: {}", run.end.about()));
        }
        let mut lateness = |name: &str| {
            let seen = self::lateness(observer, name).filter(|seen| seen.activations > 0);
            if seen.is_none() {
                broken.push(format!("{name} reported nothing"));
            }
            seen.unwrap_or_default()
        };
        let (rtos, neighbour) = (lateness("rtos"), lateness("neighbour"));
        let console_lost = lost(run, neighbour.activations);
        broken.extend(stopped(run));
        broken.extend(run.inspected.iter().cloned());
        if case.is_by_dma() {
            broken.extend(untold(&observer.refused_dma()));
        }
        let adversary = observer.layout.vm("adversary");
        let complaints = deeds(observer).map_or(0, |header| header.missed);
        let (operations, virtual_ns) =
            (operations(observer), run.instrument.as_ref().map_or(0, |counts| counts.virtual_ns));
        if case.adversary.is_some() && operations < LEAST_OPERATIONS {
            broken.push(format!("the adversary did {operations} operations, which is nothing"));
        }
        if complaints > 0 {
            broken.push(format!("the adversary found {complaints} of its values changed"));
        }
        let now = observer.latest();
        let of = |vm: usize| Some((now?.vms[vm].starts, exits(observer, vm)));
        let (starts, exits) = adversary.and_then(of).unwrap_or_default();
        let longest =
            now.map_or(0, |now| now.vcpus.iter().map(|v| v.longest_el2).max().unwrap_or(0));
        Self {
            case: case.clone(),
            real_s,
            virtual_ns,
            operations,
            is_on: adversary.is_some_and(|vm| now.is_some_and(|now| is_on(now.vms[vm].state))),
            idle_ns: virtual_ns.saturating_sub(ns(progress.at)),
            starts,
            exits,
            rtos,
            neighbour,
            longest_el2_ns: longest,
            console_lost,
            broken,
        }
    }

    /// Returns activations that the neighbours missed.
    pub fn missed(&self) -> u64 {
        self.rtos.missed + self.neighbour.missed
    }

    /// Returns by how much the mean time in which the neighbour does its work is another one than
    /// `alone_ns`, hundredths of that.
    pub fn change_of_work(&self, alone_ns: f64) -> Option<f64> {
        Some((self.neighbour.dispatch.mean()? / alone_ns - 1.0) * 100.0)
    }

    /// Returns what did not hold, with activations that were missed.
    pub fn objections(&self) -> Vec<String> {
        let missed = (self.missed() > 0).then(|| {
            let (rtos, neighbour) = (self.rtos.missed, self.neighbour.missed);
            format!("FreeRTOS missed {rtos} activations, and the neighbour {neighbour}")
        });
        self.broken.iter().cloned().chain(missed).collect()
    }
}

/// Returns true if a VM that is in this state attacks, or will.
fn is_on(state: u64) -> bool {
    matches!(state, vm_state::RUNNING | vm_state::LOADING)
}

/// Exits of a VM's vCPUs.
fn exits(observer: &Observer, vm: usize) -> u64 {
    let vcpus = observer.layout.vms[vm].vcpus.clone();
    let vcpus = observer.latest().map(|now| &now.vcpus[vcpus]);
    vcpus.into_iter().flatten().flat_map(|vcpu| vcpu.exits).sum()
}

/// Neighbours that do not run, or found something of theirs changed.
fn stopped(run: &Run) -> Vec<String> {
    let mut all = Vec::new();
    let Some(now) = run.observer.latest() else { return vec!["EL2 never began".into()] };
    for (vm, layout) in run.observer.layout.vms.iter().enumerate() {
        let failed = run.said.guests[vm].probe.failed.iter();
        all.extend(failed.map(|why| format!("{}: {why}", layout.name)));
        if layout.name != "adversary" && now.vms[vm].state != vm_state::RUNNING {
            all.push(format!("{} does not run any more", layout.name));
        }
    }
    all
}

/// What is wrong with what the SMMU has noted: the adversary's devices tried more than there is room for, and no other
/// VM has any.
fn untold(refused: &[RefusedDma]) -> Option<String> {
    let is_told = |of: &RefusedDma| of.vm.as_deref() == Some("adversary") && of.is_full;
    let is_whole = matches!(refused, [only] if is_told(only));
    (!is_whole).then(|| format!("the SMMU has not refused the adversary's DMA only: {refused:?}"))
}

/// Bytes of the neighbour's lines that were due and did not arrive whole.
fn lost(run: &Run, activations: u64) -> u64 {
    let vm = run.observer.layout.vm("neighbour");
    // One that is not there says nothing.
    missing(vm.map_or(&[], |vm| &run.said.guests[vm].probe.beats), activations)
}

/// The same, of the lines that were `heard`.
fn missing(heard: &[Beat], activations: u64) -> u64 {
    let due = activations.div_ceil(LINES).saturating_sub(ON_THEIR_WAY);
    let mut heard = heard.iter().peekable();
    let mut bytes = 0;
    for number in 0..due {
        // One that is damaged stands in the place of the one that is expected.
        if heard.next_if_eq(&&Beat::Whole(number)).is_none() {
            bytes += Beat::length(number);
            let _ = heard.next_if_eq(&&Beat::Damaged);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::dma::Fault;

    #[test]
    fn the_smmu_must_have_refused_the_adversarys_dma_and_no_others() {
        let first = Fault { what: 0x10, how: 0, address: 0x4020_0000, rest: 0 };
        let of = |vm: &str, is_full| RefusedDma { vm: Some(vm.into()), count: 9, is_full, first };
        assert_eq!(untold(&[of("adversary", true)]), None);
        for refused in [
            vec![],
            vec![of("adversary", false)],
            vec![of("rtos", true)],
            vec![of("adversary", true), of("rtos", true)],
        ] {
            assert!(untold(&refused).is_some(), "{refused:?}");
        }
    }

    #[test]
    fn lines_that_are_lost_or_damaged_are_counted() {
        let all: Vec<_> = (0..10).map(Beat::Whole).collect();
        let activations = 10 * LINES;
        assert_eq!(missing(&all, activations), 0);
        assert_eq!(missing(&all[..9], activations), 0, "the last is on its way");
        assert_eq!(missing(&all[..8], activations), Beat::length(0));
        let length = Beat::length(0);
        assert_eq!(missing(&all[1..], activations), length);
        let damaged = [&all[..2], &[Beat::Damaged], &all[3..]].concat();
        assert_eq!(missing(&damaged, activations), length);
        assert_eq!(missing(&[], activations), 9 * length);
    }
}
