//! A 16550 (TI PC16550D, TL16C550) whose registers are words, 4 bytes apart, as systems on a chip have it. And the mini
//! UART of a BCM2835 to BCM2711, which looks like one (BCM2711 ARM Peripherals, chapter 2).

use crate::arch::memory::device::{read32, write32};

/// Received by reading, sent by writing.
const DATA: u64 = 0x00;
const INTERRUPTS: u64 = 0x04;
/// Why it interrupts, by reading; control of the FIFOs, by writing.
const WHY: u64 = 0x08;
const FIFOS: u64 = 0x08;
const LINE: u64 = 0x0c;
const MODEM: u64 = 0x10;
const STATUS: u64 = 0x14;

/// INTERRUPTS: bytes are there; there is room; a byte is damaged. A mini UART tells of bytes only if it may tell
/// of damaged ones, too.
const TELL_RECEIVED: u32 = 1 << 0 | 1 << 2;
const TELL_ROOM: u32 = 1 << 1;
/// FIFOS: they are on, and what is in them is kept; it tells of the first byte that it receives.
const ON: u32 = 1 << 0;
/// WHY: it has FIFOs, and they are on.
const HAS_FIFOS: u32 = 0b11 << 6;
/// LINE: the first two registers are its rate.
const RATE: u32 = 1 << 7;
/// MODEM: a pin without which some give no interrupt (OUT2).
const GATE: u32 = 1 << 3;
/// STATUS: a byte is there; the FIFO of what it sends is empty (in a mini UART: has room).
const IS_THERE: u32 = 1 << 0;
const EMPTY: u32 = 1 << 5;
/// Bytes that the FIFO of a 16550 holds at least.
const DEPTH: u8 = 16;

/// Where a mini UART has its registers, and a bit of the block before them which switches it on.
const MINI: u64 = 0x40;
const MINI_ENABLES: u64 = 0x04;
const MINI_ON: u32 = 1 << 0;
/// A register that only a mini UART has: receiver and transmitter are on.
const MINI_CONTROL: u64 = 0x20;
const MINI_BOTH: u32 = 1 << 1 | 1 << 0;

/// A UART that one core drives.
pub struct Uart {
    pa: u64,
    /// Bytes that may be sent once STATUS says that it is empty.
    depth: u8,
    /// Bytes that may still be sent before STATUS is asked again.
    room: u8,
}

impl Uart {
    /// Takes over the one at a physical address; it tells what it receives.
    pub fn take(pa: u64) -> Self {
        write32(pa + LINE, read32(pa + LINE) & !RATE);
        write32(pa + MODEM, read32(pa + MODEM) | GATE);
        write32(pa + FIFOS, ON);
        let depth = if read32(pa + WHY) & HAS_FIFOS == HAS_FIFOS { DEPTH } else { 1 };
        let mut uart = Self { pa, depth, room: 0 };
        uart.listen(false);
        uart
    }

    /// Takes over a mini UART, by the physical address of the block (AUX) that it is in.
    pub fn take_mini(block_pa: u64) -> Self {
        let enables = block_pa + MINI_ENABLES;
        write32(enables, read32(enables) | MINI_ON);
        let control = block_pa + MINI + MINI_CONTROL;
        write32(control, read32(control) | MINI_BOTH);
        // It says that there is room, and not how much.
        Self { depth: 1, ..Self::take(block_pa + MINI) }
    }

    /// Chooses of what it tells by its interrupt: of what it receives; and, if so, of room.
    pub fn listen(&mut self, for_room: bool) {
        let room = if for_room { TELL_ROOM } else { 0 };
        write32(self.pa + INTERRUPTS, TELL_RECEIVED | room);
    }

    /// Takes back what its interrupt has told, by asking for it: it tells again what is still so.
    pub fn clear(&mut self) {
        read32(self.pa + WHY);
        read32(self.pa + STATUS);
    }

    /// Returns true if there is no room for a byte.
    pub fn is_full(&mut self) -> bool {
        if self.room == 0 && Direct(self.pa).has_room() {
            self.room = self.depth;
        }
        self.room == 0
    }

    /// Sends a byte; there must be room.
    pub fn put(&mut self, byte: u8) {
        self.room = self.room.saturating_sub(1);
        Direct(self.pa).write(byte);
    }

    /// Takes a byte that has arrived.
    pub fn get(&mut self) -> Option<u8> {
        let is_there = read32(self.pa + STATUS) & IS_THERE != 0;
        is_there.then(|| read32(self.pa + DATA) as u8)
    }
}

/// A UART that is written to without being driven.
pub struct Direct(u64);

impl Direct {
    /// That at a physical address.
    pub fn at(pa: u64) -> Self {
        Self(pa)
    }

    /// That of the block at a physical address.
    pub fn at_mini(block_pa: u64) -> Self {
        Self(block_pa + MINI)
    }

    /// Returns true if there is room for a byte.
    pub fn has_room(&self) -> bool {
        read32(self.0 + STATUS) & EMPTY != 0
    }

    /// Writes a byte.
    pub fn write(&self, byte: u8) {
        write32(self.0 + DATA, byte.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::fake::{machine, smmu::Smmu};
    use abi::system::Board;
    use zerocopy::FromZeros;

    const PA: u64 = 0xfe21_5000;

    /// Puts registers that keep what is written at an address. So none reads that there are FIFOs.
    fn install(at: u64) {
        machine::install(Board::new_zeroed());
        machine::with(|machine| machine.smmu = Some(Smmu::new(at)));
        set(STATUS, EMPTY.into());
    }

    fn set(register: u64, value: u64) {
        let smmu = |smmu: &mut Smmu| smmu.registers.insert(register, value);
        machine::with(|machine| machine.smmu.as_mut().map(smmu));
    }

    /// Returns how many bytes `uart` sends before it is full: all that it takes by one look.
    fn sent(mut uart: Uart) -> usize {
        assert!(!uart.is_full());
        set(STATUS, 0);
        let mut count = 0;
        while !uart.is_full() {
            uart.put(b'x');
            count += 1;
        }
        count
    }

    /// An empty FIFO is filled without asking again; there is no room for more than it holds.
    #[test]
    fn one_look_is_for_as_many_bytes_as_there_is_room_for() {
        install(PA);
        assert_eq!(sent(Uart { depth: DEPTH, ..Uart::take(PA) }), 16);
        install(PA);
        assert_eq!(sent(Uart::take(PA)), 1, "it has no FIFOs");
        install(PA + MINI);
        assert_eq!(sent(Uart::take_mini(PA)), 1, "it only says that there is room");
    }

    #[test]
    fn a_byte_is_taken_only_if_there_is_one() {
        install(PA);
        let mut uart = Uart::take(PA);
        set(DATA, b'a'.into());
        assert_eq!(uart.get(), None);
        set(STATUS, IS_THERE.into());
        assert_eq!(uart.get(), Some(b'a'));
        uart.listen(true);
        let told = machine::with(|machine| machine.smmu.as_ref().unwrap().read(PA + INTERRUPTS));
        assert_eq!(told, TELL_RECEIVED | TELL_ROOM);
    }
}
