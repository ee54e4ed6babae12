//! Recognises files that are often taken for an arm64 kernel, so that the
//! message can say what to do instead.

use super::Unfit;

/// Bytes at an offset, what they betray, what to do.
type Sign = (usize, &'static [u8], &'static str, &'static str);

const SIGNS: &[Sign] = &[
    (0, b"\x1f\x8b", "is compressed with gzip", "unpack it first: `gunzip`"),
    (0, b"\xfd7zXZ\0", "is compressed with xz", "unpack it first: `unxz`"),
    (0, b"\x28\xb5\x2f\xfd", "is compressed with zstd", "unpack it first: `unzstd`"),
    (0, b"BZh", "is compressed with bzip2", "unpack it first: `bunzip2`"),
    (0, b"\x04\x22\x4d\x18", "is compressed with lz4", "unpack it first: `unlz4`"),
    (0, b"\x02\x21\x4c\x18", "is compressed with lz4", "unpack it first: `unlz4`"),
    (4, b"zimg", "is an EFI zboot image", "take the plain `Image`, not `vmlinuz.efi`"),
    (0x202, b"HdrS", "is an x86 kernel", "take the arm64 kernel's `Image`"),
    (0x24, b"\x18\x28\x6f\x01", "is a 32-bit ARM zImage", "take the arm64 kernel's `Image`"),
    (0, b"\x27\x05\x19\x56", "is a U-Boot image", "take the `Image` it was made of"),
    (0, b"\xd0\x0d\xfe\xed", "is a device tree or FIT image", "take the `Image` itself"),
    (0, b"MZ", "is an EFI program, but no arm64 Image", "take the arm64 kernel's `Image`"),
    (0, b"070701", "is a cpio archive", "that belongs into `initramfs`"),
    (0, b"!<arch>\n", "is an archive or Debian package", "unpack it first"),
];

/// What the file is, as far as one can tell.
pub(super) fn explain(bytes: &[u8]) -> Unfit {
    let sign = SIGNS.iter().find(|(offset, sign, ..)| {
        bytes.get(*offset..*offset + sign.len()).is_some_and(|found| found == *sign)
    });
    match sign {
        Some((_, _, what, hint)) => Unfit::new(format!("the file {what}"), *hint),
        None => Unfit::new(
            "the file is neither an arm64 Image nor an ELF file",
            "if it is a flat binary to be entered at its first byte, say `format = \"flat\"`",
        ),
    }
}
