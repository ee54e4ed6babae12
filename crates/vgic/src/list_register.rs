//! The format of a list register.

/// `ICH_LR<n>_EL2` (IHI 0069H, section 12.4.7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListRegister(pub u64);

impl ListRegister {
    pub(crate) const PENDING: u64 = 1 << 62;
    pub(crate) const ACTIVE: u64 = 1 << 63;
    const HARDWARE: u64 = 1 << 61;
    const GROUP1: u64 = 1 << 60;
    /// Raise a maintenance interrupt when the guest ends it; software
    /// interrupts only.
    const TELL_EOI: u64 = 1 << 41;

    /// The virtual INTID.
    #[must_use]
    pub fn intid(self) -> u32 {
        self.0 as u32
    }

    /// In state pending, or active and pending.
    #[must_use]
    pub fn is_pending(self) -> bool {
        self.0 & Self::PENDING != 0
    }

    /// In state active, or active and pending.
    #[must_use]
    pub fn is_active(self) -> bool {
        self.0 & Self::ACTIVE != 0
    }

    /// Returns the priority; smaller is more urgent.
    #[must_use]
    pub fn priority(self) -> u8 {
        (self.0 >> 48) as u8
    }

    /// In group 1.
    #[must_use]
    pub fn is_group1(self) -> bool {
        self.0 & Self::GROUP1 != 0
    }

    /// The physical interrupt it stands for, if any.
    #[must_use]
    pub fn physical(self) -> Option<u32> {
        (self.0 & Self::HARDWARE != 0).then_some((self.0 >> 32) as u32 & 0x1fff)
    }

    /// Returns what a GICv2 has in its place (`GICH_LR<n>`; IHI 0048B, section 5.3.8): the same fields,
    /// priorities by their five upper bits.
    #[must_use]
    pub fn to_v2(self) -> u32 {
        let field = |low: u32, bits: u32| (self.0 >> low) as u32 & ((1 << bits) - 1);
        let told = if self.0 & Self::HARDWARE != 0 { field(32, 10) } else { field(41, 1) << 9 };
        field(0, 10)
            | told << 10
            | field(51, 5) << 23
            | field(62, 2) << 28
            | field(60, 1) << 30
            | field(61, 1) << 31
    }

    /// Reverses [`Self::to_v2`].
    #[must_use]
    pub fn from_v2(value: u32) -> Self {
        let field = |low: u32, bits: u32| u64::from(value >> low) & ((1 << bits) - 1);
        let is_hardware = field(31, 1);
        let told = if is_hardware == 1 { field(10, 10) << 32 } else { field(19, 1) << 41 };
        Self(
            field(0, 10)
                | told
                | field(23, 5) << 51
                | field(28, 2) << 62
                | field(30, 1) << 60
                | is_hardware << 61,
        )
    }

    pub(crate) fn new(
        state: u64,
        intid: u32,
        priority: u8,
        group1: bool,
        physical: Option<u32>,
        tell_eoi: bool,
    ) -> Self {
        let mut value = state | u64::from(intid) | u64::from(priority) << 48;
        if group1 {
            value |= Self::GROUP1;
        }
        match physical {
            Some(physical) => value |= Self::HARDWARE | u64::from(physical) << 32,
            None if tell_eoi => value |= Self::TELL_EOI,
            None => {}
        }
        Self(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PRIORITY_MASK;

    #[test]
    fn a_gicv2_has_all_that_is_written() {
        for intid in [0, 1, 15, 27, 31, 32, 287, 1019] {
            for priority in (0..=u8::MAX).filter(|priority| priority & !PRIORITY_MASK == 0) {
                for state in [0, ListRegister::PENDING, ListRegister::ACTIVE, 3 << 62] {
                    for physical in [None, Some(27), Some(42), Some(1019)] {
                        for (group1, tell_eoi) in
                            [(false, false), (false, true), (true, false), (true, true)]
                        {
                            let register = ListRegister::new(
                                state, intid, priority, group1, physical, tell_eoi,
                            );
                            assert_eq!(ListRegister::from_v2(register.to_v2()), register);
                        }
                    }
                }
            }
        }
        assert_eq!(ListRegister(0).to_v2(), 0);
    }

    /// IHI 0048B, table 5-10, field by field.
    #[test]
    fn a_gicv2_has_it_where_the_architecture_says() {
        let pending = ListRegister::PENDING;
        let timer = ListRegister::new(pending, 27, 0xa0, true, Some(27), false);
        assert_eq!(timer.to_v2(), 1 << 31 | 1 << 30 | 0b01 << 28 | 0x14 << 23 | 27 << 10 | 27);
        let told = ListRegister::new(ListRegister::ACTIVE, 40, 0, false, None, true);
        assert_eq!(told.to_v2(), 0b10 << 28 | 1 << 19 | 40);
    }
}
