//! The EL1 physical timer, emulated.
//!
//! The hardware's belongs to nobody: the running vCPU owns the virtual timer and
//! EL2 its own. A guest that uses the physical one nevertheless (CNTP_*_EL0
//! trap) gets a timer whose deadline EL2 multiplexes on its own, and whose
//! interrupt is a level of the virtual GIC.

use crate::arch::timer;
use crate::pcpu::Pcpu;
use crate::shared::VMS;
use crate::vcpu::Vcpu;
use abi::platform::ppi::PHYSICAL_TIMER;
use sched::Instant;

/// op2 of the three registers.
const TVAL: u64 = 0;
const CTL: u64 = 1;
const CVAL: u64 = 2;

impl Vcpu {
    /// When its physical timer will assert; never when it is off, or does.
    pub fn physical_timer_deadline(&self) -> Instant {
        if self.on && !self.physical_timer_asserted {
            self.physical_timer.deadline()
        } else {
            timer::NEVER
        }
    }
}

impl Pcpu {
    /// A register of the loaded vCPU's physical timer.
    pub fn read_physical_timer(&self, op2: u64) -> Option<u64> {
        let timer = &self.loaded.as_deref()?.physical_timer;
        let now = timer::now();
        match op2 {
            TVAL => Some(timer.compare.wrapping_sub(now.0) & 0xffff_ffff),
            CTL => Some(timer.control_at(now)),
            CVAL => Some(timer.compare),
            _ => None,
        }
    }

    /// Writes a register of the loaded vCPU's physical timer. False: there is
    /// no such register.
    pub fn write_physical_timer(&mut self, op2: u64, value: u64) -> bool {
        let Some(vcpu) = self.loaded.as_deref_mut() else { return false };
        let now = timer::now();
        match op2 {
            // A signed 32-bit distance from now (DDI 0487, D12.2.4).
            TVAL => {
                vcpu.physical_timer.compare = now.0.wrapping_add_signed(i64::from(value as i32))
            }
            CTL => vcpu.physical_timer.set_control(value),
            CVAL => vcpu.physical_timer.compare = value,
            _ => return false,
        }
        let id = usize::from(vcpu.id.0);
        self.assert_physical_timer(id, now);
        // EL2's timer has to be set anew.
        self.reschedule = true;
        true
    }

    /// Brings the interrupt line of a vCPU's physical timer up to date.
    pub fn assert_physical_timer(&mut self, id: usize, now: Instant) {
        let Some(vcpu) = self.vcpu(sched::VcpuId(id as u8)) else { return };
        let asserted = vcpu.on && vcpu.physical_timer.is_asserted(now);
        if asserted != vcpu.physical_timer_asserted {
            vcpu.physical_timer_asserted = asserted;
            let (vm, index) = (vcpu.vm, vcpu.index);
            let effects = VMS[vm].gic.set_level(index, PHYSICAL_TIMER, asserted);
            self.notify(vm, effects);
        }
    }
}
