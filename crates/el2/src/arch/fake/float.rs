//! Floating-point registers.

use super::machine;

/// A vCPU's, while they are not on the hardware.
#[derive(Clone)]
pub struct Float(u128);

impl Float {
    /// All zero.
    pub const fn new() -> Self {
        Self(0)
    }

    /// Takes them off the hardware.
    pub fn save(&mut self) {
        self.0 = machine::with(|machine| machine.core().float);
    }

    /// Puts them back.
    pub fn load(&self) {
        machine::with(|machine| machine.core_mut().float = self.0);
    }
}
