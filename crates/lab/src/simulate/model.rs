//! From the model of the analysis to that of the simulator.
//!
//! They differ on purpose: the analysis knows only systems for which there are
//! bounds, the simulator runs others too, such as vCPUs without servers. vCPUs, tasks and resources keep their indices.

use analysis::bounds::{Bounds, Uncomputable, Workload};
use analysis::model as of;
use analysis::overheads::Overheads;
use sched::Duration;
use sched::server::Server;
use sim::system::{Costs, Displacement, Execution, Need, Protocol, Segment, System, Task, Vcpu};
use std::collections::BTreeSet;

/// The system as the simulator takes it; handlers come after the tasks. What a vCPU may overrun in a period is
/// O^v, the longest that it can hold global resources (Equation 1). pCPUs are
/// numbered anew, in the order of their numbers.
///
/// # Errors
/// When sums of execution times do not fit.
pub fn simulated(
    system: &of::System,
    protocol: Protocol,
    execution: Execution,
    overheads: Overheads,
    seed: u64,
) -> Result<System, Uncomputable> {
    let workload = Workload::with_overheads(system, Bounds::Published, overheads)?;
    let pcpus = pcpus(system);
    let vcpu = |(index, vcpu): (usize, &of::Vcpu)| Vcpu {
        name: vcpu.id.clone(),
        core: pcpus.range(..vcpu.pcpu).count(),
        priority: unsigned(vcpu.priority),
        server: Some(Server {
            kind: system.service(index).kind,
            budget: Duration(vcpu.budget_ns),
            period: Duration(vcpu.period_ns),
            overrun: Duration(workload.overrun_time(index)),
        }),
        offset: vcpu.offset_ns,
    };
    Ok(System {
        protocol,
        execution,
        costs: costs(overheads),
        displacements: displacements(system, overheads, &pcpus),
        seed,
        vcpus: system.vcpus.iter().enumerate().map(vcpu).collect(),
        tasks: system.tasks.iter().map(task).chain(handlers(system)).collect(),
    })
}

fn costs(of: Overheads) -> Costs {
    Costs {
        release: of.release_ns,
        switch_on_wake: of.switch_on_wake_ns,
        switch_on_sleep: of.switch_on_sleep_ns,
        timer: of.timer_ns,
        doorbell: of.doorbell_ns,
        gcs_call: of.gcs_call_ns,
        grant: of.grant_ns,
        departure: of.departure_ns,
        timer_advance: of.timer_advance_ns,
        duty: of.duty_ns,
        duty_every: of.duty_every_ns,
    }
}

/// What EL2 takes each time that a vCPU is displaced, which is not simulated itself: it is handed
/// over at once and comes back when its core is free, and so do siblings stop and go on.
fn displacements(
    system: &of::System,
    overheads: Overheads,
    pcpus: &BTreeSet<u32>,
) -> Vec<Displacement> {
    let all = system.traffic.iter().filter_map(|traffic| match &traffic.cause {
        of::Cause::Displacement { by } => Some((by, &traffic.visits)),
        // The simulator has no clock for these.
        of::Cause::Every(_) => None,
    });
    let displacement = |(by, visits): (&Vec<usize>, &Vec<of::Visits>)| {
        let base = by.first().map(|&vcpu| system.vcpus[vcpu].pcpu);
        let (mut begins, mut ends) = (Vec::new(), Vec::new());
        for all in visits.iter().filter(|visits| pcpus.contains(&visits.pcpu)) {
            // Its own pCPU sends it away, and is told when it comes back.
            let first = if Some(all.pcpu) == base { 0 } else { all.doorbells.div_ceil(2) };
            let then = of::Visits { doorbells: all.doorbells - first, departures: 0, ..*all };
            let core = pcpus.range(..all.pcpu).count();
            let now = of::Visits { doorbells: first, timers: 0, ..*all };
            begins.push((core, overheads.visits_ns(&now)));
            ends.push((core, overheads.visits_ns(&then)));
        }
        Displacement { by: by.clone(), begins, ends }
    };
    all.map(displacement).collect()
}

/// The pCPUs that have vCPUs: the cores of the simulation, in this order.
pub fn pcpus(system: &of::System) -> BTreeSet<u32> {
    system.vcpus.iter().map(|vcpu| vcpu.pcpu).collect()
}

