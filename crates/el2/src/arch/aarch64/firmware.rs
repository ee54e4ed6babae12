//! What the firmware below us does: other cores, the end. By PSCI; or, in an image with that part and on
//! a board that has one, by a spin table.

#[cfg(feature = "spin-table")]
use super::spin_table;
pub use crate::arch::Started;
use abi::system::Board;
use smccc::{Smc, psci};

/// Says what firmware the board has. Boot core only, before it asks for anything.
#[inline(always)]
pub fn place(_board: &Board) {
    #[cfg(feature = "spin-table")]
    spin_table::place(_board);
}

/// Switches a core on; it begins at [`super::boot::secondary_entry_pa`] with
/// `index` in X0.
pub fn start_core(affinity: u64, index: usize) -> Started {
    #[cfg(feature = "spin-table")]
    if spin_table::is_there() {
        return spin_table::start_core(index);
    }
    match psci::cpu_on::<Smc>(affinity, super::boot::secondary_entry_pa(), index as u64) {
        Ok(()) => Started::Yes,
        Err(psci::Error::AlreadyOn | psci::Error::OnPending) => Started::IsOn,
        Err(_) => Started::No,
    }
}

/// Switches this core off. Comes back only when the firmware refuses.
pub fn stop_core() {
    #[cfg(feature = "spin-table")]
    if spin_table::is_there() {
        return;
    }
    let _ = psci::cpu_off::<Smc>();
}

/// Resets the machine. Comes back only when the firmware cannot.
pub fn reset() {
    #[cfg(feature = "spin-table")]
    if spin_table::is_there() {
        return spin_table::end(/* for_ever */ false);
    }
    let _ = psci::system_reset::<Smc>();
}

/// Switches the machine off. Comes back only when the firmware cannot.
pub fn power_off() {
    #[cfg(feature = "spin-table")]
    if spin_table::is_there() {
        return spin_table::end(/* for_ever */ true);
    }
    let _ = psci::system_off::<Smc>();
}
