//! A boot script for U-Boot, in the legacy image format that every version's `source` takes (U-Boot,
//! include/image.h, `legacy_img_hdr`).

use super::error::PackError;
use zerocopy::big_endian::U32;
use zerocopy::{Immutable, IntoBytes};

/// Numbers of U-Boot's, include/image.h.
const MAGIC: u32 = 0x2705_1956;
const OS_LINUX: u8 = 5;
const ARCH_ARM64: u8 = 22;
const TYPE_SCRIPT: u8 = 6;
const COMPRESSION_NONE: u8 = 0;
/// Bytes of a title.
const TITLE: usize = 32;
/// The title of all scripts.
const NAME: &[u8] = b"Cassata";

/// Stands before the script.
#[derive(Immutable, IntoBytes)]
#[repr(C)]
struct Header {
    magic: U32,
    /// CRC-32 of the header, with zeros here.
    header_crc: U32,
    /// Seconds since 1970.
    time: U32,
    size: U32,
    load: U32,
    entry: U32,
    /// CRC-32 of what follows the header.
    crc: U32,
    os: u8,
    arch: u8,
    kind: u8,
    compression: u8,
    title: [u8; TITLE],
}

/// Makes the script that loads the file `name` to `address` from where the script itself came from, and
/// starts it by `start`.
pub(super) fn write(name: &str, address: u64, start: &str) -> Result<Vec<u8>, PackError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-+".contains(c);
    if name.is_empty() || !name.chars().all(is_plain) {
        return Err(PackError::new(
            format!(
                "a boot script cannot load `{name}`: its name has other signs than letters of \
                 ASCII, digits and `._-+`"
            ),
            "name another file behind `-o`",
        ));
    }
    // U-Boot sets `devtype` to the kind of disk, or to `dhcp` (its scripts) or `ethernet` (its boot
    // methods). A script that a person has loaded finds none, and neither does one that a vendor's environment
    // loads by variables of its own: then the user says where it is (docs/src/boot-loaders.md).
    let text = format!(
        "# Loads a system of Cassata's from where this script came from, and starts it.\n\
         if test -z \"${{devtype}}\" -o \"${{devtype}}\" = dhcp -o \"${{devtype}}\" = ethernet; then\n\
         \ttftpboot {address:#x} {name} && {start}\n\
         else\n\
         \tload ${{devtype}} ${{devnum}}:${{distro_bootpart}} {address:#x} ${{prefix}}{name} && {start}\n\
         fi\n"
    );
    Ok(script(&text))
}

/// Makes a script of U-Boot's commands.
///
/// # Panics
/// When it has 4 GiB or more.
#[must_use]
pub fn script(commands: &str) -> Vec<u8> {
    // In front of the text: its length, and that no other follows.
    let length = u32::try_from(commands.len()).expect("a script is short");
    let mut body = [U32::new(length), U32::new(0)].as_bytes().to_vec();
    body.extend_from_slice(commands.as_bytes());
    let mut title = [0; TITLE];
    title[..NAME.len()].copy_from_slice(NAME);
    let mut header = Header {
        magic: U32::new(MAGIC),
        header_crc: U32::new(0),
        // The same description gives the same bytes.
        time: U32::new(0),
        size: U32::new(body.len() as u32),
        load: U32::new(0),
        entry: U32::new(0),
        crc: U32::new(crc32fast::hash(&body)),
        os: OS_LINUX,
        arch: ARCH_ARM64,
        kind: TYPE_SCRIPT,
        compression: COMPRESSION_NONE,
        title,
    };
    header.header_crc = U32::new(crc32fast::hash(header.as_bytes()));
    [header.as_bytes(), &body].concat()
}
