//! What the firmware below us does: other cores, the end.

pub use crate::arch::Started;
use smccc::{Smc, psci};

/// Switches a core on; it begins at [`super::boot::secondary_entry_pa`] with
/// `index` in X0.
pub fn start_core(affinity: u64, index: usize) -> Started {
    match psci::cpu_on::<Smc>(affinity, super::boot::secondary_entry_pa(), index as u64) {
        Ok(()) => Started::Yes,
        Err(psci::Error::AlreadyOn | psci::Error::OnPending) => Started::IsOn,
        Err(_) => Started::No,
    }
}

/// Switches this core off. Comes back only when the firmware refuses.
pub fn stop_core() {
    let _ = psci::cpu_off::<Smc>();
}

/// Resets the machine. Comes back only when the firmware cannot.
pub fn reset() {
    let _ = psci::system_reset::<Smc>();
}

/// Switches the machine off. Comes back only when the firmware cannot.
pub fn power_off() {
    let _ = psci::system_off::<Smc>();
}
