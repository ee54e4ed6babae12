//! DMA of a PCI device behind an SMMU, as `dma*.toml` describe it: QEMU's `edu`, which reads and writes
//! any address on command.

use super::reset;
use crate::arch::{cpu, memory, mmio::Window};
use crate::pci::{Function, MASTER, MEMORY, registers};
use crate::suite::{Check, Done};
use crate::{calls, ensure, ensure_eq, fail, gic, irq, pass, platform, wait};
use core::sync::atomic::Ordering::SeqCst;

/// The first of the interrupts that the devices share.
const INTA: u32 = 35;
/// Vendor and device.
const EDU: u32 = 0x11e8_1234;
/// The base address of its registers.
const BAR: u64 = 0;
const REGISTERS: Window = registers(0);

/// The device's registers (QEMU, docs/specs/edu.rst).
const WHAT: u64 = 0x00;
const ACKNOWLEDGE: u64 = 0x64;
const SOURCE: u64 = 0x80;
const DESTINATION: u64 = 0x88;
const COUNT: u64 = 0x90;
const CONTROL: u64 = 0x98;
/// Where its own buffer is, for itself.
const BUFFER: u64 = 0x4_0000;
const RUN: u32 = 1 << 0;
const TO_MEMORY: u32 = 1 << 1;
const INTERRUPT: u32 = 1 << 2;

/// What the neighbour's memory holds.
const GUARDED: u64 = 0x9e37_79b9_7f4a_7c15;
/// What the device is told to write there.
const FOREIGN: u64 = 0x0bad_0bad_0bad_0bad;
/// In the memory that both VMs have: what the neighbour waits for.
const READY: u64 = 1;
const DONE: u64 = 2;

/// The device.
struct Edu {
    function: Function,
    intid: u32,
}

impl Edu {
    /// Finds it; it can do nothing yet.
    fn find() -> Check<Self> {
        let Some(function) = Function::find(EDU, 0) else { fail!("there is no device `edu`") };
        function.place(BAR, 0);
        Ok(Self { function, intid: INTA + function.device as u32 % 4 })
    }

    fn enable(&self) -> Check {
        self.function.set_command(MEMORY | MASTER);
        ensure_eq!(REGISTERS.read32(WHAT), 0x0100_00ed, "what the device says it is");
        // First: the line of what an earlier life has ordered may be high.
        irq::hook(|_| REGISTERS.write32(ACKNOWLEDGE, u32::MAX));
        gic::set_edge(self.intid, false);
        gic::enable_spi(self.intid, 0);
        Ok(())
    }

    /// Tells it to copy a word, which it does 100 ms later.
    fn order(&self, from: u64, to: u64, control: u32) {
        REGISTERS.write64(SOURCE, from);
        REGISTERS.write64(DESTINATION, to);
        REGISTERS.write64(COUNT, 8);
        cpu::dsb();
        REGISTERS.write32(CONTROL, RUN | INTERRUPT | control);
    }

    /// Copies a word from one address to another, by the device's buffer.
    fn copy(&self, from: u64, to: u64) -> Check {
        for (from, to, control) in [(from, BUFFER, 0), (BUFFER, to, TO_MEMORY)] {
            let before = irq::seen(0).count(self.intid);
            self.order(from, to, control);
            wait::until("the device's interrupt", || irq::seen(0).count(self.intid) > before)?;
            ensure_eq!(REGISTERS.read32(CONTROL) & RUN, 0, "the device's state");
        }
        Ok(())
    }
}

/// Three words of this VM's own memory that nothing else has.
fn own() -> (u64, &'static [core::sync::atomic::AtomicU64]) {
    let begin = platform::free_memory();
    (begin, memory::words(begin, begin + 24))
}

/// Has the device read and write its own VM's memory, and then try all other memory of the board, in
/// steps.
pub fn tries() -> Check<Done> {
    let platform = platform::get();
    let Some(shared) = platform.shared.first().map(|shared| shared.window()) else {
        fail!("there is no shared memory")
    };
    let edu = Edu::find()?;
    edu.enable()?;
    let (at, words) = own();
    words[0].store(!GUARDED, SeqCst);
    edu.copy(at, at + 8)?;
    ensure_eq!(words[1].load(SeqCst), !GUARDED, "what the device copied");
    wait::until("the neighbour", || shared.read64(0) == READY)?;
    let step = platform.number("step_mib", 16) << 20;
    let end = abi::platform::RAM_BASE + (platform.number("board_mib", 256) << 20);
    let mut tried = 0;
    for address in (platform.ram_end()..end).step_by(step as usize) {
        // The device's buffer has what it wrote last, if it can read nothing.
        words[0].store(FOREIGN, SeqCst);
        edu.copy(address, at + 16)?;
        ensure!(words[2].load(SeqCst) != GUARDED, "{address:#x} can be read");
        edu.copy(at, address)?;
        tried += 1;
    }
    shared.write64(0, DONE);
    // It goes on with what it may do.
    words[0].store(GUARDED, SeqCst);
    edu.copy(at, at + 8)?;
    ensure_eq!(words[1].load(SeqCst), GUARDED, "what the device copied after that");
    pass!("tried={tried}")
}

/// Fills its memory, and finds it as it was when the neighbour has tried to reach it.
pub fn guards() -> Check<Done> {
    let platform = platform::get();
    let Some(shared) = platform.shared.first().map(|shared| shared.window()) else {
        fail!("there is no shared memory")
    };
    let words = memory::words(platform::free_memory(), platform.ram_end() - 0x10_0000);
    words.iter().for_each(|word| word.store(GUARDED, SeqCst));
    cpu::dsb();
    shared.write64(0, READY);
    wait::until("the neighbour's tries", || shared.read64(0) == DONE)?;
    let changed = words.iter().filter(|word| word.load(SeqCst) != GUARDED).count();
    ensure_eq!(changed, 0, "words that are other ones");
    pass!("words={}", words.len())
}

/// Orders DMA, and resets its VM before that is done: the next life's memory is not written.
pub fn lives() -> Check<Done> {
    let before = reset::starts_before();
    let edu = Edu::find()?;
    let lives = platform::get().number("lives", 2);
    let (at, words) = own();
    if before > 0 {
        ensure_eq!(edu.function.command(), 0, "the device's command register");
        words[1].store(GUARDED, SeqCst);
        edu.function.set_command(MEMORY);
        wait::until("the end of what was ordered", || REGISTERS.read32(CONTROL) & RUN == 0)?;
        ensure_eq!(words[1].load(SeqCst), GUARDED, "what an earlier life has ordered");
    }
    edu.enable()?;
    words[0].store(FOREIGN, SeqCst);
    if before == lives {
        // The same orders, and no reset.
        edu.copy(at, at + 8)?;
        ensure_eq!(words[1].load(SeqCst), FOREIGN, "what the device copied");
        return pass!("lives={before}");
    }
    edu.copy(at, at + 16)?;
    reset::note_start(before + 1);
    cpu::mask_irq();
    edu.order(BUFFER, at + 8, TO_MEMORY);
    calls::system_reset()
}
