//! All consoles over one UART.
//!
//! Guests' bytes and the hypervisor's own wait in rings. One core, without real-time
//! vCPUs if there is one, writes them to the physical UART, a few at a time, and
//! delivers to the guests what arrives there.

mod line;

pub use line::{Line, Piece, begin_line};

use super::Pcpu;
use crate::arch::atomic::AtomicBool;
use crate::arch::gic::Doorbell;
use crate::arch::uart::{Direct, Uart};
use crate::arch::{cpu, firmware, statics};
use crate::bug::bug;
use crate::devices::uart;
use crate::shared::{ALIVE, LOG, VMS, VmIndex, VmSet};
use crate::tables;
use abi::MAX_VMS;
use abi::console::{Demux, HYPERVISOR, Mux, Orders};
use abi::system::{System, flags};
use core::fmt::{self, Write};
use core::sync::atomic::Ordering;
use notes::{Bounded, Rounds, each};
use sched::Message;
use sched::topology::Topology;

/// Bytes written at once, if no interrupt comes meanwhile; they are of one channel.
const BURST: usize = 32;
/// Channels at most: the hypervisor's own, and one of each VM.
const CHANNELS: usize = 1 + MAX_VMS;

/// The physical UART and what goes over it.
pub struct Console {
    uart: Uart,
    mux: Mux,
    framed: Framed,
    demux: Demux,
    orders: Orders,
    /// The channel whose output is written, and how many bytes it may still have before the next
    /// one's turn: a VM that makes EL2 write about it for ever keeps no other from the UART.
    turn: usize,
    share: usize,
    /// The UART may hold bytes that were not read yet.
    has_input: bool,
    /// VMs whose console has changed, and whose interrupt line has not followed yet.
    changed: VmSet,
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
        let uart = Uart::take(system)?;
        let (mux, framed, demux) = (Mux::new(), Framed::default(), Demux::default());
        let turn = HYPERVISOR.into();
        Some(Self {
            uart,
            mux,
            framed,
            demux,
            orders: Orders::default(),
            turn,
            share: BURST,
            has_input: false,
            changed: VmSet::EMPTY,
        })
    }

    /// Returns a channel that has output: that whose turn it is, or the next one.
    fn turn(&mut self, channels: usize) -> Option<usize> {
        for _ in (0..=channels).one_for::<{ each::and(each::VM, 2) }, { CHANNELS + 1 }>() {
            if self.share > 0 && !is_idle(self.turn) {
                return Some(self.turn);
            }
            (self.turn, self.share) = ((self.turn + 1) % channels, BURST);
        }
        None
    }

    /// Sends a byte of the channel whose turn it is; there must be room. What framing adds to it
    /// may have to wait.
    fn send(&mut self, byte: u8) {
        let framed = &mut self.framed;
        self.mux.push(self.turn as u8, byte, |byte| framed.push(byte));
        self.flush();
    }

    /// Writes what waits of an earlier byte, as far as there is room. Returns true if that is all.
    #[inline(never)]
    fn flush(&mut self) -> bool {
        let uart = &mut self.uart;
        self.framed.write(|byte| {
            let room = !uart.is_full();
            if room {
                uart.put(byte);
            }
            room
        })
    }

    /// Returns true if there is room; if not, an interrupt will tell when there is.
    #[inline(never)]
    fn has_room(&mut self) -> bool {
        let full = !self.flush() || self.uart.is_full();
        self.uart.listen(full);
        !full
    }
}

impl Pcpu {
    /// Has the output of a VM's console written to the UART, or (`channel` is
    /// `MAX_VMS`) that of the hypervisor's own.
    #[inline(never)]
    pub fn console_has_output(&mut self, channel: usize) {
        if self.console.is_some() && !cpu::interrupt_pending() {
            self.keep_carrying();
        } else {
            self.tell(self.uart_core, Message::Consoles, channel, Doorbell::Ordinary);
        }
    }

    /// Has the hypervisor's own output written to the UART: later, as this may stand in the middle
    /// of something. Out of line: this is not done often.
    #[inline(never)]
    pub fn log_has_output(&self) {
        self.tell(self.uart_core, Message::Consoles, abi::MAX_VMS, Doorbell::Ordinary);
    }

