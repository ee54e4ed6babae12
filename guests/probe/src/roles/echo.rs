//! A guest one can type to.

use crate::arch::cpu;
use crate::gic::{self, offset::*};
use crate::suite::{Check, Done};
use crate::{console, ensure, irq, pass, platform, println, wait};
use abi::platform::UART_INTID;
use arm_pl011_uart::Interrupts;
use arrayvec::ArrayString;
use core::sync::atomic::{AtomicU32, Ordering::SeqCst};
use spin::Mutex;

/// Longest line, bytes.
const LINE_MAX: usize = 80;

static LINE: Mutex<ArrayString<LINE_MAX>> = Mutex::new(ArrayString::new_const());
static LINES: AtomicU32 = AtomicU32::new(0);

/// Takes what was typed; runs with IRQ masked.
fn receive(intid: u32) {
    if intid != UART_INTID {
        return;
    }
    while let Some(byte) = console::with(|uart| uart.read_word().ok().flatten()) {
        let mut line = LINE.lock();
        if byte != b'\n' {
            // What is too long is cut: the far end sees it.
            let _ = line.try_push(char::from(byte));
            continue;
        }
        println!("heard {}", line.as_str());
        line.clear();
        LINES.fetch_add(1, SeqCst);
    }
}

/// Repeats `probe.lines` (1) lines that are typed on its console, asleep in
/// between.
pub fn echo() -> Check<Done> {
    let wanted = platform::get().number("lines", 1) as u32;
    irq::hook(receive);
    gic::set_edge(UART_INTID, false);
    gic::route(UART_INTID, 0);
    gic::set(ISENABLER, UART_INTID);
    console::with(|uart| uart.set_interrupt_masks(Interrupts::RXI | Interrupts::RTI));
    println!("listening");
    wait::asleep(|| LINES.load(SeqCst) >= wanted)?;
    console::with(|uart| uart.set_interrupt_masks(Interrupts::empty()));
    ensure!(cpu::without_irq(|| LINE.lock().is_empty()), "bytes behind the last line");
    pass!("{wanted} lines")
}
