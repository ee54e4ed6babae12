//! Switching cores on and off.

use super::machine::{self, Pause};
pub use crate::arch::Started;
use abi::system::Board;

/// The tests' has PSCI.
pub fn place(_board: &Board) {}

/// Switches a core on; what drives the machine lets it begin.
pub fn start_core(affinity: u64, index: usize) -> Started {
    machine::with(|machine| {
        assert_eq!(affinity, machine.board.pcpu_mpidr[index]);
        if machine.cores[index].on {
            return Started::IsOn;
        }
        machine.switch_on(index);
        Started::Yes
    })
}

/// Switches this core off.
pub fn stop_core() {
    machine::with(|machine| machine.core_mut().on = false);
    machine::pause(Pause::Off);
    unreachable!("a core that is off goes on");
}

/// Resets the machine: nothing of it goes on.
pub fn reset() {
    machine::with(|machine| machine.was_reset = true);
    power_off();
}

/// Switches the machine off.
pub fn power_off() {
    machine::with(|machine| machine.off = true);
    machine::pause(Pause::Off);
    unreachable!("a machine that is off goes on");
}
