//! The case study as worked out by hand (docs/src/simulation.md).

use sim::case_study::{Scheme, system};
use sim::{World, checker::Checker};

/// Response times of τ1 to τ8, in tenths of a millisecond.
const EXPECTED: [(Scheme, [u64; 8]); 3] = [
    (Scheme::Mpcp, [251, 111, 221, 181, 161, 121, 101, 61]),
    (Scheme::DeferrableNoOverrun, [191, 111, 181, 151, 141, 111, 101, 71]),
    (Scheme::DeferrableWithOverrun, [140, 110, 120, 90, 100, 70, 100, 60]),
];

#[test]
fn every_task_responds_when_the_pencil_says_so() {
    for (scheme, expected) in EXPECTED {
        let system = system(scheme);
        let mut world = World::watched(&system, Checker::new(&system)).unwrap();
        // Five hyperperiods: all alike.
        world.run_until(999_999_999);
        for (record, tenths) in world.records().zip(expected) {
            assert_eq!((record.arrived, record.completed), (5, 5));
            let response = tenths * 100_000;
            assert_eq!((record.shortest, record.longest), (response, response), "{scheme:?}");
        }
        assert_eq!(world.observer().objection(), None);
    }
}
