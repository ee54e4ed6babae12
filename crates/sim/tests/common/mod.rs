//! Small systems, told shortly.

#![allow(dead_code, missing_docs)] // each test program uses some of it

use sched::Duration;
use sched::server::{Server, ServerKind};
use sim::observer::Doing;
use sim::system::{Costs, Execution, Need, Protocol, Segment, System, Task, Vcpu};
use sim::timeline::{Slice, Timeline};
use sim::{World, checker::Checker};

/// A server; its overrun is `overrun`.
pub fn server(kind: ServerKind, budget: u64, period: u64, overrun: u64) -> Option<Server> {
    let [budget, period, overrun] = [budget, period, overrun].map(Duration);
    Some(Server { kind, budget, period, overrun })
}

/// A vCPU, whose priority is its place in the list.
pub fn vcpu(core: usize, server: Option<Server>) -> Vcpu {
    Vcpu { name: String::new(), core, priority: 0, server, offset: 0 }
}

/// A task; higher in the list is lower in priority.
pub fn task(vcpu: usize, offset: u64, segments: &[(u64, Need)]) -> Task {
    let segments = segments.iter().map(|&(wcet, need)| Segment { wcet, need }).collect();
    Task {
        name: String::new(),
        vcpu,
        priority: 0,
        handler: false,
        period: 1000,
        offset,
        jitter: 0,
        segments,
    }
}

/// A system in which everything takes its worst case. vCPUs are v0, v1, ... by
/// ascending priority, tasks t0, t1, ... too.
pub fn system(protocol: Protocol, mut vcpus: Vec<Vcpu>, mut tasks: Vec<Task>) -> System {
    for (index, vcpu) in vcpus.iter_mut().enumerate() {
        (vcpu.name, vcpu.priority) = (format!("v{index}"), index as u64);
    }
    for (index, task) in tasks.iter_mut().enumerate() {
        (task.name, task.priority) = (format!("t{index}"), index as u64);
    }
    let (execution, costs) = (Execution::Worst, Costs::default());
    System { protocol, execution, costs, displacements: Vec::new(), seed: 0, vcpus, tasks }
}

/// What happens before `end`; the protocol is kept.
pub fn run(system: &System, end: u64) -> Timeline {
    let observer = (Timeline::until(end), Checker::new(system));
    let mut world = World::watched(system, observer).unwrap();
    world.run_until(end);
    let (timeline, checker) = world.into_observer();
    assert_eq!(checker.objection(), None);
    timeline
}

/// When each task ran: `(from, to)`, in order.
pub fn ran(timeline: &Timeline, task: usize) -> Vec<(u64, u64)> {
    let own = |slice: &&Slice| matches!(slice.doing, Doing::Task { task: t, .. } if t == task);
    timeline.slices.iter().filter(own).map(|slice| (slice.from, slice.to)).collect()
}

/// When each vCPU idled its budget away.
pub fn idled(timeline: &Timeline, vcpu: usize) -> Vec<(u64, u64)> {
    let own = |slice: &&Slice| slice.vcpu == vcpu && slice.doing == Doing::Idling;
    timeline.slices.iter().filter(own).map(|slice| (slice.from, slice.to)).collect()
}
