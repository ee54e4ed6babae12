//! Descriptions, and the images that they name.

use std::fs;
use std::sync::LazyLock;
use system::image::{self, Format, KernelKind};
use system::{Checked, Packed, pack};
use tempfile::TempDir;

#[path = "../../crates/system/tests/support/arm64.rs"]
#[allow(dead_code, reason = "its other half is for tests of the readers of Images")]
mod arm64;
#[path = "../../crates/system/tests/support/elf.rs"]
#[allow(dead_code, reason = "its other half is for tests of the ELF reader")]
mod elf;

/// Images that descriptions may name: as small as they can be.
static FILES: LazyLock<TempDir> = LazyLock::new(|| {
    let directory = TempDir::new().expect("a temporary directory");
    let put = |name: &str, bytes: &[u8]| {
        fs::write(directory.path().join(name), bytes).expect("a file in it");
    };
    put("Image", &arm64::linux_image(256));
    put("initramfs", b"070701 and what an archive has");
    put("rtos.elf", &guest_elf());
    put("flat.bin", &[0x14; 77]);
    directory
});

/// The hypervisor that descriptions are packed with.
static HYPERVISOR: LazyLock<Vec<u8>> = LazyLock::new(elf::plain_hypervisor);

/// The system that hypervisors are packed with.
static CHECKED: LazyLock<Checked> = LazyLock::new(|| checked(SMALL));

const SMALL: &str = r#"
board = { kind = "qemu-virt", pcpus = 1, memory = "128M" }
[[vm]]
name = "one"
kernel = "flat.bin"
format = "flat"
memory = { size = "2M" }
vcpus = [{ pcpu = 0, priority = 1 }]
"#;

fn guest_elf() -> Vec<u8> {
    elf::Elf::new(elf::ET_EXEC, 0x4008_0000)
        .segment(0x4008_0000, &[1; 100], 100, elf::R | elf::X)
        .segment(0x4008_1010, &[2; 10], 5000, elf::R | elf::W)
        .build()
}

/// Reads a description without faults, which names the images above.
pub fn checked(text: &str) -> Checked {
    let path = FILES.path().join("system.toml");
    system::load_text(&path, text).unwrap_or_else(|report| panic!("{}", report.plain()))
}

/// Packs a system with a sound hypervisor. EL2 would believe what comes of it.
pub fn packed(checked: &Checked) -> (Packed, Vec<u8>) {
    let packed = pack(checked, &HYPERVISOR).expect("what is sound can be packed");
    let file = written(&packed);
    (packed, file)
}

fn written(packed: &Packed) -> Vec<u8> {
    let mut file = Vec::new();
    packed.write(&mut file).expect("memory");
    system::unpack(&file).unwrap_or_else(|error| panic!("what was packed is refused: {error}"));
    file
}

/// The text of a description: what it says of faults can be told, and what it accepts can be packed
/// and would be believed by EL2.
pub fn description(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    // It names files. Those of this computer are none of its business.
    if text.contains(['/', '\\']) {
        return;
    }
    match system::load_text(&FILES.path().join("system.toml"), text) {
        Ok(checked) => {
            assert_eq!(checked.warnings.errors(), 0, "{}", checked.warnings.plain());
            drop(checked.warnings.plain());
            packed(&checked);
        }
        Err(report) => {
            assert!(report.errors() > 0, "refused without a reason");
            report.problems().iter().for_each(|problem| {
                report.place(problem).expect("each problem stands somewhere");
            });
            drop(report.plain());
        }
    }
}

/// A guest's kernel, which the first byte says something of: what is loaded of it is in the file,
/// and nothing is loaded twice.
pub fn image(input: &[u8]) {
    let Some((first, bytes)) = input.split_first() else { return };
    let stated = [None, Some(Format::Image), Some(Format::Elf), Some(Format::Flat)];
    let stated = stated[usize::from(first & 3)];
    match image::identify(bytes, stated) {
        Ok(KernelKind::Elf(image)) => {
            for segment in &image.segments {
                assert!(segment.file.end <= bytes.len(), "{segment:x?}");
                assert!(segment.file.len() as u64 <= segment.size, "{segment:x?}");
            }
            for pair in image.segments.windows(2) {
                let end = u128::from(pair[0].address) + u128::from(pair[0].size);
                assert!(end <= pair[1].address.into(), "{pair:x?}");
            }
            let home = image.segments.iter().find(|segment| {
                image.entry.checked_sub(segment.address).is_some_and(|at| at < segment.size)
            });
            assert!(home.is_some(), "{image:x?}");
        }
        Ok(KernelKind::Image(image)) => assert!(image.image_size >= bytes.len() as u64),
        Ok(KernelKind::Flat) => assert_eq!(stated, Some(Format::Flat)),
        Err(unfit) => assert!(!unfit.message.is_empty() && !unfit.hint.is_empty()),
    }
}

/// The hypervisor's own file: what is packed with it would be believed by EL2.
pub fn hypervisor(input: &[u8]) {
    if let Ok(packed) = pack(&CHECKED, input) {
        written(&packed);
    }
}
