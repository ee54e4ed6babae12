//! A packed system is what EL2 expects, and nothing else is.

mod support;

use abi::system::{Invalid, Part, Region, System, VERSION, flags, part, parts, vm_flags};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fs;
use std::mem::offset_of;
use support::elf::{self, DATA, RELATIVE, W, X};
use support::{files, guest_memory, sound};
use system::pack::image_size;
use system::{ImageFormat, UnpackError, image, pack, unpack};
use tempfile::TempDir;
use zerocopy::IntoBytes;

const TWO_VMS: &str = r#"
[board]
kind = "qemu-virt"
pcpus = 2
memory = "256M"

[[vm]]
name = "linux"
kernel = "Image"
initramfs = "initramfs"
cmdline = "console=ttyAMA0"
memory = { size = "64M" }
vcpus = [{ pcpu = 0, priority = 1 }, { pcpu = 1, priority = 1 }]
devices = ["rtc"]

[[vm]]
name = "rtos"
kernel = "rtos.elf"
memory = { size = "8M" }
vcpus = [{ pcpu = 1, priority = 9 }]
realtime = true
report = "64K"
interrupts = [{ physical = 60, virtual = 70, trigger = "edge" }, 61]
"#;

/// The packed system as a file, in memory.
fn packed_file(text: &str) -> Vec<u8> {
    let directory = files();
    let packed = pack(&sound(directory.path(), text), &elf::plain_hypervisor()).unwrap();
    let mut file = Vec::new();
    packed.write(&mut file).unwrap();
    assert_eq!(file.len() as u64, packed.file_size());
    file
}

#[test]
fn the_tables_say_what_the_description_says() {
    let file = packed_file(TWO_VMS);
    let unpacked = unpack(&file).unwrap();
    let System { header, board, vms, vcpus, spis, .. } = &*unpacked.tables;
    let usual = flags::PRIORITY_SEPARATION | flags::OFF_WHEN_DONE | flags::DIRECTED_YIELD;
    assert_eq!((header.flags, header.sibling_grace_ns), (usual, 50_000));
    let controls = "\n[hypervisor]\nsibling_grace = \"0us\"\ndirected_yield = false\n";
    let file = packed_file(&format!("{TWO_VMS}{controls}"));
    let controlled = unpack(&file).unwrap();
    let System { header: other, .. } = &*controlled.tables;
    let without = flags::PRIORITY_SEPARATION | flags::OFF_WHEN_DONE;
    assert_eq!((other.flags, other.sibling_grace_ns), (without, 0));
    assert_eq!((header.vm_count, header.vcpu_count, header.spi_count), (2, 3, 3));
    assert_eq!((board.ram_pa, board.ram_size), (0x4000_0000, 256 << 20));
    assert_eq!(board.pcpu_mpidr[..2], [0, 1]);
    assert_eq!((vms[0].name(), vms[1].name()), ("linux", "rtos"));
    assert!(vms[1].is(vm_flags::REALTIME) && !vms[0].is(vm_flags::REALTIME));
    assert_eq!(vms[1].report_size, 64 << 10);
    let vcpus: Vec<_> = vcpus[..3].iter().map(|v| (v.vm, v.index, v.pcpu, v.priority)).collect();
    assert_eq!(vcpus, [(0, 0, 0, 1), (0, 1, 1, 1), (1, 0, 1, 9)]);
    let spis = spis[..3].iter().map(|s| (s.vm, s.physical, s.virtual_, s.trigger));
    let (level, edge) = (abi::system::LEVEL, abi::system::EDGE);
    assert!(spis.eq([(0, 34, 34, level), (1, 60, 70, edge), (1, 61, 61, level)]));
}

#[test]
fn guests_find_their_files_and_their_device_tree() {
    let file = packed_file(TWO_VMS);
    let unpacked = unpack(&file).unwrap();
    for (vm, kernel) in unpacked.tables.vms().iter().zip(["Image", "rtos.elf"]) {
        let memory = guest_memory(&unpacked, vm);
        let entry = (vm.entry_ipa - vm.ram_ipa) as usize;
        let tree = (vm.entry_x0 - vm.ram_ipa) as usize;
        assert_eq!(memory[tree..tree + 4], [0xd0, 0x0d, 0xfe, 0xed], "{kernel}");
        if kernel == "Image" {
            let image = support::linux_image(200_000);
            assert_eq!(memory[entry..entry + image.len()], image);
            let initramfs = support::initramfs(70_001);
            let end = (tree - initramfs.len()) & !0xfff;
            assert_eq!(memory[end..end + initramfs.len()], initramfs);
        } else {
            assert_eq!(vm.entry_ipa, 0x4008_0000);
            assert_eq!(memory[entry..entry + 3000], [1; 3000]);
            let data = &memory[entry + 0x1010..];
            assert_eq!((&data[..100], &data[100..5000]), (&[2; 100][..], &[0; 4900][..]));
        }
    }
}

