//! Firmware without PSCI, as on a Raspberry Pi: the other cores wait in a loop for an address, and the
//! watchdog of the power management ends the machine (BCM2835 ARM Peripherals; Raspberry Pi's `armstub8.S`).

use super::boot;
use super::instructions;
use super::memory::device::{read32, write32, write64};
use crate::arch::Started;
use abi::MAX_PCPUS;
use abi::system::Board;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Offsets of the power management: RSTC, RSTS, WDOG.
const RESET_CONTROL: u64 = 0x1c;
const RESET_STATUS: u64 = 0x20;
const WATCHDOG: u64 = 0x24;
/// What the upper byte of each write has to be.
const PASSWORD: u32 = 0x5a << 24;
/// RSTC: the watchdog resets the whole machine.
const FULL_RESET: u32 = 0x20;
const RESET_FIELD: u32 = 0x30;
/// RSTS: the partition to boot from, in every second bit; the firmware takes 63 for none, and halts.
const HALT: u32 = 0x555;
/// Units of 15.3 us.
const SOON: u32 = 10;

/// Where the addresses are, and the power management; 0: the board has none.
static PLACES: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
static STARTED: [AtomicBool; MAX_PCPUS] = [const { AtomicBool::new(false) }; MAX_PCPUS];

/// Says where the board has them.
pub fn place(board: &Board) {
    PLACES[0].store(board.release_pa, Ordering::Relaxed);
    PLACES[1].store(board.power_pa, Ordering::Relaxed);
}

/// Returns true if the board has a spin table.
pub fn is_there() -> bool {
    PLACES[1].load(Ordering::Relaxed) != 0
}

/// Lets a core go on. It stays on from then on.
pub fn start_core(index: usize) -> Started {
    let Some(started) = STARTED.get(index) else { return Started::No };
    if started.swap(true, Ordering::Relaxed) {
        return Started::IsOn;
    }
    // It finds its own index.
    write64(PLACES[0].load(Ordering::Relaxed) + 8 * index as u64, boot::spin_table_entry_pa());
    instructions::complete();
    instructions::send_event();
    Started::Yes
}

/// Ends the machine, some time later.
pub fn end(for_ever: bool) {
    let power = PLACES[1].load(Ordering::Relaxed);
    if for_ever {
        write32(power + RESET_STATUS, PASSWORD | read32(power + RESET_STATUS) | HALT);
    }
    write32(power + WATCHDOG, PASSWORD | SOON);
    let others = read32(power + RESET_CONTROL) & !RESET_FIELD & 0xff_ffff;
    write32(power + RESET_CONTROL, PASSWORD | others | FULL_RESET);
}
