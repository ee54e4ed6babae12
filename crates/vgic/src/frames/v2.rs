//! A GICv2's distributor, of which each vCPU sees private interrupts of its own (Arm IHI 0048B,
//! chapter 4).
//!
//! A single security state. A shared interrupt goes to one vCPU, the first of those that a guest
//! names; only that one reads back. An SGI has no sender: as taken, it was sent by CPU 0, and several
//! senders of the same SGI are one. Unknown and reserved registers read as zero and ignore writes.

use super::words;
use crate::{Bits, Effects, Field, Gic, WORDS};
use abi::MAX_VCPUS_PER_VM;
use abi::platform::{INTID_END, SPI_FIRST};
use core::ops::Range;
use notes::{Bounded, each};

/// Bytes of the frame.
pub const SIZE: u64 = 0x1000;

const GICD_CTLR: u64 = 0x000;
const GICD_TYPER: u64 = 0x004;
const GICD_IIDR: u64 = 0x008;
const GICD_ITARGETSR: u64 = 0x800;
const GICD_ITARGETSR_END: u64 = GICD_ITARGETSR + INTID_END as u64;
const GICD_SGIR: u64 = 0xf00;
const GICD_CPENDSGIR: u64 = 0xf10;
const GICD_SPENDSGIR: u64 = 0xf20;
const GICD_SPENDSGIR_END: u64 = 0xf30;
const GICD_ICPIDR2: u64 = 0xfe8;

/// GICv2, by Arm.
const ICPIDR2: u32 = 0x2b;
/// Implementer Arm; product and revision are ours.
const IIDR: u32 = 0x43b;
/// A route that leads to no vCPU.
const NOWHERE: u32 = 0x00ff_ffff;

/// Offsets at which what is read may depend on what is in list registers, and those between.
pub const STATE: Range<u64> = words::STATE.start..GICD_SPENDSGIR_END;

/// Reads `size` bytes at `offset` of the distributor, on behalf of vCPU `vcpu` of `vcpus`, where that
/// is no [state](STATE).
pub fn peek(gic: &Gic, vcpu: usize, vcpus: usize, offset: u64, size: u8) -> u64 {
    match (offset, size) {
        (GICD_ITARGETSR..GICD_ITARGETSR_END, 1 | 4) => read_targets(gic, vcpu, offset, size),
        (GICD_CTLR, 4) => u64::from(gic.control()),
        (GICD_TYPER, 4) => ((WORDS - 1) | ((vcpus - 1) << 5)) as u64,
        (GICD_IIDR, 4) => u64::from(IIDR),
        (GICD_ICPIDR2, 4) => u64::from(ICPIDR2),
        _ => words::peek(gic, vcpu, offset, size, 0..WORDS),
    }
}

/// Reads what is [state](STATE), with everything in the banks.
pub fn read_state(gic: &Gic, vcpu: usize, vcpus: usize, offset: u64, size: u8) -> (u64, Effects) {
    if words::STATE.contains(&offset) {
        return words::read_state(gic, vcpu, offset, size, 0..WORDS);
    }
    match (offset, size) {
        (GICD_CPENDSGIR..GICD_SPENDSGIR_END, 1 | 4) => read_senders(gic, vcpu, offset, size),
        _ => (peek(gic, vcpu, vcpus, offset, size), Effects::default()),
    }
}

/// Reads what there is, with everything in the banks.
#[cfg(test)]
pub fn read(gic: &Gic, vcpu: usize, vcpus: usize, offset: u64, size: u8) -> (u64, Effects) {
    if STATE.contains(&offset) {
        return read_state(gic, vcpu, vcpus, offset, size);
    }
    (peek(gic, vcpu, vcpus, offset, size), Effects::default())
}