/// Otherwise a guest could find what was in the machine's memory before, or in its own before a
/// reset.
#[test]
fn memory_that_is_to_be_cleared_is_filled_whole() {
    let text = TWO_VMS.replace("size = \"64M\"", "size = \"64M\", clear = true");
    let text = text.replace("size = \"8M\"", "size = \"8M\", clear = true");
    let (kept, cleared) = (packed_file(TWO_VMS), packed_file(&text));
    let (kept, cleared) = (unpack(&kept).unwrap(), unpack(&cleared).unwrap());
    for (before, after) in kept.tables.vms().iter().zip(cleared.tables.vms()) {
        let (before, after) = (guest_memory(&kept, before), guest_memory(&cleared, after));
        // Nothing is loaded where it holds 0xee, but for such bytes of files.
        let differing = before.iter().zip(&after).filter(|(one, other)| one != other);
        assert!(differing.clone().all(|change| change == (&0xee, &0)));
        assert!(differing.count() > 4 << 20);
        let untouched = after.windows(64).step_by(64).filter(|line| *line == [0xee; 64]);
        assert_eq!(untouched.count(), 0);
    }
}

#[test]
fn a_device_tree_is_where_it_is_wanted() {
    let text = TWO_VMS.replace("size = \"64M\"", "size = \"64M\", device_tree = \"start\"");
    let file = packed_file(&text);
    let unpacked = unpack(&file).unwrap();
    let linux = &unpacked.tables.vms()[0];
    let memory = guest_memory(&unpacked, linux);
    assert_eq!(linux.entry_x0, linux.ram_ipa);
    assert_eq!(memory[..4], [0xd0, 0x0d, 0xfe, 0xed]);
    let entry = (linux.entry_ipa - linux.ram_ipa) as usize;
    assert!(entry >= 2 << 20, "an Image lies at a multiple of 2 MiB, behind it");
    let image = support::linux_image(200_000);
    assert_eq!(memory[entry..entry + image.len()], image);
    let initramfs = support::initramfs(70_001);
    let end = (memory.len() - initramfs.len()) & !0xfff;
    assert_eq!(memory[end..end + initramfs.len()], initramfs);
}

#[test]
fn the_hypervisor_is_moved_to_its_address() {
    let relas = [(DATA, RELATIVE, 0x40), (DATA + 56, RELATIVE, 0x3000), (DATA + 8, 0, 1)];
    let directory = files();
    let checked = sound(directory.path(), TWO_VMS);
    let packed = pack(&checked, &elf::hypervisor(&relas).build()).unwrap();
    let mut file = Vec::new();
    packed.write(&mut file).unwrap();
    let unpacked = unpack(&file).unwrap();
    assert_eq!(unpacked.entry, 0x4020_0040);
    let word = |offset: u64| {
        let bytes = unpacked.at(Region::new(0x4020_0000 + offset, 8)).unwrap();
        u64::from_le_bytes(bytes.try_into().unwrap())
    };
    assert_eq!(word(DATA), 0x4020_0040);
    assert_eq!(word(DATA + 56), 0x4020_3000);
    assert_eq!(word(DATA + 8), 0xdddd_dddd_dddd_dddd, "R_AARCH64_NONE changes nothing");
    assert_eq!(word(0), 0x1f1f_1f1f_1f1f_1f1f);
    assert_eq!(unpacked.segments[2].region, Region::new(0x4020_0000 + DATA, 0x4321));
}

#[test]
fn relocations_are_not_loaded() {
    let file = packed_file(TWO_VMS);
    let host = Region::new(0x4020_0000 + elf::RELOCATIONS, 1);
    assert_eq!(unpack(&file).unwrap().at(host), None);
    assert_eq!(image_size(&elf::plain_hypervisor()).unwrap(), 0x1234 + 16 + 64);
    assert!(image_size(b"no ELF file").is_err());
}

