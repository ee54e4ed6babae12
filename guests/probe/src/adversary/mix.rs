//! All attacks, in a mixture that follows from the seed.

use super::MODES;
use super::actor::Actor;
use crate::wait;

/// Steps of one attack in a row, at most.
const ROW: u64 = 255;
/// The same, in microseconds: some steps keep EL2 busy for that long.
const ROW_US: u64 = 100;
/// Seldom enough that lives of the VM are tens of thousands of operations long.
const FINAL: u64 = 50;

/// Some steps of one attack.
pub fn mix(actor: &mut Actor) -> u64 {
    let mode = &MODES[actor.random.up_to(MODES.len() as u64 - 1) as usize];
    if mode.name == "mix" || (mode.is_final && !actor.once_in(FINAL)) {
        return 0;
    }
    // No sibling is sure to wake it.
    if mode.name == "messages" && !actor.may_sleep() {
        return 0;
    }
    // Mostly with what earlier ones left.
    if actor.once_in(4) {
        (mode.prepare)(actor);
    }
    if actor.index == 0 && actor.vcpus > 1 {
        actor.rescue();
    }
    let (mut done, end) = (0, wait::now() + wait::us(ROW_US));
    for _ in 0..=actor.random.up_to(ROW) {
        done += (mode.step)(actor);
        if wait::now() >= end || actor.goes_off() {
            break;
        }
    }
    done
}
