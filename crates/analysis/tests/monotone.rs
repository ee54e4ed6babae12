//! A task that asks for more gets no better bound, and one that is given more no worse.

mod support;

use analysis::bounds::{Bounds, Verdict, Workload, analyze, analyze_with};
use analysis::model::{Cause, System, Traffic, Visits};
use analysis::overheads::Overheads;
use proptest::prelude::*;

/// Response times of everything; what has no bound is late for ever.
fn responses(verdict: &Verdict) -> Vec<u64> {
    let vcpus = verdict.vcpus.iter().map(|vcpu| vcpu.response_ns);
    let tasks = verdict.tasks.iter().map(|task| task.response_ns);
    vcpus.chain(tasks).map(|response| response.unwrap_or(u64::MAX)).collect()
}

fn no_better(worse: &System, better: &System, bounds: Bounds) -> Result<(), TestCaseError> {
    let worse = responses(&analyze(worse, bounds).unwrap());
    let better = responses(&analyze(better, bounds).unwrap());
    for (index, (worse, better)) in worse.iter().zip(&better).enumerate() {
        prop_assert!(worse >= better, "{index}: {worse} < {better}");
    }
    Ok(())
}

fn bounds() -> impl Strategy<Value = Bounds> {
    prop_oneof![Just(Bounds::Published), Just(Bounds::Corrected)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn longer_segments_make_nothing_faster(
        system in support::systems(), which in any::<prop::sample::Index>(),
        by in 1..5_u64, bounds in bounds(),
    ) {
        let mut longer = system.clone();
        let segments: Vec<_> = longer.tasks.iter_mut().flat_map(|task| &mut task.segments).collect();
        prop_assume!(!segments.is_empty());
        let count = segments.len();
        segments.into_iter().nth(which.index(count)).unwrap().wcet_ns += by;
        no_better(&longer, &system, bounds)?;
    }

    #[test]
    fn later_releases_make_nothing_faster(
        system in support::systems(), which in any::<prop::sample::Index>(), bounds in bounds(),
    ) {
        prop_assume!(!system.tasks.is_empty());
        let mut later = system.clone();
        later.tasks[which.index(system.tasks.len())].jitter_ns += 7;
        no_better(&later, &system, bounds)?;
    }

    #[test]
    fn a_greater_budget_makes_no_task_slower(
        system in support::systems(), which in any::<prop::sample::Index>(), bounds in bounds(),
    ) {
        let mut greater = system.clone();
        let vcpu = &mut greater.vcpus[which.index(system.vcpus.len())];
        prop_assume!(vcpu.budget_ns < vcpu.period_ns);
        vcpu.budget_ns += 1;
        let tasks = |system: &System| {
            let verdict = analyze(system, bounds).unwrap();
            verdict.tasks.iter().map(|task| task.response_ns.unwrap_or(u64::MAX)).collect::<Vec<_>>()
        };
        for (greater, smaller) in tasks(&greater).into_iter().zip(tasks(&system)) {
            prop_assert!(greater <= smaller, "{greater} > {smaller}");
        }
    }

    /// What one pCPU causes on another, more of it, and for more vCPUs.
    #[test]
    fn more_traffic_makes_nothing_faster(
        mut system in support::systems(), by in prop::collection::vec(any::<bool>(), 4),
        every in 50..500_u64, counts in (0..3_u64, 0..3_u64, 0..3_u64), bounds in bounds(),
    ) {
        let overheads = Overheads { doorbell_ns: 1, timer_ns: 1, departure_ns: 1, ..Overheads::NONE };
        // EL2 alone may take all of a pCPU.
        let late = |system: &System| match analyze_with(system, bounds, overheads) {
            Ok(verdict) => responses(&verdict),
            Err(_) => vec![u64::MAX; system.vcpus.len() + system.tasks.len()],
        };
        let mut before = late(&system);
        let (doorbells, timers, departures) = counts;
        let visits = Visits { pcpu: 0, doorbells, timers, departures };
        let here = |index: &usize| system.vcpus[*index].pcpu == 1;
        let by: Vec<usize> =
            (0..system.vcpus.len()).filter(here).filter(|index| by[*index]).collect();
        let displaced = (!by.is_empty()).then_some(Cause::Displacement { by });
        for cause in displaced.into_iter().chain([Cause::Every(every)]) {
            system.traffic.push(Traffic { cause, visits: vec![visits] });
            prop_assert_eq!(system.check(), Ok(()));
            let after = late(&system);
            prop_assert!(after.iter().zip(&before).all(|(after, before)| after >= before));
            before = after;
        }
        system.traffic.iter_mut().for_each(|one| one.visits[0].doorbells += 1);
        prop_assert!(late(&system).iter().zip(&before).all(|(after, before)| after >= before));
    }

    #[test]
    fn the_corrected_bounds_are_never_below_the_published(system in support::systems()) {
        let published = responses(&analyze(&system, Bounds::Published).unwrap());
        let corrected = responses(&analyze(&system, Bounds::Corrected).unwrap());
        for (corrected, published) in corrected.iter().zip(&published) {
            prop_assert!(corrected >= published);
        }
    }

    #[test]
    fn the_quick_answer_is_the_long_one(system in support::systems(), bounds in bounds()) {
        let workload = Workload::new(&system, bounds).unwrap();
        let mut responses = vec![None; system.tasks.len()];
        let vcpus = workload.vcpus_schedulable().unwrap();
        let tasks = workload.tasks_schedulable(&mut responses).unwrap();
        prop_assert_eq!(vcpus && tasks, analyze(&system, bounds).unwrap().schedulable());
    }
}
