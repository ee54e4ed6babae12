//! The generic timers: the counter, EL2's own timer, the running guest's.

use super::machine::instructions;
use super::sysreg::{read_sysreg, write_sysreg};
use core::sync::atomic::{AtomicU64, Ordering};
use sched::Instant;

/// INTID of the EL2 physical timer.
pub const EL2_INTID: u32 = 26;
/// INTID of the EL1 virtual timer, physically as virtually.
pub const VIRTUAL_INTID: u32 = abi::platform::ppi::VIRTUAL_TIMER;

/// INTID of the EL1 physical timer, which guests do not have: theirs is emulated.
pub const WATCH_INTID: u32 = 30;

const ENABLE: u64 = 1 << 0;
const IMASK: u64 = 1 << 1;
const ISTATUS: u64 = 1 << 2;

/// What time it is.
pub fn now() -> Instant {
    Instant(read_sysreg!("cntpct_el0"))
}

/// Ticks of the counter in a second.
pub fn frequency_hz() -> u64 {
    read_sysreg!("cntfrq_el0")
}

/// The deadline that does not come.
pub const NEVER: Instant = Instant(u64::MAX);

/// Lets EL2's timer fire at `deadline`.
pub fn arm(deadline: Instant) {
    // SAFETY: EL2's own timer; the core that takes its interrupt expects it.
    unsafe {
        write_sysreg!("cnthp_cval_el2", deadline.0);
        write_sysreg!("cnthp_ctl_el2", ENABLE);
    }
}

/// Lets EL2's timer fire at another `deadline`; it has been [armed](arm).
#[inline(always)]
pub fn rearm(deadline: Instant) {
    // SAFETY: as for `arm`.
    unsafe { write_sysreg!("cnthp_cval_el2", deadline.0) };
}

/// Lets the EL1 physical timer fire at `deadline`: the watchdog has it.
pub fn arm_watch(deadline: Instant) {
    // SAFETY: guests' accesses to this timer trap; the core that takes its interrupt expects it.
    unsafe {
        write_sysreg!("cntp_cval_el0", deadline.0);
        write_sysreg!("cntp_ctl_el0", ENABLE);
    }
}

/// A guest timer's registers, while others use the hardware.
#[derive(Clone, Copy, Default)]
pub struct Timer {
    /// CNTx_CTL_EL0 without ISTATUS.
    pub control: u64,
    /// CNTx_CVAL_EL0.
    pub compare: u64,
}

impl Timer {
    /// When it will assert its interrupt; never when it is off or masked.
    pub fn deadline(&self) -> Instant {
        if self.control & (ENABLE | IMASK) == ENABLE { Instant(self.compare) } else { NEVER }
    }

    /// Takes the running guest's virtual timer off the hardware and silences
    /// it there.
    pub fn save(&mut self) {
        self.control = read_sysreg!("cntv_ctl_el0") & (ENABLE | IMASK);
        self.compare = read_sysreg!("cntv_cval_el0");
        // SAFETY: the guest that uses this timer is not running.
        unsafe { write_sysreg!("cntv_ctl_el0", 0) };
    }

    /// Puts it back. What was written to this and other registers is seen in registers that
    /// are read afterwards.
    #[inline(always)]
    pub fn load(&self) {
        // SAFETY: the timer of the guest that runs next.
        unsafe {
            write_sysreg!("cntv_cval_el0", self.compare);
            write_sysreg!("cntv_ctl_el0", self.control);
        }
        instructions::synchronize();
    }

    /// The control register as a guest reads it at `now`.
    pub fn control_at(&self, now: Instant) -> u64 {
        let due = self.control & ENABLE != 0 && now.0 >= self.compare;
        self.control | if due { ISTATUS } else { 0 }
    }

    /// The control register as a guest writes it.
    pub fn set_control(&mut self, value: u64) {
        self.control = value & (ENABLE | IMASK);
    }

    /// Returns true if it asserts its interrupt at `now`.
    pub fn is_asserted(&self, now: Instant) -> bool {
        self.control & (ENABLE | IMASK) == ENABLE && self.compare <= now.0
    }
}

/// When the loaded virtual timer asserts its interrupt, or began to; never when
/// it is off or masked.
pub fn loaded_deadline() -> Instant {
    let control = read_sysreg!("cntv_ctl_el0");
    Timer { control, compare: read_sysreg!("cntv_cval_el0") }.deadline()
}

/// Returns true if the loaded virtual timer asserts its interrupt.
pub fn loaded_is_asserted() -> bool {
    read_sysreg!("cntv_ctl_el0") & (ENABLE | IMASK | ISTATUS) == ENABLE | ISTATUS
}

const NS_PER_SECOND: u64 = 1_000_000_000;

/// Nanoseconds in a tick, 32 bits behind the point; set by the boot core.
static NS_PER_TICK: AtomicU64 = AtomicU64::new(0);

/// Learns the counter's frequency. Boot core only.
pub fn calibrate() {
    NS_PER_TICK.store((NS_PER_SECOND << 32) / frequency_hz().max(1), Ordering::Relaxed);
}

/// Converts ticks to nanoseconds; wrong by less than one part in 2^31.
pub fn ticks_to_ns(ticks: u64) -> u64 {
    ((u128::from(ticks) * u128::from(NS_PER_TICK.load(Ordering::Relaxed))) >> 32) as u64
}

/// Converts nanoseconds to ticks, rounded up. Not inlined: that is done at boot, and seldom later.
#[inline(never)]
pub fn ns_to_ticks(ns: u64) -> u64 {
    // The seconds apart: then each product has room in 64 bits.
    let (seconds, rest) = (ns / NS_PER_SECOND, ns % NS_PER_SECOND);
    seconds * frequency_hz() + (rest * frequency_hz()).div_ceil(NS_PER_SECOND)
}
