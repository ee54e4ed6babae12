//! A GICv2's CPU interface under the names that a GICv3 has for the same (Arm IHI 0048B, section 4.4), so
//! that the tests are the same. All interrupts of the tests are in group 1, which is taken and ended as
//! group 0 is (GICC_CTLR.AckCtl): QEMU's GICv2 has no aliased registers for it but GICC_ABPR.

use crate::arch::{cpu, mmio::Window};
use crate::platform::GICD;
use abi::MAX_VCPUS_PER_VM;
use abi::platform::{GICC_BASE, GICC_PAGE};
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

const GICC: Window = Window::new(GICC_BASE, 2 * GICC_PAGE);

const CTLR: u64 = 0x00;
const PMR: u64 = 0x04;
const IAR: u64 = 0x0c;
const EOIR: u64 = 0x10;
const RPR: u64 = 0x14;
const HPPIR: u64 = 0x18;
const ABPR: u64 = 0x1c;
const APR: u64 = 0xd0;
const NSAPR: u64 = 0xe0;
const DIR: u64 = 0x1000;
/// GICD_SGIR.
pub const SGIR: u64 = 0xf00;

/// Below the CPU that sent an SGI.
const INTID: u32 = 0x3ff;
/// GICC_CTLR: EnableGrp1, AckCtl, CBPR, EOImode.
const ENABLE_GROUP1: u32 = 1 << 1;
const TAKE_GROUP1: u32 = 1 << 2;
const COMMON_POINT: u32 = 1 << 4;
const EOI_MODE: u32 = 1 << 9;
/// ICC_CTLR_EL1: CBPR, EOImode, and five bits of priority.
const ICC_COMMON_POINT: u64 = 1 << 0;
const ICC_EOI_MODE: u64 = 1 << 1;
const ICC_PRIORITY_BITS: u64 = 4 << 8;
/// ICC_SGI1R_EL1: Aff1 to Aff3 and the range, of which there is only 0; all but self.
const ELSEWHERE: u64 = 0xff << 48 | 0xf << 44 | 0xff << 32 | 0xff << 16;
const ALL_OTHERS: u64 = 1 << 40;

/// Of each vCPU and SGI, as acknowledged last: the end has to say the sender, too.
static ACKNOWLEDGED: [[AtomicU32; 16]; MAX_VCPUS_PER_VM] =
    [const { [const { AtomicU32::new(0) }; 16] }; MAX_VCPUS_PER_VM];

/// What the end of an interrupt has to be.
fn end_of(intid: u64) -> u32 {
    let sent = ACKNOWLEDGED[cpu::index()].get(intid as usize);
    sent.map_or(intid as u32, |sent| sent.load(Relaxed) & !INTID | intid as u32)
}

fn set_control(bits: u32, to: u32) {
    GICC.write32(CTLR, GICC.read32(CTLR) & !bits | TAKE_GROUP1 | to);
}

/// Sends an SGI as ICC_SGI1R_EL1 does.
fn send(value: u64) {
    if value & ALL_OTHERS == 0 && (value & ELSEWHERE != 0 || value & 0xff == 0) {
        return;
    }
    let (filter, list) = if value & ALL_OTHERS != 0 { (1, 0) } else { (0, value as u32 & 0xff) };
    GICD.write32(SGIR, filter << 24 | list << 16 | (value >> 24) as u32 & 0xf);
}

/// Accesses a register of the CPU interface: which one and how, one random number says.
pub fn access_anything(random: u64, intid: u32) {
    let offset = random & 0xfc;
    match random >> 8 & 7 {
        0 => GICC.write32(EOIR, intid),
        1 => GICC.write32(DIR, intid),
        2 => drop(GICC.read32(IAR)),
        3 => GICC.write32(offset, (random >> 32) as u32),
        4 => GICC.write32(DIR + offset, (random >> 32) as u32),
        5 => drop(GICC.read32(DIR + offset)),
        _ => drop(GICC.read32(offset)),
    }
}

/// What is read.
pub mod read {
    use super::*;

    /// The active priorities.
    pub fn icc_ap1r0_el1() -> u64 {
        u64::from(GICC.read32(APR) | GICC.read32(NSAPR))
    }

    /// The binary point.
    pub fn icc_bpr1_el1() -> u64 {
        GICC.read32(ABPR).into()
    }

    /// What concerns both groups.
    pub fn icc_ctlr_el1() -> u64 {
        let control = GICC.read32(CTLR);
        let mode = if control & EOI_MODE != 0 { ICC_EOI_MODE } else { 0 };
        let point = if control & COMMON_POINT != 0 { ICC_COMMON_POINT } else { 0 };
        ICC_PRIORITY_BITS | mode | point
    }

    /// The most urgent interrupt that pends.
    pub fn icc_hppir1_el1() -> u64 {
        u64::from(GICC.read32(HPPIR) & INTID)
    }

    /// Acknowledges.
    pub fn icc_iar1_el1() -> u64 {
        let taken = GICC.read32(IAR);
        if let Some(sent) = ACKNOWLEDGED[cpu::index()].get((taken & INTID) as usize) {
            sent.store(taken, Relaxed);
        }
        u64::from(taken & INTID)
    }

    /// Whether group 1 is enabled.
    pub fn icc_igrpen1_el1() -> u64 {
        u64::from(GICC.read32(CTLR) & ENABLE_GROUP1 != 0)
    }

    /// The priority mask.
    pub fn icc_pmr_el1() -> u64 {
        GICC.read32(PMR).into()
    }

    /// The running priority.
    pub fn icc_rpr_el1() -> u64 {
        GICC.read32(RPR).into()
    }

    /// There are no system registers to be switched to.
    pub fn icc_sre_el1() -> u64 {
        1
    }
}

/// What is written.
pub mod write {
    use super::*;

    /// The active priorities.
    pub fn icc_ap1r0_el1(value: u64) {
        GICC.write32(APR, value as u32);
        GICC.write32(NSAPR, value as u32);
    }

    /// The binary point.
    pub fn icc_bpr1_el1(value: u64) {
        GICC.write32(ABPR, value as u32);
    }

    /// What concerns both groups.
    pub fn icc_ctlr_el1(value: u64) {
        let mode = if value & ICC_EOI_MODE != 0 { EOI_MODE } else { 0 };
        let point = if value & ICC_COMMON_POINT != 0 { COMMON_POINT } else { 0 };
        set_control(EOI_MODE | COMMON_POINT, mode | point);
    }

    /// Deactivates.
    pub fn icc_dir_el1(value: u64) {
        GICC.write32(DIR, end_of(value));
    }

    /// Ends.
    pub fn icc_eoir1_el1(value: u64) {
        GICC.write32(EOIR, end_of(value));
    }

    /// Enables group 1.
    pub fn icc_igrpen1_el1(value: u64) {
        set_control(ENABLE_GROUP1, if value & 1 != 0 { ENABLE_GROUP1 } else { 0 });
    }

    /// The priority mask.
    pub fn icc_pmr_el1(value: u64) {
        GICC.write32(PMR, value as u32);
    }

    /// Sends an SGI.
    pub fn icc_sgi1r_el1(value: u64) {
        send(value);
    }

    /// Sends one of another group, of which there is none: the same.
    pub fn icc_sgi0r_el1(value: u64) {
        send(value);
    }

    /// The same.
    pub fn icc_asgi1r_el1(value: u64) {
        send(value);
    }

    /// There are no system registers to be switched to.
    pub fn icc_sre_el1(_value: u64) {}
}
