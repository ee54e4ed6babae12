//! How fast the world turns: the case study under each scheme, on one core of
//! the host. An event is whatever changes which vCPU runs, or may: a release, the end
//! of a segment, a request, a grant, a decision of a core's scheduler.

use sim::World;
use sim::case_study::{Scheme, system};
use std::time::{Duration, Instant};

/// Simulated time in one run, ns: a hundred hyperperiods.
const RUN: u64 = 20_000_000_000;

/// Runs are repeated for so long.
const ENOUGH: Duration = Duration::from_secs(2);

fn main() {
    for scheme in Scheme::ALL {
        let (mut events, mut decisions, mut simulated) = (0, 0, 0);
        let begin = Instant::now();
        while begin.elapsed() < ENOUGH {
            let Ok(mut world) = World::new(&system(scheme)) else {
                unreachable!("the case study makes sense")
            };
            world.run_until(RUN);
            events += world.events();
            decisions += world.decisions();
            simulated += RUN;
        }
        let seconds = begin.elapsed().as_secs_f64();
        #[allow(clippy::cast_precision_loss)] // rounded when printed
        let rate = |count: u64| count as f64 / seconds / 1e6;
        println!(
            "{:12} {:6.2} million events/s, {:.2} million of them decisions; {:.0} times real time",
            scheme.name(),
            rate(events),
            rate(decisions),
            rate(simulated) / 1e3,
        );
    }
}
