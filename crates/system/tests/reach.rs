//! What EL2 checks of page tables when it starts: it believes what the packer writes, and no
//! table by which a VM or EL2 would reach what is not its own.

mod support;

use abi::platform::{GICC_BASE, GICD_BASE, REPORT_BASE, STOLEN_BASE};
use abi::system::stage1::ALIAS;
use abi::system::{Invalid, PAGE_SIZE, Region, System, vm_flags};
use proptest::prelude::*;
use std::cell::Cell;
use std::sync::LazyLock;
use support::{elf, files, random, sound};
use system::{UnpackError, Unpacked, pack, unpack};
use tempfile::TempDir;

const TEXT: &str = r#"
board = { kind = "qemu-virt", pcpus = 2, memory = "256M" }

[[vm]]
name = "one"
kernel = "Image"
memory = { size = "16M" }
vcpus = [{ pcpu = 0, priority = 1 }, { pcpu = 1, priority = 1 }]
migration_policy = "safe-unsafe"
report = "8K"

[[vm]]
name = "two"
kernel = "rtos.elf"
memory = { size = "4M" }
vcpus = [{ pcpu = 1, priority = 2 }]
devices = ["gpio"]
shared_memory = ["page"]

[[shared_memory]]
name = "page"
size = "8K"
"#;

fn file(text: &str) -> Vec<u8> {
    static FILES: LazyLock<TempDir> = LazyLock::new(files);
    let mut file = Vec::new();
    let packed = pack(&sound(FILES.path(), text), &elf::plain_hypervisor()).unwrap();
    packed.write(&mut file).unwrap();
    file
}

static FILE: LazyLock<Vec<u8>> = LazyLock::new(|| file(TEXT));

/// What EL2 says when the words at some addresses are others.
fn check(system: &Unpacked<'_>, other: &[(u64, u64)]) -> Result<(), Invalid> {
    let read = |pa| {
        let changed = other.iter().find(|(at, _)| *at == pa);
        changed.map_or_else(|| word(system, pa), |&(_, word)| word)
    };
    system.tables.check_stage1(&read)?;
    system.tables.check_stage2(&read)
}

fn word(system: &Unpacked<'_>, pa: u64) -> u64 {
    let bytes = system.at(Region::new(pa, 8)).expect("only words of the bundle are read");
    u64::from_le_bytes(bytes.try_into().unwrap())
}

/// Where the descriptors are that translate an address, from level 1 on.
fn descriptors(system: &Unpacked<'_>, root: u64, input: u64) -> Vec<u64> {
    let (mut table, mut found) = (root, Vec::new());
    for level in 1..=3 {
        let at = table + 8 * (input >> (39 - 9 * level) & 511);
        found.push(at);
        let descriptor = word(system, at);
        if descriptor & 0b11 != 0b11 {
            break;
        }
        table = descriptor & 0x0000_ffff_ffff_f000;
    }
    found
}

fn leaf(system: &Unpacked<'_>, root: u64, input: u64) -> (u64, u64) {
    let at = *descriptors(system, root, input).last().unwrap();
    (at, word(system, at))
}

const READ_ONLY: u64 = 1 << 7;
const NO_EXECUTE: u64 = 1 << 54;

#[test]
fn a_vm_that_would_reach_more_is_refused() {
    let system = &unpack(&FILE).unwrap();
    let System { board, header, .. } = &*system.tables;
    let [one, two] = [&system.tables.vms()[0], &system.tables.vms()[1]];
    let refused = |what: &str, (at, to): (u64, u64)| {
        assert_eq!(check(system, &[(at, to)]), Err(Invalid::Stage2Reach), "{what}");
    };
    let (memory, block) = leaf(system, one.stage2_pa[0], one.ram_ipa);
    let moved = |to: u64| (memory, block & 0xfff | to);
    refused("another VM's memory", moved(two.ram_pa));
    refused("the hypervisor", moved(board.hypervisor_pa));
    refused("what it has, elsewhere", moved(one.ram_pa + 0x20_0000));
    refused("device memory", (memory, block & !(0b1111 << 2) | 0b0001 << 2));
    // Every view is looked at.
    let (memory, block) = leaf(system, one.stage2_pa[2], one.ram_ipa);
    refused("another VM's memory in one view", (memory, block & 0xfff | two.ram_pa));

    let (page, stolen) = leaf(system, one.stage2_pa[0], STOLEN_BASE);
    refused("stolen time, to write", (page, stolen | READ_ONLY));
    refused("stolen time of another VM", (page, stolen & !0xffff_f000 | two.stolen_pa));
    refused("stolen time, to execute", (page, stolen & !(0b11 << 53)));
    let (page, report) = leaf(system, one.stage2_pa[0], REPORT_BASE);
    refused("a report, to execute", (page, report & !(0b11 << 53)));
    refused("the status area", (page, report & !0xffff_f000 | board.status_pa));
    refused("the bundle", (page, report & !0xffff_f000 | header.bundle_pa));

    let (page, device) = leaf(system, two.stage2_pa[0], 0x0903_0000);
    refused("the console's device", (page, device & !0xffff_f000 | board.uart_pa));
    refused("a device as memory", (page, device | 0b1111 << 2));
    // Beside the device, in the same table: what the guest is to trap at.
    let beside = page - (0x0903_0000 - 0x0900_0000) / PAGE_SIZE * 8;
    refused("the emulated console", (beside, device & !0xffff_f000 | 0x0900_0000));
    let last = *descriptors(system, two.stage2_pa[0], GICD_BASE).last().unwrap();
    let block = device & !0xfff_ffff_f003 | 0x4_0000_0000 | 0b01;
    refused("the emulated interrupt controller", (last, block));
}

