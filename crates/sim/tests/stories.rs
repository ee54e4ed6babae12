//! One story for each rule of the protocol (RTSS 2014, Section III), small
//! enough to be followed with a pencil.

mod common;

use common::{idled, ran, run, server, system, task, vcpu};
use sched::server::ServerKind::{Deferrable, Periodic};
use sim::World;
use sim::system::Displacement;
use sim::system::Need::{Global, Local, Nothing};
use sim::system::Protocol::{Mpcp, Vmpcp};

#[test]
fn the_waiter_of_the_highest_vcpu_is_next_whatever_its_task_is() {
    // t0 holds; t1 on the higher vCPU and t2 on the lower one wait.
    let vcpus = || vec![vcpu(0, None), vcpu(1, None), vcpu(2, None)];
    let tasks = || {
        vec![
            task(0, 0, &[(10, Global(0))]),
            task(2, 1, &[(10, Global(0))]),
            task(1, 2, &[(10, Global(0))]),
        ]
    };
    let vmpcp = run(&system(Vmpcp, vcpus(), tasks()), 100);
    assert_eq!((ran(&vmpcp, 1), ran(&vmpcp, 2)), (vec![(10, 20)], vec![(20, 30)]));
    let mpcp = run(&system(Mpcp, vcpus(), tasks()), 100);
    assert_eq!((ran(&mpcp, 1), ran(&mpcp, 2)), (vec![(20, 30)], vec![(10, 20)]));
}

#[test]
fn a_gcs_of_a_low_vcpu_preempts_a_high_one_only_under_vmpcp() {
    // t1 gives back at 10 what t0 has waited for since 3; t2 is above t0's vCPU.
    let vcpus = || vec![vcpu(0, None), vcpu(1, None), vcpu(0, None)];
    let tasks = || {
        vec![
            task(0, 0, &[(3, Nothing), (5, Global(0))]),
            task(1, 0, &[(10, Global(0))]),
            task(2, 4, &[(20, Nothing)]),
        ]
    };
    let vmpcp = run(&system(Vmpcp, vcpus(), tasks()), 100);
    assert_eq!(ran(&vmpcp, 0), [(0, 3), (10, 15)]);
    assert_eq!(ran(&vmpcp, 2), [(4, 10), (15, 29)]);
    let mpcp = run(&system(Mpcp, vcpus(), tasks()), 100);
    assert_eq!((ran(&mpcp, 0), ran(&mpcp, 2)), (vec![(0, 3), (24, 29)], vec![(4, 24)]));
}

#[test]
fn a_gcs_of_a_low_task_is_not_preempted_within_its_vcpu() {
    for protocol in [Vmpcp, Mpcp] {
        let tasks = vec![task(0, 0, &[(10, Global(0))]), task(0, 4, &[(3, Nothing)])];
        let seen = run(&system(protocol, vec![vcpu(0, None)], tasks), 100);
        assert_eq!((ran(&seen, 0), ran(&seen, 1)), (vec![(0, 10)], vec![(10, 13)]));
    }
}

#[test]
fn a_gcs_ends_beyond_the_budget_with_overrun_and_waits_without() {
    let tasks = || vec![task(0, 0, &[(2, Nothing), (4, Global(0)), (1, Nothing)])];
    for (overrun, expected) in [
        (0, vec![(0, 2), (2, 3), (10, 13), (20, 21)]),
        (4, vec![(0, 2), (2, 6), (10, 11)]),
        // The limit is enforced: two of the three that are missing.
        (2, vec![(0, 2), (2, 5), (10, 11), (11, 12)]),
    ] {
        for kind in [Periodic, Deferrable] {
            let vcpus = vec![vcpu(0, server(kind, 3, 10, overrun))];
            assert_eq!(ran(&run(&system(Vmpcp, vcpus, tasks()), 40), 0), expected);
        }
    }
    let vcpus = vec![vcpu(0, server(Deferrable, 3, 10, 4))];
    let mpcp = run(&system(Mpcp, vcpus, tasks()), 40);
    assert_eq!(ran(&mpcp, 0), [(0, 2), (2, 3), (10, 13), (20, 21)], "MPCP knows no overrun");
}

#[test]
fn a_grant_to_a_suspended_vcpu_is_used_at_once_by_a_deferrable_server_only() {
    // t0 asks at 1; t2 uses up the budget by 4; t1 gives back at 5.
    let tasks = || {
        vec![
            task(0, 0, &[(1, Nothing), (2, Global(0))]),
            task(1, 0, &[(5, Global(0))]),
            task(0, 2, &[(7, Nothing)]),
        ]
    };
    for (kind, expected) in [(Deferrable, (5, 7)), (Periodic, (10, 12))] {
        let vcpus = vec![vcpu(0, server(kind, 3, 10, 2)), vcpu(1, None)];
        let seen = run(&system(Vmpcp, vcpus, tasks()), 40);
        assert_eq!(ran(&seen, 0), [(0, 1), expected], "{kind:?}");
    }
}

