//! A vCPU that has to leave its pCPU should get time on the pCPU it goes to.

use crate::code::Code;
use crate::draft::DraftVm;
use crate::model::Vm;
use crate::problem::Problems;

/// Warns of vCPUs on whose fallback a vCPU of another VM has a higher priority.
pub(super) fn check(drafts: &[DraftVm], vms: &[Vm], problems: &mut Problems) {
    let place = |vm: usize, index: usize| drafts[vm].vcpus[index].priority_span();
    // A real-time vCPU has a fallback only where no vCPU has a higher priority.
    for (owner, vm) in vms.iter().enumerate().filter(|(_, vm)| !vm.realtime) {
        let leaving = vm.vcpus.iter().enumerate().filter(|(_, vcpu)| vcpu.fallback != vcpu.pcpu);
        for (index, me) in leaving {
            let others = vms.iter().enumerate().filter(|(other, _)| *other != owner);
            let above = others
                .flat_map(|(other, vm)| {
                    vm.vcpus.iter().enumerate().map(move |(i, v)| (other, i, v))
                })
                .find(|(_, _, other)| other.pcpu == me.fallback && other.priority > me.priority);
            let Some((other, i, _)) = above else { continue };
            let message = format!(
                "vCPU {index} of {} goes to pCPU {} while another one has pCPU {}, and may get \
                 nothing there",
                vm.title(),
                me.fallback,
                me.pcpu
            );
            let theirs = format!("this one of {} has a higher priority", vms[other].title());
            problems
                .add(Code::OutrankedFallback, place(owner, index), message)
                .see(place(other, i), theirs)
                .hint("give both the same priority, or keep some pCPU free of higher priorities");
        }
    }
}
