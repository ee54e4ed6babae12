//! All consoles over one UART.
//!
//! Guests' bytes and the hypervisor's own wait in rings. One core, without real-time
//! vCPUs if there is one, writes them to the physical UART, a few at a time, and
//! delivers to the guests what arrives there.

mod line;

pub use line::Piece;

use super::Pcpu;
use crate::arch::{cpu, firmware, memory};
use crate::bug::bug;
use crate::devices::uart;
use crate::shared::{ALIVE, LOG, VMS};
use crate::tables;
use abi::MAX_VMS;
use abi::console::{Demux, HYPERVISOR, Mux};
use abi::system::{System, flags};
use arm_pl011_uart::{Interrupts, PL011Registers, Uart, UniqueMmioPointer};
use core::fmt::{self, Write};
use core::ptr::NonNull;
use core::sync::atomic::Ordering;
use notes::{Bounded, Rounds};
use sched::topology::Topology;
use sched::{Members, Message};

/// Bytes written at once, if no interrupt comes meanwhile.
const BURST: usize = 32;
/// Channels at most: the hypervisor's own, and one of each VM.
const CHANNELS: usize = 1 + MAX_VMS;
/// Bytes of one channel after which another one that has any has its turn.
const SHARE: usize = 16;

/// The physical UART and what goes over it.
pub struct Console {
    uart: Uart<'static>,
    mux: Mux,
    framed: Framed,
    demux: Demux,
    /// The channel whose output is written, and how many bytes it may still have before the next
    /// one's turn: a VM that makes EL2 write about it for ever keeps no other from the UART.
    turn: usize,
    share: usize,
}

/// A byte with its framing, as far as there was no room for it yet: EL2 never waits for the UART.
#[derive(Default)]
struct Framed {
    bytes: [u8; Self::MOST],
    /// Those of `bytes` that have to be written are `next..end`.
    next: usize,
    end: usize,
}

impl Framed {
    /// Two bytes that name the channel, and a byte of content that is sent twice.
    const MOST: usize = 4;

    fn push(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.end) {
            *place = byte;
            self.end += 1;
        }
    }

    /// Writes while there is room: as long as `put` takes a byte. Returns true if all is written.
    fn write(&mut self, mut put: impl FnMut(u8) -> bool) -> bool {
        let mut rounds = Rounds::<{ Framed::MOST }>::begin();
        while self.next < self.end {
            rounds.pass();
            let byte = self.bytes.get(self.next).copied();
            if !byte.is_some_and(&mut put) {
                return false;
            }
            self.next += 1;
        }
        (self.next, self.end) = (0, 0);
        true
    }
}

impl Console {
    /// Takes the UART over as the firmware left it, if this core drives it.
    pub fn of(core: usize, system: &System, topology: &Topology<'_>) -> Option<Self> {
        if core != topology.uart_core() {
            return None;
        }
        let registers = NonNull::new(memory::at::<PL011Registers>(system.board.uart_pa))?;
        // SAFETY: the host mapped the board's UART as device memory; one core only
        // drives it.
        let mut uart = Uart::new(unsafe { UniqueMmioPointer::new(registers) });
        uart.set_interrupt_masks(Interrupts::RXI | Interrupts::RTI);
        let (mux, framed, demux) = (Mux::new(), Framed::default(), Demux::default());
        Some(Self { uart, mux, framed, demux, turn: HYPERVISOR.into(), share: SHARE })
    }

    /// Sends a byte of the channel whose turn it is; there must be room. What framing adds to it
    /// may have to wait.
    fn send(&mut self, byte: u8) {
        let framed = &mut self.framed;
        self.mux.push(self.turn as u8, byte, |byte| framed.push(byte));
        self.flush();
    }

    /// Writes what waits of an earlier byte, as far as there is room. Returns true if that is all.
    fn flush(&mut self) -> bool {
        let uart = &mut self.uart;
        self.framed.write(|byte| {
            let room = !uart.is_tx_fifo_full();
            if room {
                uart.write_word(byte);
            }
            room
        })
    }

