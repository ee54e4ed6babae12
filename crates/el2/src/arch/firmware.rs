//! What the firmware below us does: other cores, the end.

use smccc::{Smc, psci};

/// Switches a core on; it begins at [`super::boot::secondary_entry_pa`] with
/// `index` in X0. False when the firmware refuses.
pub fn start_core(affinity: u64, index: usize) -> bool {
    psci::cpu_on::<Smc>(affinity, super::boot::secondary_entry_pa(), index as u64).is_ok()
}

/// Switches the machine off. Comes back only when the firmware cannot.
pub fn power_off() {
    let _ = psci::system_off::<Smc>();
}
