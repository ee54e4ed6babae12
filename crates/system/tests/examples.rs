//! The example systems of this project are sound, with files of the right
//! kind in the places they name.

mod support;

use std::fs;
use std::path::Path;
use support::{elf, guest_elf, initramfs, linux_image};
use system::{Code, load, pack};
use tempfile::TempDir;

/// What the examples name, relative to the project, and what passes for it.
fn guests() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("build/guests/linux/Image", linux_image(100_000)),
        ("build/guests/linux/initramfs.cpio.gz", initramfs(50_000)),
        ("build/guests/virtio/initramfs.cpio.gz", initramfs(50_000)),
        ("build/guests/freertos.elf", guest_elf()),
        ("build/guests/freertos-gicv2.elf", guest_elf()),
        ("build/guests/probe.elf", guest_elf()),
        ("build/guests/embassy.elf", guest_elf()),
        ("build/guests/others/u-boot.bin", vec![0; 100_000]),
        ("build/guests/others/rt.Image", linux_image(100_000)),
        ("build/guests/others/backports.Image", linux_image(100_000)),
        ("build/guests/debian/Image", linux_image(100_000)),
        ("build/guests/debian/initrd", initramfs(50_000)),
        ("build/guests/debian/disk.img", vec![0; 1 << 20]),
        ("build/guests/pcie/initramfs.cpio.gz", initramfs(50_000)),
        ("build/guests/pcie/disk.img", vec![0; 1 << 20]),
        ("build/guests/board/initramfs.cpio.gz", initramfs(50_000)),
        ("build/guests/board/card.img", vec![0; 1 << 20]),
    ]
}

#[test]
fn every_example_can_be_packed_without_a_warning_that_it_could_do_without() {
    let project = TempDir::new().unwrap();
    for (path, bytes) in guests() {
        let path = project.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../systems");
    let here = project.path().join("systems");
    fs::create_dir(&here).unwrap();
    let mut count = 0;
    for entry in fs::read_dir(examples).unwrap() {
        let original = entry.unwrap().path();
        if original.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let copy = here.join(original.file_name().unwrap());
        fs::copy(&original, &copy).unwrap();
        let checked = load(&copy).unwrap_or_else(|report| panic!("{}", report.plain()));
        // A device that does DMA cannot be had without this one.
        let mut warnings = checked.warnings.problems().iter();
        let is_bearable = warnings.all(|warning| warning.code == Code::DmaUnconfined);
        assert!(is_bearable, "{}", checked.warnings.plain());
        pack(&checked, &elf::plain_hypervisor()).unwrap();
        count += 1;
    }
    assert!(count > 0, "there are examples");
}
