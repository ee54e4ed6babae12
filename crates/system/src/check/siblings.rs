//! vCPUs of one VM spin for each other's locks: the lower of two that share a pCPU
//! never gets to release what the higher one spins for.

use crate::code::Code;
use crate::draft::DraftVm;
use crate::model::{Vcpu, Vm};
use crate::problem::Problems;

/// Warns of those that share a pCPU from the start, and of those that a policy or
/// consolidation may bring together. `shelters`: where the vCPUs of each pCPU go
/// when that is powered down.
pub(super) fn check(drafts: &[DraftVm], vms: &[Vm], shelters: &[usize], problems: &mut Problems) {
    let places = |vcpu: &Vcpu| vcpu.places() | 1 << shelters[vcpu.pcpu];
    for (draft, vm) in drafts.iter().zip(vms) {
        for (j, me) in vm.vcpus.iter().enumerate() {
            let meets = |(_, other): &(usize, &Vcpu)| {
                other.priority != me.priority && places(other) & places(me) != 0
            };
            let Some((i, other)) = vm.vcpus[..j].iter().enumerate().find(meets) else { continue };
            let title = vm.title();
            let message = if other.pcpu == me.pcpu {
                format!(
                    "two vCPUs of {title} share pCPU {} with unequal priorities: the lower one \
                     starves",
                    me.pcpu
                )
            } else {
                format!(
                    "vCPUs {i} and {j} of {title} may come to share pCPU {} with unequal \
                     priorities: the lower one starves there",
                    (places(other) & places(me)).trailing_zeros()
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
