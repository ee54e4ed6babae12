//! The command, and files for it.
#![allow(dead_code, reason = "each test uses its own part")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

/// A directory with a kernel `rtos.bin`, a Linux `Image` and an `initramfs`.
pub fn files() -> TempDir {
    let directory = TempDir::new().unwrap();
    let put = |name: &str, bytes: &[u8]| fs::write(directory.path().join(name), bytes).unwrap();
    put("rtos.bin", &[0x14; 64]);
    put("Image", &linux_image());
    put("initramfs", b"070701 and so on");
    directory
}

/// An arm64 Image by its header (Documentation/arch/arm64/booting.rst).
fn linux_image() -> Vec<u8> {
    let mut image = vec![0; 4096];
    image[16..24].copy_from_slice(&4096_u64.to_le_bytes());
    image[24..32].copy_from_slice(&0b1010_u64.to_le_bytes());
    image[56..60].copy_from_slice(&0x644d_5241_u32.to_le_bytes());
    image
}

/// Calls `cassata` there, from outside the project.
pub fn cassata(directory: &Path, arguments: &[&str]) -> Output {
    command(directory, arguments).output().unwrap()
}

/// The same, not called yet.
pub fn command(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cassata"));
    command.env_remove("CASSATA_ROOT").args(arguments).current_dir(directory);
    command
}

/// What it says on standard output, when all is well.
pub fn said(directory: &Path, arguments: &[&str]) -> String {
    let output = cassata(directory, arguments);
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {complaints}");
    String::from_utf8(output.stdout).unwrap()
}
