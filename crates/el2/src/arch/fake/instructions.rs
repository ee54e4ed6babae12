//! Barriers and maintenance, of which one core at a time needs few; waiting.

use super::machine::{self, Machine, Pause};
use super::registers::{self, Register};

/// See [`super::super::aarch64`].
pub fn synchronize() {
    machine::with(|machine| machine.core_mut().stale = None);
}

/// The same.
pub fn complete() {
    machine::pause(Pause::Access);
}

/// The same.
pub fn complete_and_take_error() -> bool {
    complete();
    let ended = machine::with(|machine| {
        machine.errors_arrive();
        let pends = machine.core().error.is_some();
        if pends {
            machine.end_error();
        }
        pends
    });
    synchronize();
    ended
}

/// The same.
pub fn publish() {
    machine::pause(Pause::Access);
}

/// Lets other cores go on until an interrupt is signalled.
pub fn wait_for_interrupt() {
    machine::with(Machine::errors_arrive);
    machine::pause(Pause::Wait);
    synchronize();
}

/// Nothing is cached, so this synchronizes.
pub fn forget_instructions() {
    synchronize();
}

/// Forgets what was translated by a root that is none any more.
pub fn forget_root() {
    machine::with(|machine| machine.core_mut().forget_root());
    synchronize();
}

/// Forgets which vCPUs this core has translations of.
pub fn forget_guest_translations() {
    machine::with(|machine| machine.core_mut().translations.fill(None));
    synchronize();
}

/// Forgets of which vCPU of the current VMID this core has translations.
pub fn forget_stage1() {
    machine::with(|machine| {
        let vmid = current_vmid(machine);
        machine.core_mut().translations[vmid] = None;
    });
    synchronize();
}

/// The same.
pub fn forget_both_stages() {
    forget_stage1();
}

/// Forgets of which life and of which vCPUs of the current VMID there are translations.
pub fn forget_both_stages_everywhere() {
    machine::with(|machine| {
        let vmid = current_vmid(machine);
        machine.translations[vmid] = None;
        machine.cores.iter_mut().for_each(|core| core.translations[vmid] = None);
    });
    synchronize();
}

fn current_vmid(machine: &Machine) -> usize {
    (machine.register(machine.current, Register::named("vttbr_el2")) >> 48) as usize
}

/// See [`super::super::aarch64`].
pub fn clear_deferred_error() {
    // SAFETY: none is needed.
    unsafe { registers::write(Register::named("s3_4_c12_c1_1"), 0) };
}
