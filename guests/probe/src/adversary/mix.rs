//! All attacks, in a mixture that follows from the seed.

use super::MODES;
use super::actor::Actor;

/// Steps of one attack in a row, at most.
const ROW: u64 = 15;
/// Seldom enough that lives of the VM are thousands of operations long.
const FINAL: u64 = 500;

/// Some steps of one attack.
pub fn mix(actor: &mut Actor) -> u64 {
    let mode = &MODES[actor.random.up_to(MODES.len() as u64 - 1) as usize];
    if mode.name == "mix" || (mode.is_final && !actor.once_in(FINAL)) {
        return 0;
    }
    // What earlier ones left is there half of the time.
    if actor.once_in(2) {
        (mode.prepare)(actor);
    }
    if actor.index == 0 && actor.vcpus > 1 {
        actor.rescue();
    }
    let steps = 1 + actor.random.up_to(ROW);
    (0..steps).map(|_| (mode.step)(actor)).sum()
}