    /// Writes one burst to the UART, if this core drives it. Returns true if more waits and
    /// the UART has room.
    pub(super) fn carry_console(&mut self) -> bool {
        let Some(console) = self.console.take() else { return false };
        let read = self.read_input(console);
        let more = !read || self.carry_burst(console) | !self.update_interrupts(console);
        let is_flushed = console.flush();
        self.console = Some(console);
        // There may be more, for which the FIFO has no room.
        if !more && is_flushed && ALIVE.load(Ordering::Acquire).is_empty() && !self.output_waits() {
            self.finish();
        }
        more
    }

    /// Delivers to the guests what has arrived. Returns false if the core is wanted, and some may
    /// be left.
    fn read_input(&mut self, console: &mut Console) -> bool {
        if !console.has_input {
            return true;
        }
        let mut rounds = Rounds::<BURST>::begin();
        for _ in 0..BURST {
            rounds.pass();
            let Some(byte) = console.uart.get() else { break };
            if let Some((channel, byte)) = console.demux.push(byte) {
                self.deliver_byte(console, channel.into(), byte);
            }
            if self.is_wanted() {
                return false;
            }
        }
        console.has_input = false;
        true
    }

    /// Delivers a byte to the guest whose channel this is; on its own, follows the operator.
    fn deliver_byte(&mut self, console: &mut Console, channel: usize, byte: u8) {
        match vm_of(channel) {
            None => {
                if let Some(order) = console.orders.push(byte) {
                    self.follow_order(order);
                }
            }
            Some(vm) if vm < self.system.header.vm_count as usize => {
                VMS[vm].uart.deliver(byte);
                console.changed.insert(VmIndex(vm));
            }
            Some(_) => {}
        }
    }

    fn carry_burst(&mut self, console: &mut Console) -> bool {
        if !console.flush() && !console.has_room() {
            return false;
        }
        if let Some(channel) = console.turn(self.channels()) {
            let mut rounds = Rounds::<BURST>::begin();
            while console.share > 0
                && console.has_room()
                && let Some(byte) = next_byte(channel)
            {
                rounds.pass();
                console.send(byte);
                console.share -= 1;
                if let Some(vm) = vm_of(channel) {
                    console.changed.insert(VmIndex(vm));
                }
                // One byte is written in any case, or a guest that causes interrupts all the time
                // could keep all others from the UART.
                if self.is_wanted() {
                    break;
                }
            }
        }
        console.has_room() && self.output_waits()
    }

    /// Brings the interrupt lines of consoles up to date. Returns false if the core is wanted, and
    /// some are left.
    fn update_interrupts(&mut self, console: &mut Console) -> bool {
        for vm in console.changed {
            console.changed.remove(vm);
            let VmIndex(vm) = vm;
            let effects = uart::update_interrupt(&VMS[vm]);
            self.notify(vm, effects);
            if self.is_wanted() {
                break;
            }
        }
        console.changed.is_empty()
    }

    /// Returns how many channels there are: the hypervisor's own, and one of each VM.
    fn channels(&self) -> usize {
        1 + self.system.header.vm_count as usize
    }

    /// Returns true if there are bytes that were not written yet.
    fn output_waits(&self) -> bool {
        (0..self.channels())
            .one_for::<{ each::and(each::VM, 1) }, CHANNELS>()
            .any(|channel| !is_idle(channel))
    }

    /// Handles the physical UART's interrupt: there is room again, or a byte arrived.
    pub(super) fn console_interrupt(&mut self) {
        let Some(console) = &mut self.console else {
            return bug!("the UART interrupts a core that does not drive it");
        };
        // Before the bytes are read: a byte that comes later interrupts again.
        console.uart.clear();
        console.has_input = true;
        self.keep_carrying();
    }

    /// Writes one burst; if there is more, the next comes after the interrupts that
    /// are pending.
    #[inline(never)]
    pub(super) fn keep_carrying(&mut self) {
        if self.carry_console() {
            self.go_on_later(Message::Consoles, 0, Doorbell::Ordinary);
        }
    }

    /// Ends the system: no VM is left and all output is written.
    fn finish(&self) {
        if self.system.header.flags & flags::OFF_WHEN_DONE != 0 {
            firmware::power_off();
        }
    }
}

/// Puts a line into the hypervisor's ring, from its pieces: `write_line!("...", ...)`.
macro_rules! write_line {
    ($($piece:expr),* $(,)?) => {{
        let mut line = $crate::pcpu::console::Line::new();
        $crate::pcpu::console::begin_line(&mut line);
        $($crate::pcpu::console::Piece::from($piece).write(&mut line);)*
        $crate::pcpu::console::keep(&mut line);
    }};
}
pub(crate) use write_line;

