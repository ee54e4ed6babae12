//! A bare-metal guest of a dozen instructions, on a plain machine.
#![allow(dead_code)] // each test program uses its part

use lab::console::ConsoleConfig;
use lab::machine::{Machine, MachineConfig};
use lab::qemu::Qemu;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub const MEMORY: u64 = 64 << 20;
pub const SOON: Duration = Duration::from_secs(60);
/// Where the guest puts its mark.
pub const MARK_PA: u64 = 0x4100_0000;

/// Entered at EL1: writes 0x5a at [`MARK_PA`], says "hi", and stops as `end` says.
fn guest(directory: &Path, end: &[u32]) -> PathBuf {
    let begin = [
        0xd2a8_2000, // mov  x0, #0x41000000
        0xd280_0b41, // mov  x1, #0x5a
        0xf900_0001, // str  x1, [x0]
        0xd2a1_2002, // mov  x2, #0x09000000   (the UART)
        0x5280_0d03, // mov  w3, #'h'
        0xb900_0043, // str  w3, [x2]
        0x5280_0d23, // mov  w3, #'i'
        0xb900_0043, // str  w3, [x2]
        0x5280_0143, // mov  w3, #'\n'
        0xb900_0043, // str  w3, [x2]
    ];
    let words = begin.iter().chain(end);
    let path = directory.join("guest.bin");
    std::fs::write(&path, words.flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>()).unwrap();
    path
}

/// PSCI SYSTEM_OFF by HVC.
pub const OFF: [u32; 3] = [
    0x5280_0100, // mov  w0, #8
    0x72b0_8000, // movk w0, #0x8400, lsl #16
    0xd400_0002, // hvc  #0
];
/// Echo: waits for a byte, sends it back, and again.
pub const ECHO: [u32; 6] = [
    0xb940_1844, // ldr  w4, [x2, #0x18]   (flags)
    0x3727_ffe4, // tbnz w4, #4, .-4       (receiver empty)
    0xb940_0043, // ldr  w3, [x2]
    0xb900_0043, // str  w3, [x2]
    0x17ff_fffc, // b    .-16
    0xd503_201f, // nop
];

pub fn config(directory: &Path, end: &[u32], extra: &[&str]) -> MachineConfig {
    let mut config = MachineConfig::new(guest(directory, end), 1, MEMORY);
    config.el2 = false;
    config.extra_args = extra.iter().map(Into::into).collect();
    config
}

pub fn start(directory: &Path, end: &[u32], extra: &[&str]) -> Machine {
    let consoles = ConsoleConfig::plain("guest", Some(directory.into()));
    Machine::start(&Qemu::find().unwrap(), &config(directory, end, extra), &consoles).unwrap()
}
