//! Random systems: small numbers, so that everything collides.

use analysis::model::{Section, Segment, ServerKind, System, Task, Vcpu};
use proptest::prelude::*;

/// Budget and period of a vCPU, its pCPU.
type VcpuDraft = (u64, u64, u32);
/// vCPU, period, jitter, segments.
type TaskDraft = (usize, u64, u64, Vec<(u64, u8)>);

/// Up to 4 vCPUs on 2 pCPUs, up to 8 tasks, 3 global resources and 2 local ones
/// for each vCPU. Priorities follow the order.
pub fn systems() -> impl Strategy<Value = System> {
    let vcpu = (1..60_u64, 20..60_u64, 0..2_u32);
    let segment = (1..6_u64, 0..12_u8);
    let task = (0..4_usize, 100..2_000_u64, 0..20_u64, prop::collection::vec(segment, 1..6));
    (any::<(bool, bool)>(), prop::collection::vec(vcpu, 1..5), prop::collection::vec(task, 0..9))
        .prop_map(|((deferrable, overrun), vcpus, tasks)| {
            let server = if deferrable { ServerKind::Deferrable } else { ServerKind::Periodic };
            build(server, overrun, &vcpus, &tasks)
        })
}

fn build(server: ServerKind, overrun: bool, vcpus: &[VcpuDraft], tasks: &[TaskDraft]) -> System {
    let count = vcpus.len();
    let vcpus = vcpus.iter().enumerate().map(|(index, &(budget, period, pcpu))| Vcpu {
        id: format!("v{index}"),
        pcpu,
        budget_ns: budget.min(period),
        period_ns: period,
        priority: index as i64,
        offset_ns: 0,
    });
    let tasks = tasks.iter().enumerate().map(|(index, (vcpu, period, jitter, segments))| {
        let vcpu = vcpu % count;
        let section = |kind: u8| match kind {
            0..3 => Section::Global(usize::from(kind)),
            3..5 => Section::Local(usize::from(kind) + 2 * vcpu),
            _ => Section::Normal,
        };
        let segments = segments
            .iter()
            .map(|&(wcet_ns, kind)| Segment { wcet_ns, section: section(kind) })
            .collect();
        Task {
            id: format!("t{index}"),
            vcpu,
            period_ns: *period,
            priority: index as i64,
            segments,
            offset_ns: 0,
            jitter_ns: *jitter,
        }
    });
    let (vcpus, tasks) = (vcpus.collect(), tasks.collect());
    let resources = (0..3 + 2 * count).map(|index| format!("r{index}")).collect();
    let system = System { server, overrun, vcpus, tasks, resources };
    system.check().expect("random systems are sound");
    system
}
