//! Where vCPUs go that have to leave their pCPU for a while.

use crate::code::Code;
use crate::model::{Migration, Vm};
use crate::problem::Problems;

/// Gives every vCPU that may have to leave a refuge: a pCPU without real-time
/// vCPUs, where the VM has a vCPU if possible, and where the fewest others are.
pub(super) fn assign(vms: &mut [Vm], pcpus: usize, problems: &mut Problems) {
    let realtime = |vms: &[Vm], pcpu| {
        vms.iter().filter(|vm| vm.realtime).flat_map(|vm| &vm.vcpus).any(|v| v.pcpu == pcpu)
    };
    let taken: Vec<bool> = (0..pcpus).map(|pcpu| realtime(vms, pcpu)).collect();
    // vCPUs that are on a pCPU, or will be when all had to leave theirs.
    let mut load: Vec<usize> = (0..pcpus)
        .map(|pcpu| vms.iter().flat_map(|vm| &vm.vcpus).filter(|v| v.pcpu == pcpu).count())
        .collect();
    for vm in vms.iter_mut().filter(|vm| vm.migration == Migration::OnDemand) {
        let own: Vec<bool> =
            (0..pcpus).map(|pcpu| vm.vcpus.iter().any(|v| v.pcpu == pcpu)).collect();
        let may_move = !vm.realtime;
        for vcpu in vm.vcpus.iter_mut().filter(|vcpu| may_move && taken[vcpu.pcpu]) {
            let free = (0..pcpus).filter(|&pcpu| !taken[pcpu]);
            if let Some(refuge) = free.min_by_key(|&pcpu| (!own[pcpu], load[pcpu])) {
                vcpu.refuge = refuge;
                load[refuge] += 1;
            }
        }
        if vm.vcpus.iter().all(|vcpu| vcpu.refuge == vcpu.pcpu) {
            let (message, hint) = if vm.realtime {
                ("a real-time VM stays where it is", "leave `migration` out")
            } else if !vm.vcpus.iter().any(|vcpu| taken[vcpu.pcpu]) {
                ("no vCPU of this VM shares a pCPU with a real-time one", "leave `migration` out")
            } else {
                ("every pCPU has a real-time vCPU: there is nowhere to go", "give it one without")
            };
            problems.add(Code::MigrationUnused, vm.spans.migration.clone(), message).hint(hint);
        }
    }
}
