//! vCPUs that their guests may mark as real-time. All other checks take such a vCPU for marked.

use crate::code::Code;
use crate::draft::{At, DraftVcpu, DraftVm, flag};
use crate::model::Vm;
use crate::problem::Problems;
use crate::topology::{Id, ids, placed};
use sched::policy::MigrationPolicy;

pub(super) fn check(vms: &[DraftVm], problems: &mut Problems) {
    for vm in vms {
        for vcpu in &vm.vcpus {
            let (Some(below), Some(marked)) = (&vcpu.unmarked, &vcpu.priority) else { continue };
            if let Some((why, hint)) = fault(vm, vcpu, below, marked) {
                let message = format!("a vCPU of {} that may mark itself {why}", vm.title());
                problems.add(Code::Mark, marked.span(), message).hint(hint);
            }
        }
    }
}

/// Returns what such a vCPU is or has that it cannot, and how to mend that. One that is raised may not
/// leave its pCPU, and a budget would be another reason for it to be raised.
fn fault(
    vm: &DraftVm,
    vcpu: &DraftVcpu,
    below: &At<u64>,
    marked: &At<u64>,
) -> Option<(&'static str, &'static str)> {
    if vm.is_realtime() {
        return Some(("is a real-time one already", "leave `rt_priority` out, or `realtime`"));
    }
    if below.get_ref() >= marked.get_ref() {
        return Some(("would not rise by that", "give it an `rt_priority` above its `priority`"));
    }
    if vcpu.server.is_some() {
        return Some(("has a budget", "leave `server` out, or `rt_priority`"));
    }
    let moves = vm.migration_policy() != MigrationPolicy::None
        || !vm.may_switch_to.is_empty()
        || flag(&vm.consolidate, false);
    moves.then_some((
        "may leave its pCPU",
        "leave `migration_policy`, `may_switch_to` and `consolidate` of its VM out",
    ))
}

/// Refuses one that is not above all others that may be on its pCPU while it is marked, or that is
/// above a real-time one otherwise. Every vCPU's affinity must be known.
pub(super) fn among_others(drafts: &[DraftVm], vms: &[Vm], problems: &mut Problems) {
    for id in ids(vms) {
        let me = vms[id.0].vcpus[id.1];
        let Some(below) = me.unmarked_priority else { continue };
        let here = |other: &Id| *other != id && placed(vms, *other).places().has(me.pcpu);
        let wrong = ids(vms).filter(here).find_map(|other| {
            let its = placed(vms, other);
            if its.priority >= me.priority {
                Some((
                    other,
                    "is not above all others while it is marked",
                    "a higher `rt_priority`",
                ))
            } else if its.realtime && its.priority <= below {
                let why = "is not below a real-time one while it is not marked";
                Some((other, why, "a lower `priority`"))
            } else {
                None
            }
        });
        let Some((other, why, what)) = wrong else { continue };
        let place = |(vm, index): Id| drafts[vm].vcpus[index].priority_span();
        let message = format!("a vCPU of {} {why}", vms[id.0].title());
        problems
            .add(Code::Mark, place(id), message)
            .see(place(other), "this one may be on its pCPU")
            .hint(format!("give it {what}"));
    }
}
