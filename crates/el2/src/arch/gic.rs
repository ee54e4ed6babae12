//! The physical GICv3.
//!
//! The distributor is configured once by the boot core; afterwards each core
//! touches only its own redistributor and CPU interface, so nothing here needs
//! a lock. (That is also why we do not use a driver crate: those own the whole
//! GIC through one exclusive reference.)
//!
//! Interrupts are dropped and deactivated separately (ICC_CTLR_EL1.EOImode): a
//! guest's end of interrupt deactivates the physical one through its list
//! register.

use super::cpu;
use super::sysreg::{read_sysreg, write_sysreg};

/// SGI that says: look at your mailbox, a real-time vCPU is concerned.
pub const DOORBELL_REALTIME: u32 = 1;
/// SGI that says: look at your mailbox.
pub const DOORBELL: u32 = 2;
/// Maintenance interrupt of the virtual CPU interface.
pub const MAINTENANCE: u32 = 25;
/// From this INTID on, none is a real interrupt.
pub const SPECIAL: u32 = 1020;

/// Upper half of the priorities: real-time guests and EL2's own timer.
pub const PRIORITY_REALTIME: u8 = 0x40;
/// Lower half: everybody else.
pub const PRIORITY_NORMAL: u8 = 0xa0;
/// Priority mask that lets everything through.
pub const MASK_NOTHING: u64 = 0xf0;
/// Priority mask that keeps the lower half pending.
pub const MASK_LOWER_HALF: u64 = 0x80;

const GICD_CTLR: u64 = 0x0000;
const GICD_TYPER: u64 = 0x0004;
const GICD_IGROUPR: u64 = 0x0080;
const GICD_ISENABLER: u64 = 0x0100;
const GICD_ICENABLER: u64 = 0x0180;
const GICD_ICPENDR: u64 = 0x0280;
const GICD_ICACTIVER: u64 = 0x0380;
const GICD_IPRIORITYR: u64 = 0x0400;
const GICD_ICFGR: u64 = 0x0c00;
const GICD_IROUTER: u64 = 0x6000;
/// ARE_NS and both non-secure group enables.
const GICD_ENABLE: u32 = 1 << 4 | 1 << 1 | 1 << 0;
const RWP: u32 = 1 << 31;

const GICR_WAKER: u64 = 0x0014;
const GICR_SGI: u64 = 0x1_0000;
const GICR_ISACTIVER: u64 = GICR_SGI + 0x300;
const GICR_ICACTIVER: u64 = GICR_SGI + GICD_ICACTIVER;
const PROCESSOR_SLEEP: u32 = 1 << 1;
const CHILDREN_ASLEEP: u32 = 1 << 2;

fn read(address: u64) -> u32 {
    // SAFETY: only called with addresses of the GIC's frames, which the host
    // mapped as device memory.
    unsafe { (address as *const u32).read_volatile() }
}

fn write(address: u64, value: u32) {
    // SAFETY: as `read`.
    unsafe { (address as *mut u32).write_volatile(value) }
}

/// Brings the distributor into a known state: everything in group 1, disabled,
/// of normal priority. Boot core only.
pub fn reset_distributor(gicd: u64) {
    write(gicd + GICD_CTLR, 0);
    while read(gicd + GICD_CTLR) & RWP != 0 {}
    let words = (read(gicd + GICD_TYPER) & 0x1f) as u64 + 1;
    for word in 1..words {
        write(gicd + GICD_ICENABLER + 4 * word, u32::MAX);
        write(gicd + GICD_ICPENDR + 4 * word, u32::MAX);
        write(gicd + GICD_ICACTIVER + 4 * word, u32::MAX);
        write(gicd + GICD_IGROUPR + 4 * word, u32::MAX);
        for quad in 0..8 {
            write(
                gicd + GICD_IPRIORITYR + 32 * word + 4 * quad,
                u32::from_ne_bytes([PRIORITY_NORMAL; 4]),
            );
        }
    }
    write(gicd + GICD_CTLR, GICD_ENABLE);
    while read(gicd + GICD_CTLR) & RWP != 0 {}
}

/// Enables a shared interrupt, which is disabled, and sends it to one core.
/// Boot core only.
pub fn route(gicd: u64, intid: u32, affinity: u64, priority: u8, edge: bool) {
    let intid = u64::from(intid);
    let triggers = gicd + GICD_ICFGR + 4 * (intid / 16);
    let others = read(triggers) & !(0b11 << (2 * (intid % 16)));
    write(triggers, others | u32::from(edge) << (2 * (intid % 16) + 1));
    // SAFETY: the distributor's byte and 64-bit registers, mapped as device
    // memory.
    unsafe {
        ((gicd + GICD_IPRIORITYR + intid) as *mut u8).write_volatile(priority);
        ((gicd + GICD_IROUTER + 8 * intid) as *mut u64).write_volatile(affinity);
    }
    write(gicd + GICD_ISENABLER + 4 * (intid / 32), 1 << (intid % 32));
}

