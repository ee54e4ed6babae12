//! Attacks by the virtual GIC (Arm IHI 0069).

use super::actor::{Actor, table};
use super::registers::tamed;
use crate::arch::cpu;
use crate::arch::encodings::Encoding;
use crate::arch::sysreg::write;
use crate::gic::{self, gicd, offset::*};
use crate::platform::GICD;
use abi::platform::{GICD_SIZE, GICD_V2_SIZE, INTID_END};

/// Words of a bank with a bit for each interrupt.
const WORDS: u64 = INTID_END as u64 / 32;
/// Accesses of one step.
const STRIDE: u64 = 16;

/// Writes a bank for every interrupt of this vCPU.
fn write_bank(actor: &Actor, bank: u64, value: u32) {
    gic::sgi_frame(actor.index).write32(bank, value);
    for word in 1..WORDS {
        GICD.write32(bank + word * 4, value);
    }
}

/// Every interrupt is enabled and pending, and none is taken.
pub fn prepare_pending(actor: &mut Actor) {
    actor.calm_down();
    write::icc_pmr_el1(0);
    write_bank(actor, ISENABLER, !0);
    write_bank(actor, ISPENDR, !0);
}

/// Writes GICD_CTLR, for which all interrupts are sorted again.
pub fn pending(_: &mut Actor) -> u64 {
    for _ in 0..STRIDE {
        GICD.write32(gicd::CTLR, gicd::CTLR_ARE | gicd::CTLR_ENABLE_GROUP1);
    }
    STRIDE
}

/// Every interrupt is active: more than there are list registers.
pub fn prepare_active(actor: &mut Actor) {
    actor.calm_down();
    write_bank(actor, ISACTIVER, !0);
}

/// Ends an interrupt that is in no list register, for which there is a maintenance interrupt.
pub fn active(actor: &mut Actor) -> u64 {
    for _ in 0..STRIDE {
        write::icc_ap1r0_el1(!0);
        write::icc_eoir1_el1(200);
    }
    // What was ended becomes active again.
    if actor.once_in(8) {
        write_bank(actor, ISACTIVER, !0);
    }
    STRIDE
}

/// As [`active()`], 31 times before the maintenance interrupt can come.
pub fn burst(actor: &mut Actor) -> u64 {
    write::icc_ap1r0_el1(!0);
    cpu::end_in_a_burst(200);
    write_bank(actor, ISACTIVER, !0);
    31
}

/// Reads and writes registers of the distributor.
pub fn distributor(actor: &mut Actor) -> u64 {
    for _ in 0..STRIDE {
        let (offset, value) = (some_offset(actor), actor.value());
        match actor.random.up_to(9) {
            0 => drop(GICD.read8(offset)),
            1 => drop(GICD.read32(offset & !3)),
            2 => drop(GICD.read64(offset & !7)),
            3 => GICD.write8(offset, value as u8),
            4 => GICD.write64(offset & !7, value),
            5 => gic::route_anywhere(actor.random.up_to(INTID_END.into()) as u32, value),
            6 => GICD.write32(gicd::CTLR, value as u32),
            _ => GICD.write32(offset & !3, value as u32),
        }
    }
    if actor.once_in(4) {
        let bank = actor.one(&[ISENABLER, ISPENDR, ISACTIVER]);
        write_bank(actor, bank, !0);
    }
    actor.let_interrupts_in();
    STRIDE
}

/// An offset where there are registers, mostly.
fn some_offset(actor: &mut Actor) -> u64 {
    let last = if gic::IS_V2 { GICD_V2_SIZE } else { GICD_SIZE } - 1;
    match actor.random.up_to(7) {
        0 => actor.random.up_to(last),
        1 => last - 0x2f + actor.random.up_to(0x2f),
        // SGIs are sent here, and targets named.
        2 if gic::IS_V2 => gicd::ITARGETSR + actor.random.up_to(last - gicd::ITARGETSR),
        2 => ICFGR + actor.random.up_to(INTID_END as u64 / 4 - 1),
        3 => IPRIORITYR + actor.random.up_to(INTID_END as u64 - 1),
        _ => IGROUPR + actor.random.up_to(ICACTIVER + WORDS * 4 - IGROUPR),
    }
}

/// Reads and writes registers of redistributors, siblings' too.
pub fn redistributor(actor: &mut Actor) -> u64 {
    for _ in 0..STRIDE {
        let vcpu = actor.some_vcpu();
        let (offset, value) = (some_offset(actor), actor.value());
        let frame = if actor.once_in(4) { gic::rd_frame(vcpu) } else { gic::sgi_frame(vcpu) };
        let bank = actor.one(&[ISENABLER, ICENABLER, ISPENDR, ICPENDR, ISACTIVER, ICACTIVER]);
        match actor.random.up_to(7) {
            0 => drop(frame.read8(offset)),
            1 => drop(frame.read32(offset & !3)),
            2 => drop(frame.read64(offset & !7)),
            3 => frame.write8(offset, value as u8),
            4 => frame.write64(offset & !7, value),
            5 => frame.write32(offset & !3, value as u32),
            _ => frame.write32(bank, value as u32),
        }
    }
    actor.let_interrupts_in();
    STRIDE
}

/// The registers of the CPU interface: ICC_PMR_EL1, and those with CRn 12 and CRm 8 to 12.
fn some_register(actor: &mut Actor) -> Encoding {
    if actor.once_in(8) {
        return Encoding::new(3, 0, 4, 6, 0);
    }
    let (crm, op2) = (8 + actor.random.up_to(4) as u16, actor.random.up_to(7) as u16);
    Encoding::new(3, 0, 12, crm, op2)
}

/// Reads and writes registers of the CPU interface, with interrupts in the list registers.
pub fn interface(actor: &mut Actor) -> u64 {
    let table = table();
    for _ in 0..STRIDE {
        let (register, value) = (some_register(actor), actor.value());
        let intid = actor.random.up_to(INTID_END as u64 + 2);
        // Some registers do not exist: then that is what happens.
        let _ = match actor.random.up_to(5) {
            0 => table.write(Encoding::new(3, 0, 12, 12, 1), intid),
            1 => table.write(Encoding::new(3, 0, 12, 11, 1), intid),
            2 => table.read(Encoding::new(3, 0, 12, 12, 0)),
            3 => table.write(register, tamed(register, value)),
            _ => table.read(register),
        };
        #[cfg(feature = "gic-v2")]
        gic::v2::access_anything(actor.random.word(), intid as u32);
    }
    if actor.once_in(4) {
        let (bank, value) = (actor.one(&[ISENABLER, ISPENDR, ISACTIVER]), actor.value());
        write_bank(actor, bank, value as u32);
    }
    actor.let_interrupts_in();
    STRIDE
}

/// Sends SGIs to every sibling, and to vCPUs that are not there.
pub fn sgi(actor: &mut Actor) -> u64 {
    for intid in 0..STRIDE {
        let list = if actor.once_in(4) { actor.random.word() } else { 0xff };
        let all_others = u64::from(actor.once_in(2)) << 40;
        let value = intid << 24 | all_others | list & 0xffff;
        match actor.random.up_to(15) {
            0 => write::icc_sgi0r_el1(value),
            1 => write::icc_asgi1r_el1(value),
            2 => write::icc_sgi1r_el1(actor.random.word()),
            _ => write::icc_sgi1r_el1(value),
        }
    }
    actor.let_interrupts_in();
    STRIDE
}
