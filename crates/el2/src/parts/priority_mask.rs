//! Which physical interrupts are kept pending.

/// What a core's priority mask keeps pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mask {
    /// No interrupt.
    Nothing,
    /// Interrupts of the lower half of the priorities.
    LowerHalf,
}

/// The lower half is masked only while a real-time vCPU has the core, and only in a
/// system that separates priorities (docs/src/design/decisions.md, 7).
pub struct PriorityMask {
    in_force: Mask,
    /// The mask while a real-time vCPU has the core.
    for_realtime: Mask,
}

impl PriorityMask {
    /// Makes the part with nothing masked. `separates`: the system separates priorities.
    #[must_use]
    pub const fn new(separates: bool) -> Self {
        let for_realtime = if separates { Mask::LowerHalf } else { Mask::Nothing };
        Self { in_force: Mask::Nothing, for_realtime }
    }

    /// Chooses the mask for a guest that runs next; `realtime`: in a real-time VM. Returns it
    /// if it has to be set.
    #[must_use]
    #[inline(always)]
    pub fn for_guest(&mut self, realtime: bool) -> Option<Mask> {
        self.set(if realtime { self.for_realtime } else { Mask::Nothing })
    }

    /// Chooses to mask nothing, for EL2 itself. Returns the mask if it has to be set.
    #[must_use]
    #[inline(always)]
    pub fn open(&mut self) -> Option<Mask> {
        self.set(Mask::Nothing)
    }

    /// Returns true if interrupts of the lower half stay pending now: a real-time guest has the
    /// core.
    #[must_use]
    pub fn keeps_lower_half(&self) -> bool {
        self.in_force == Mask::LowerHalf
    }

    /// Records that the interrupt controller was reset, and masks nothing.
    pub fn was_reset(&mut self) {
        self.in_force = Mask::Nothing;
    }

    #[inline(always)]
    fn set(&mut self, mask: Mask) -> Option<Mask> {
        if self.in_force == mask {
            return None;
        }
        self.in_force = mask;
        Some(mask)
    }

    /// Asserts what stands at the type. `realtime`: a real-time vCPU has the core.
    #[cfg(any(test, feature = "checked"))]
    pub fn check(&self, realtime: bool) {
        assert!(
            self.in_force == Mask::Nothing || realtime && self.for_realtime == Mask::LowerHalf,
            "the lower half is masked and no real-time vCPU has the core"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lower_half_waits_while_a_real_time_vcpu_has_the_core() {
        let mut mask = PriorityMask::new(true);
        assert_eq!(mask.for_guest(false), None, "nothing is masked from the start");
        assert_eq!(mask.for_guest(true), Some(Mask::LowerHalf));
        assert_eq!(mask.for_guest(true), None, "it is in force already");
        mask.check(true);
        assert_eq!(mask.open(), Some(Mask::Nothing));
        mask.check(false);
    }

    #[test]
    fn nothing_is_masked_where_priorities_are_not_separated() {
        let mut mask = PriorityMask::new(false);
        assert_eq!(mask.for_guest(true), None);
        mask.check(false);
    }

    #[test]
    #[should_panic(expected = "no real-time vCPU has the core")]
    fn a_mask_that_stays_is_noticed() {
        let mut mask = PriorityMask::new(true);
        let _ = mask.for_guest(true);
        mask.check(false);
    }
}
