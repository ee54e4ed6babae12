//! Where the world ends, and what is kept of it.

mod common;

use common::{server, system, task, vcpu};
use sched::server::ServerKind::Deferrable;
use sim::World;
use sim::system::MAX_TIME;
use sim::system::Need::Nothing;
use sim::system::Protocol::Vmpcp;
use sim::timeline::{MOST, Timeline};

#[test]
fn time_ends_before_its_numbers_do() {
    let mut long = task(0, MAX_TIME, &[(MAX_TIME, Nothing)]);
    (long.period, long.jitter) = (MAX_TIME, MAX_TIME - 1);
    let vcpus = vec![vcpu(0, server(Deferrable, MAX_TIME, MAX_TIME, 0))];
    let of_long_times = system(Vmpcp, vcpus, vec![long.clone(), task(0, 0, &[(1, Nothing)])]);
    let mut slow = of_long_times.clone();
    slow.tasks[1].period = MAX_TIME / 4;
    let mut world = World::new(&slow).unwrap();
    world.run_until(u64::MAX);
    assert_eq!(world.now(), MAX_TIME);
    let arrived: Vec<_> = world.records().map(|record| record.arrived).collect();
    assert_eq!(arrived[1], 5);

    for longer in [
        |system: &mut sim::System| system.tasks[0].offset += 1,
        |system: &mut sim::System| system.tasks[0].period += 1,
        |system: &mut sim::System| system.tasks[0].segments[0].wcet += 1,
        |system: &mut sim::System| system.vcpus[0].offset = MAX_TIME + 1,
        |system: &mut sim::System| system.vcpus[0].server.as_mut().unwrap().period.0 += 1,
    ] {
        let mut system = of_long_times.clone();
        longer(&mut system);
        let refusal = system.check().unwrap_err().to_string();
        assert!(refusal.contains("longer than 2^62 ns"), "{refusal}");
    }
}

#[test]
fn jobs_that_wait_for_their_turn_keep_their_arrivals() {
    // 3 in every 2, until the end of 9 jobs at 27: the last arrived at 16.
    let mut late = task(0, 0, &[(3, Nothing)]);
    late.period = 2;
    let mut world = World::new(&system(Vmpcp, vec![vcpu(0, None)], vec![late])).unwrap();
    world.run_until(27);
    let record = *world.records().next().unwrap();
    assert_eq!((record.completed, record.longest, record.shortest), (9, 11, 3));
    assert_eq!((record.arrived, record.late), (14, 9));
    assert_eq!(world.unfinished().next(), Some(Some(27 - 18)));
}

#[test]
fn a_timeline_ends_before_it_is_too_long_to_be_drawn() {
    let mut often = task(0, 0, &[(1, Nothing)]);
    often.period = 2;
    let rare = task(1, 0, &[(1_000_000_000, Nothing)]);
    let system = system(Vmpcp, vec![vcpu(0, None), vcpu(1, None)], vec![often, rare]);
    let end = 10 * MOST as u64;
    let mut world = World::watched(&system, Timeline::until(end)).unwrap();
    world.run_until(end);
    let timeline = world.into_observer();
    assert!((MOST as u64..end).contains(&timeline.end()), "{}", timeline.end());
    assert_eq!(timeline.slices.len(), MOST);
    assert!(timeline.slices.iter().all(|slice| slice.to <= timeline.end()));
    assert!(timeline.jobs.iter().all(|job| job.completion <= timeline.end()));
}

#[test]
fn a_timeline_ends_before_there_are_too_many_jobs() {
    // Jobs without a pause are one slice.
    let mut always = task(0, 0, &[(2, Nothing)]);
    always.period = 2;
    let end = 10 * MOST as u64;
    let system = system(Vmpcp, vec![vcpu(0, None)], vec![always]);
    let mut world = World::watched(&system, Timeline::until(end)).unwrap();
    world.run_until(end);
    let timeline = world.into_observer();
    assert_eq!((timeline.slices.len(), timeline.jobs.len()), (1, MOST));
    assert_eq!(timeline.end(), 2 * MOST as u64 + 1);
}