#[test]
fn budget_without_work_is_kept_or_idled_away() {
    let tasks = || vec![task(0, 0, &[(4, Nothing)]), task(1, 6, &[(5, Nothing)])];
    let vcpus = |kind| vec![vcpu(0, None), vcpu(0, server(kind, 3, 10, 0))];
    let deferrable = run(&system(Vmpcp, vcpus(Deferrable), tasks()), 30);
    assert_eq!((ran(&deferrable, 0), ran(&deferrable, 1)), (vec![(0, 4)], vec![(6, 9), (10, 12)]));
    let periodic = run(&system(Vmpcp, vcpus(Periodic), tasks()), 30);
    assert_eq!(ran(&periodic, 1), [(10, 13), (20, 22)]);
    assert_eq!(ran(&periodic, 0), [(3, 7)], "no vCPU runs while the high one idles");
    assert_eq!(idled(&periodic, 1), [(0, 3), (22, 23)]);
}

#[test]
fn local_resources_follow_the_priority_ceiling_protocol() {
    // t2 waits for t0, which runs with t2's priority, above t1.
    let tasks = vec![
        task(0, 0, &[(1, Nothing), (6, Local(0))]),
        task(0, 2, &[(4, Nothing)]),
        task(0, 3, &[(1, Nothing), (2, Local(0))]),
    ];
    let seen = run(&system(Vmpcp, vec![vcpu(0, None)], tasks), 40);
    assert_eq!(ran(&seen, 2), [(3, 4), (9, 11)]);
    assert_eq!(ran(&seen, 0), [(0, 1), (1, 2), (4, 9)]);
    assert_eq!(ran(&seen, 1), [(2, 3), (11, 14)]);
}

#[test]
fn jobs_that_overtake_their_predecessors_wait_in_line() {
    let mut late = task(0, 0, &[(15, Nothing)]);
    late.period = 10;
    let system = system(Vmpcp, vec![vcpu(0, None)], vec![late]);
    let mut world = World::new(&system).unwrap();
    world.run_until(45);
    let record = *world.records().next().unwrap();
    assert_eq!((record.arrived, record.completed, record.late), (5, 3, 3));
    assert_eq!((record.shortest, record.longest), (15, 25));
    assert_eq!(world.unfinished().next().unwrap(), Some(15));
}

#[test]
fn a_server_waits_for_its_first_period() {
    let mut late = vcpu(0, server(Deferrable, 3, 10, 0));
    late.offset = 4;
    let seen = run(&system(Vmpcp, vec![late], vec![task(0, 0, &[(5, Nothing)])]), 40);
    assert_eq!(ran(&seen, 0), [(4, 7), (14, 16)]);
}

#[test]
fn nonsense_is_refused_by_name() {
    type Change = fn(&mut sim::System);
    let one = || vec![vcpu(0, server(Periodic, 3, 10, 0))];
    let ok = || vec![task(0, 0, &[(1, Nothing)])];
    let refusal = |vcpus, tasks, change: Change| {
        let mut system = system(Vmpcp, vcpus, tasks);
        change(&mut system);
        World::new(&system).err().unwrap().to_string()
    };
    let cases: [(Change, &str); 8] = [
        (|s| s.vcpus[0].server.as_mut().unwrap().budget.0 = 0, "v0: the budget is zero"),
        (|s| s.vcpus[0].server.as_mut().unwrap().overrun.0 = 8, "v0: budget and overrun"),
        (|s| s.vcpus[0].core = 64, "v0: its core is not below 64"),
        (|s| s.tasks[0].vcpu = 1, "t0: its vCPU does not exist"),
        (|s| s.tasks[0].period = 0, "t0: its period is zero"),
        (|s| s.tasks[0].segments[0].wcet = 0, "t0: it has no segment, or one"),
        (|s| s.tasks[0].jitter = 1000, "t0: its release jitter"),
        (|s| s.tasks.push(s.tasks[0].clone()), "v0: two of its tasks have the same priority"),
    ];
    for (change, said) in cases {
        let refusal = refusal(one(), ok(), change);
        assert!(refusal.contains(said), "{refusal}");
    }
    let two = vec![vcpu(0, None), vcpu(0, None)];
    let shared = vec![task(0, 0, &[(1, Local(0))]), task(1, 0, &[(1, Local(0))])];
    assert!(refusal(two, shared, |_| ()).contains("another vCPU's too"));
}

#[test]
fn a_displacement_takes_time_of_its_core_and_of_others() {
    // v0 displaces another vCPU from 10 on, and v2, above it, does not.
    let vcpus = vec![vcpu(0, None), vcpu(1, None), vcpu(0, None)];
    let tasks = || {
        vec![
            task(0, 10, &[(5, Nothing)]),
            task(1, 0, &[(20, Nothing)]),
            task(2, 14, &[(3, Nothing)]),
        ]
    };
    let mut system = system(Vmpcp, vcpus, tasks());
    let (begins, ends) = (vec![(0, 1), (1, 2)], vec![(1, 1)]);
    system.displacements.push(Displacement { by: vec![0], begins, ends });
    let seen = run(&system, 100);
    assert_eq!(ran(&seen, 0), [(11, 14), (18, 20)]);
    assert_eq!(ran(&seen, 2), [(14, 17)]);
    // It begins at 10 and 17, and ends at 14 and 20.
    assert_eq!(ran(&seen, 1), [(0, 10), (12, 14), (15, 17), (19, 20), (21, 26)]);
    system.displacements[0].by = vec![0, 1];
    assert!(World::new(&system).is_err(), "they are on two cores");
    system.displacements[0].by = Vec::new();
    assert!(World::new(&system).is_err(), "it has no cause");
}