#[test]
fn a_hypervisor_that_cannot_be_placed_is_refused_with_a_reason() {
    let directory = files();
    let checked = sound(directory.path(), TWO_VMS);
    let mut exec = elf::hypervisor(&[]);
    exec.kind = elf::ET_EXEC;
    let mut x86 = elf::hypervisor(&[]);
    x86.machine = 62;
    let mut lost = elf::hypervisor(&[]);
    lost.entry = 0x2000;
    let big = elf::hypervisor(&[]).segment(0x1f_f000, &[], 0x2000, W);
    let wx = elf::hypervisor(&[]).segment(0x9000, &[], 0x1000, W | X);
    let shared = elf::hypervisor(&[]).segment(0x2800, &[], 0x10, W);
    for (file, reason) in [
        (b"MZ".to_vec(), "damaged"),
        (exec.build(), "not position-independent"),
        (x86.build(), "not built for AArch64"),
        (lost.build(), "entry 0x40202000 is in no executable segment"),
        (big.build(), "ends at 0x201000, behind its 0x200000 bytes"),
        (wx.build(), "both writable and executable"),
        (shared.build(), "share the page at 0x2000"),
        (elf::hypervisor(&[(DATA, 257, 0)]).build(), "needs a relocation of type 257"),
        (elf::hypervisor(&[(DATA + 60, RELATIVE, 0)]).build(), "outside its data"),
    ] {
        let error = pack(&checked, &file).expect_err(reason);
        assert!(error.to_string().contains(reason), "{error}");
        assert!(!error.hint().is_empty());
    }
}

/// What has a digest is the hypervisor's code and constants, and every byte of the bundle.
#[test]
fn digests_are_those_of_the_file() {
    let file = packed_file(TWO_VMS);
    let unpacked = unpack(&file).unwrap();
    let tables = &unpacked.tables;
    let sha256 = |bytes: &[u8]| -> [u8; 32] { Sha256::digest(bytes).into() };
    let mut zeroed = tables.clone();
    zeroed.header.tables_sha256 = [0; 32];
    assert_eq!(
        tables.header.tables_sha256,
        sha256(&zeroed.as_bytes()[..offset_of!(System, signature)])
    );
    for part in tables.parts() {
        assert_eq!(part.sha256, sha256(unpacked.at(part.region()).unwrap()), "{}", part.what());
    }
    let (own, behind): (Vec<&Part>, Vec<_>) =
        tables.parts().iter().partition(|part| part.kind == part::HYPERVISOR);
    assert!(!own.is_empty());
    let all = behind.iter().fold(0, |all, part| all + part.size);
    assert_eq!(all, tables.header.payload().size);
    let kinds: BTreeSet<u32> = behind.iter().map(|part| part.kind).collect();
    let expected = [part::STAGE1, part::STAGE2, part::KERNEL, part::DEVICETREE];
    assert!(expected.iter().all(|kind| kinds.contains(kind)), "{kinds:?}");
}

#[test]
fn a_damaged_file_is_found_out() {
    let file = packed_file(TWO_VMS);
    let bundle = file.len() - unpack(&file).unwrap().tables.header.bundle_size as usize;
    let damage = |at: usize| {
        let mut damaged = file.clone();
        damaged[at] ^= 0x10;
        unpack(&damaged).map(|_| ()).unwrap_err()
    };
    assert_eq!(damage(bundle), UnpackError::Tables(Invalid::Magic));
    assert_eq!(damage(bundle + 8), UnpackError::Tables(Invalid::Version));
    assert_eq!(damage(bundle + 100), UnpackError::Tables(Invalid::TablesDigest));
    let last = damage(file.len() - 1).to_string();
    assert!(last.ends_with(" is damaged (SHA-256)"), "{last}");
    let tables = unpack(&file).unwrap().tables;
    let offset = |pa: u64| bundle + (pa - tables.header.bundle_pa) as usize;
    for part in tables.parts().iter().filter(|part| part.kind != part::HYPERVISOR) {
        let found = UnpackError::Damaged(tables.damaged(part).to_string());
        assert_eq!(damage(offset(part.pa)), found);
        assert_eq!(damage(offset(part.pa + part.size - 1)), found);
    }
    assert!(matches!(unpack(&file[..file.len() - 1]), Err(UnpackError::Container(_))));
}

#[test]
fn two_vms_share_one_copy_of_a_file() {
    let one = packed_file(TWO_VMS).len();
    let third = TWO_VMS.replace("\"256M\"", "\"512M\"")
        + "[[vm]]\nname = \"more\"\nkernel = \"Image\"\ninitramfs = \"initramfs\"\n\
           memory = { size = \"64M\" }\nvcpus = [{ pcpu = 0, priority = 1 }]\n";
    assert!(packed_file(&third).len() < one + 50_000, "page tables and a device tree only");
}

