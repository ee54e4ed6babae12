//! Random systems keep to the protocol, whatever they are: feasible or not,
//! with servers of all kinds side by side or without.

mod common;

use common::{server, vcpu};
use proptest::prelude::*;
use sched::server::ServerKind;
use sim::system::{Costs, Execution, Need, Protocol, Segment, System, Task};
use sim::{World, checker::Checker};

const HORIZON: u64 = 3_000;

fn any_vcpu() -> impl Strategy<Value = sim::system::Vcpu> {
    let kind = prop_oneof![Just(ServerKind::Periodic), Just(ServerKind::Deferrable)];
    let period = prop_oneof![10u64..60, Just(20)];
    (0usize..3, kind, period, 1u64..=100, 0u64..=100, 0u64..20, prop::bool::weighted(0.15))
        .prop_map(|(core, kind, period, share, overrun, offset, free)| {
            let budget = (period * share / 100).max(1);
            let overrun = (period - budget) * overrun / 100;
            let server = if free { None } else { server(kind, budget, period, overrun) };
            sim::system::Vcpu { offset, ..vcpu(core, server) }
        })
}

fn any_task() -> impl Strategy<Value = (usize, Task)> {
    let need = prop_oneof![
        2 => Just(Need::Nothing),
        2 => (0usize..3).prop_map(Need::Global),
        1 => (0usize..2).prop_map(Need::Local),
    ];
    let segment = (1u64..12, need).prop_map(|(wcet, need)| Segment { wcet, need });
    let segments = prop::collection::vec(segment, 1..5);
    let handler = prop::bool::weighted(0.2);
    (0usize..6, 40u64..400, 0u64..100, 0u64..100, handler, segments).prop_map(
        |(vcpu, period, offset, jitter, handler, mut segments)| {
            let jitter = jitter * (period - 1) / 200;
            let name = String::new();
            if handler {
                segments.iter_mut().for_each(|segment| segment.need = Need::Nothing);
            }
            (vcpu, Task { name, vcpu: 0, priority: 0, handler, period, offset, jitter, segments })
        },
    )
}

/// For half of the systems, EL2 takes some time.
fn costs(seed: u64) -> Costs {
    if seed.is_multiple_of(2) {
        return Costs::default();
    }
    Costs {
        release: seed >> 1 & 1,
        switch_on_wake: seed >> 2 & 3,
        switch_on_sleep: seed >> 4 & 1,
        timer: seed >> 5 & 1,
        doorbell: seed >> 6 & 1,
        gcs_call: seed >> 7 & 1,
        grant: seed >> 8 & 1,
        departure: seed >> 9 & 1,
        timer_advance: seed >> 10 & 1,
        duty: seed >> 11 & 1,
        duty_every: 20 + (seed >> 12 & 31),
    }
}

fn any_system() -> impl Strategy<Value = System> {
    let vcpus = prop::collection::vec(any_vcpu(), 1..6);
    let tasks = prop::collection::vec(any_task(), 1..10);
    let protocol = prop_oneof![3 => Just(Protocol::Vmpcp), 1 => Just(Protocol::Mpcp)];
    (protocol, any::<u64>(), 1u8..=100, vcpus, tasks).prop_map(
        |(protocol, seed, least, mut vcpus, tasks)| {
            for (index, vcpu) in vcpus.iter_mut().enumerate() {
                (vcpu.name, vcpu.priority) = (format!("v{index}"), seed >> (index * 8) & 0xff);
            }
            let place = |(index, (vcpu, mut task)): (usize, (usize, Task))| {
                task.vcpu = vcpu % vcpus.len();
                (task.name, task.priority) = (format!("t{index}"), index as u64);
                // Local resources are the vCPU's own.
                for segment in &mut task.segments {
                    if let Need::Local(resource) = &mut segment.need {
                        *resource += 2 * task.vcpu;
                    }
                }
                task
            };
            let tasks = tasks.into_iter().enumerate().map(place).collect();
            let (execution, costs) = (Execution::Random { least }, costs(seed));
            System { protocol, execution, costs, displacements: Vec::new(), seed, vcpus, tasks }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn keep_to_the_protocol(system in any_system()) {
        let mut world = World::watched(&system, Checker::new(&system)).unwrap();
        world.run_until(HORIZON);
        prop_assert_eq!(world.observer().objection(), None);
    }

    /// Time passes in one step as in many, and chance is the seed's alone.
    #[test]
    fn looking_changes_nothing(system in any_system(), looks in prop::collection::vec(1u64..200, 1..20)) {
        let mut whole = World::new(&system).unwrap();
        whole.run_until(HORIZON);
        let (mut pieces, mut now) = (World::new(&system).unwrap(), 0);
        for look in looks {
            now = (now + look).min(HORIZON);
            pieces.run_until(now);
        }
        pieces.run_until(HORIZON);
        prop_assert!(whole.records().eq(pieces.records()));
        prop_assert_eq!(whole.events(), pieces.events());
    }
}
