//! Random systems: small numbers, so that everything collides.

use analysis::model::{Section, Segment, ServerKind, Service, System, Task, Vcpu};
use proptest::prelude::*;

/// Budget and period of a vCPU, its pCPU, its own service: whether deferrable, whether
/// with overrun.
type VcpuDraft = (u64, u64, u32, Option<(bool, bool)>);
/// vCPU, period, jitter, segments.
type TaskDraft = (usize, u64, u64, Vec<(u64, u8)>);

/// Up to 4 vCPUs on 2 pCPUs, up to 8 tasks, 3 global resources and 2 local ones
/// for each vCPU. Priorities follow the order.
pub fn systems() -> impl Strategy<Value = System> {
    let vcpu = (1..60_u64, 20..60_u64, 0..2_u32, prop::option::of(any::<(bool, bool)>()));
    let segment = (1..6_u64, 0..12_u8);
    let task = (0..4_usize, 100..2_000_u64, 0..20_u64, prop::collection::vec(segment, 1..6));
    (any::<(bool, bool)>(), prop::collection::vec(vcpu, 1..5), prop::collection::vec(task, 0..9))
        .prop_map(|(common, vcpus, tasks)| build(service(common), &vcpus, &tasks))
}

fn service((deferrable, overrun): (bool, bool)) -> Service {
    let kind = if deferrable { ServerKind::Deferrable } else { ServerKind::Periodic };
    Service { kind, overrun }
}

fn build(common: Service, vcpus: &[VcpuDraft], tasks: &[TaskDraft]) -> System {
    let count = vcpus.len();
    let services: Vec<_> = vcpus.iter().map(|draft| draft.3.map_or(common, service)).collect();
    let vcpus = vcpus.iter().enumerate().map(|(index, &(budget, period, pcpu, _))| Vcpu {
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
    let Service { kind: server, overrun } = common;
    let mut system = System {
        server,
        overrun,
        vcpus,
        tasks,
        resources,
        traffic: Vec::new(),
        handlers: Vec::new(),
    };
    for (vcpu, service) in services.into_iter().enumerate() {
        system.set_service(vcpu, service);
    }
    system.check().expect("random systems are sound");
    system
}
