//! Which pCPUs may be powered down, and where their vCPUs go meanwhile.

use super::time_in;
use crate::code::Code;
use crate::draft::{Draft, DraftVm, flag};
use crate::model::{Vcpu, Vm};
use crate::problem::Problems;
use crate::topology;
use abi::system::{MAX_CONSOLIDATION_WINDOW_NS, MIN_CONSOLIDATION_WINDOW_NS};
use sched::policy::MigrationPolicy;

/// Long against a timer tick of Linux's, short against what a person notices.
const DEFAULT_WINDOW_NS: u64 = 10_000_000;

pub(super) fn check(draft: &Draft, problems: &mut Problems) {
    for vm in draft.vms.iter().filter(|vm| flag(&vm.consolidate, false)) {
        suits(vm, problems);
    }
    let allowed = MIN_CONSOLIDATION_WINDOW_NS..=MAX_CONSOLIDATION_WINDOW_NS;
    let window = draft.consolidation_window.as_ref();
    time_in(allowed, window, "a window", Code::Consolidate, problems);
    if let Some(at) = window.filter(|_| !draft.vms.iter().any(|vm| flag(&vm.consolidate, false))) {
        problems
            .add(
                Code::ConsolidateUnused,
                at.span(),
                "no VM consolidates, so nothing uses this window",
            )
            .hint("leave it out, or give a VM `consolidate = true`");
    }
}

/// Refuses consolidation for a VM whose vCPUs must not be moved together.
fn suits(vm: &DraftVm, problems: &mut Problems) {
    let Some(at) = &vm.consolidate else { return };
    if vm.is_realtime() {
        problems
            .add(
                Code::Consolidate,
                at.span(),
                "a real-time VM cannot have its vCPUs moved together",
            )
            .hint("leave `consolidate` out: the pCPUs of its vCPUs stay on");
    } else if let Some((kind, why)) = vm.policies().find_map(|kind| match kind {
        MigrationPolicy::Balance => Some((kind, "keeps vCPUs apart")),
        MigrationPolicy::Coscheduling => Some((kind, "wants vCPUs to run at the same time")),
        _ => None,
    }) {
        let message = format!("`{}` {why}, and `consolidate` brings them together", kind.name());
        problems
            .add(Code::Consolidate, at.span(), message)
            .hint("leave one of the two out, or choose another policy");
    }
}

/// Returns the window that the description states, or the default.
pub(super) fn window_ns(draft: &Draft) -> u64 {
    draft.consolidation_window.as_ref().map_or(DEFAULT_WINDOW_NS, |at| *at.get_ref())
}

/// The vCPUs of a pCPU, with their VMs, and each's index there.
fn based(vms: &[Vm], pcpu: usize) -> impl Iterator<Item = (&Vm, usize)> {
    vms.iter().flat_map(move |vm| {
        let mine = vm.vcpus.iter().enumerate().filter(move |(_, vcpu)| vcpu.pcpu == pcpu);
        mine.map(move |(index, _)| (vm, index))
    })
}

/// Returns true if a pCPU may be powered down as far as its own vCPUs go: all of VMs that
/// let it, none a VM's first, which is where the VM is started and stopped. The
/// first pCPU boots, one drives the UART, and some take interrupts of devices.
pub(super) fn may_sleep(vms: &[Vm], pcpu: usize, pcpus: usize) -> bool {
    let mut here = based(vms, pcpu).peekable();
    pcpu != 0
        && pcpu != topology::uart_core(vms, pcpus)
        && here.peek().is_some()
        && here.all(|(vm, index)| vm.consolidate && !vm.realtime && index != 0)
        && vms.iter().all(|vm| vm.interrupts_to != Some(pcpu))
}

/// Returns for each pCPU where its vCPUs go while it is powered down; its own index
/// if it stays on.
pub(super) fn targets(vms: &[Vm], pcpus: usize, problems: &mut Problems) -> Vec<usize> {
    let comes_to = |vcpu: &Vcpu, pcpu: usize| vcpu.pcpu != pcpu && vcpu.affinity >> pcpu & 1 == 1;
    let is_used = |pcpu: usize| vms.iter().flat_map(|vm| &vm.vcpus).any(|v| comes_to(v, pcpu));
    let sleeps: Vec<bool> =
        (0..pcpus).map(|pcpu| may_sleep(vms, pcpu, pcpus) && !is_used(pcpu)).collect();
    let mut guests: Vec<usize> = (0..pcpus).map(|pcpu| based(vms, pcpu).count()).collect();
    let mut targets: Vec<usize> = (0..pcpus).collect();
    for pcpu in (0..pcpus).filter(|&pcpu| sleeps[pcpu]) {
        // Without real-time vCPUs, with a sibling, and with the fewest others.
        let rank = |&candidate: &usize| {
            let realtime = based(vms, candidate).any(|(vm, _)| vm.realtime);
            let sibling = based(vms, candidate)
                .any(|(vm, _)| based(vms, pcpu).any(|(mine, _)| mine.name == vm.name));
            (realtime, !sibling, guests[candidate], candidate)
        };
        if let Some(target) = (0..pcpus).filter(|&other| !sleeps[other]).min_by_key(rank) {
            guests[target] += based(vms, pcpu).count();
            targets[pcpu] = target;
        }
    }
    for vm in vms.iter().filter(|vm| vm.consolidate) {
        unused(vm, &targets, problems);
    }
    targets
}

/// Says so if no pCPU of a VM may be powered down.
fn unused(vm: &Vm, targets: &[usize], problems: &mut Problems) {
    if vm.vcpus.iter().any(|vcpu| targets[vcpu.pcpu] != vcpu.pcpu) {
        return;
    }
    let hint = "a pCPU can be if it is not the first, nor drives the console, nor has a VM's \
                first vCPU, a real-time one, one of a VM that does not consolidate, or one \
                that may flee there, and takes no interrupts of devices";
    let message = "no pCPU of this VM's vCPUs can be powered down";
    problems.add(Code::ConsolidateUnused, vm.spans.consolidate.clone(), message).hint(hint);
}
