//! What is found, against a search that looks everywhere.

use super::*;
use crate::bounds::analyze;
use crate::model::{Section, Segment, ServerKind};

/// Two vCPUs that share R on one pCPU; budgets are much too small.
fn system(server: &str, overrun: bool) -> System {
    let text = format!(
        r#"{{"server": "{server}", "overrun": {overrun},
        "vcpus": [{{"id": "a", "pcpu": 0, "budget": 1000, "period": 10000000, "priority": 1}},
                  {{"id": "b", "pcpu": 0, "budget": 1000, "period": 10000000, "priority": 2}}],
        "tasks": [{{"id": "t", "vcpu": "a", "period": 200000000, "priority": 1,
                   "segments": [{{"wcet": 20000000}}, {{"wcet": 10000, "gcs": "R"}}]}},
                  {{"id": "u", "vcpu": "b", "period": 100000000, "priority": 1,
                   "segments": [{{"wcet": 10000000}}, {{"wcet": 10000, "gcs": "R"}}]}}]}}"#
    );
    System::from_json(&text).unwrap()
}

fn found(system: &System, periods: bool) -> System {
    match find(system, Bounds::Published, Overheads::NONE, periods).unwrap() {
        Search::Found(found) => found,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_found_holds_and_nothing_less_does() {
    for (server, overrun) in
        [("deferrable", true), ("deferrable", false), ("periodic", true), ("periodic", false)]
    {
        let found = found(&system(server, overrun), false);
        assert!(analyze(&found, Bounds::Published).unwrap().schedulable());
        for vcpu in 0..2 {
            let mut less = found.clone();
            less.vcpus[vcpu].budget_ns -= 1_000;
            assert!(!analyze(&less, Bounds::Published).unwrap().schedulable(), "{server}");
        }
    }
}

/// u: 10.01 of its own and one wait of 0.02 in 100 ms. With budget C: the
/// supply of 10 periods less the last gap, ceil(10.03 / C) + 1 gaps.
#[test]
fn least_is_least() {
    let found = found(&system("deferrable", true), false);
    // 9 gaps: 8 C >= 10.01 and wait + gaps 9 (10 - C) <= 100: C = 1.256 or so.
    let budget = found.vcpus[1].budget_ns;
    let holds = |budget| {
        let mut other = found.clone();
        other.vcpus[1].budget_ns = budget;
        analyze(&other, Bounds::Published).unwrap().tasks[1].schedulable()
    };
    let least = (1_000..=10_000_000).step_by(1_000).find(|&budget| holds(budget));
    assert_eq!(least, Some(budget));
}

#[test]
fn other_periods_need_no_more() {
    let system = system("periodic", true);
    let (fixed, chosen) = (found(&system, false), found(&system, true));
    assert!(analyze(&chosen, Bounds::Published).unwrap().schedulable());
    assert!(bandwidth(&chosen) < bandwidth(&fixed), "{chosen:?}");
}

#[test]
fn a_vcpu_that_cannot_be_helped_is_named() {
    let mut late = system("deferrable", true);
    late.tasks[1].period_ns = 10_015_000; // the wait alone is 20 µs
    let search = find(&late, Bounds::Published, Overheads::NONE, false).unwrap();
    assert_eq!(search, Search::TaskCannotBeHelped(1));
    let mut full = system("deferrable", true);
    full.tasks[0].segments[0].wcet_ns = 180_000_000;
    full.tasks[1].segments[0].wcet_ns = 80_000_000;
    let search = find(&full, Bounds::Published, Overheads::NONE, false).unwrap();
    assert!(matches!(search, Search::VcpuDoesNotFit { vcpu: 0, .. }), "{search:?}");
}

/// The least total bandwidth of all budgets there are, and whether any budgets
/// hold; times of the system are small.
fn least_of_all(system: &System) -> Option<f64> {
    let mut best: Option<f64> = None;
    let mut other = system.clone();
    let mut place = vec![1; system.vcpus.len()];
    loop {
        for (vcpu, &budget) in other.vcpus.iter_mut().zip(&place) {
            vcpu.budget_ns = budget;
        }
        let total = bandwidth(&other);
        let less = best.is_none_or(|best| total < best - 1e-9);
        if less && analyze(&other, Bounds::Published).unwrap().schedulable() {
            best = Some(total);
        }
        // The next of all combinations.
        let periods = system.vcpus.iter().map(|vcpu| vcpu.period_ns);
        let Some(turn) = place.iter().zip(periods).position(|(&budget, period)| budget < period)
        else {
            return best;
        };
        place[turn] += 1;
        place[..turn].fill(1);
    }
}

/// Small systems, by their number.
fn small(seed: u64) -> System {
    // Marsaglia's xorshift: any spread will do.
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut below = |count: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % count
    };
    let server = if seed.is_multiple_of(2) { ServerKind::Periodic } else { ServerKind::Deferrable };
    let vcpu = |index: u64, pcpu, period_ns| crate::model::Vcpu {
        id: format!("v{index}"),
        pcpu,
        budget_ns: period_ns,
        period_ns,
        priority: index as i64,
        offset_ns: 0,
    };
    let count = 2 + below(2);
    let vcpus = (0..count).map(|index| vcpu(index, below(2) as u32, 8 + 2 * below(3))).collect();
    let task = |index: u64| {
        let period_ns = 40 + below(200);
        let gcs = Section::Global(below(2) as usize);
        crate::model::Task {
            id: format!("t{index}"),
            vcpu: below(count) as usize,
            period_ns,
            priority: index as i64,
            segments: vec![
                Segment { wcet_ns: 1 + below(period_ns / 20), section: Section::Normal },
                Segment { wcet_ns: 1 + below(3), section: gcs },
            ],
            offset_ns: 0,
            jitter_ns: 0,
        }
    };
    let tasks = (0..4).map(task).collect();
    let resources = vec!["r".into(), "s".into()];
    System {
        server,
        overrun: seed % 4 < 2,
        vcpus,
        tasks,
        resources,
        traffic: Vec::new(),
        handlers: Vec::new(),
    }
}

#[test]
fn of_small_systems_hardly_any_could_have_less() {
    let (mut found, mut more, mut missed) = (0, 0, 0);
    for seed in 0..1_000 {
        let system = small(seed);
        system.check().unwrap();
        match (
            find(&system, Bounds::Published, Overheads::NONE, false).unwrap(),
            least_of_all(&system),
        ) {
            (Search::Found(other), Some(least)) => {
                assert!(analyze(&other, Bounds::Published).unwrap().schedulable());
                found += 1;
                more += u32::from(bandwidth(&other) > least + 1e-9);
            }
            (Search::Found(_), None) => panic!("{seed}: nothing holds"),
            (_, Some(_)) => missed += 1,
            (_, None) => {}
        }
    }
    assert!(found > 300, "{found}");
    assert!(more * 100 <= found, "{more} of {found}");
    assert_eq!(missed, 0);
}
