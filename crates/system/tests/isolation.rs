//! No VM reaches what does not belong to it: the packed translation tables, walked for
//! random systems by a walker that shares nothing with their builder.

mod support;

use abi::platform::{GICD_BASE, GICR_BASE, LINES_BASE, REPORT_BASE, STOLEN_BASE, UART_BASE};
use abi::system::stage1::{ALIAS, ATTR_DEVICE, ATTR_NORMAL, MAIR};
use abi::system::{Region, Vm};
use proptest::prelude::*;
use std::sync::LazyLock;
use support::walk::{Leaf, translate, walk};
use support::{elf, files, random, sound};
use system::{Checked, Unpacked, pack, unpack};
use tempfile::TempDir;

const MEMATTR_DEVICE_NGNRE: u64 = 0b0001;
const MEMATTR_NORMAL_NON_CACHEABLE: u64 = 0b0101;
const MEMATTR_NORMAL_WRITE_BACK: u64 = 0b1111;
const S2AP_READ: u64 = 0b01;
const S2AP_READ_WRITE: u64 = 0b11;

/// Checks a description, packs it, takes it apart again, and hands it on.
fn with_packed(text: &str, test: impl FnOnce(&Checked, &Unpacked<'_>)) {
    static FILES: LazyLock<TempDir> = LazyLock::new(files);
    let checked = sound(FILES.path(), text);
    let mut file = Vec::new();
    pack(&checked, &elf::plain_hypervisor()).unwrap().write(&mut file).unwrap();
    test(&checked, &unpack(&file).unwrap());
}

/// What a VM may reach: input, output and the rights that go with it.
struct Grant {
    input: u64,
    output: Region,
    s2ap: u64,
    memattr: u64,
    execute: bool,
}

/// Memory that VMs share, as the file has it: what stands behind the bundle is cleared.
fn shared(system: &Unpacked<'_>) -> Vec<Region> {
    let stacks = system.tables.board.hypervisor();
    let cleared = system.segments.iter().filter(|segment| segment.data.is_empty());
    let cleared = cleared.map(|segment| segment.region);
    cleared.filter(|&region| !stacks.contains(region)).collect()
}

/// All a VM is given, from the tables (memory), the file (shared memory, that of links and of virtio included, of
/// which no two pieces have one size) and the description (devices).
fn grants(vm: &Vm, described: &system::model::Vm, shared: &[Region]) -> Vec<Grant> {
    let normal = |input, output, s2ap, execute| {
        let memattr = MEMATTR_NORMAL_WRITE_BACK;
        Grant { input, output, s2ap, memattr, execute }
    };
    let mut grants = vec![
        normal(vm.ram_ipa, vm.ram(), S2AP_READ_WRITE, true),
        normal(STOLEN_BASE, vm.stolen(), S2AP_READ, false),
        normal(REPORT_BASE, vm.report(), S2AP_READ_WRITE, false),
        normal(LINES_BASE, vm.lines(), S2AP_READ_WRITE, false),
    ];
    grants.extend(described.shared_memory.iter().map(|memory| {
        let s2ap = if memory.read_only { S2AP_READ } else { S2AP_READ_WRITE };
        let output = shared.iter().find(|region| region.size == memory.guest.size);
        normal(memory.guest.start, *output.expect("it is in the file"), s2ap, false)
    }));
    for end in &described.links {
        let memory = shared.iter().find(|region| region.size == end.size);
        let memory = memory.expect("it is in the file");
        let memattr =
            if end.cached { MEMATTR_NORMAL_WRITE_BACK } else { MEMATTR_NORMAL_NON_CACHEABLE };
        grants.extend([0, 1].map(|side| Grant {
            input: end.half(side).start,
            output: Region::new(memory.start + end.size / 2 * side as u64, end.size / 2),
            s2ap: if side == end.side { S2AP_READ_WRITE } else { S2AP_READ },
            memattr,
            execute: false,
        }));
    }
    for front in described.virtio.iter().chain(described.backs.iter().map(|back| &back.front)) {
        let memory = shared.iter().find(|region| region.size == front.size);
        let memory = *memory.expect("it is in the file");
        grants.push(normal(front.memory().start, memory, S2AP_READ_WRITE, false));
    }
    let mut pages: Vec<_> =
        described.devices.iter().map(|device| device.address & !0xfff).collect();
    pages.dedup();
    let windows = described.devices.iter().filter_map(|device| device.window);
    let windows = windows.map(|window| Region::new(window.address, window.size));
    // Configuration space of a PCI bus.
    let functions = described.devices.iter().filter(|device| device.window.is_some());
    let functions = functions.map(|device| Region::new(device.address, device.size));
    pages.retain(|page| !functions.clone().any(|all| all.start == *page));
    grants.extend(windows.chain(functions).map(|output| Grant {
        input: output.start,
        output,
        s2ap: S2AP_READ_WRITE,
        memattr: MEMATTR_DEVICE_NGNRE,
        execute: false,
    }));
    grants.extend(pages.into_iter().map(|page| Grant {
        input: page,
        output: Region::new(page, 0x1000),
        s2ap: S2AP_READ_WRITE,
        memattr: MEMATTR_DEVICE_NGNRE,
        execute: false,
    }));
    grants
}

/// XN\[1:0\] of executable memory in each view: at EL0 and EL1, at EL0, at EL1
/// (DDI 0487, D8.4.1.2).
const VIEWS: [u64; 3] = [0b00, 0b01, 0b11];

/// The grant a leaf belongs to; panics when it goes beyond every one.
fn assert_granted(leaf: &Leaf, grants: &[Grant], view: usize) {
    let grant = grants.iter().find(|grant| {
        let input = Region::new(grant.input, grant.output.size);
        input.contains(leaf.input())
            && leaf.output == grant.output.start + (leaf.input - grant.input)
    });
    let Some(grant) = grant else { panic!("{leaf:x?} leads to what the VM was not given") };
    assert_eq!(leaf.bits(6, 2), grant.s2ap, "{leaf:x?}");
    assert_eq!(leaf.bits(2, 4), grant.memattr, "{leaf:x?}");
    let [anything, nothing] = [VIEWS[view], 0b10];
    assert_eq!(leaf.bits(53, 2), if grant.execute { anything } else { nothing }, "{leaf:x?}");
    assert_eq!(leaf.bits(10, 1), 1, "AF of {leaf:x?}");
    if grant.memattr != MEMATTR_DEVICE_NGNRE {
        assert_eq!(leaf.bits(8, 2), 0b11, "inner shareable: {leaf:x?}");
    }
}

/// Physical memory and devices that no VM may reach.
fn forbidden(system: &Unpacked<'_>) -> Vec<Region> {
    let board = &system.tables.board;
    let gicr = Region::new(board.gicr_pa, board.gicr_stride * u64::from(board.pcpu_count));
    vec![
        board.hypervisor(),
        system.tables.header.bundle(),
        board.status(),
        system.tables.trace(),
        Region::new(board.gicd_pa, 0x1_0000),
        gicr,
        Region::new(board.uart_pa, 0x1000),
        // The SMMU, if there is one.
        Region::new(0x0905_0000, 0x2_0000),
        // What the board wants left alone.
        Region::new(board.ram_pa, board.hypervisor_pa - board.ram_pa),
    ]
}

/// What a device reaches is what its VM reaches: EL2 points its streams at that VM's tables.
fn check_streams(checked: &Checked, system: &Unpacked<'_>) {
    let confined = system.tables.smmu.confined.iter().filter(|device| device.count > 0);
    let mut streams = 0..0;
    for device in confined {
        assert!(streams.is_empty(), "the board has one such device");
        let vm = &checked.vms[usize::from(device.vm)];
        assert!(vm.devices.iter().any(|given| given.name == "pcie"), "{}", vm.name);
        streams = u32::from(device.first)..device.end();
    }
    assert_eq!(streams, if checked.has_smmu() { 0..256 } else { 0..0 });
    assert_eq!(system.tables.smmu.registers_pa != 0, checked.has_smmu());
}

fn check_stage2(checked: &Checked, system: &Unpacked<'_>) {
    for view in 0..VIEWS.len() {
        check_view(checked, system, view);
    }
}

fn check_view(checked: &Checked, system: &Unpacked<'_>, view: usize) {
    let vms = system.tables.vms();
    let shared = shared(system);
    let views: Vec<_> = vms.iter().map(|vm| walk(system, vm.stage2_pa[view])).collect();
    for ((vm, described), leaves) in vms.iter().zip(&checked.vms).zip(&views) {
        let grants = grants(vm, described, &shared);
        // A VM that needs no views has one.
        let view = if vm.stage2_pa[view] == vm.stage2_pa[0] { 0 } else { view };
        for leaf in leaves {
            assert_granted(leaf, &grants, view);
            for region in forbidden(system) {
                assert!(!region.overlaps(leaf.output()), "{leaf:x?} reaches {region:x?}");
            }
        }
        let mapped: u64 = leaves.iter().map(|leaf| leaf.size).sum();
        assert_eq!(
            mapped,
            grants.iter().map(|grant| grant.output.size).sum::<u64>(),
            "all of its own"
        );
        let links = described.links.iter().map(|end| end.registers().start);
        let fronts = described.virtio.iter().map(|front| front.registers(0).start);
        let backs = described.backs.iter().map(|back| back.front.back_registers().start);
        let emulated = [GICD_BASE, GICR_BASE, UART_BASE].into_iter();
        for emulated in emulated.chain(links).chain(fronts).chain(backs) {
            assert_eq!(translate(leaves, emulated), None, "{emulated:#x} must trap");
        }
    }
    for (i, mine) in views.iter().enumerate() {
        // What each of two VMs was given of shared memory is checked above.
        let own = |leaf: &&Leaf| !shared.iter().any(|region| region.contains(leaf.output()));
        for theirs in &views[i + 1..] {
            let clash = mine
                .iter()
                .filter(own)
                .find(|leaf| theirs.iter().any(|other| other.output().overlaps(leaf.output())));
            assert_eq!(clash, None, "two VMs reach it");
        }
    }
}

/// How EL2 may use an address: (device, writable, executable).
fn rights(leaf: &Leaf) -> (bool, bool, bool) {
    (leaf.bits(2, 3) == ATTR_DEVICE, leaf.bits(7, 1) == 0, leaf.bits(54, 1) == 0)
}

fn check_stage1(system: &Unpacked<'_>) {
    let tables = &system.tables;
    let leaves = walk(system, tables.board.stage1_pa);
    for leaf in &leaves {
        let (device, writable, executable) = rights(leaf);
        assert!(!(writable && executable), "{leaf:x?} breaks W^X");
        assert!(!(device && executable), "{leaf:x?}");
        assert_eq!(leaf.input, leaf.output, "identity");
        assert_eq!((leaf.bits(6, 1), leaf.bits(10, 1)), (1, 1), "AP[1] and AF of {leaf:x?}");
        assert_eq!(leaf.bits(53, 1), 0, "bit 53 is RES0 here");
    }
    let is = |address: u64, expected: Option<(bool, bool, bool)>| {
        let found = translate(&leaves, address).map(|(_, leaf)| rights(&leaf));
        assert_eq!(found, expected, "{address:#x}");
    };
    let (code, constant, data, device) = (
        Some((false, false, true)),
        Some((false, false, false)),
        Some((false, true, false)),
        Some((true, true, false)),
    );
    let board = &tables.board;
    let base = board.hypervisor_pa;
    for (offset, kind) in [(0, code), (0x1fff, code), (0x2000, constant), (0x3000, data)] {
        is(base + offset, kind);
    }
    for guarded in elf::STACKS {
        is(base + guarded - 1, None);
        is(base + guarded, data);
    }
    is(base + board.hypervisor_size - 1, None);
    is(base - 1, None);
    let bundle = tables.header.bundle();
    is(bundle.start, constant);
    is(bundle.start + bundle.size - 1, constant);
    is(board.status_pa, data);
    let trace = tables.trace();
    if trace.size > 0 {
        is(trace.start, data);
        is(trace.start + trace.size - 1, data);
    }
    is(board.gicd_pa, device);
    is(board.gicr_pa + board.gicr_stride * u64::from(board.pcpu_count) - 1, device);
    is(board.gicr_pa + board.gicr_stride * u64::from(board.pcpu_count), None);
    is(board.uart_pa, device);
    let smmu = tables.smmu.registers_pa;
    if smmu != 0 {
        is(smmu, device);
        is(smmu + 0x1_ffff, device);
        let functions = tables.smmu.confined[0].functions_pa;
        is(functions, device);
        is(functions + 0xf_ffff, device);
    }
    for region in shared(system) {
        is(region.start, None);
        is(region.start + region.size - 1, None);
    }
    for leaf in &leaves {
        let reached = tables.vms().iter().find(|vm| vm.ram().overlaps(leaf.output()));
        assert!(reached.is_none(), "{leaf:x?} reaches a guest's memory");
    }
    for vm in tables.vms() {
        check_alias(system, vm, &leaves);
        is(vm.stolen_pa, data);
        if vm.lines_pa > 0 {
            is(vm.lines_pa, data);
        }
        if vm.report_size > 0 {
            is(vm.report_pa, None);
        }
    }
}

/// A VM's root has what EL2 has always, and the VM's memory: once, all of it, nothing else.
fn check_alias(system: &Unpacked<'_>, vm: &Vm, always: &[Leaf]) {
    let leaves = walk(system, vm.stage1_pa);
    let (below, alias) = leaves.split_at(leaves.partition_point(|leaf| leaf.input < ALIAS));
    assert_eq!(below, always);
    for leaf in alias {
        assert!(vm.ram().contains(leaf.output()), "{leaf:x?} is not the VM's");
        assert_eq!(leaf.input, ALIAS + leaf.output);
        assert_eq!((leaf.bits(6, 1), leaf.bits(10, 1)), (1, 1), "AP[1] and AF of {leaf:x?}");
        assert_eq!(rights(leaf), (false, true, false), "{leaf:x?}");
    }
    assert_eq!(alias.iter().map(|leaf| leaf.size).sum::<u64>(), vm.ram_size);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn vms_are_kept_apart_and_el2_from_itself(text in random::description()) {
        with_packed(&text, |checked, system| {
            check_stage2(checked, system);
            check_streams(checked, system);
            check_stage1(system);
        });
    }
}

#[test]
fn mair_means_what_the_descriptors_say() {
    let attribute = |index: u64| MAIR >> (8 * index) & 0xff;
    assert_eq!(attribute(ATTR_DEVICE), 0x04, "Device-nGnRE");
    assert_eq!(attribute(ATTR_NORMAL), 0xff, "Normal write-back, allocating");
}
