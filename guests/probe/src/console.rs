//! The console: one PL011.

use abi::platform;
use arm_pl011_uart::{PL011Registers, Uart, UniqueMmioPointer};
use core::fmt::{Arguments, Write};
use core::ptr::NonNull;
use spin::{LazyLock, Mutex};

static UART: LazyLock<Mutex<Uart<'static>>> = LazyLock::new(|| Mutex::new(uart()));

fn uart() -> Uart<'static> {
    let registers = NonNull::new(platform::UART_BASE as *mut PL011Registers).expect("not null");
    // SAFETY: The virtual platform has a PL011 there, mapped as Device for
    // ever; this module is the only one that touches it.
    Uart::new(unsafe { UniqueMmioPointer::new(registers) })
}

/// Prints; from a vCPU that holds no lock of the console.
pub fn print(text: Arguments) {
    crate::arch::cpu::without_irq(|| UART.lock().write_fmt(text)).expect("a UART cannot fail");
}

/// Prints even though another vCPU may hold the console: the program is at its end.
pub fn force(text: Arguments) {
    uart().write_fmt(text).expect("a UART cannot fail");
}

/// Runs `body` with the UART, for tests of its interrupt.
pub fn with<T>(body: impl FnOnce(&mut Uart) -> T) -> T {
    crate::arch::cpu::without_irq(|| body(&mut UART.lock()))
}

/// Prints a line.
#[macro_export]
macro_rules! println {
    ($($arg:tt)*) => { $crate::console::print(format_args!("{}\n", format_args!($($arg)*))) };
}