#[test]
fn writing_leaves_a_whole_file_or_none() {
    let directory = files();
    let packed = pack(&sound(directory.path(), TWO_VMS), &elf::plain_hypervisor()).unwrap();
    let out = TempDir::new().unwrap();
    let path = out.path().join("system.elf");
    fs::write(&path, "what was there before").unwrap();
    packed.write_file(ImageFormat::Elf, &path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), packed.file_size());
    assert_eq!(fs::read_dir(out.path()).unwrap().count(), 1, "no temporary file is left");
    let nowhere = out.path().join("none/system.elf");
    let error = packed.write_file(ImageFormat::Elf, &nowhere).unwrap_err();
    assert!(error.to_string().contains("cannot write"), "{error}");
}

#[test]
fn the_same_description_gives_the_same_bytes() {
    assert_eq!(packed_file(TWO_VMS), packed_file(TWO_VMS));
}

#[test]
fn a_system_with_links_says_so_and_is_refused_by_a_hypervisor_without_them() {
    let link = "[[link]]\nname = \"control\"\nbetween = [\"linux\", \"rtos\"]\nsize = \"8K\"\n\n";
    let plain = unpack(&packed_file(TWO_VMS)).unwrap().tables.header.version;
    assert_eq!(plain, VERSION);
    let file = packed_file(&(TWO_VMS.to_owned() + link));
    let unpacked = unpack(&file).unwrap();
    // One without compares the whole word.
    assert_eq!(unpacked.tables.header.version, VERSION | parts::LINKS);
    assert_eq!(unpacked.tables.links[0].vms, [0, 1]);
    let last = unpacked.segments.last().unwrap();
    assert_eq!((last.region.size, last.data), (8 << 10, &[][..]), "its memory is cleared");
}

#[test]
fn a_system_with_virtio_devices_says_so_and_which_vm_gives_them() {
    let virtio = "[[virtio]]\nfront = \"rtos\"\nback = \"linux\"\nmemory = \"2M\"\ndevices = [\"block\", \"block\"]\n\n";
    let file = packed_file(&(TWO_VMS.to_owned() + virtio));
    let unpacked = unpack(&file).unwrap();
    // One without compares the whole word.
    assert_eq!(unpacked.tables.header.version, VERSION | parts::VIRTIO);
    let given = unpacked.tables.virtio.map(|one| (one.back, one.devices));
    assert_eq!(given[..2], [(0, 0), (0, 2)]);
    let last = unpacked.segments.last().unwrap();
    assert_eq!((last.region.size, last.data), (2 << 20, &[][..]), "its memory is cleared");
}

#[test]
fn shared_memory_is_cleared_by_what_loads_the_file() {
    let memory = "[[shared_memory]]\nname = \"page\"\nsize = \"8K\"\n\n";
    let text = TWO_VMS.replace("[[vm]]", "[[vm]]\nshared_memory = [\"page\"]");
    let file = packed_file(&(text + memory));
    let unpacked = unpack(&file).unwrap();
    let last = unpacked.segments.last().unwrap();
    assert_eq!((last.region.size, last.data, last.flags & W), (8 << 10, &[][..], W));
    let tables = &unpacked.tables;
    let apart = |region: Region| !region.overlaps(last.region);
    assert!(tables.vms().iter().all(|vm| apart(vm.ram()) && apart(vm.stolen())));
    assert!(apart(tables.header.bundle()) && apart(tables.board.status()));
    // What no VM has takes no memory.
    let file = packed_file(&(TWO_VMS.to_owned() + memory));
    assert!(!unpack(&file).unwrap().segments.last().unwrap().data.is_empty());
}

/// Returns the segment goes round the end of the address space.
#[test]
fn an_entry_below_its_segment_is_in_none() {
    let guest = elf::Elf::new(elf::ET_EXEC, 0)
        .program(elf::PT_LOAD, u64::MAX - 3, 0x4008_0000, &[1; 16], 16, elf::R | X)
        .build();
    let unfit = image::identify(&guest, None).unwrap_err();
    assert!(unfit.message.contains("lies in none of its segments"), "{}", unfit.message);
}

/// Returns the offset may be anywhere, then, also behind the file's end.
#[test]
fn a_segment_without_bytes_is_nowhere_in_the_file() {
    let mut guest = elf::Elf::new(elf::ET_EXEC, 0x4008_0000)
        .segment(0x4008_0000, &[1; 16], 16, elf::R | elf::X)
        .segment(0x4009_0000, &[], 64, elf::R | elf::W)
        .build();
    // p_offset of the second program header.
    guest[64 + 56 + 8..64 + 56 + 16].copy_from_slice(&(1_u64 << 40).to_le_bytes());
    let image::KernelKind::Elf(found) = image::identify(&guest, None).unwrap() else { panic!() };
    assert_eq!((found.segments[1].file.clone(), found.segments[1].size), (0..0, 64));
}