/// Writes `size` bytes at `offset` of the distributor, on behalf of vCPU `vcpu` of `vcpus`.
pub fn write(gic: &Gic, vcpu: usize, vcpus: usize, offset: u64, size: u8, value: u64) -> Effects {
    match (offset, size) {
        (GICD_ITARGETSR..GICD_ITARGETSR_END, 1 | 4) => {
            write_targets(gic, vcpus, offset, size, value)
        }
        (GICD_CPENDSGIR..GICD_SPENDSGIR_END, 1 | 4) => {
            write_senders(gic, vcpu, offset, size, value)
        }
        (GICD_SGIR, 4) => send(gic, vcpu, vcpus, value as u32),
        (GICD_CTLR, 4) => gic.set_control(value as u32),
        _ => words::write(gic, vcpu, offset, size, value, 0..WORDS),
    }
}

/// The first interrupt whose byte is accessed, from the one with the byte at `base` on; none if
/// the access is not aligned.
fn first(base: u64, offset: u64, size: u8) -> Option<u32> {
    let first = offset - base;
    first.is_multiple_of(size.into()).then_some(first as u32)
}

/// The bytes of an access, from the last to the first: one for each interrupt.
fn bytes(size: u8) -> impl Iterator<Item = u32> {
    (0..u32::from(size)).rev().at_most::<4>()
}

/// GICD_ITARGETSR: private interrupts go to the vCPU that reads.
fn read_targets(gic: &Gic, vcpu: usize, offset: u64, size: u8) -> u64 {
    let Some(first) = first(GICD_ITARGETSR, offset, size) else { return 0 };
    bytes(size).fold(0, |value, at| {
        let intid = first + at;
        let target = if intid < SPI_FIRST { Some(vcpu) } else { gic.target(intid) };
        value << 8 | target.map_or(0, |target| 1 << target)
    })
}

fn write_targets(gic: &Gic, vcpus: usize, offset: u64, size: u8, value: u64) -> Effects {
    let Some(first) = first(GICD_ITARGETSR, offset, size) else { return Effects::default() };
    let mut notify = 0;
    for at in bytes(size).filter(|at| first + at >= SPI_FIRST) {
        let named = (value >> (8 * at)) as u32 & ((1 << vcpus) - 1);
        let route = if named == 0 { NOWHERE } else { named.trailing_zeros() };
        notify |= gic.set_route(first + at, route).notify;
    }
    Effects { notify, deactivate: None }
}

/// GICD_CPENDSGIR and GICD_SPENDSGIR: which CPUs have sent the SGIs that pend.
fn read_senders(gic: &Gic, vcpu: usize, offset: u64, size: u8) -> (u64, Effects) {
    let Some(first) = first(GICD_CPENDSGIR, offset, size) else { return (0, Effects::default()) };
    let (pending, effects) = gic.state(vcpu, /* word */ 0, Field::SetPending);
    let sent = |at: u32| u64::from(pending >> ((first + at) % 16) & 1);
    (bytes(size).fold(0, |value, at| value << 8 | sent(at)), effects)
}

fn write_senders(gic: &Gic, vcpu: usize, offset: u64, size: u8, value: u64) -> Effects {
    let Some(first) = first(GICD_CPENDSGIR, offset, size) else { return Effects::default() };
    let named = |at: &u32| value >> (8 * at) & 0xff != 0;
    let sgis = bytes(size).filter(named).fold(0, |sgis, at| sgis | 1 << ((first + at) % 16));
    let field = if offset < GICD_SPENDSGIR { Field::ClearPending } else { Field::SetPending };
    gic.write(vcpu, /* word */ 0, field, sgis)
}

/// GICD_SGIR.
fn send(gic: &Gic, vcpu: usize, vcpus: usize, value: u32) -> Effects {
    let all = (1 << vcpus) - 1;
    let targets = match value >> 24 & 3 {
        0 => value >> 16 & all,
        1 => all & !(1 << vcpu),
        2 => 1 << vcpu,
        _ => 0,
    };
    let intid = value & 0xf;
    let targets = Bits::of(targets).one_for::<{ each::SIBLING }, MAX_VCPUS_PER_VM>();
    let notify = targets.fold(0, |all, target| all | gic.post(target as usize, intid).notify);
    Effects { notify, deactivate: None }
}
