//! What may be asked for while a system runs: where vCPUs go (`may_run_on`), and which migration
//! policy a VM has instead of its own (`may_switch_to`).
//!
//! Everything that may be asked for is admitted here, so that EL2 computes nothing when it is.

use super::migration::set;
use crate::code::Code;
use crate::draft::DraftVm;
use crate::model::Vm;
use crate::problem::Problems;
use crate::topology::{Id, ids, placed};
use sched::policy::{MigrationPolicy, PolicySet};

pub(super) fn check(vms: &[DraftVm], pcpus: Option<usize>, problems: &mut Problems) {
    for vm in vms {
        switches(vm, problems);
        places(vm, pcpus, problems);
    }
}

/// Returns the policies that a VM may have from some moment on.
pub(super) fn others(vm: &DraftVm) -> PolicySet {
    // It may be switched back.
    if vm.may_switch_to.is_empty() { PolicySet::EMPTY } else { vm.policies().collect() }
}

fn switches(vm: &DraftVm, problems: &mut Problems) {
    let Some(first) = vm.may_switch_to.first() else { return };
    let names = MigrationPolicy::SWITCHABLE.iter().map(|kind| format!("`{}`", kind.name()));
    let switchable = names.collect::<Vec<_>>().join(", ");
    if vm.is_realtime() {
        let message = format!("{} is a real-time VM: its policy stays", vm.title());
        problems
            .add(Code::MigrationPolicy, first.span(), message)
            .hint("leave `may_switch_to` out, and give it to the VM that shares its pCPU");
        return;
    }
    if !vm.migration_policy().is_switchable() {
        let message = format!("no other policy can follow `{}`", vm.migration_policy().name());
        let span = vm.migration_policy.as_ref().map_or(first.span(), |at| at.span());
        problems
            .add(Code::MigrationPolicy, span, message)
            .hint(format!("those that can follow each other are {switchable}"));
    }
    for at in vm.may_switch_to.iter().filter(|at| !at.get_ref().is_switchable()) {
        let message = format!("`{}` can follow no other policy", at.get_ref().name());
        problems
            .add(Code::MigrationPolicy, at.span(), message)
            .hint(format!("those that can follow each other are {switchable}"));
    }
}

fn places(vm: &DraftVm, pcpus: Option<usize>, problems: &mut Problems) {
    let on_request = vm.migration_policy().needs().moves_on_request;
    let named = vm.vcpus.iter().flat_map(|vcpu| &vcpu.may_run_on);
    for at in named.clone() {
        if pcpus.is_some_and(|pcpus| *at.get_ref() >= pcpus as u64) {
            problems
                .add(Code::UnknownPcpu, at.span(), format!("there is no pCPU {}", at.get_ref()))
                .hint("see `pcpus` of the board");
        }
    }
    match (on_request, named.clone().next()) {
        (false, Some(at)) => {
            let message = format!("nothing asks the vCPUs of {} to go there", vm.title());
            problems
                .add(Code::MigrationPolicy, at.span(), message)
                .hint("say `migration_policy = \"on-request\"`, or leave `may_run_on` out");
        }
        (true, None) => {
            let span = vm.migration_policy.as_ref().map_or(vm.span.clone(), |at| at.span());
            let message = format!("no vCPU of {} may go anywhere", vm.title());
            problems
                .add(Code::MigrationPolicy, span, message)
                .hint("name pCPUs: `vcpus = [{ pcpu = 0, priority = 1, may_run_on = [1, 2] }]`");
        }
        _ => {}
    }
    if on_request && let Some(at) = vm.consolidate.as_ref().filter(|at| *at.get_ref()) {
        problems
            .add(
                Code::Consolidate,
                at.span(),
                "`on-request` and `consolidate` both say where vCPUs are",
            )
            .hint("leave one of the two out");
    }
}

/// Gives the vCPUs that move on request their affinities, and refuses a place where one would make a
/// real-time vCPU late, or be made late as one.
pub(super) fn assign(drafts: &[DraftVm], vms: &mut [Vm], problems: &mut Problems) {
    for (vm, draft) in drafts.iter().enumerate() {
        for (index, vcpu) in draft.vcpus.iter().enumerate() {
            // Those that are out of range were refused.
            vms[vm].vcpus[index].affinity |=
                set(vcpu.may_run_on.iter().map(|at| *at.get_ref() as usize));
        }
    }
    for id in ids(vms) {
        for at in &drafts[id.0].vcpus[id.1].may_run_on {
            let pcpu = *at.get_ref() as usize;
            let Some((other, why)) = rival(vms, id, pcpu) else { continue };
            let message = format!(
                "vCPU {} of {} may not go to pCPU {pcpu}, where vCPU {} of {} {why}",
                id.1,
                vms[id.0].title(),
                other.1,
                vms[other.0].title(),
            );
            problems
                .add(Code::RealtimePriority, at.span(), message)
                .see(drafts[other.0].vcpus[other.1].priority_span(), "this one")
                .hint("leave this pCPU out, or give the real-time vCPU the higher priority");
        }
    }
}

/// Returns a vCPU of another VM that a vCPU must not meet on a pCPU, and why.
fn rival(vms: &[Vm], me: Id, pcpu: usize) -> Option<(Id, &'static str)> {
    let mine = placed(vms, me);
    let there = ids(vms).filter(|other| other.0 != me.0);
    let mut there = there.map(|id| (id, placed(vms, id))).filter(|(_, it)| it.places().has(pcpu));
    there.find_map(|(id, it)| {
        let why = match (mine.realtime, it.realtime) {
            (false, false) => return None,
            (true, true) => "is a real-time one, too",
            (false, true) if it.priority > mine.priority => return None,
            (true, false) if mine.priority > it.priority => return None,
            (false, true) => "would be delayed",
            (true, false) => "would delay it",
        };
        Some((id, why))
    })
}
