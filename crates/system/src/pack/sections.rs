//! Global critical sections: which vCPUs may have them and for how long, and the mutexes of
//! the resources that their tasks share. All of it follows from the tasks that are described.

use crate::check::own_name;
use crate::model::{Checked, Protocol};
use abi::service::hash;
use abi::system::{Mutex, System};
use analysis::bounds::{Bounds, Workload};
use analysis::model::{self, Section, Task};
use analysis::overheads::DEFAULT_MARGIN_PERMILLE;
use std::cmp::Reverse;

/// Writes what `checked` says of tasks into the tables, which hold its vCPUs already.
pub(super) fn write(tables: &mut System, checked: &Checked) {
    let Some(timing) = &checked.timing else { return };
    // Of the switches, the one by which it waits does not raise it.
    let overheads = checked.overheads(DEFAULT_MARGIN_PERMILLE);
    let el2_ns = overheads.section_ns(2);
    let workload = Workload::with_overheads(timing, Bounds::Corrected, overheads);
    // Where each vCPU of the model stands in the tables: it has those with servers, in order.
    let vcpus = checked.vms.iter().flat_map(|vm| &vm.vcpus).enumerate();
    let served = vcpus.filter(|(_, vcpu)| vcpu.server.is_some());
    let places: Vec<usize> = served.map(|(place, _)| place).collect();
    for (index, (vcpu, &place)) in timing.vcpus.iter().zip(&places).enumerate() {
        let table = &mut tables.vcpus[place];
        let demand = demand(timing, index, vcpu.period_ns, el2_ns);
        if checked.protocol == Protocol::Vmpcp {
            // Handlers interrupt a section, which raises the vCPU meanwhile.
            let handled = workload.as_ref().ok().filter(|_| demand.sections > 0);
            let handled = handled.map_or(0, |of| of.handler_visits_time(index, vcpu.period_ns));
            let raised = demand.time_ns.saturating_add(handled);
            table.gcs_ns = raised.min(table.budget_ns + table.overrun_ns);
            table.gcs_calls = demand.sections;
        }
    }
    for (resource, name) in checked.shared_resources() {
        let mut claimants: Vec<&Task> =
            timing.tasks.iter().filter(|task| task.uses(resource)).collect();
        let vcpu = |task: &Task| timing.vcpus[task.vcpu].priority;
        match checked.protocol {
            // Rules 5 and 6 of RTSS 2014, Section III-A: by the vCPU first, then by the task.
            Protocol::Vmpcp => claimants.sort_by_key(|task| Reverse((vcpu(task), task.priority))),
            Protocol::Mpcp => claimants.sort_by_key(|task| Reverse((task.priority, vcpu(task)))),
        }
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
            let place = places[task.vcpu];
            tables.vcpus[place].mutexes |= 1 << number;
            mutex.vcpus[rank] = place as u8;
            mutex.tasks[rank] = hash(own_name(task).as_bytes()) as u32;
        }
    }
}

/// What global critical sections of a vCPU's tasks can take in a stretch of time.
struct Demand {
    time_ns: u64,
    sections: u32,
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
