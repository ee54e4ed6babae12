//! The hypervisor's image: the library, which has the entry point too, and what
//! Rust asks of a program.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

#[panic_handler]
fn panic(info: &core::panic::PanicInfo) -> ! {
    el2::stop(info)
}
