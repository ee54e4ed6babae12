//! What the distributor and the redistributors have in common.

use super::bus::{Guest, Outcome};
use crate::arch::timer;
use vgic::interface::Hardware;
use vgic::{Effects, Gic};

/// Accesses a register with everything in the banks, then puts everything that
/// should be in the list registers back there.
pub fn access(guest: &mut Guest, act: impl FnOnce(&Gic) -> (u64, Effects)) -> Outcome {
    let (gic, hw) = (&guest.caller.shared.gic, &mut *guest.list_registers);
    if !guest.interface.take_back_for_access(gic, hw) {
        return Outcome { again: true, ..Outcome::default() };
    }
    // The hardware would have withdrawn a timer that no longer asserts.
    if !timer::loaded_is_asserted() && gic.retract(guest.caller.index, timer::VIRTUAL_INTID) {
        hw.deactivate(timer::VIRTUAL_INTID);
    }
    let (value, effects) = act(gic);
    if let Some((word, bits)) = effects.deactivate {
        gic.deactivate_linked(hw, word, bits);
    }
    guest.injected += guest.interface.list(gic, hw);
    // The vCPU itself has just looked.
    let notify = effects.notify & !(1 << guest.caller.index);
    Outcome { value, effects: Effects { notify, ..effects }, ..Outcome::default() }
}
