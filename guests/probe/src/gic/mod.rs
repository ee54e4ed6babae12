//! GICv3, register by register (Arm IHI 0069); or, built with the feature `gic-v2`, a GICv2 (`v2`).
//!
//! A driver such as arm-gic's chooses widths and order of accesses; here the
//! test must, so offsets stand in the open.

#[cfg(feature = "gic-v2")]
pub mod v2;

use crate::arch::{cpu, mmio::Window, sysreg::read, sysreg::write};
use crate::platform::{self, GICD, GICR};
use crate::{irq, wait};
use abi::platform::{GICR_STRIDE, INTID_END, SPI_FIRST};

/// The interrupt controller is a GICv2.
pub const IS_V2: bool = cfg!(feature = "gic-v2");

/// Distributor registers: offset of the first of each kind.
pub mod gicd {
    /// GICD_CTLR.
    pub const CTLR: u64 = 0x0;
    /// GICD_TYPER.
    pub const TYPER: u64 = 0x4;
    /// GICD_IIDR.
    pub const IIDR: u64 = 0x8;
    /// GICD_ITARGETSR of a GICv2, a byte for each INTID.
    pub const ITARGETSR: u64 = 0x800;
    /// GICD_IROUTER, 64 bits for each INTID.
    pub const IROUTER: u64 = 0x6000;
    /// GICD_PIDR2, and GICR_PIDR2.
    pub const PIDR2: u64 = if super::IS_V2 { 0xfe8 } else { 0xffe8 };
    /// GICD_CTLR.EnableGrp1 (EnableGrp1A when there are two security states).
    pub const CTLR_ENABLE_GROUP1: u32 = 1 << 1;
    /// GICD_CTLR.ARE, which a GICv2 has not.
    pub const CTLR_ARE: u32 = if super::IS_V2 { 0 } else { 1 << 4 };
    /// GICD_CTLR.RWP.
    pub const CTLR_RWP: u32 = 1 << 31;
    /// GICD_IROUTER.Interrupt_Routing_Mode: any vCPU.
    pub const ROUTE_ANY: u64 = 1 << 31;
}

/// Redistributor registers of the RD_base frame.
pub mod gicr {
    /// GICR_IIDR.
    pub const IIDR: u64 = 0x4;
    /// GICR_TYPER.
    pub const TYPER: u64 = 0x8;
    /// GICR_WAKER.
    pub const WAKER: u64 = 0x14;
    /// GICR_WAKER.ProcessorSleep.
    pub const PROCESSOR_SLEEP: u32 = 1 << 1;
    /// GICR_WAKER.ChildrenAsleep.
    pub const CHILDREN_ASLEEP: u32 = 1 << 2;
    /// GICR_TYPER.Last.
    pub const TYPER_LAST: u64 = 1 << 4;
}

/// What both the distributor and the SGI_base frame have, with one bit for each
/// INTID (or eight, or two).
pub mod offset {
    /// IGROUPR.
    pub const IGROUPR: u64 = 0x80;
    /// ISENABLER.
    pub const ISENABLER: u64 = 0x100;
    /// ICENABLER.
    pub const ICENABLER: u64 = 0x180;
    /// ISPENDR.
    pub const ISPENDR: u64 = 0x200;
    /// ICPENDR.
    pub const ICPENDR: u64 = 0x280;
    /// ISACTIVER.
    pub const ISACTIVER: u64 = 0x300;
    /// ICACTIVER.
    pub const ICACTIVER: u64 = 0x380;
    /// IPRIORITYR.
    pub const IPRIORITYR: u64 = 0x400;
    /// ICFGR.
    pub const ICFGR: u64 = 0xc00;
}
use offset::*;

/// What ICC_IAR1_EL1 and ICC_HPPIR1_EL1 answer when nothing is there.
pub const NONE: u32 = 1023;
/// ICC_CTLR_EL1.EOImode: EOIR drops the priority only.
pub const CTLR_EOIMODE: u64 = 1 << 1;
/// ICC_SGI1R_EL1.IRM: all but self.
const SGI_ALL_OTHERS: u64 = 1 << 40;
/// Priority of every interrupt after [`reset`].
pub const PRIORITY: u8 = 0xa0;
/// SPIs that no device of the virtual platform uses, on the reference machine
/// either: tests make them pending by software.
pub const FREE_SPIS: core::ops::Range<u32> = 208..INTID_END;

/// The SGI_base frame of vCPU `index`. A GICv2 has none: each vCPU finds its own in the distributor.
pub fn sgi_frame(index: usize) -> Window {
    if IS_V2 { GICD } else { GICR.part(index as u64 * GICR_STRIDE + 0x1_0000, 0x1_0000) }
}

/// The RD_base frame of vCPU `index`. A GICv2 has none: at its offsets, nothing is in the distributor.
pub fn rd_frame(index: usize) -> Window {
    if IS_V2 { GICD } else { GICR.part(index as u64 * GICR_STRIDE, 0x1_0000) }
}

/// The frame that holds `intid`, seen from this vCPU.
fn frame(intid: u32) -> Window {
    if intid < SPI_FIRST { sgi_frame(cpu::index()) } else { GICD }
}

/// Reads the bit of `intid` in the register bank at `bank`.
pub fn bit(bank: u64, intid: u32) -> bool {
    frame(intid).read32(bank + u64::from(intid / 32 * 4)) & 1 << (intid % 32) != 0
}

/// Writes 1 to the bit of `intid` (0 to all others) in the bank at `bank`.
pub fn set(bank: u64, intid: u32) {
    frame(intid).write32(bank + u64::from(intid / 32 * 4), 1 << (intid % 32));
    if bank == ICENABLER {
        settle();
    }
}

