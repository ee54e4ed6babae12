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