    /// Returns true if there is room; if not, an interrupt will tell when there is.
    fn has_room(&mut self) -> bool {
        let full = !self.flush() || self.uart.is_tx_fifo_full();
        let receive = Interrupts::RXI | Interrupts::RTI;
        self.uart.set_interrupt_masks(if full { receive | Interrupts::TXI } else { receive });
        !full
    }
}

impl Pcpu {
    /// Has the output of a VM's console written to the UART, or (`channel` is
    /// `MAX_VMS`) that of the hypervisor's own.
    #[inline(never)]
    pub fn console_has_output(&mut self, channel: usize) {
        if self.console.is_some() {
            self.keep_carrying();
        } else {
            self.tell(self.uart_core, Message::Consoles, channel, false);
        }
    }

    /// Writes one burst to the UART, if this core drives it. Returns true if more waits and
    /// the UART has room.
    pub(super) fn carry_console(&mut self) -> bool {
        let Some(mut console) = self.console.take() else { return false };
        let more = self.carry_burst(&mut console);
        let is_flushed = console.flush();
        self.console = Some(console);
        // There may be more, for which the FIFO has no room.
        if !more && is_flushed && ALIVE.load(Ordering::Acquire) == 0 && !self.output_waits() {
            self.finish();
        }
        more
    }

    fn carry_burst(&mut self, console: &mut Console) -> bool {
        if !console.flush() && !console.has_room() {
            return false;
        }
        let (mut budget, mut idle, mut written) = (BURST, 0, 0);
        // One byte is written in any case, or a guest that causes interrupts all the time
        // could keep all others from the UART.
        let mut rounds = Rounds::<{ (BURST + 1) * (CHANNELS + 1) }>::begin();
        while idle < self.channels() && (budget == BURST || budget > 0 && !cpu::interrupt_pending())
        {
            rounds.pass();
            let is_idle = is_idle(console.turn);
            if is_idle || console.share == 0 {
                idle = if is_idle { idle + 1 } else { 0 };
                (console.turn, console.share) = ((console.turn + 1) % self.channels(), SHARE);
                continue;
            }
            if !console.has_room() {
                break;
            }
            idle = 0;
            next_byte(console.turn).into_iter().for_each(|byte| console.send(byte));
            written |= (1 << console.turn) >> 1;
            (budget, console.share) = (budget - 1, console.share - 1);
        }
        Members::of(written).at_most::<MAX_VMS>().for_each(|vm| self.update_console_interrupt(vm));
        console.has_room() && self.output_waits()
    }

    /// Returns how many channels there are: the hypervisor's own, and one of each VM.
    fn channels(&self) -> usize {
        1 + self.system.header.vm_count as usize
    }

    /// Returns true if there are bytes that were not written yet.
    fn output_waits(&self) -> bool {
        (0..self.channels()).at_most::<CHANNELS>().any(|channel| !is_idle(channel))
    }

    /// Brings the interrupt line of a VM's console up to date.
    fn update_console_interrupt(&mut self, vm: usize) {
        let effects = uart::update_interrupt(&VMS[vm]);
        self.notify(vm, effects);
    }

    /// Handles the physical UART's interrupt: there is room again, or a byte arrived.
    pub(super) fn console_interrupt(&mut self) {
        let Some(mut console) = self.console.take() else {
            return bug!("the UART interrupts a core that does not drive it");
        };
        // Before the bytes are read: a byte that comes later interrupts again.
        console.uart.clear_interrupts(Interrupts::all());
        for _ in (0..BURST).at_most::<BURST>() {
            let Ok(Some(byte)) = console.uart.read_word() else { break };
            let Some((channel, byte)) = console.demux.push(byte) else { continue };
            let Some(vm) = usize::from(channel).checked_sub(1) else { continue };
            if vm < self.system.header.vm_count as usize {
                VMS[vm].uart.deliver(byte);
                self.update_console_interrupt(vm);
            }
        }
        self.console = Some(console);
        self.keep_carrying();
    }

