//! Whoever has to leave its pCPU should get something where it goes.

use crate::code::Code;
use crate::draft::DraftVm;
use crate::model::Vm;
use crate::problem::Problems;

/// Warns of vCPUs at whose refuge one of another VM ranks above them.
pub(super) fn check(drafts: &[DraftVm], vms: &[Vm], problems: &mut Problems) {
    let place = |vm: usize, index: usize| drafts[vm].vcpus[index].priority_span();
    // A real-time one is where nobody ranks above, or is not there at all.
    for (owner, vm) in vms.iter().enumerate().filter(|(_, vm)| !vm.realtime) {
        let leaving = vm.vcpus.iter().enumerate().filter(|(_, vcpu)| vcpu.refuge != vcpu.pcpu);
        for (index, me) in leaving {
            let others = vms.iter().enumerate().filter(|(other, _)| *other != owner);
            let above = others
                .flat_map(|(other, vm)| {
                    vm.vcpus.iter().enumerate().map(move |(i, v)| (other, i, v))
                })
                .find(|(_, _, other)| other.pcpu == me.refuge && other.priority > me.priority);
            let Some((other, i, _)) = above else { continue };
            let message = format!(
                "vCPU {index} of {} goes to pCPU {} while another one has pCPU {}, and may get \
                 nothing there",
                vm.title(),
                me.refuge,
                me.pcpu
            );
            let theirs = format!("this one of {} ranks above it", vms[other].title());
            problems
                .add(Code::OutrankedRefuge, place(owner, index), message)
                .see(place(other, i), theirs)
                .hint("rank it as high, or let some other pCPU have nobody who ranks above it");
        }
    }
}
