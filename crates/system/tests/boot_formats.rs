//! Files for boot loaders have all that the ELF file loads, where it loads it.

mod support;

use fdt::Fdt;
use fdt::node::FdtNode;
use sha2::{Digest, Sha256};
use std::fs;
use support::{elf, files, sound};
use system::image::{KernelKind, identify};
use system::{ImageFormat, Packed, pack, unpack};

const HYPERVISOR: u64 = 0x4020_0000;
/// A page before it.
const IMAGE: u64 = HYPERVISOR - 0x1000;

const PLAIN: &str = r#"
board = { kind = "qemu-virt", pcpus = 2, memory = "256M" }

[[vm]]
name = "linux"
kernel = "Image"
initramfs = "initramfs"
memory = { size = "64M" }
vcpus = [{ pcpu = 0, priority = 1 }]

[[vm]]
name = "rtos"
kernel = "rtos.elf"
memory = { size = "8M" }
vcpus = [{ pcpu = 1, priority = 9 }]
"#;

/// Adds memory that both share, which is cleared.
fn shared() -> String {
    let memory = "[[shared_memory]]\nname = \"page\"\nsize = \"8K\"\n\n";
    PLAIN.replace("[[vm]]", "[[vm]]\nshared_memory = [\"page\"]") + memory
}

fn packed(text: &str) -> Packed {
    let directory = files();
    pack(&sound(directory.path(), text), &elf::plain_hypervisor()).unwrap()
}

fn written(packed: &Packed, format: ImageFormat) -> Vec<u8> {
    let mut file = Vec::new();
    packed.write_as(format, &mut file).unwrap();
    file
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

#[test]
fn an_image_has_what_the_elf_file_loads_and_zeros() {
    for text in [PLAIN.to_owned(), shared()] {
        let packed = packed(&text);
        let (elf, image) =
            (written(&packed, ImageFormat::Elf), written(&packed, ImageFormat::Image));
        let elf = unpack(&elf).unwrap();
        let mut expected = vec![0; image.len()];
        expected[..64].copy_from_slice(&image[..64]);
        for segment in &elf.segments {
            let at = (segment.region.start - IMAGE) as usize;
            expected[at..at + segment.data.len()].copy_from_slice(segment.data);
            assert!(at + segment.region.size as usize <= image.len(), "all of it is there");
        }
        assert!(image == expected);
        let end = elf.segments.iter().map(|one| one.region.start + one.region.size).max();
        assert_eq!(Some(IMAGE + image.len() as u64), end);
    }
}

/// Linux, Documentation/arch/arm64/booting.rst, "Call the kernel image".
#[test]
fn the_header_says_where_it_belongs_and_branches_to_the_entry() {
    let packed = packed(PLAIN);
    let (elf, image) = (written(&packed, ImageFormat::Elf), written(&packed, ImageFormat::Image));
    let code = u32::from_le_bytes(image[..4].try_into().unwrap());
    assert_eq!(code >> 26, 0b000101, "b");
    assert_eq!(IMAGE + u64::from(code & 0x03ff_ffff) * 4, unpack(&elf).unwrap().entry);
    // From the beginning of RAM, where it must be (bit 3 is clear); 4 KiB, little-endian.
    assert_eq!((word(&image, 8), word(&image, 24)), (IMAGE - 0x4000_0000, 0b0010));
    assert_eq!(word(&image, 16), image.len() as u64);
    assert_eq!((&image[32..56], &image[56..64]), (&[0; 24][..], &b"ARM\x64\0\0\0\0"[..]));
    let KernelKind::Image(read) = identify(&image, None).unwrap() else { panic!("an Image") };
    assert_eq!((read.text_offset, read.image_size), (IMAGE - 0x4000_0000, image.len() as u64));
    assert_eq!(packed.load_address(ImageFormat::Image), IMAGE);
}

fn text<'a>(node: FdtNode<'_, 'a>, name: &str) -> &'a str {
    let property = node.property(name).unwrap_or_else(|| panic!("there is no {name}"));
    property.as_str().unwrap_or_else(|| panic!("{name} is no text"))
}

#[test]
fn a_fit_has_the_image_and_its_digest() {
    for description in [PLAIN.to_owned(), shared()] {
        let packed = packed(&description);
        let file = written(&packed, ImageFormat::Fit);
        let fit = Fdt::new(&file).unwrap();
        assert_eq!(fit.total_size(), file.len());
        let node = |path: &str| fit.find_node(path).unwrap_or_else(|| panic!("no {path}"));
        assert_eq!(node("/").property("timestamp").unwrap().value, [0; 4], "of no time");
        let default = text(node("/configurations"), "default");
        let configuration = node(&format!("/configurations/{default}"));
        let command = ImageFormat::Fit.start_command(0x1000);
        assert_eq!(command, format!("bootm 0x1000#{default}"));
        for (key, kind) in [("kernel", "kernel"), ("fdt", "flat_dt")] {
            let path = format!("/images/{}", text(configuration, key));
            let (image, hash) = (node(&path), node(&format!("{path}/hash-1")));
            assert_eq!(text(image, "type"), kind);
            assert_eq!((text(image, "arch"), text(image, "compression")), ("arm64", "none"));
            assert_eq!(text(hash, "algo"), "sha256");
            let digest = Sha256::digest(image.property("data").unwrap().value);
            assert_eq!(hash.property("value").unwrap().value, &digest[..]);
        }
        let system = node("/images/system");
        let image = written(&packed, ImageFormat::Image);
        assert!(system.property("data").unwrap().value == image);
        let place = (IMAGE as u32).to_be_bytes();
        for key in ["load", "entry"] {
            assert_eq!(system.property(key).unwrap().value, place, "{key}");
        }
        assert_eq!(text(system, "os"), "linux");
        // Where it is unpacked from overlaps nothing that it is unpacked to.
        assert!(packed.load_address(ImageFormat::Fit) >= IMAGE + image.len() as u64);
    }
}

#[test]
fn the_same_description_gives_the_same_bytes() {
    for format in [ImageFormat::Elf, ImageFormat::Image, ImageFormat::Fit] {
        for description in [PLAIN.to_owned(), shared()] {
            let [one, other] = [0; 2].map(|_| written(&packed(&description), format));
            assert!(one == other, "{}", format.name());
        }
    }
    let [one, other] = [0; 2].map(|_| packed(PLAIN).boot_script(ImageFormat::Fit, "a.fit"));
    assert_eq!(one.unwrap(), other.unwrap());
}

#[test]
fn a_file_is_whole() {
    let (packed, out) = (packed(PLAIN), files());
    for format in [ImageFormat::Elf, ImageFormat::Image, ImageFormat::Fit] {
        let path = out.path().join(format.name());
        packed.write_file(format, &path).unwrap();
        assert!(fs::read(path).unwrap() == written(&packed, format));
    }
}

/// The bitwise CRC-32 of IEEE 802.3, apart from the library that the packer uses.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & 0u32.wrapping_sub(crc & 1))
        })
    })
}