fn task(task: &of::Task) -> Task {
    let segment = |segment: &of::Segment| Segment {
        wcet: segment.wcet_ns,
        need: match segment.section {
            of::Section::Normal => Need::Nothing,
            of::Section::Global(resource) => Need::Global(resource),
            of::Section::Local(resource) => Need::Local(resource),
        },
    };
    Task {
        name: task.id.clone(),
        vcpu: task.vcpu,
        priority: unsigned(task.priority),
        handler: false,
        period: task.period_ns,
        offset: task.offset_ns,
        jitter: task.jitter_ns,
        segments: task.segments.iter().map(segment).collect(),
    }
}

/// Handlers are called as soon as all vCPUs have budgets, and then as often as they may be. The one
/// described first goes first.
fn handlers(system: &of::System) -> impl Iterator<Item = Task> + '_ {
    let begin = system.vcpus.iter().map(|vcpu| vcpu.offset_ns).max().unwrap_or(0);
    let count = system.handlers.len() as u64;
    system.handlers.iter().zip(0..).map(move |(handler, index)| Task {
        name: handler.id.clone(),
        vcpu: handler.vcpu,
        priority: count - index,
        handler: true,
        period: handler.period_ns,
        offset: begin,
        jitter: 0,
        segments: vec![Segment { wcet: handler.wcet_ns, need: Need::Nothing }],
    })
}

/// In the same order, from 0.
fn unsigned(priority: i64) -> u64 {
    priority.cast_unsigned() ^ (1 << 63)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_displacement_costs_its_pcpu_and_others_time() {
        let text = r#"{"server": "periodic", "overrun": true,
          "vcpus": [{"id": "a", "pcpu": 7, "budget": 30, "period": 1000, "priority": 1},
                    {"id": "b", "pcpu": 2, "budget": 40, "period": 2000, "priority": 2}],
          "tasks": [], "traffic": [{"every": 900, "visits": []},
            {"by": ["a"], "visits": [{"pcpu": 7, "doorbells": 1, "departures": 3},
                                     {"pcpu": 2, "doorbells": 3}, {"pcpu": 5, "doorbells": 1}]}]}"#;
        let system = of::System::from_json(text).unwrap();
        let overheads = Overheads { doorbell_ns: 10, departure_ns: 1, ..Overheads::NONE };
        let simulated =
            simulated(&system, Protocol::Vmpcp, Execution::Worst, overheads, 1).unwrap();
        simulated.check().unwrap();
        // A switch contains a departure. pCPU 5 is not simulated.
        let (begins, ends) = (vec![(1, 3), (0, 22)], vec![(1, 11), (0, 11)]);
        assert_eq!(simulated.displacements, [Displacement { by: vec![0], begins, ends }]);
    }

    #[test]
    fn keeps_order_and_indices() {
        let text = r#"{"server": "periodic", "overrun": true,
          "vcpus": [{"id": "a", "pcpu": 7, "budget": 3, "period": 10, "priority": -4, "offset": 2},
                    {"id": "b", "pcpu": 2, "budget": 4, "period": 20, "priority": 9}],
          "tasks": [{"id": "t", "vcpu": "b", "period": 90, "priority": 1, "offset": 5, "jitter": 6,
                     "segments": [{"wcet": 1}, {"wcet": 2, "gcs": "R"}, {"wcet": 3, "lcs": "L"}]},
                    {"id": "u", "vcpu": "b", "period": 80, "priority": 2, "segments": [{"wcet": 4, "gcs": "R"}]}]}"#;
        let system = of::System::from_json(text).unwrap();
        let simulated =
            simulated(&system, Protocol::Vmpcp, Execution::Worst, Overheads::NONE, 1).unwrap();
        simulated.check().unwrap();
        let [a, b] = &simulated.vcpus[..] else { panic!() };
        assert_eq!((a.core, b.core, a.offset), (1, 0, 2));
        assert!(a.priority < b.priority);
        let overrun = |vcpu: &Vcpu| vcpu.server.unwrap().overrun;
        assert_eq!((overrun(a), overrun(b)), (Duration(0), Duration(6)));
        let [t, u] = &simulated.tasks[..] else { panic!() };
        assert_eq!((t.vcpu, t.period, t.offset, t.jitter), (1, 90, 5, 6));
        let needs: Vec<_> = t.segments.iter().map(|s| (s.wcet, s.need)).collect();
        assert_eq!(needs, [(1, Need::Nothing), (2, Need::Global(0)), (3, Need::Local(1))]);
        assert!(t.priority < u.priority);
    }
}
