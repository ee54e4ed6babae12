//! Global critical sections: which vCPUs may have them and for how long, and the mutexes of
//! the resources that their tasks share. All of it follows from the tasks that are described.

use crate::model::{Checked, overheads};
use abi::service::hash;
use abi::system::{Mutex, System};
use analysis::model::{self, Section, Task};
use analysis::overheads::{DEFAULT_MARGIN_PERMILLE, Overheads};
use std::cmp::Reverse;

/// Writes what `checked` says of tasks into the tables, which hold its vCPUs already.
pub(super) fn write(tables: &mut System, checked: &Checked) {
    let Some(timing) = &checked.timing else { return };
    let el2_ns = el2_ns(&overheads(checked.machine.board, &checked.vms, DEFAULT_MARGIN_PERMILLE));
    // Where each vCPU of the model stands in the tables.
    let mut places = Vec::new();
    for vm in &checked.vms {
        places.extend((0..vm.vcpus.len()).map(|index| format!("{}.{index}", vm.name)));
    }
    let place = |vcpu: usize| places.iter().position(|name| *name == timing.vcpus[vcpu].id);
    for (index, vcpu) in timing.vcpus.iter().enumerate() {
        let Some(place) = place(index) else { continue };
        let table = &mut tables.vcpus[place];
        let demand = demand(timing, index, vcpu.period_ns, el2_ns);
        table.gcs_ns = demand.time_ns.min(table.budget_ns + table.overrun_ns);
        table.gcs_calls = demand.sections;
    }
    for (resource, name) in timing.resources.iter().enumerate() {
        let mut claimants: Vec<&Task> =
            timing.tasks.iter().filter(|task| uses(task, resource)).collect();
        if claimants.is_empty() {
            continue;
        }
        // Rules 5 and 6 of RTSS 2014, Section III-A: by the vCPU first, then by the task.
        claimants.sort_by_key(|task| Reverse((timing.vcpus[task.vcpu].priority, task.priority)));
        let Some(mutex) = tables.mutexes.get_mut(tables.header.mutex_count as usize) else {
            return;
        };
        let number = tables.header.mutex_count;
        tables.header.mutex_count += 1;
        *mutex = Mutex {
            name: hash(name.as_bytes()),
            claimant_count: claimants.len() as u32,
            reserved: 0,
            ..*mutex
        };
        for (rank, task) in claimants.iter().enumerate() {
            let place = place(task.vcpu).unwrap_or_default();
            tables.vcpus[place].mutexes |= 1 << number;
            mutex.vcpus[rank] = place as u8;
            mutex.tasks[rank] = hash(own_name(task).as_bytes()) as u32;
        }
    }
}

/// A task's name in its own VM.
fn own_name(task: &Task) -> &str {
    task.id.split_once('/').map_or(&task.id, |(_, name)| name)
}

/// What global critical sections of a vCPU's tasks can take in a stretch of time.
struct Demand {
    time_ns: u64,
    sections: u32,
}

/// Returns what EL2 may take while a section raises a vCPU: to begin and to end it, to be granted
/// the resource and to pass it on.
fn el2_ns(overheads: &Overheads) -> u64 {
    let Overheads { gcs_call_ns, grant_ns, doorbell_ns, .. } = *overheads;
    2 * (gcs_call_ns + grant_ns + overheads.switch_ns()) + doorbell_ns
}

/// Returns the most that fits into a stretch. Every job ends before the next one of its task is
/// released, so in a stretch of length t there are at most ⌈t / T⌉ + 1 of them.
fn demand(timing: &model::System, vcpu: usize, stretch_ns: u64, el2_ns: u64) -> Demand {
    let mut demand = Demand { time_ns: 0, sections: 0 };
    for task in timing.tasks.iter().filter(|task| task.vcpu == vcpu) {
        let jobs = stretch_ns.div_ceil(task.period_ns) + 1;
        for segment in &task.segments {
            if let Section::Global(_) = segment.section {
                demand.time_ns =
                    demand.time_ns.saturating_add(jobs.saturating_mul(segment.wcet_ns + el2_ns));
                demand.sections = demand.sections.saturating_add(jobs as u32);
            }
        }
    }
    demand
}

fn uses(task: &Task, resource: usize) -> bool {
    task.segments.iter().any(|segment| segment.section == Section::Global(resource))
}
