//! The adaptive policy beside those that always do the same, in the model of an SMP guest.

use sched::policy::MigrationPolicy::{self, Adaptive, None, OnDemand};
use sim::lock_holders::{Outcome, Rtos, Work, simulate};

const LENGTH_NS: u64 = 20_000_000;

fn run(rtos: &Rtos, work: Work, policy: MigrationPolicy) -> Outcome {
    let all = (1..=2).map(|seed| simulate(rtos, work, policy, LENGTH_NS, seed));
    all.reduce(|one, other| Outcome {
        sections: one.sections + other.sections,
        departures: one.departures + other.departures,
        activations: one.activations + other.activations,
        latency_ns: one.latency_ns + other.latency_ns,
    })
    .unwrap()
}

/// With longer periods a run has too few activations: whether they meet a lock holder is chance.
#[test]
fn adaptive_is_within_two_percent_of_the_best_where_activations_are_foreseen() {
    for work in [Work::Together, Work::Apart] {
        for (period_us, load) in [(40, 0), (40, 500), (40, 800), (97, 0), (97, 500), (97, 800)] {
            let rtos = Rtos::steady(period_us * 1_000, load, 4_000);
            let [none, on_demand, ours] =
                [None, OnDemand, Adaptive].map(|policy| run(&rtos, work, policy).sections as f64);
            let ratio = ours / none.max(on_demand);
            assert!(ratio > 0.98, "{work:?}, {period_us} us, {load}: {ratio:.3}");
        }
    }
}

/// The premise of a policy that chooses: neither of both is always the better one.
#[test]
fn each_of_the_others_is_best_somewhere() {
    let long = Rtos::steady(97_000, 800, 4_000);
    let sections = |work, policy| run(&long, work, policy).sections as f64;
    assert!(sections(Work::Together, OnDemand) > 2.0 * sections(Work::Together, None));
    let short = Rtos::steady(40_000, 300, 4_000);
    let sections = |work, policy| run(&short, work, policy).sections as f64;
    assert!(sections(Work::Apart, None) > 1.01 * sections(Work::Apart, OnDemand));
}

#[test]
fn an_activation_that_nothing_foretells_does_not_wait_for_a_departure() {
    let rtos = Rtos::steady(97_000, 500, 0);
    let mean = |policy| {
        let seen = run(&rtos, Work::Together, policy);
        (seen.latency_ns / seen.activations, seen.departures * 10 > seen.activations * 9)
    };
    let [(none, _), (on_demand, _), (ours, leaves)] = [None, OnDemand, Adaptive].map(mean);
    assert!(leaves && on_demand > none && ours * 10 <= none * 11, "{none} {on_demand} {ours}");
}

#[test]
fn lengths_that_change_are_learned_again() {
    let mut lengths = vec![1_000; 100];
    lengths.extend([60_000; 100]);
    let rtos = Rtos { period_ns: 97_000, activations_ns: lengths, advance_ns: 0 };
    let seen = simulate(&rtos, Work::Together, Adaptive, 97_000 * 401, 1);
    assert!((190..=230).contains(&seen.departures), "{} of 400", seen.departures);
}
