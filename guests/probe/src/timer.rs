//! The two EL1 timers, behind one face.

use crate::arch::{cpu, fault, sysreg::read, sysreg::write};
use abi::platform::ppi;
use spin::Once;

/// CNTx_CTL.ENABLE.
pub const ENABLE: u64 = 1;
/// CNTx_CTL.IMASK.
pub const IMASK: u64 = 1 << 1;
/// CNTx_CTL.ISTATUS.
pub const ISTATUS: u64 = 1 << 2;

/// A timer of the calling vCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// CNTV.
    Virtual,
    /// CNTP.
    Physical,
}

impl Timer {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Virtual, Self::Physical];

    /// Those that this machine has: see `timer.physical_is_there`.
    pub fn there() -> impl Iterator<Item = Self> + Clone {
        Self::ALL.into_iter().filter(|timer| timer.is_there())
    }

    /// Whether its registers are defined.
    pub fn is_there(self) -> bool {
        /// `mrs x0, cntp_ctl_el0`
        const READ_CNTP_CTL: u32 = 0xd53b_e220;
        static PHYSICAL: Once<bool> = Once::new();
        let look = || fault::instruction(READ_CNTP_CTL, 0).is_ok();
        self == Self::Virtual || *PHYSICAL.call_once(look)
    }

    /// The timer whose interrupt is `intid`.
    pub fn of(intid: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|timer| timer.intid() == intid)
    }

    /// Its interrupt.
    pub fn intid(self) -> u32 {
        match self {
            Self::Virtual => ppi::VIRTUAL_TIMER,
            Self::Physical => ppi::PHYSICAL_TIMER,
        }
    }

    /// Its counter, in ticks.
    pub fn now(self) -> u64 {
        cpu::isb();
        match self {
            Self::Virtual => read::cntvct_el0(),
            Self::Physical => read::cntpct_el0(),
        }
    }

    /// CTL.
    pub fn control(self) -> u64 {
        match self {
            Self::Virtual => read::cntv_ctl_el0(),
            Self::Physical => read::cntp_ctl_el0(),
        }
    }

    /// Writes CTL.
    pub fn set_control(self, value: u64) {
        match self {
            Self::Virtual => write::cntv_ctl_el0(value),
            Self::Physical => write::cntp_ctl_el0(value),
        }
    }

    /// CVAL.
    pub fn compare(self) -> u64 {
        match self {
            Self::Virtual => read::cntv_cval_el0(),
            Self::Physical => read::cntp_cval_el0(),
        }
    }

    /// Writes CVAL.
    pub fn set_compare(self, value: u64) {
        match self {
            Self::Virtual => write::cntv_cval_el0(value),
            Self::Physical => write::cntp_cval_el0(value),
        }
    }

    /// TVAL, as the signed number it is.
    pub fn remaining(self) -> i32 {
        let value = match self {
            Self::Virtual => read::cntv_tval_el0(),
            Self::Physical => read::cntp_tval_el0(),
        };
        value as i32
    }

    /// Writes TVAL.
    pub fn set_remaining(self, value: i32) {
        let value = u64::from(value as u32);
        match self {
            Self::Virtual => write::cntv_tval_el0(value),
            Self::Physical => write::cntp_tval_el0(value),
        }
    }

    /// Disables it.
    pub fn stop(self) {
        self.set_control(0);
    }

    /// Enables it to fire `ticks` from now, once if the handler stops it;
    /// answers the compare value.
    pub fn arm(self, ticks: u64) -> u64 {
        let compare = self.now() + ticks;
        // One that was enabled may fire between the two writes, and the second
        // would undo what its handler did.
        cpu::without_irq(|| {
            self.set_compare(compare);
            self.set_control(ENABLE);
        });
        compare
    }
}
