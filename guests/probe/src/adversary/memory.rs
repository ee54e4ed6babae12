//! Attacks by memory: devices, what a VM has not, caches, translations, code.

use super::actor::{Actor, scratch, table};
use crate::arch::boot::BEYOND_IPA_VA;
use crate::arch::encodings::Encoding;
use crate::arch::{cpu, fault, loads, memory};
use crate::gic;
use crate::platform;
use abi::platform as p;

/// Accesses of one step.
const STRIDE: u64 = 8;
const PAGE: u64 = 0x1000;

/// Accesses to devices of every form, size and alignment.
pub fn devices(actor: &mut Actor) -> u64 {
    for _ in 0..STRIDE {
        let redistributors = p::GICR_STRIDE * actor.vcpus as u64;
        let (base, size) = actor.one(&[
            (p::GICD_BASE, p::GICD_SIZE),
            if gic::IS_V2 {
                (p::GICC_BASE, 2 * p::GICC_PAGE)
            } else {
                (p::GICR_BASE, redistributors)
            },
            (p::UART_BASE, p::UART_SIZE),
            (p::STOLEN_BASE, p::STOLEN_SIZE),
        ]);
        let mut address = base + actor.random.up_to(size - 1);
        if !actor.once_in(4) {
            address &= !7;
        }
        let (form, value) = (actor.random.up_to(loads::COUNT - 1), actor.value());
        // Some take an abort: then that is what happens.
        let _ = loads::execute(form, address, value);
    }
    STRIDE
}

/// Reads, writes and executes where this VM has nothing, and near what it has.
pub fn stage2(actor: &mut Actor) -> u64 {
    for _ in 0..STRIDE {
        let address = some_address(actor);
        let form = actor.random.up_to(loads::COUNT - 1);
        let is_memory = (p::SHARED_BASE..p::RAM_BASE).contains(&address)
            || (platform::get().ram_base..platform::get().ram_end()).contains(&address);
        let reports = (p::REPORT_BASE..p::REPORT_BASE + p::REPORT_MAX_SIZE).contains(&address);
        // An abort is what was asked for.
        let _ = match actor.random.up_to(3) {
            0 if !is_memory && !reports => fault::execute(address),
            1 if !is_memory && !reports => loads::execute(form, address, actor.value()),
            _ => loads::execute(form % loads::READS, address, 0),
        };
    }
    STRIDE
}

/// An address near an end of what there is, or any of 39 bits.
fn some_address(actor: &mut Actor) -> u64 {
    let (base, end) = (platform::get().ram_base, platform::get().ram_end());
    let redistributors = p::GICR_STRIDE * actor.vcpus as u64;
    let near = actor.one(&[
        p::GICD_BASE,
        // Where a GICv2 has its CPU interface.
        p::GICD_BASE + p::GICD_SIZE,
        p::GICR_BASE,
        p::GICR_BASE + redistributors,
        p::UART_BASE,
        p::UART_BASE + p::UART_SIZE,
        p::STOLEN_BASE,
        p::STOLEN_BASE + p::STOLEN_SIZE,
        p::REPORT_BASE + p::REPORT_MAX_SIZE,
        base,
        end,
        BEYOND_IPA_VA,
    ]);
    match actor.random.up_to(3) {
        0 => near + actor.random.up_to(PAGE),
        1 => near - actor.random.up_to(PAGE).max(1),
        2 => end + actor.random.up_to(BEYOND_IPA_VA - end),
        _ => actor.random.up_to(BEYOND_IPA_VA + (1 << 30) - 1),
    }
}

/// Empties caches and translations, of all cores where it can.
pub fn maintenance(actor: &mut Actor) -> u64 {
    let table = table();
    for _ in 0..STRIDE {
        let (op1, crn) = (actor.random.up_to(3) as u16, 7 + actor.random.up_to(1) as u16);
        let (crm, op2) = (actor.random.up_to(15) as u16, actor.random.up_to(7) as u16);
        let address = scratch() + actor.random.up_to(PAGE - 1);
        // Those that do not exist: then that is what happens.
        let _ = match actor.random.up_to(7) {
            // IC IALLUIS
            0 => table.write(Encoding::new(1, 0, 7, 1, 0), 0),
            // IC IALLU
            1 => table.write(Encoding::new(1, 0, 7, 5, 0), 0),
            // TLBI VMALLE1IS
            2 => table.write(Encoding::new(1, 0, 8, 3, 0), 0),
            // DC CISW
            3 => table.write(Encoding::new(1, 0, 7, 14, 2), actor.random.word()),
            4 => table.write(Encoding::new(1, op1, crn, crm, op2), actor.random.word()),
            _ => table.write(Encoding::new(1, op1, crn, crm, op2), address),
        };
    }
    cpu::dsb();
    cpu::isb();
    STRIDE
}

/// Changes code and runs it: it must do what it says now.
pub fn code(actor: &mut Actor) -> u64 {
    /// `MOVZ X0, #0`
    const MOVZ: u32 = 0xd280_0000;
    let immediate = actor.random.up_to(0xffff);
    let found = fault::instruction(MOVZ | (immediate as u32) << 5, !0);
    if found != Ok(immediate) {
        actor.complain(format_args!("code that was changed answers {found:?}, not {immediate}"));
    }
    // Code in other pages, and data beside it.
    let words = memory::words(scratch(), scratch() + 16 * PAGE);
    let at = actor.random.up_to(words.len() as u64 - 1) as usize;
    words[at].store(actor.random.word(), core::sync::atomic::Ordering::Relaxed);
    cpu::clean_to_unification(scratch() + at as u64 * 8);
    cpu::ic_iallu();
    1
}

/// Writes to the console without looking whether there is room: bytes of every value, those that
/// frame the output of several VMs among them.
pub fn console(actor: &mut Actor) -> u64 {
    /// UARTDR.
    const DATA: u64 = p::UART_BASE;
    /// `STR W0, [X1]`: the first form with a whole word that writes.
    const STORE: u64 = loads::READS + 2;
    for _ in 0..STRIDE {
        let byte = if actor.once_in(4) { 0x1f } else { actor.random.up_to(255) };
        let _ = loads::execute(STORE, DATA, byte);
    }
    STRIDE
}