    /// Writes one burst; if there is more, the next comes after the interrupts that
    /// are pending.
    #[inline(never)]
    pub(super) fn keep_carrying(&mut self) {
        if self.carry_console() {
            self.tell(self.index, Message::Consoles, 0, false);
        }
    }

    /// Ends the system: no VM is left and all output is written.
    fn finish(&self) {
        if self.system.header.flags & flags::OFF_WHEN_DONE != 0 {
            firmware::power_off();
        }
    }
}

/// Writes a line to the hypervisor's own console: `log!(core, "...", ...)`, in pieces.
macro_rules! log {
    ($core:expr, $($piece:expr),* $(,)?) => {{
        $crate::pcpu::console::write(&[$($crate::pcpu::console::Piece::from($piece)),*]);
        $crate::pcpu::Pcpu::console_has_output($core, abi::MAX_VMS);
    }};
}
pub(crate) use log;

/// Returns true if a channel has no bytes that were not written yet.
fn is_idle(channel: usize) -> bool {
    match channel.checked_sub(1) {
        None => LOG.is_empty(),
        Some(vm) => VMS[vm].uart.is_idle(),
    }
}

/// Returns the next byte of a channel.
fn next_byte(channel: usize) -> Option<u8> {
    match channel.checked_sub(1) {
        None => LOG.pop(),
        Some(vm) => VMS[vm].uart.carry(),
    }
}

/// Puts a line into the hypervisor's ring; what does not fit is lost.
#[inline(never)]
pub fn write(pieces: &[Piece<'_>]) {
    let whole = [Piece::Text("cassata: ")].into_iter().chain(pieces.iter().copied());
    for piece in whole.chain([Piece::Text("\n")]).at_most::<{ line::PIECES }>() {
        piece.write(&mut keep);
    }
}

/// Puts a byte into the hypervisor's ring.
#[inline(never)]
fn keep(byte: u8) {
    LOG.push(byte);
}

/// Reports a bug and stops: this core, whose neighbours go on, or the machine, if the description
/// has it reset then; in a checked build the machine always, so that a test ends with the report.
pub fn stop(what: fmt::Arguments) -> ! {
    emergency(format_args!("hypervisor fault: {what}\n"));
    if cfg!(feature = "checked") {
        firmware::power_off();
    }
    let header = &tables::find().header;
    if header.identify().is_ok() && header.flags & flags::RESET_ON_FAULT != 0 {
        firmware::reset();
    }
    cpu::halt()
}

/// Writes to the UART directly, when nothing else works any more.
pub fn emergency(arguments: fmt::Arguments) {
    struct ToUart(*mut u32);
    impl Write for ToUart {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            let frame = [abi::console::SWITCH, abi::console::CHANNEL_BASE];
            for byte in frame.into_iter().chain(text.bytes()) {
                // SAFETY: the data register of a PL011; at worst characters of
                // another core mix with these.
                unsafe { self.0.write_volatile(u32::from(byte)) };
            }
            Ok(())
        }
    }
    let system = crate::tables::find();
    let uart = match system.header.identify() {
        Ok(()) => system.board.uart_pa,
        Err(_) => FALLBACK_UART,
    };
    let _ = ToUart(memory::at(uart)).write_fmt(format_args!("\ncassata: {arguments}"));
}

/// The UART of QEMU's `virt`, for messages when the tables are not recognised.
const FALLBACK_UART: u64 = 0x0900_0000;

#[cfg(test)]
mod tests {
    use super::Framed;

    #[test]
    fn what_finds_no_room_is_written_later_and_in_order() {
        let (mut framed, mut written) = (Framed::default(), Vec::new());
        b"\x1f1ab".iter().for_each(|&byte| framed.push(byte));
        for room in [1, 0, 2, 0, 1] {
            let mut left = room;
            let all = framed.write(|byte| {
                let fits = left > 0;
                if fits {
                    left -= 1;
                    written.push(byte);
                }
                fits
            });
            assert_eq!(all, written.len() == Framed::MOST);
        }
        assert_eq!(written, b"\x1f1ab");
        framed.push(b'c');
        assert!(framed.write(|byte| byte == b'c'), "it begins anew");
    }
}
