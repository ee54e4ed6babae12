//! Random guests on random hardware against the ideal interrupt controller.
//!
//! Doorbells and maintenance interrupts are answered before the guests go on,
//! so that everything must be as in the ideal one after every single step: what
//! each vCPU would acknowledge next, and every register. Whenever EL2 looks, something urgent
//! may have come: the work stops there, and must come to the same end.

use super::both::Both;
use super::chance::step;
use super::cpu::Looks;
use super::*;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_step_is_as_in_the_ideal(
        count in prop::sample::select(&COUNTS[..]),
        split: bool,
        looks: u64,
        (vcpus, steps) in (1..=4usize).prop_flat_map(|vcpus| {
            (Just(vcpus), prop::collection::vec(step(vcpus), 1..900))
        }),
    ) {
        let mut both = Both::new(vcpus, count, split);
        for seat in &mut both.world.seats {
            seat.cpu.looks = Looks::Bits(looks);
        }
        for (at, step) in steps.iter().enumerate() {
            both.take(step);
            both.compare();
            if at % 16 == 0 {
                both.compare_registers();
            }
        }
        both.compare_registers();
        both.drain();
    }
}
