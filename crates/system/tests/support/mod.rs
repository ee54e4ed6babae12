//! What several tests need: files that pass for kernels, and a hypervisor.
#![allow(dead_code, reason = "each test uses its own part")]

pub mod arm64;
pub mod elf;
pub mod random;
pub mod walk;

use abi::system::{Region, Vm};
#[allow(unused_imports, reason = "each test uses its own part")]
pub use arm64::{IMAGE_SIZE, efi_image, linux_image};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// An initramfs by its first bytes.
pub fn initramfs(size: usize) -> Vec<u8> {
    let mut bytes = vec![0x5a; size];
    bytes[..6].copy_from_slice(b"070701");
    bytes
}

/// A guest ELF file with code, data and .bss at the usual place.
pub fn guest_elf() -> Vec<u8> {
    elf::Elf::new(elf::ET_EXEC, 0x4008_0000)
        .segment(0x4008_0000, &[1; 3000], 3000, elf::R | elf::X)
        .segment(0x4008_1010, &[2; 100], 5000, elf::R | elf::W)
        .build()
}

/// A directory with `Image`, `initramfs`, `rtos.elf` and `flat.bin`.
pub fn files() -> TempDir {
    let directory = TempDir::new().expect("a temporary directory");
    let put = |name: &str, bytes: &[u8]| {
        fs::write(directory.path().join(name), bytes).expect("a file in it");
    };
    put("Image", &linux_image(200_000));
    put("initramfs", &initramfs(70_001));
    put("rtos.elf", &guest_elf());
    put("flat.bin", &[0x14; 77]);
    directory
}

/// What a VM's memory holds when it starts; 0xee where nothing was loaded.
pub fn guest_memory(system: &system::Unpacked<'_>, vm: &Vm) -> Vec<u8> {
    let mut memory = vec![0xee; vm.ram_size as usize];
    let loads = system.tables.loads.iter().skip(vm.load_first.into()).take(vm.load_count.into());
    for load in loads {
        let at = (load.dst_pa - vm.ram_pa) as usize;
        let data = system.at(Region::new(load.src_pa, load.size)).expect("loads lie in the bundle");
        memory[at..at + data.len()].copy_from_slice(data);
        memory[at + data.len()..][..load.zero_size as usize].fill(0);
    }
    memory
}

/// Checks a description that stands in `directory`.
pub fn check(directory: &Path, text: &str) -> Result<system::Checked, system::Report> {
    system::load_text(&directory.join("test.toml"), text)
}

/// Like [`check`], for a description without errors.
pub fn sound(directory: &Path, text: &str) -> system::Checked {
    check(directory, text).unwrap_or_else(|report| panic!("{}\n{text}", report.plain()))
}