/// Sends a shared interrupt to another core from now on.
pub fn send_to(gicd: u64, intid: u32, affinity: u64) {
    // SAFETY: the distributor's 64-bit registers, mapped as device memory.
    unsafe { ((gicd + GICD_IROUTER + 8 * u64::from(intid)) as *mut u64).write_volatile(affinity) };
}

/// One core's redistributor.
#[derive(Clone, Copy)]
pub struct Redistributor(u64);

impl Redistributor {
    /// The redistributor at `frame`, this core's own. Wakes it, puts all its
    /// interrupts into group 1 and enables those that EL2 takes. `separate`:
    /// see docs/src/design/decisions.md, 7.
    pub fn start(frame: u64, separate: bool) -> Self {
        write(frame + GICR_WAKER, read(frame + GICR_WAKER) & !PROCESSOR_SLEEP);
        while read(frame + GICR_WAKER) & CHILDREN_ASLEEP != 0 {}
        let sgi = frame + GICR_SGI;
        write(sgi + GICD_ICENABLER, u32::MAX);
        write(sgi + GICD_ICPENDR, u32::MAX);
        write(sgi + GICD_ICACTIVER, u32::MAX);
        write(sgi + GICD_IGROUPR, u32::MAX);
        let urgent =
            [DOORBELL_REALTIME, MAINTENANCE, super::timer::EL2_INTID, super::timer::VIRTUAL_INTID];
        for intid in 0..32 {
            let upper = separate && urgent.contains(&intid);
            let priority = if upper { PRIORITY_REALTIME } else { PRIORITY_NORMAL };
            // SAFETY: this core's own priority bytes, mapped as device memory.
            unsafe {
                ((sgi + GICD_IPRIORITYR + u64::from(intid)) as *mut u8).write_volatile(priority)
            };
        }
        write(
            sgi + GICD_ISENABLER,
            1 << DOORBELL | urgent.iter().fold(0, |set, intid| set | 1 << intid),
        );
        start_cpu_interface();
        Self(frame)
    }

    /// Makes the virtual timer's physical interrupt active or inactive, as it
    /// was when its guest last ran.
    pub fn set_timer_active(self, active: bool) {
        let register = if active { GICR_ISACTIVER } else { GICR_ICACTIVER };
        write(self.0 + register, 1 << super::timer::VIRTUAL_INTID);
    }
}

fn start_cpu_interface() {
    /// SRE, DFB, DIB, and EL1 may use it too.
    const SRE: u64 = 0xf;
    const EOI_MODE: u64 = 1 << 1;
    // SAFETY: this core's physical CPU interface, which guests cannot reach.
    unsafe {
        write_sysreg!("icc_sre_el2", SRE);
        core::arch::asm!("isb", options(nostack));
        write_sysreg!("icc_sre_el1", 0x7);
        write_sysreg!("icc_pmr_el1", MASK_NOTHING);
        write_sysreg!("icc_bpr1_el1", 0);
        write_sysreg!("icc_ctlr_el1", EOI_MODE);
        write_sysreg!("icc_igrpen1_el1", 1);
        core::arch::asm!("isb", options(nostack));
    }
}

/// Acknowledges the most urgent interrupt; [`SPECIAL`] and above: none.
pub fn acknowledge() -> u32 {
    let intid = read_sysreg!("icc_iar1_el1");
    // What a doorbell's sender wrote before it is read after this, which the read of a
    // register alone does not promise (Arm IHI 0069, section 4.4.1, of ICC_IAR1_EL1).
    cpu::complete();
    intid as u32 & 0xff_ffff
}

/// Lets interrupts of its priority come again.
pub fn drop_priority(intid: u32) {
    // SAFETY: ends what `acknowledge` began.
    unsafe { write_sysreg!("icc_eoir1_el1", u64::from(intid)) };
}

/// Lets this interrupt come again.
pub fn deactivate(intid: u32) {
    // SAFETY: ends what `acknowledge` began.
    unsafe { write_sysreg!("icc_dir_el1", u64::from(intid)) };
}

/// Chooses which interrupts stay pending.
pub fn set_mask(mask: u64) {
    // SAFETY: this core's physical priority mask.
    unsafe { write_sysreg!("icc_pmr_el1", mask) };
}

/// How [`ring`] names the core of this affinity (ICC_SGI1R_EL1).
pub const fn bell(affinity: u64) -> u64 {
    let (aff0, aff1) = (affinity & 0xff, affinity >> 8 & 0xff);
    let (aff2, aff3) = (affinity >> 16 & 0xff, affinity >> 32 & 0xff);
    aff3 << 48 | aff2 << 32 | aff1 << 16 | (aff0 >> 4) << 44 | 1 << (aff0 & 0xf)
}

/// Interrupts another core, or this one.
pub fn ring(bell: u64, doorbell: u32) {
    super::cpu::publish();
    // SAFETY: raises an interrupt that every core of ours handles.
    unsafe {
        write_sysreg!("icc_sgi1r_el1", bell | u64::from(doorbell) << 24);
        core::arch::asm!("isb", options(nostack, preserves_flags));
    }
}
