//! Attacks by a device that does DMA: QEMU's `lsi53c895a`, a SCSI controller that executes programs in memory, which
//! may copy memory (LSI53C895A technical manual, chapter 5). It does so at once, as soon as it is told where a
//! program begins.
//!
//! Each vCPU has a device of its own. What it does is not confined by stage 2 of the vCPU, but by the SMMU.

use super::actor::{Actor, scratch};
use crate::arch::mmio::Window;
use crate::arch::{cpu, memory};
use crate::pci::{Function, MASTER, MEMORY, registers};
use crate::platform;
use abi::platform as p;
use core::hint::black_box;
use core::sync::atomic::{AtomicU32, Ordering::SeqCst};

/// Vendor and device.
const LSI: u32 = 0x0012_1000;
/// The base address of its registers in memory.
const BAR: u64 = 1;
/// Interrupt Status, with a bit that resets the device.
const ISTAT: u64 = 0x14;
const RESET: u8 = 1 << 6;
/// DMA Script Pointer: what is written there begins a program.
const DSP: u64 = 0x2c;
/// Memory Move, and how many bytes; where from and where to follow. Interrupt, which ends the program: it interrupts
/// no vCPU, as that is not enabled.
const MOVE: u32 = 0xc000_0000;
const END: u32 = 0x9808_0000;

/// Copies of one program, but for the last one.
const STRIDE: u64 = 4;
/// Bytes of most copies at most, and of a few.
const SHORT: u64 = 32;
const LONG: u64 = 0x1000;
const PAGE: u64 = 0x1000;

/// What a vCPU has for its device, behind the memory that other attacks write: its program; what is written where it
/// may not be; where goes what may not be read; and two words that it may copy.
const OWN: u64 = 0x10_0000;
const OWN_STRIDE: u64 = 0x1_0000;
const SOURCE: u64 = PAGE;
const SINK: u64 = 2 * PAGE;
const ALLOWED: u64 = 3 * PAGE;

/// Two halves of a word that the host looks for at the end in all memory but this VM's
/// (`crates/lab/src/bench/hostile/remains.rs`). No register may have both: EL2 keeps those of a preempted vCPU.
const HALVES: [u32; 2] = [0x6b1d_9e37, 0xd4a5_5eed];

/// What the device may not reach, at the host's addresses: the memory of the board, of which EL2 has the beginning;
/// registers of the GIC, of the UART and of the SMMU; and where there is nothing.
const FOREIGN: [(u64, u64); 7] = [
    (0x4000_0000, 0x80_0000),
    (0x4000_0000, 0x2000_0000),
    (p::GICD_BASE, p::GICD_SIZE),
    (p::GICR_BASE, 0x20_0000),
    (p::UART_BASE, 0x7_0000),
    (0x6000_0000, 0x2000_0000),
    (0xf000_0000, 0x0fff_f000),
];

/// A vCPU's device.
struct Card {
    registers: Window,
    own: u64,
}

/// Has the device copy what this VM does not have, from and to everywhere. A VM without such a device does nothing.
pub fn dma(actor: &mut Actor) -> u64 {
    let Some(card) = Card::of(actor.index) else { return 0 };
    if actor.once_in(256) {
        // It reads its program where it may not. Zeros are no instruction: it looks for one, and would do so again.
        card.execute(some_place(actor, SHORT));
        card.reset();
    }
    let mut program = card.words(0, PAGE).iter();
    let mut put = |words: [u32; 3]| {
        words.into_iter().zip(&mut program).for_each(|(word, place)| place.store(word, SeqCst));
    };
    for _ in 0..STRIDE {
        let most = if actor.once_in(1024) { LONG } else { SHORT };
        let size = 8 * (1 + actor.random.up_to(most / 8 - 1));
        let (place, other) = (some_place(actor, most), some_place(actor, most));
        let (from, to) = match actor.random.up_to(3) {
            0 => (place, card.own + SINK),
            1 => (place, other),
            _ => (card.own + SOURCE, place),
        };
        put([MOVE | size as u32, from as u32, to as u32]);
    }
    let allowed = card.words(ALLOWED, 8);
    let expected = actor.random.word() as u32;
    allowed[0].store(expected, SeqCst);
    put([MOVE | 4, (card.own + ALLOWED) as u32, (card.own + ALLOWED + 4) as u32]);
    put([END, 0, 0]);
    card.execute(card.own);
    let done = allowed[1].load(SeqCst);
    if done != expected {
        actor.complain(format_args!("the device copied {done:#x}, not {expected:#x}"));
    }
    // What is refused reads as zero.
    if let Some(read) = card.words(SINK, LONG).iter().find(|word| word.load(SeqCst) != 0) {
        actor.complain(format_args!("the device has read {:#x}", read.swap(0, SeqCst)));
    }
    STRIDE + 1
}

/// Returns an address that is not this VM's, with so many bytes.
fn some_place(actor: &mut Actor, size: u64) -> u64 {
    let (base, whole) = actor.one(&FOREIGN);
    base + (actor.random.up_to(whole - size) & !7)
}

impl Card {
    /// Returns the device of a vCPU, which may do DMA now: a start of the VM has forbidden it.
    fn of(index: usize) -> Option<Self> {
        if !platform::get().has_pci {
            return None;
        }
        let function = Function::find(LSI, index)?;
        let own = scratch() + OWN + OWN_STRIDE * index as u64;
        let card = Self { registers: registers(index as u64), own };
        if function.command() != MEMORY | MASTER {
            function.place(BAR, index as u64);
            function.set_command(MEMORY | MASTER);
            // One by one, so that the compiler does not make one constant of both.
            let halves = HALVES.map(black_box);
            for pair in card.words(SOURCE, LONG).chunks(2) {
                pair.iter().zip(halves).for_each(|(word, half)| word.store(half, SeqCst));
            }
            card.words(SINK, LONG).iter().for_each(|word| word.store(0, SeqCst));
        }
        Some(card)
    }

    /// Words of what the vCPU has for it.
    fn words(&self, offset: u64, size: u64) -> &'static [AtomicU32] {
        memory::halves(self.own + offset, self.own + offset + size)
    }

    /// Has it forget its program.
    fn reset(&self) {
        self.registers.write8(ISTAT, RESET);
        self.registers.write8(ISTAT, 0);
    }

    /// Has it execute a program, and returns when that is done.
    fn execute(&self, program: u64) {
        cpu::dsb();
        self.registers.write32(DSP, program as u32);
        cpu::dsb();
    }
}
