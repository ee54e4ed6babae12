//! A GICv3's distributor and redistributors.
//!
//! A single security state (GICD_CTLR.DS = 1), affinity routing always on, no
//! LPIs, no message-based SPIs. Unknown and reserved registers read as zero and
//! ignore writes (IHI 0069H, section 12.1.3). Registers of 64 bits are taken by
//! 32-bit halves too.

use super::words;
use crate::{Effects, Gic, SPIS, WORDS};
use abi::platform::SPI_FIRST;
use core::ops::Range;

const GICD_CTLR: u64 = 0x0000;
const GICD_TYPER: u64 = 0x0004;
const GICD_IIDR: u64 = 0x0008;
const GICD_IROUTER: u64 = 0x6000;
const GICD_IROUTER_SPI: u64 = GICD_IROUTER + 8 * SPI_FIRST as u64;
const GICD_IROUTER_END: u64 = GICD_IROUTER_SPI + 8 * SPIS as u64;

const GICR_IIDR: u64 = 0x0004;
const GICR_TYPER: u64 = 0x0008;
const GICR_TYPER_HIGH: u64 = 0x000c;
/// The second 64 KiB frame, with the registers of SGIs and PPIs.
const SGI_FRAME: u64 = 0x1_0000;

const PIDR2: u64 = 0xffe8;
/// GICv3.
const PIDR2_GICV3: u32 = 0x3b;
/// Implementer Arm; product and revision are ours.
const IIDR: u32 = 0x43b;

/// ITLinesNumber; IDbits: 10; No1N: routing to any PE is not supported; no
/// Aff3, no range selectors.
const TYPER: u32 = (WORDS as u32 - 1) | 9 << 19 | 1 << 25;
/// GICD_IROUTER.Aff2, Aff1, Aff0; Interrupt_Routing_Mode is RAZ/WI.
const ROUTE_MASK: u64 = 0x00ff_ffff;

/// GICD_CTLR.DS and ARE_NS, both read-as-one here.
const CTLR_FIXED: u32 = 1 << 6 | 1 << 4;

/// Offsets of the distributor at which what is read may depend on what is in list registers.
pub const DISTRIBUTOR_STATE: Range<u64> = words::STATE;

/// Reads `size` bytes at `offset` of the distributor, on behalf of vCPU `vcpu`, where that is no
/// [state](DISTRIBUTOR_STATE).
pub fn peek_distributor(gic: &Gic, vcpu: usize, offset: u64, size: u8) -> u64 {
    match (offset, size) {
        (GICD_IROUTER_SPI..GICD_IROUTER_END, _) => read_route(gic, offset, size),
        (GICD_CTLR, 4) => u64::from(gic.control() | CTLR_FIXED),
        (GICD_TYPER, 4) => u64::from(TYPER),
        (GICD_IIDR, 4) => u64::from(IIDR),
        (PIDR2, 4) => u64::from(PIDR2_GICV3),
        _ => words::peek(gic, vcpu, offset, size, 1..WORDS),
    }
}

/// Reads what is [state](DISTRIBUTOR_STATE), with everything in the banks.
pub fn read_distributor_state(gic: &Gic, vcpu: usize, offset: u64, size: u8) -> (u64, Effects) {
    words::read_state(gic, vcpu, offset, size, 1..WORDS)
}

/// Reads what there is, with everything in the banks.
#[cfg(test)]
pub fn read_distributor(gic: &Gic, vcpu: usize, offset: u64, size: u8) -> (u64, Effects) {
    if DISTRIBUTOR_STATE.contains(&offset) {
        return read_distributor_state(gic, vcpu, offset, size);
    }
    (peek_distributor(gic, vcpu, offset, size), Effects::default())
}

/// Writes `size` bytes at `offset` of the distributor, on behalf of vCPU `vcpu`.
pub fn write_distributor(gic: &Gic, vcpu: usize, offset: u64, size: u8, value: u64) -> Effects {
    match (offset, size) {
        (GICD_IROUTER_SPI..GICD_IROUTER_END, _) => write_route(gic, offset, size, value),
        (GICD_CTLR, 4) => gic.set_control(value as u32),
        _ => words::write(gic, vcpu, offset, size, value, 1..WORDS),
    }
}

/// Offsets of a redistributor at which what is read may depend on what is in list registers.
pub const REDISTRIBUTOR_STATE: Range<u64> =
    SGI_FRAME + words::STATE.start..SGI_FRAME + words::STATE.end;

/// Reads from the redistributor of vCPU `vcpu`, the `last` of its VM or not, where that is no
/// [state](REDISTRIBUTOR_STATE).
pub fn peek_redistributor(gic: &Gic, vcpu: usize, last: bool, offset: u64, size: u8) -> u64 {
    let affinity = vcpu as u64;
    let typer = affinity << 32 | affinity << 8 | u64::from(last) << 4;
    match (offset, size) {
        (SGI_FRAME.., _) => words::peek(gic, vcpu, offset - SGI_FRAME, size, 0..1),
        (GICR_IIDR, 4) => u64::from(IIDR),
        (GICR_TYPER, 8) => typer,
        (GICR_TYPER, 4) => typer & 0xffff_ffff,
        (GICR_TYPER_HIGH, 4) => typer >> 32,
        (PIDR2, 4) => u64::from(PIDR2_GICV3),
        // GICR_CTLR: no LPIs. GICR_WAKER: awake, whatever is written.
        _ => 0,
    }
}

/// Reads what is [state](REDISTRIBUTOR_STATE), with everything in the banks.
pub fn read_redistributor_state(gic: &Gic, vcpu: usize, offset: u64, size: u8) -> (u64, Effects) {
    words::read_state(gic, vcpu, offset.wrapping_sub(SGI_FRAME), size, 0..1)
}

/// Reads what there is, with everything in the banks.
#[cfg(test)]
pub fn read_redistributor(
    gic: &Gic,
    vcpu: usize,
    last: bool,
    offset: u64,
    size: u8,
) -> (u64, Effects) {
    if REDISTRIBUTOR_STATE.contains(&offset) {
        return read_redistributor_state(gic, vcpu, offset, size);
    }
    (peek_redistributor(gic, vcpu, last, offset, size), Effects::default())
}

/// Writes to the redistributor of vCPU `vcpu`.
pub fn write_redistributor(gic: &Gic, vcpu: usize, offset: u64, size: u8, value: u64) -> Effects {
    match offset.checked_sub(SGI_FRAME) {
        Some(offset) => words::write(gic, vcpu, offset, size, value, 0..1),
        None => Effects::default(),
    }
}

/// Finds the shared interrupt whose route is accessed; none if the access is to
/// the half that has Aff3 only, which is always zero.
fn routed(offset: u64, size: u8) -> Option<u32> {
    let at = offset - GICD_IROUTER;
    (matches!(size, 4 | 8) && at.is_multiple_of(8)).then_some((at / 8) as u32)
}

fn read_route(gic: &Gic, offset: u64, size: u8) -> u64 {
    routed(offset, size).map_or(0, |intid| gic.route(intid).into())
}

fn write_route(gic: &Gic, offset: u64, size: u8, value: u64) -> Effects {
    match routed(offset, size) {
        Some(intid) => gic.set_route(intid, (value & ROUTE_MASK) as u32),
        None => Effects::default(),
    }
}
