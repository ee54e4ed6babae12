//! The console: one PL011.

use abi::platform;
use arm_pl011_uart::{PL011Registers, Uart, UniqueMmioPointer};
use core::fmt::{Arguments, Write};
use core::ptr::NonNull;

/// Prints, with interrupts masked: a line is short.
pub fn print(text: Arguments) {
    critical_section::with(|_| {
        let registers = NonNull::new(platform::UART_BASE as *mut PL011Registers).expect("not null");
        // SAFETY: the virtual platform has a PL011 there, mapped as Device for ever; only this function
        // touches it, and nothing interrupts that.
        let mut uart = Uart::new(unsafe { UniqueMmioPointer::new(registers) });
        uart.write_fmt(text).expect("a UART cannot fail");
    });
}

/// Prints a line.
#[macro_export]
macro_rules! println {
    ($($arg:tt)*) => { $crate::console::print(format_args!("{}\n", format_args!($($arg)*))) };
}
