//! Tasks as guests find them in their device trees: the same as in the bounds.

use crate::model::{DeclaredSegment, DeclaredTask, Vm};
use analysis::model::{Section, Segment, System, Task};

/// Gives the VMs the tasks of `timing`, the model of their vCPUs with servers, in the same order.
pub(super) fn assign(vms: &mut [Vm], timing: &System) {
    let mut served = 0..timing.vcpus.len();
    for vm in vms {
        let mut tasks = Vec::new();
        for (vcpu, _) in vm.vcpus.iter().enumerate().filter(|(_, vcpu)| vcpu.server.is_some()) {
            let Some(model) = served.next() else { return };
            let own = timing.tasks.iter().filter(|task| task.vcpu == model);
            tasks.extend(own.map(|task| declared(task, vcpu, &timing.resources)));
        }
        vm.tasks = tasks;
    }
}

fn declared(task: &Task, vcpu: usize, resources: &[String]) -> DeclaredTask {
    let segment = |segment: &Segment| DeclaredSegment {
        wcet_ns: segment.wcet_ns,
        resource: match segment.section {
            Section::Normal => None,
            Section::Global(resource) => Some((resources[resource].clone(), true)),
            Section::Local(resource) => Some((resources[resource].clone(), false)),
        },
    };
    DeclaredTask {
        name: own_name(task).to_owned(),
        vcpu,
        priority: u8::try_from(task.priority).unwrap_or(u8::MAX),
        period_ns: task.period_ns,
        offset_ns: task.offset_ns,
        jitter_ns: task.jitter_ns,
        segments: task.segments.iter().map(segment).collect(),
    }
}

/// Returns a task's name in its own VM.
pub(crate) fn own_name(task: &Task) -> &str {
    task.id.split_once('/').map_or(&task.id, |(_, name)| name)
}
