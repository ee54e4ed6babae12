//! Files that pass for arm64 Images.

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
