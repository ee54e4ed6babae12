//! vCPUs of one VM spin for each other's locks: the lower of two that share a pCPU
//! never gets to release what the higher one spins for.

use super::time_in;
use crate::code::Code;
use crate::draft::{Draft, DraftVm};
use crate::model::Vm;
use crate::problem::Problems;
use crate::topology;
use abi::system::{MAX_SIBLING_GRACE_NS, MIN_QUANTUM_NS};
use sched::topology::Placed;

/// How long a vCPU may stay in its kernel when it is a sibling's turn, if nothing is said: the
/// shortest quantum.
const DEFAULT_GRACE_NS: u64 = MIN_QUANTUM_NS;

/// Checks how long siblings wait for each other's kernels.
pub(super) fn grace(draft: &Draft, problems: &mut Problems) {
    let allowed = 0..=MAX_SIBLING_GRACE_NS;
    time_in(allowed, draft.sibling_grace.as_ref(), "a grace", Code::SiblingGrace, problems);
}

/// Returns how long siblings wait for each other's kernels, nanoseconds; 0: not at all.
pub(super) fn grace_ns(draft: &Draft) -> u64 {
    draft.sibling_grace.as_ref().map_or(DEFAULT_GRACE_NS, |at| *at.get_ref())
}

/// Returns true if a budget keeps a vCPU from running all the time.
fn leaves_time(vm: &Vm, vcpu: usize) -> bool {
    vm.vcpus[vcpu].server.is_some_and(|server| server.budget_ns < server.period_ns)
}

/// Warns of those that share a pCPU from the start, and of those that a policy or
/// consolidation may bring together. `targets`: where the vCPUs of each pCPU go
/// when that is powered down.
pub(super) fn check(drafts: &[DraftVm], vms: &[Vm], targets: &[usize], problems: &mut Problems) {
    let placed = topology::all_placed(vms, targets);
    for (at, (draft, vm)) in drafts.iter().zip(vms).enumerate() {
        let mine: Vec<_> = placed.iter().filter(|vcpu| vcpu.vm == at).collect();
        for (j, me) in mine.iter().enumerate() {
            let meets = |(i, other): &(usize, &&Placed)| {
                let higher = if other.priority > me.priority { *i } else { j };
                let starves = other.priority != me.priority && !leaves_time(vm, higher);
                starves && !other.shared_with(me).is_empty()
            };
            let Some((i, other)) = mine[..j].iter().enumerate().find(meets) else { continue };
            let title = vm.title();
            let message = if other.base == me.base {
                format!(
                    "two vCPUs of {title} share pCPU {} with unequal priorities: the lower one \
                     starves",
                    me.base
                )
            } else {
                format!(
                    "vCPUs {i} and {j} of {title} may come to share pCPU {} with unequal \
                     priorities: the lower one starves there",
                    other.shared_with(me).first().unwrap_or(me.base)
                )
            };
            let place = |index: usize| draft.vcpus[index].priority_span();
            problems
                .add(Code::UnequalSiblings, place(j), message)
                .see(place(i), "the other one")
                .hint("give them one priority; they then take turns, a quantum each");
        }
    }
}