/// EL2 looks for the system errors of VMs that have devices, and believes the flag.
#[test]
fn a_vm_that_does_not_say_that_it_has_devices_is_refused() {
    let system = &unpack(&FILE).unwrap();
    let mut tables = system.tables.clone();
    let vm = tables.vms.iter_mut().find(|vm| vm.is(vm_flags::DEVICES)).expect("two has one");
    vm.flags &= !vm_flags::DEVICES;
    assert_eq!(tables.check_stage2(&|pa| word(system, pa)), Err(Invalid::Stage2Reach));
}

#[test]
fn an_el2_that_would_reach_more_is_refused() {
    let system = &unpack(&FILE).unwrap();
    let System { board, header, .. } = &*system.tables;
    let at = |address| leaf(system, board.stage1_pa, address);
    let refused = |what: &str, (at, to): (u64, u64)| {
        assert_eq!(check(system, &[(at, to)]), Err(Invalid::Stage1Reach), "{what}");
    };
    let (page, code) = at(board.hypervisor_pa);
    refused("code, to write", (page, code & !READ_ONLY));
    refused("code from elsewhere", (page, code + PAGE_SIZE));
    let (page, bundle) = at(header.bundle_pa);
    refused("the bundle, to write", (page, bundle & !READ_ONLY));
    refused("the bundle, to execute", (page, bundle & !NO_EXECUTE));
    let vm = &system.tables.vms()[0];
    let ((place, nothing), (_, memory)) =
        (at(vm.ram_pa), leaf(system, vm.stage1_pa, ALIAS + vm.ram_pa));
    assert_eq!(nothing, 0);
    refused("a guest's memory", (place, memory));
    let (page, uart) = at(board.uart_pa);
    refused("a device, to execute", (page, uart & !NO_EXECUTE));
    refused("a device as memory", (page, uart | 1 << 2));
    refused("an unknown kind of memory", (page, uart | 2 << 2));
}

#[test]
fn an_alias_that_is_more_than_one_vms_memory_is_refused() {
    let system = &unpack(&FILE).unwrap();
    let [one, two] = [&system.tables.vms()[0], &system.tables.vms()[1]];
    let common = system.tables.board.stage1_pa;
    let refused = |what: &str, (at, to): (u64, u64)| {
        assert_eq!(check(system, &[(at, to)]), Err(Invalid::Stage1Reach), "{what}");
    };
    let (page, memory) = leaf(system, one.stage1_pa, ALIAS + one.ram_pa);
    refused("a guest's memory, to execute", (page, memory & !NO_EXECUTE));
    refused("a guest's memory as a device", (page, memory & !(0b111 << 2)));
    refused("another VM's memory", (page, memory & 0xfff | two.ram_pa));
    refused("the hypervisor", (page, memory & 0xfff | system.tables.board.hypervisor_pa));
    refused("the memory elsewhere", (page + 8, memory));
    // No address has two translations, whatever roots they are from.
    let index = (ALIAS + one.ram_pa) >> 30;
    let table = word(system, one.stage1_pa + 8 * index);
    refused("another VM's alias too", (two.stage1_pa + 8 * index, table));
    refused("an alias, always", (common + 8 * index, table));
    let at = descriptors(system, common, system.tables.header.bundle_pa)[0] - common;
    refused("not all that is mapped always", (one.stage1_pa + at, 0));
    refused("what is mapped always, by another table", (one.stage1_pa + at, table));
}

