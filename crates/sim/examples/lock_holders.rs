//! Sweeps load and period of the real-time vCPU: what an SMP guest with a lock does beside it under
//! each policy. The table stands in `docs/src/policies/adaptive.md`.

use sched::policy::MigrationPolicy::{self, Adaptive, None, OnDemand};
use sim::lock_holders::{Outcome, Rtos, Work, simulate};

const SEEDS: u64 = 5;
const LOADS_PERMILLE: [u64; 6] = [0, 100, 300, 500, 800, 900];

fn main() {
    println!(
        "| guest | advance | period | on-demand of none, f = 0 | 0.3 | 0.8 | adaptive of the best, least | at f |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for work in [Work::Together, Work::Apart] {
        for advance_ns in [4_000, 0] {
            for period_us in [40, 97, 211, 997, 10_000] {
                row(work, advance_ns, period_us);
            }
        }
    }
}

fn row(work: Work, advance_ns: u64, period_us: u64) {
    let length_ns = (period_us * 40_000).max(50_000_000);
    let sections = |load, policy: MigrationPolicy| {
        let rtos = Rtos::steady(period_us * 1_000, load, advance_ns);
        let runs = (1..=SEEDS).map(|seed| simulate(&rtos, work, policy, length_ns, seed));
        runs.map(|Outcome { sections, .. }| sections).sum::<u64>() as f64
    };
    let all =
        LOADS_PERMILLE.map(|load| (load, [None, OnDemand, Adaptive].map(|p| sections(load, p))));
    let ratio = |wanted| {
        let (_, [none, on_demand, _]) = all.iter().find(|(load, _)| *load == wanted)?;
        Some(on_demand / none)
    };
    let worst =
        all.iter().map(|(load, [none, on_demand, ours])| (ours / none.max(*on_demand), *load));
    let (least, at) = worst.min_by(|one, other| one.0.total_cmp(&other.0)).unwrap_or_default();
    let [idle, third, most] = [0, 300, 800].map(|load| ratio(load).unwrap_or(f64::NAN));
    println!(
        "| {work:?} | {} µs | {period_us} µs | {idle:.3} | {third:.3} | {most:.3} | {least:.3} | {} |",
        advance_ns / 1_000,
        at as f64 / 1e3
    );
}
