//! Which physical interrupts are kept pending.

/// What a core's priority mask keeps pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mask {
    /// No interrupt.
    Nothing,
    /// What is for no real-time vCPU.
    Ordinary,
    /// That, and what is for real-time vCPUs that another one of the core is above.
    LowerRealtime,
}

impl Mask {
    /// Returns what stays pending while a vCPU runs. `realtime`: it is in a real-time VM; `lower`: and
    /// another real-time vCPU of its core is above it.
    #[must_use]
    pub const fn beside(realtime: bool, lower: bool) -> Self {
        match (realtime, lower) {
            (false, _) => Self::Nothing,
            (true, false) => Self::LowerRealtime,
            (true, true) => Self::Ordinary,
        }
    }
}

/// Something is masked only while a real-time vCPU has the core, and only in a system that separates
/// priorities (docs/src/design/decisions.md, 7).
pub struct PriorityMask {
    in_force: Mask,
}

impl PriorityMask {
    /// Makes the part with nothing masked.
    #[must_use]
    pub const fn new() -> Self {
        Self { in_force: Mask::Nothing }
    }

    /// Chooses the mask for a guest that runs next, which keeps this pending. Returns it if it has to be
    /// set.
    #[must_use]
    #[inline(always)]
    pub fn for_guest(&mut self, keeps: Mask) -> Option<Mask> {
        if self.in_force == keeps {
            return None;
        }
        self.in_force = keeps;
        Some(keeps)
    }

    /// Chooses to mask nothing, for EL2 itself. Returns the mask if it has to be set.
    #[must_use]
    #[inline(always)]
    pub fn open(&mut self) -> Option<Mask> {
        self.for_guest(Mask::Nothing)
    }

    /// Returns true if what is for no real-time vCPU stays pending now: a real-time guest has the core.
    #[must_use]
    pub fn keeps_ordinary(&self) -> bool {
        self.in_force != Mask::Nothing
    }

    /// Returns what stays pending now.
    #[must_use]
    pub fn keeps(&self) -> Mask {
        self.in_force
    }

    /// Records that the interrupt controller was reset, and masks nothing.
    pub fn was_reset(&mut self) {
        self.in_force = Mask::Nothing;
    }

    /// Asserts what stands at the type. `keeps`: what the vCPU that has the core keeps pending.
    #[cfg(any(test, feature = "checked"))]
    pub fn check(&self, keeps: Mask) {
        assert!(
            self.in_force == Mask::Nothing || self.in_force == keeps,
            "{:?} is masked, and the vCPU that has the core keeps {keeps:?}",
            self.in_force
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_less_urgent_waits_while_a_real_time_vcpu_has_the_core() {
        let (first, lower) = (Mask::beside(true, false), Mask::beside(true, true));
        let mut mask = PriorityMask::new();
        assert_eq!(mask.for_guest(Mask::beside(false, false)), None, "nothing is from the start");
        assert_eq!(mask.for_guest(lower), Some(Mask::Ordinary));
        assert!(mask.keeps_ordinary() && mask.keeps() == Mask::Ordinary);
        assert_eq!(mask.for_guest(lower), None, "it is in force already");
        mask.check(lower);
        assert_eq!(mask.for_guest(first), Some(Mask::LowerRealtime));
        assert!(mask.keeps_ordinary() && mask.keeps() == Mask::LowerRealtime);
        assert_eq!(mask.open(), Some(Mask::Nothing));
        mask.check(first);
    }

    #[test]
    #[should_panic(
        expected = "LowerRealtime is masked, and the vCPU that has the core keeps Nothing"
    )]
    fn a_mask_that_stays_is_noticed() {
        let mut mask = PriorityMask::new();
        let _ = mask.for_guest(Mask::LowerRealtime);
        mask.check(Mask::Nothing);
    }
}