/// Sets the priority of `intid`, by a byte access.
pub fn set_priority(intid: u32, priority: u8) {
    frame(intid).write8(IPRIORITYR + u64::from(intid), priority);
}

/// Reads the priority of `intid`.
pub fn priority(intid: u32) -> u8 {
    frame(intid).read8(IPRIORITYR + u64::from(intid))
}

/// Makes an SPI edge-triggered or level-sensitive.
pub fn set_edge(intid: u32, edge: bool) {
    let offset = ICFGR + u64::from(intid / 16 * 4);
    let field = 0b10 << (intid % 16 * 2);
    let old = frame(intid).read32(offset);
    frame(intid).write32(offset, if edge { old | field } else { old & !field });
}

/// Routes an SPI to one vCPU.
pub fn route(spi: u32, index: usize) {
    if IS_V2 {
        return GICD.write8(gicd::ITARGETSR + u64::from(spi), 1 << index);
    }
    GICD.write64(gicd::IROUTER + u64::from(spi) * 8, platform::get().vcpus[index]);
}

/// Routes an interrupt anywhere, or nowhere.
pub fn route_anywhere(intid: u32, route: u64) {
    if IS_V2 {
        return GICD.write8(gicd::ITARGETSR + u64::from(intid), route as u8);
    }
    GICD.write64(gicd::IROUTER + u64::from(intid) * 8, route);
}

/// Enables an SPI, edge-triggered, routed to vCPU `index`.
pub fn enable_spi(spi: u32, index: usize) {
    set_edge(spi, true);
    route(spi, index);
    set(ISENABLER, spi);
}

/// Waits until the distributor has taken in what was written (RWP).
pub fn settle() {
    while GICD.read32(gicd::CTLR) & gicd::CTLR_RWP != 0 {}
}

/// Sends SGI `intid` to the vCPUs in `indices`.
pub fn send(intid: u32, indices: impl IntoIterator<Item = usize>) {
    let list = indices.into_iter().fold(0, |list, index| list | 1u64 << index);
    cpu::dsb();
    write::icc_sgi1r_el1(u64::from(intid) << 24 | list);
}

/// Sends SGI `intid` to all other vCPUs.
pub fn broadcast(intid: u32) {
    cpu::dsb();
    write::icc_sgi1r_el1(u64::from(intid) << 24 | SGI_ALL_OTHERS);
}

/// Acknowledges the highest-priority pending interrupt.
pub fn acknowledge() -> u32 {
    let intid = read::icc_iar1_el1() as u32 & 0xff_ffff;
    cpu::dsb();
    intid
}

/// Drops the priority of and (EOImode 0) deactivates `intid`.
pub fn end(intid: u32) {
    write::icc_eoir1_el1(intid.into());
}

/// Brings the distributor and this vCPU's part into a known state: group 1,
/// everything disabled, idle, at [`PRIORITY`], all SGIs enabled; IRQ unmasked.
pub fn reset() {
    cpu::mask_irq();
    GICD.write32(gicd::CTLR, 0);
    settle();
    for word in 1..u64::from(INTID_END / 32) {
        GICD.write32(ICENABLER + word * 4, !0);
        GICD.write32(ICPENDR + word * 4, !0);
        GICD.write32(ICACTIVER + word * 4, !0);
        GICD.write32(IGROUPR + word * 4, !0);
    }
    settle();
    for word in u64::from(SPI_FIRST / 4)..u64::from(INTID_END / 4) {
        GICD.write32(IPRIORITYR + word * 4, u32::from_ne_bytes([PRIORITY; 4]));
    }
    GICD.write32(gicd::CTLR, gicd::CTLR_ARE | gicd::CTLR_ENABLE_GROUP1);
    settle();
    reset_vcpu();
    cpu::unmask_irq();
}

/// As [`reset`], for this vCPU's redistributor and CPU interface; IRQ is
/// masked before and after.
pub fn reset_vcpu() {
    let index = cpu::index();
    let rd = rd_frame(index);
    rd.write32(gicr::WAKER, rd.read32(gicr::WAKER) & !gicr::PROCESSOR_SLEEP);
    while rd.read32(gicr::WAKER) & gicr::CHILDREN_ASLEEP != 0 {}
    let sgi = sgi_frame(index);
    sgi.write32(ICENABLER, !0);
    settle();
    sgi.write32(ICPENDR, !0);
    sgi.write32(ICACTIVER, !0);
    sgi.write32(IGROUPR, !0);
    for word in 0..8 {
        sgi.write32(IPRIORITYR + word * 4, u32::from_ne_bytes([PRIORITY; 4]));
    }
    sgi.write32(ISENABLER, 0xffff);
    write::icc_sre_el1(read::icc_sre_el1() | 1);
    write::icc_ctlr_el1(0);
    write::icc_ap1r0_el1(0);
    write::icc_bpr1_el1(0);
    write::icc_pmr_el1(0xff);
    write::icc_igrpen1_el1(1);
    irq::reset(index);
}

/// Gives interrupts on their way the time to arrive: reads from the distributor
/// are round trips to the interrupt controller.
pub fn let_in() {
    for _ in 0..16 {
        GICD.read32(gicd::TYPER);
        cpu::isb();
    }
}

/// Waits until `total` interrupts were served here, then makes sure that no
/// further one is pending.
pub fn expect_total(total: usize) -> crate::suite::Check {
    let seen = irq::seen(cpu::index());
    wait::until("interrupts", || seen.total() >= total)?;
    let_in();
    crate::ensure_eq!(seen.total(), total, "interrupts taken");
    Ok(())
}