/// U-Boot, include/image.h, `legacy_img_hdr`.
#[test]
fn a_script_is_an_image_of_u_boots() {
    let script = packed(PLAIN).boot_script(ImageFormat::Image, "demo.img").unwrap();
    let (header, body) = script.split_at(64);
    let word = |at: usize| u32::from_be_bytes(header[at..at + 4].try_into().unwrap());
    let mut blank = header.to_vec();
    blank[4..8].fill(0);
    assert_eq!((word(0), word(4)), (0x2705_1956, crc32(&blank)));
    assert_eq!((word(12), word(24)), (body.len() as u32, crc32(body)));
    // Linux, arm64, script, not compressed.
    assert_eq!(header[28..32], [5, 22, 6, 0]);
    assert_eq!(body[..4], (body.len() as u32 - 8).to_be_bytes());
    assert_eq!(body[4..8], [0; 4]);
    let text = std::str::from_utf8(&body[8..]).unwrap();
    let start = "booti 0x401ff000 - ${fdtcontroladdr}\n";
    let disk = "\tload ${devtype} ${devnum}:${distro_bootpart} 0x401ff000 ${prefix}demo.img && ";
    assert!(text.contains(&format!("\ttftpboot 0x401ff000 demo.img && {start}")), "{text}");
    assert!(text.contains(&format!("{disk}{start}")), "{text}");
}

#[test]
fn what_a_script_could_not_load_is_refused() {
    let packed = packed(PLAIN);
    for name in ["", "a b", "a;reset", "${a}", "ä.fit", "a/b", "\"", "a\nb"] {
        let error = packed.boot_script(ImageFormat::Fit, name).unwrap_err();
        assert!(error.to_string().contains(&format!("cannot load `{name}`")), "{error}");
    }
    let error = packed.boot_script(ImageFormat::Elf, "a.elf").unwrap_err();
    assert!(error.to_string().contains("`bootelf`"), "{error}");
    assert!(error.hint().contains("--format fit"), "{}", error.hint());
    // Once it fits memory, but not beside itself.
    let small =
        PLAIN.replace("256M", "16M").replace("\"64M\"", "\"4M\"").replace("\"8M\"", "\"2M\"");
    let large = "\n[[shared_memory]]\nname = \"page\"\nsize = \"4M\"\n";
    let small = small.replace("[[vm]]", "[[vm]]\nshared_memory = [\"page\"]") + large;
    let packed = self::packed(&small);
    let error = packed.boot_script(ImageFormat::Fit, "a.fit").unwrap_err();
    assert!(error.to_string().contains("no room for a.fit"), "{error}");
    packed.boot_script(ImageFormat::Image, "a.img").unwrap();
}
