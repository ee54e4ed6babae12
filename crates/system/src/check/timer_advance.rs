//! Timer advance: how long before its timer fires a real-time vCPU is given its core, and one that may be boosted
//! is boosted.

use super::time_in;
use crate::code::Code;
use crate::draft::{At, DraftBoost, DraftVm};
use crate::model::Vm;
use crate::problem::Problems;
use abi::system::{MAX_TIMER_ADVANCE_NS, MIN_BOOST_NS};

/// Advance of a vCPU that shares its pCPU, if its VM or its boost states none. A switch and a
/// departure take some 1000 instructions in QEMU, and the other guest may be at EL2
/// when they are due: four times as much.
const DEFAULT_NS: u32 = 4_000;

pub(super) fn check(vms: &[DraftVm], problems: &mut Problems) {
    for vm in vms {
        for boost in vm.vcpus.iter().filter_map(|vcpu| vcpu.boost.as_ref()) {
            check_boost(boost, problems);
        }
        let advance = vm.timer_advance.as_ref();
        let adapts = vm.adapt_timer_advance.as_ref().filter(|at| *at.get_ref());
        if !vm.is_realtime() {
            for span in adapts.map(At::span).into_iter().chain(advance.map(At::span)) {
                let message = format!("{} is no real-time VM: it has no timer advance", vm.title());
                problems
                    .add(Code::TimerAdvance, span, message)
                    .hint("leave it out, or say `realtime = true`");
            }
            continue;
        }
        if let Some(adapts) = adapts.filter(|_| advance.is_some_and(|at| *at.get_ref() == 0)) {
            let message = format!("{} has no timer advance that could be adapted", vm.title());
            problems
                .add(Code::TimerAdvance, adapts.span(), message)
                .hint("leave it out, or give the VM a `timer_advance`");
        }
        let allowed = 0..=u64::from(MAX_TIMER_ADVANCE_NS);
        time_in(allowed, advance, "a timer advance", Code::TimerAdvance, problems);
    }
}

/// A boost that begins before the timer fires has to last until then.
fn check_boost(boost: &DraftBoost, problems: &mut Problems) {
    let Some(advance) = boost.timer_advance.as_ref() else { return };
    let Some(window) = boost.window.as_ref() else {
        let message = "interrupts do not boost this vCPU: it has no timer advance";
        problems
            .add(Code::TimerAdvance, advance.span(), message)
            .hint("leave it out, or give `boost` a `window`");
        return;
    };
    let lasts = boost.budget.as_ref().map_or(u64::MAX, |at| *at.get_ref()).min(*window.get_ref());
    let longest = lasts.saturating_sub(MIN_BOOST_NS.into()).min(MAX_TIMER_ADVANCE_NS.into());
    let what = "the timer advance of a boost";
    time_in(0..=longest, Some(advance), what, Code::TimerAdvance, problems);
}

/// Sets the timer advance of every vCPU of a real-time VM, and of every one that interrupts boost. Every vCPU's
/// affinity must be known.
pub(super) fn assign(vms: &mut [Vm], drafts: &[DraftVm]) {
    for me in 0..vms.len() {
        for index in 0..vms[me].vcpus.len() {
            let boost = drafts[me].vcpus[index].boost.as_ref();
            let Some(boost) = boost.filter(|boost| boost.window.is_some()) else { continue };
            let stated = boost.timer_advance.as_ref().map(|at| *at.get_ref());
            vms[me].vcpus[index].timer_advance_ns = advance_ns(vms, me, index, stated);
        }
        if !vms[me].realtime {
            continue;
        }
        let adapts = drafts[me].adapt_timer_advance.as_ref().is_some_and(|at| *at.get_ref());
        let stated = drafts[me].timer_advance.as_ref().map(|at| *at.get_ref());
        for index in 0..vms[me].vcpus.len() {
            let advance = advance_ns(vms, me, index, stated);
            let alone_ahead = is_ahead(vms, me, index);
            let vcpu = &mut vms[me].vcpus[index];
            vcpu.timer_advance_ns = advance;
            vcpu.adapts_timer_advance = alone_ahead && adapts && advance > 0;
        }
    }
}

/// Returns what is `stated` of a vCPU, or what goes for one of which nothing is.
fn advance_ns(vms: &[Vm], me: usize, index: usize, stated: Option<u64>) -> u32 {
    let default = if shares(vms, me, index) { DEFAULT_NS } else { 0 };
    stated.and_then(|ns| u32::try_from(ns).ok()).unwrap_or(default)
}

/// Returns whether a vCPU is above all others that may come to a pCPU that it may use. The way of another one
/// ends when those beside and above it sleep, which says nothing of EL2.
fn is_ahead(vms: &[Vm], me: usize, index: usize) -> bool {
    let mine = &vms[me].vcpus[index];
    let all = vms
        .iter()
        .enumerate()
        .flat_map(|(vm, its)| its.vcpus.iter().enumerate().map(move |(i, vcpu)| (vm, i, vcpu)));
    let mut others = all.filter(|&(vm, i, _)| (vm, i) != (me, index));
    others.all(|(.., other)| other.affinity & mine.affinity == 0 || other.priority < mine.priority)
}

/// Returns whether a vCPU of another VM may come to a pCPU that this one may use.
fn shares(vms: &[Vm], me: usize, index: usize) -> bool {
    let mine = vms[me].vcpus[index].affinity;
    let others = vms.iter().enumerate().filter(|(vm, _)| *vm != me);
    others.flat_map(|(_, vm)| &vm.vcpus).any(|other| other.affinity & mine != 0)
}
