//! What several tests need: files that pass for kernels, and a hypervisor.
#![allow(dead_code, reason = "each test uses its own part")]

pub mod elf;
pub mod random;
pub mod walk;

use abi::system::{Region, Vm};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// Memory the test's Linux says it needs: more than its file has.
pub const IMAGE_SIZE: u64 = 0x8_0000;

/// An arm64 Image by its header, and `size` bytes.
pub fn linux_image(size: usize) -> Vec<u8> {
    let mut image: Vec<u8> = (0..size).map(|i| (i * 7 % 251) as u8).collect();
    image[8..16].copy_from_slice(&0_u64.to_le_bytes());
    image[16..24].copy_from_slice(&IMAGE_SIZE.max(size as u64).to_le_bytes());
    image[24..32].copy_from_slice(&0b1010_u64.to_le_bytes());
    image[56..60].copy_from_slice(&0x644d_5241_u32.to_le_bytes());
    image
}

/// An arm64 Image of `size` bytes that an EFI firmware could start as well: with a PE header,
/// whose one section reaches to the end of the file.
pub fn efi_image(size: usize) -> Vec<u8> {
    const HEADER: usize = 64;
    let mut image = linux_image(size);
    let mut put = |at: usize, bytes: &[u8]| image[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, b"MZ");
    put(60, &(HEADER as u32).to_le_bytes());
    // COFF: machine, one section, an optional header of 160 bytes (PE32+).
    put(HEADER, b"PE\0\0\x64\xaa\x01\0");
    put(HEADER + 8, &[0; 12]);
    put(HEADER + 20, &[160, 0, 0, 0]);
    put(HEADER + 24, &[0; 160]);
    put(HEADER + 24, &[0x0b, 0x02]);
    let section = HEADER + 24 + 160;
    put(section, b".text\0\0\0");
    let (start, length) = (1024_u32, size as u32 - 1024);
    for (n, word) in [length, start, length, start].into_iter().enumerate() {
        put(section + 8 + 4 * n, &word.to_le_bytes());
    }
    image
}

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