#[test]
fn a_table_that_is_none_is_refused() {
    let system = &unpack(&FILE).unwrap();
    let vm = &system.tables.vms()[0];
    let stages = [(system.tables.board.stage1_pa, vm.ram_pa), (vm.stage2_pa[0], STOLEN_BASE)];
    for (root, input) in stages {
        let path = descriptors(system, root, input);
        let refused = |what: &str, at: u64, to: u64| {
            assert_eq!(check(system, &[(at, to)]), Err(Invalid::TableForm), "{what}");
        };
        let table = word(system, path[0]);
        refused("a table outside the bundle", path[0], vm.ram_pa | 0b11);
        refused("a table with rights for what is below", path[0], table | 1 << 59);
        refused("a block that is not aligned", path[0], 0x1000 | 0b01);
    }
    let path = descriptors(system, vm.stage2_pa[0], STOLEN_BASE);
    let page = word(system, path[2]);
    assert_eq!(check(system, &[(path[2], page & !0b10)]), Err(Invalid::TableForm), "reserved");
}

#[test]
fn a_file_with_such_a_table_is_refused() {
    let system = unpack(&FILE).unwrap();
    let vm = &system.tables.vms()[0];
    let (at, block) = leaf(&system, vm.stage2_pa[0], vm.ram_ipa);
    let mut tables = system.tables.clone();
    let (start, payload) = (tables.header.payload().start, tables.header.payload());
    let mut bytes = system.at(payload).unwrap().to_vec();
    let word = block & 0xfff | system.tables.vms()[1].ram_pa;
    bytes[(at - start) as usize..][..8].copy_from_slice(&word.to_le_bytes());
    // The digests are right: to write a table is to be able to write its digest.
    system::pack::seal(&mut tables, &bytes);
    let mut file = FILE.clone();
    let bundle = system.at(tables.header.bundle()).unwrap();
    let offset = bundle.as_ptr() as usize - FILE.as_ptr() as usize;
    let own = zerocopy::IntoBytes::as_bytes(&*tables);
    file[offset..][..own.len()].copy_from_slice(own);
    file[offset + own.len()..][..bytes.len()].copy_from_slice(&bytes);
    assert_eq!(unpack(&file).err(), Some(UnpackError::Tables(Invalid::Stage2Reach)));
}

/// A guest has the first page of a GICv2's virtual CPU interface, where the virtual platform has it.
#[test]
fn a_guest_has_nothing_else_of_a_gicv2() {
    let file = file(&TEXT.replace("qemu-virt", "qemu-virt-gicv2"));
    let system = unpack(&file).unwrap();
    assert_eq!(check(&system, &[]), Ok(()));
    let board = &system.tables.board;
    let (at, interface) = leaf(&system, system.tables.vms[1].stage2_pa[0], GICC_BASE);
    assert_eq!(interface & 0x0000_ffff_ffff_f000, board.gicv_pa);
    let with = |page: u64| interface & !0x0000_ffff_ffff_f000 | page;
    for (what, other) in [
        ("GICH", with(board.gich_pa)),
        ("GICC", with(board.gicc_pa)),
        ("GICD", with(board.gicd_pa)),
        ("GICV_DIR", with(board.gicv_pa + PAGE_SIZE)),
        ("memory", with(board.hypervisor_pa)),
        ("executable", interface & !(0b11 << 53)),
        ("cached", interface | 0b1111 << 2),
    ] {
        assert_eq!(check(&system, &[(at, other)]), Err(Invalid::Stage2Reach), "{what}");
    }
    // Nor where GICC_DIR has to trap.
    let second = [(at + 8, interface)];
    assert_eq!(check(&system, &second), Err(Invalid::Stage2Reach), "the emulated page");
    let (at, frame) = leaf(&system, board.stage1_pa, board.gich_pa);
    assert_ne!(frame & 0b1, 0, "EL2 has it");
    assert_eq!(check(&system, &[(at, frame & !(1 << 54))]), Err(Invalid::Stage1Reach));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn believes_the_packer(text in random::description()) {
        for text in random::boards(&text) {
            let file = file(&text);
            prop_assert_eq!(check(&unpack(&file).unwrap(), &[]), Ok(()));
        }
    }

    #[test]
    fn survives_any_table(seed in any::<u64>()) {
        let system = unpack(&FILE).unwrap();
        let (bundle, state) = (system.tables.header.bundle(), Cell::new(seed | 1));
        // Mostly tables that lie in the bundle, so that the walk goes on.
        let read = |pa: u64| {
            let mut next = state.get();
            next ^= next << 13;
            next ^= next >> 7;
            next ^= next << 17;
            state.set(next);
            match next % 64 {
                0 => next,
                1..4 => ((bundle.start + next % bundle.size) & !0xfff) | 0b11,
                _ if pa.is_multiple_of(PAGE_SIZE) => next,
                _ => 0,
            }
        };
        let _ = system.tables.check_stage1(&read);
        let _ = system.tables.check_stage2(&read);
    }
}