/// Writes a line to the hypervisor's own console: `log!(core, "...", ...)`.
macro_rules! log {
    ($core:expr, $($piece:expr),* $(,)?) => {{
        $crate::pcpu::console::write_line!($($piece),*);
        $crate::pcpu::Pcpu::log_has_output($core);
    }};
}
pub(crate) use log;

/// Returns the VM whose channel this is; none for the hypervisor's own.
fn vm_of(channel: usize) -> Option<usize> {
    channel.checked_sub(1)
}

/// Returns true if a channel has no bytes that were not written yet.
fn is_idle(channel: usize) -> bool {
    match vm_of(channel) {
        None => LOG.is_empty(),
        Some(vm) => VMS[vm].uart.is_idle(),
    }
}

/// Returns the next byte of a channel.
fn next_byte(channel: usize) -> Option<u8> {
    match vm_of(channel) {
        None => LOG.pop(),
        Some(vm) => VMS[vm].uart.carry(),
    }
}

/// Puts a line into the hypervisor's ring, at once: lines of several cores do not mix. What does
/// not fit is lost.
#[inline(never)]
pub fn keep(line: &mut Line) {
    line.put(b'\n');
    let (bytes, length) = line.bytes();
    LOG.append(bytes, length);
}

/// A text that is written as it is. What formats `str` can pad and cut, too, which is a kilobyte of
/// code that nothing here needs.
pub struct Text<'a>(&'a str);

impl<'a> Text<'a> {
    /// Makes one.
    pub const fn new(text: &'a str) -> Self {
        Self(text)
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
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

/// Says why the system does not start, and stops the machine.
#[inline(never)]
pub fn refuse(what: fmt::Arguments) -> ! {
    emergency(format_args!("refused to start: {what}\n"));
    firmware::power_off();
    cpu::halt()
}

statics! {
    /// A core writes to the UART directly.
    static WRITING: AtomicBool = AtomicBool::new(false);
}

/// How often a core looks whether another one still writes, or the UART has room, for a message.
const PATIENCE: u32 = 1 << 20;

/// Writes to the UART directly, when nothing else works any more: after another core that does so
/// too, unless that one does not come to its end.
pub fn emergency(arguments: fmt::Arguments) {
    // Before the MMU is on, memory has no exclusive accesses; then other cores do not run.
    let others = cpu::mmu_is_on();
    let waited = others && (0..PATIENCE).any(|_| !WRITING.swap(true, Ordering::Acquire));
    let system = crate::tables::find();
    let uart = match system.header.identify() {
        Ok(()) => Direct::of(system),
        Err(_) => Direct::fallback(),
    };
    let mut uart = Emergency { uart, patience: PATIENCE };
    let _ = uart.write_fmt(format_args!("\ncassata: {arguments}"));
    if waited {
        WRITING.store(false, Ordering::Release);
    }
}

/// Writes what the UART has room for of the hypervisor's own lines, for the core that drives it and
/// hangs.
pub fn carry_log(system: &System) {
    let uart = Direct::of(system);
    if LOG.is_empty() || !uart.has_room() {
        return;
    }
    // If there is room for a byte, there is for some: since the latest look nothing was written.
    uart.write(abi::console::SWITCH);
    uart.write(abi::console::CHANNEL_BASE);
    for _ in (0..BURST).at_most::<BURST>() {
        let byte = if uart.has_room() { LOG.pop() } else { None };
        // The rest follows when there is room, or more to say.
        let Some(byte) = byte else { return };
        uart.write(byte);
    }
}

/// A UART that is written to directly.
struct Emergency {
    uart: Direct,
    /// How often it may still be asked for room.
    patience: u32,
}

impl Emergency {
    #[inline(never)]
    fn put(&mut self, byte: u8) {
        while self.patience > 0 && !self.uart.has_room() {
            self.patience -= 1;
        }
        self.uart.write(byte);
    }
}

impl Write for Emergency {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let frame = [abi::console::SWITCH, abi::console::CHANNEL_BASE];
        frame.into_iter().chain(text.bytes()).for_each(|byte| self.put(byte));
        Ok(())
    }

    /// A character comes in the middle of a line, and all are ASCII.
    fn write_char(&mut self, character: char) -> fmt::Result {
        self.put(character as u8);
        Ok(())
    }
}

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
