//! Sweeps f and the period of the RTOS: what the guest gets under each policy.
use sched::policy::MigrationPolicy::{Adaptive, None, OnDemand};
use sim::lock_holders::{Outcome, Rtos, Work, simulate};

fn main() {
    for work in [Work::Together, Work::Apart] {
        for advance in [4_000, 0] {
            println!(
                "{work:?} advance {advance} ns\nperiod us, f: sections none, on-demand, adaptive; adaptive of the best; latency; departures"
            );
            for period_us in [40u64, 97, 211, 997, 10_000] {
                for tenths in 0..10u64 {
                    let rtos = Rtos::steady(period_us * 1_000, tenths * 100, advance);
                    let length = (period_us * 1_000 * 40).max(100_000_000);
                    let all = |p| {
                        (1..=3).map(|seed| simulate(&rtos, work, p, length, seed)).fold(
                            Outcome::default(),
                            |a, b| Outcome {
                                sections: a.sections + b.sections,
                                departures: a.departures + b.departures,
                                activations: a.activations + b.activations,
                                latency_ns: a.latency_ns + b.latency_ns,
                            },
                        )
                    };
                    let [a, b, c] = [None, OnDemand, Adaptive].map(all);
                    let lat = |o: Outcome| o.latency_ns / o.activations.max(1);
                    println!(
                        "{period_us:6} {:.1}: {:8} {:8} {:8}  {:.3}  {} {} {}  {}/{}",
                        tenths as f64 / 10.0,
                        a.sections,
                        b.sections,
                        c.sections,
                        c.sections as f64 / a.sections.max(b.sections) as f64,
                        lat(a),
                        lat(b),
                        lat(c),
                        c.departures,
                        c.activations
                    );
                }
            }
        }
    }
}
