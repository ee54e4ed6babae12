//! Random guests while doorbells and maintenance interrupts take their time.
//!
//! What a vCPU sees may then lag behind, so not every step can be foretold. But
//! nothing may be lost: whatever was posted is taken by some vCPU afterwards,
//! unless it was cleared. Nothing is taken more often than it was posted, no
//! interrupt is active twice, and whenever all doorbells have been answered,
//! what is active and pending is exactly what the guests' own records say.

use super::chance::step;
use super::ledger::Ledger;
use super::*;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_or_taken_twice(
        count in prop::sample::select(&COUNTS[..]),
        split: bool,
        (vcpus, steps) in (1..=4usize).prop_flat_map(|vcpus| {
            (Just(vcpus), prop::collection::vec(step(vcpus), 1..900))
        }),
    ) {
        let mut ledger = Ledger::new(vcpus, count, split);
        for (at, step) in steps.iter().enumerate() {
            ledger.take(step);
            if at % 40 == 39 {
                ledger.settle();
            }
        }
        ledger.settle();
        ledger.drain();
    }
}
