//! The EL1 physical timer, emulated.
//!
//! The hardware's is unused: the loaded vCPU has the virtual timer and EL2 its own. When a
//! guest uses the physical timer (CNTP_*_EL0 trap), EL2's own timer serves the deadline, and
//! the interrupt is a level-triggered one of the virtual GIC.

use super::Vcpu;
use crate::arch::timer::{self, Timer};
use sched::Instant;

/// op2 of the three registers.
const TVAL: u64 = 0;
const CTL: u64 = 1;
const CVAL: u64 = 2;

/// An emulated timer, whose interrupt line was last set to `asserted`.
#[derive(Default)]
pub struct PhysicalTimer {
    timer: Timer,
    asserted: bool,
}

impl PhysicalTimer {
    fn read(&self, op2: u64, now: Instant) -> Option<u64> {
        match op2 {
            TVAL => Some(self.timer.compare.wrapping_sub(now.0) & 0xffff_ffff),
            CTL => Some(self.timer.control_at(now)),
            CVAL => Some(self.timer.compare),
            _ => None,
        }
    }

    fn write(&mut self, op2: u64, value: u64, now: Instant) {
        match op2 {
            // A signed 32-bit distance from now (DDI 0487, D12.2.4).
            TVAL => self.timer.compare = now.0.wrapping_add_signed(i64::from(value as i32)),
            CTL => self.timer.set_control(value),
            CVAL => self.timer.compare = value,
            _ => {}
        }
    }
}

impl Vcpu {
    /// Reads a register of its physical timer; none: there is no such register.
    pub fn read_physical_timer(&self, op2: u64, now: Instant) -> Option<u64> {
        self.physical_timer.read(op2, now)
    }

    /// Writes a register of its physical timer; there is none whose `op2` is above 2.
    pub fn write_physical_timer(&mut self, op2: u64, value: u64, now: Instant) {
        self.physical_timer.write(op2, value, now);
    }

    /// Returns when its physical timer will assert; never when it is off, or does.
    #[inline(always)]
    pub fn physical_timer_deadline(&self) -> Instant {
        if self.on && !self.physical_timer.asserted {
            self.physical_timer.timer.deadline()
        } else {
            timer::NEVER
        }
    }

    /// Looks at its physical timer. Returns the level of its interrupt line if that
    /// changes.
    #[must_use]
    #[inline(always)]
    pub fn physical_timer_changes(&mut self, now: Instant) -> Option<bool> {
        let asserted = self.on && self.physical_timer.timer.is_asserted(now);
        if asserted == self.physical_timer.asserted {
            return None;
        }
        self.physical_timer.asserted = asserted;
        Some(asserted)
    }
}
