//! The device trees guests find: what they say, and that `dtc`, which knows
//! the bindings' rules, has nothing to object to.

mod support;

use abi::platform::{GICR_STRIDE, REPORT_BASE};
use fdt::Fdt;
use fdt::node::FdtNode;
use std::io::Write;
use std::process::{Command, Stdio};
use support::{elf, files, guest_memory, sound};
use system::{pack, unpack};

const TEXT: &str = r#"
board = { kind = "qemu-virt", pcpus = 2, memory = "256M" }

[[vm]]
name = "linux"
kernel = "Image"
initramfs = "initramfs"
cmdline = "console=ttyAMA0 quiet"
memory = { size = "64M", identity = true }
vcpus = [{ pcpu = 0, priority = 1 }, { pcpu = 1, priority = 1 }, { pcpu = 1, priority = 1 }]
devices = ["flash", "rtc", "gpio", "uart1", "virtio-mmio-0", "virtio-mmio-31", "pcie"]

[[vm]]
name = "rtos"
kernel = "rtos.elf"
memory = { size = "8M" }
console = false
report = "64K"
shared_memory = [{ name = "wide", access = "read-only" }, "page"]
[[vm.vcpus]]
pcpu = 1
priority = 9
server = { kind = "deferrable", budget = "3ms", period = "10ms" }
tasks = [
    { name = "log", priority = 1, period = "100ms", offset = "2ms", segments = [{ wcet = "2ms" }] },
    { name = "control", priority = 2, period = "50ms", jitter = "1ms", segments = [{ wcet = "1ms", lcs = "L" }, { wcet = "100us", gcs = "R" }] },
]

[[vm]]
name = "control"
kernel = "rtos.elf"
memory = { size = "8M" }
shared_memory = ["wide", "page"]

[[vm.vcpus]]
pcpu = 0
priority = 9
server = { kind = "deferrable", budget = "5ms", period = "10ms" }
tasks = [{ name = "t", priority = 1, period = "50ms", segments = [{ wcet = "1ms", gcs = "page" }] }]

[[link]]
name = "orders"
between = ["control", "rtos"]
size = "64K"

[[virtio]]
front = "rtos"
back = "control"
devices = ["console", "block"]
memory = "4M"

[[shared_memory]]
name = "wide"
size = "68K"

[[shared_memory]]
name = "page"
size = "4K"
"#;

/// A VM with devices of a board whose clocks have rates of their own.
const BOARD: &str = r#"
board = { kind = "zcu102", pcpus = 1, memory = "1536M" }

[[vm]]
name = "linux"
kernel = "Image"
memory = { size = "64M", identity = true }
vcpus = [{ pcpu = 0, priority = 1 }]
devices = ["sd", "network"]
"#;

/// The device trees of [`TEXT`]'s VMs.
fn trees() -> Vec<Vec<u8>> {
    trees_of(TEXT)
}

fn trees_of(text: &str) -> Vec<Vec<u8>> {
    let directory = files();
    let mut file = Vec::new();
    let checked = sound(directory.path(), text);
    pack(&checked, &elf::plain_hypervisor()).unwrap().write(&mut file).unwrap();
    let system = unpack(&file).unwrap();
    let tree = |vm: &abi::system::Vm| {
        let memory = guest_memory(&system, vm);
        let tree = &memory[(vm.entry_x0 - vm.ram_ipa) as usize..];
        let size = u32::from_be_bytes(tree[4..8].try_into().unwrap());
        tree[..size as usize].to_vec()
    };
    system.tables.vms().iter().map(tree).collect()
}

fn cells(node: FdtNode<'_, '_>, property: &str) -> Vec<u32> {
    let value =
        node.property(property).unwrap_or_else(|| panic!("{}: {property}", node.name)).value;
    value.chunks_exact(4).map(|cell| u32::from_be_bytes(cell.try_into().unwrap())).collect()
}

fn text<'a>(node: FdtNode<'_, 'a>, property: &str) -> &'a str {
    node.property(property).and_then(|property| property.as_str()).unwrap()
}

fn node<'b, 'a>(tree: &'b Fdt<'a>, path: &str) -> FdtNode<'b, 'a> {
    tree.find_node(path).unwrap_or_else(|| panic!("no {path}"))
}

#[test]
fn linux_finds_its_processors_memory_and_files() {
    let trees = trees();
    let tree = Fdt::new(&trees[0]).unwrap();
    assert_eq!(tree.cpus().map(|cpu| cpu.ids().first()).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(tree.cpus().all(|cpu| cpu.property("enable-method").unwrap().value == b"psci\0"));
    assert_eq!(text(node(&tree, "/psci"), "method"), "hvc");
    assert_eq!(tree.chosen().bootargs(), Some("console=ttyAMA0 quiet"));
    assert_eq!(tree.chosen().stdout().unwrap().name, "serial@9000000");
    let region = tree.memory().regions().next().unwrap();
    let start = region.starting_address as u64;
    assert_eq!(region.size, Some(64 << 20));
    assert!(start > 0x4040_0000, "identity: where it really is");
    let chosen = node(&tree, "/chosen");
    let address =
        |name: &str| cells(chosen, name).iter().fold(0, |high, &low| high << 32 | u64::from(low));
    let (from, to) = (address("linux,initrd-start"), address("linux,initrd-end"));
    assert_eq!(to - from, 70_001);
    assert!(from > start && to <= start + (64 << 20) - 0x1_0000, "below the device tree");
}

#[test]
fn interrupts_go_to_a_gic_with_a_redistributor_for_each_vcpu() {
    let trees = trees();
    for (tree, vcpus) in trees.iter().zip([3, 1, 1]) {
        let tree = Fdt::new(tree).unwrap();
        let gic = node(&tree, "/interrupt-controller@8000000");
        let size = (GICR_STRIDE * vcpus) as u32;
        assert_eq!(cells(gic, "reg"), [0, 0x0800_0000, 0, 0x1_0000, 0, 0x080a_0000, 0, size]);
        assert_eq!(cells(node(&tree, "/"), "interrupt-parent"), cells(gic, "phandle"));
        let timer = cells(node(&tree, "/timer"), "interrupts");
        assert_eq!(timer, [1, 13, 4, 1, 14, 4, 1, 11, 4, 1, 10, 4]);
    }
}

#[test]
fn devices_stand_where_the_board_has_them() {
    let trees = trees();
    let tree = Fdt::new(&trees[0]).unwrap();
    for (path, interrupt) in [
        ("/rtc@9010000", [0, 2, 4]),
        ("/gpio@9030000", [0, 7, 4]),
        ("/serial@9000000", [0, 1, 4]),
        ("/serial@9040000", [0, 8, 4]),
        ("/virtio-mmio@a000000", [0, 16, 1]),
        ("/virtio-mmio@a003e00", [0, 47, 1]),
    ] {
        assert_eq!(cells(node(&tree, path), "interrupts"), interrupt, "{path}");
    }
    assert_eq!(cells(node(&tree, "/virtio-mmio@a003e00"), "reg"), [0, 0x0a00_3e00, 0, 0x200]);
    assert_eq!(cells(node(&tree, "/gpio@9030000"), "#gpio-cells"), [2]);
    let flash = node(&tree, "/flash@4000000");
    assert_eq!(cells(flash, "reg"), [0, 0x0400_0000, 0, 0x0400_0000]);
    assert_eq!(cells(flash, "bank-width"), [4]);
    assert!(flash.property("interrupts").is_none());
    let clock = cells(node(&tree, "/clock"), "phandle")[0];
    assert_eq!(cells(node(&tree, "/serial@9040000"), "clocks"), [clock, clock]);
}

/// A driver divides a clock by what it is told of its rate.
#[test]
fn clocks_have_the_rates_that_the_board_says() {
    let trees = trees_of(BOARD);
    let tree = Fdt::new(&trees[0]).unwrap();
    let rate_hz = |phandle: u32| {
        let mut clocks = tree.all_nodes().filter(|node| node.name.starts_with("clock"));
        let clock = clocks.find(|clock| cells(*clock, "phandle") == [phandle]).unwrap();
        cells(clock, "clock-frequency")[0]
    };
    for (path, rates_hz) in [
        ("/serial@9000000", &[24_000_000; 2][..]),
        ("/mmc@ff170000", &[200_000_000, 100_000_000]),
        ("/ethernet@ff0e0000", &[100_000_000, 100_000_000, 125_000_000, 125_000_000]),
    ] {
        let found: Vec<_> = cells(node(&tree, path), "clocks").into_iter().map(rate_hz).collect();
        assert_eq!(found, rates_hz, "{path}");
    }
}

/// The driver wants one for each queue; it is passed through once.
#[test]
fn queues_of_a_device_may_share_an_interrupt() {
    let trees = trees_of(BOARD);
    let tree = Fdt::new(&trees[0]).unwrap();
    assert_eq!(cells(node(&tree, "/ethernet@ff0e0000"), "interrupts"), [0, 63, 4, 0, 63, 4]);
    let mut passed: Vec<_> =
        sound(files().path(), BOARD).vms[0].interrupts.iter().map(|irq| irq.physical).collect();
    passed.sort_unstable();
    assert_eq!(passed, [81, 95]);
}

#[test]
fn a_pci_host_bridge_has_one_bus_whose_pins_lead_to_the_boards_interrupts() {
    let trees = trees();
    let tree = Fdt::new(&trees[0]).unwrap();
    let pcie = node(&tree, "/pcie@3f000000");
    assert_eq!(text(pcie, "device_type"), "pci");
    assert_eq!(cells(pcie, "reg"), [0, 0x3f00_0000, 0, 0x10_0000]);
    assert_eq!(cells(pcie, "bus-range"), [0, 0]);
    let window = [0x0200_0000, 0, 0x2800_0000, 0, 0x2800_0000, 0, 0x1000_0000];
    assert_eq!(cells(pcie, "ranges"), window);
    assert!(pcie.property("interrupts").is_none() && pcie.property("iommu-map").is_none());
    assert!(pcie.property("dma-coherent").is_some());
    assert_eq!(cells(pcie, "interrupt-map-mask"), [0x1800, 0, 0, 7]);
    let map = cells(pcie, "interrupt-map");
    let gic = cells(node(&tree, "/interrupt-controller@8000000"), "phandle")[0];
    for (at, entry) in map.chunks(8).enumerate() {
        let (device, pin) = (at as u32 / 4, at as u32 % 4);
        let spi = 3 + (device + pin) % 4;
        assert_eq!(entry, [device << 11, 0, 0, pin + 1, gic, 0, spi, 4], "{at}");
    }
    assert_eq!(map.len(), 4 * 4 * 8);
}

#[test]
fn what_a_guest_was_not_given_is_not_there() {
    let trees = trees();
    let (linux, rtos) = (Fdt::new(&trees[0]).unwrap(), Fdt::new(&trees[1]).unwrap());
    for path in ["/serial@9000000", "/aliases", "/rtc@9010000"] {
        assert!(rtos.find_node(path).is_none(), "{path}");
    }
    assert!(rtos.chosen().stdout().is_none());
    assert!(linux.find_compatible(&["cassata,report"]).is_none());
    let report = rtos.find_compatible(&["cassata,report"]).unwrap();
    let region = report.reg().unwrap().next().unwrap();
    assert_eq!((region.starting_address as u64, region.size), (REPORT_BASE, Some(64 << 10)));
    let service = linux.find_compatible(&["cassata,service-1.0"]).unwrap();
    assert_eq!(service.name, "cassata");
    assert!(service.property("interrupts").is_none(), "it uses no mutexes");
}

#[test]
fn a_vm_that_shares_resources_finds_them() {
    let trees = trees();
    let tree = |vm: usize| Fdt::new(&trees[vm]).unwrap();
    assert!(tree(0).find_compatible(&["cassata,shared-memory"]).is_none());
    for (vm, is_read_only) in [(1, true), (2, false)] {
        let (tree, wide, page) = (tree(vm), "/shared-memory@10000000", "/shared-memory@10020000");
        assert_eq!(
            (text(node(&tree, wide), "label"), text(node(&tree, page), "label")),
            ("wide", "page")
        );
        assert_eq!(cells(node(&tree, wide), "reg"), [0, 0x1000_0000, 0, 68 << 10]);
        assert_eq!(cells(node(&tree, page), "reg"), [0, 0x1002_0000, 0, 4 << 10], "64 KiB pages");
        assert_eq!(node(&tree, wide).property("read-only").is_some(), is_read_only);
        assert!(node(&tree, page).property("read-only").is_none());
    }
    let tree = tree(2);
    let service = node(&tree, "/cassata");
    assert_eq!(cells(service, "interrupts"), [1, 6, 1], "INTID 22, edge");
    assert_eq!(text(service, "interrupt-names"), "mutex");
    assert_eq!(
        service.property("compatible").unwrap().value,
        b"cassata,service-1.6\0cassata,service-1.5\0cassata,service-1.4\0cassata,service-1.3\0cassata,service-1.2\0cassata,service-1.1\0cassata,service-1.0\0"
    );
}

#[test]
fn each_end_of_a_link_has_its_own_half_first() {
    let trees = trees();
    let tree = |vm: usize| Fdt::new(&trees[vm]).unwrap();
    assert!(tree(0).find_compatible(&["cassata,link"]).is_none());
    let halves = [[0, 0x1800_0000, 0, 32 << 10], [0, 0x1800_8000, 0, 32 << 10]];
    for (vm, peer, side) in [(2, "rtos", 0), (1, "control", 1)] {
        let (tree, path) = (tree(vm), "/link@b200000");
        let link = node(&tree, path);
        assert_eq!((text(link, "label"), text(link, "cassata,peer")), ("orders", peer));
        assert_eq!(text(link, "linux,uio-name"), "link-orders");
        let registers = [0, 0x0b20_0000, 0, 0x1_0000];
        assert_eq!(cells(link, "reg"), [registers, halves[side], halves[1 - side]].concat());
        let compatible = link.property("compatible").unwrap().value;
        assert_eq!(compatible, b"cassata,link\0generic-uio\0");
        assert_eq!(link.property("reg-names").unwrap().value, b"registers\0own\0peer\0");
        assert_eq!(cells(link, "interrupts"), [0, 248, 1], "INTID 280, edge");
    }
}

/// Linux copies what its devices shall see to where `dma-ranges` says that they reach, and no further.
#[test]
fn virtio_devices_reach_the_memory_that_both_vms_have_and_nothing_else() {
    let trees = trees();
    let tree = |vm: usize| Fdt::new(&trees[vm]).unwrap();
    assert!(tree(0).find_node("/virtio").is_none());
    let memory = [0, 0x2100_0000, 0, 4 << 20];
    let front = tree(1);
    assert_eq!(cells(node(&front, "/memory@21000000"), "reg"), memory);
    let ranges = [&memory[..2], &memory[..]].concat();
    assert_eq!(cells(node(&front, "/virtio"), "dma-ranges"), ranges);
    for (path, registers, spi) in [
        ("/virtio/virtio_mmio@b280000", 0x0b28_0000, 236),
        ("/virtio/virtio_mmio@b281000", 0x0b28_1000, 237),
    ] {
        let device = node(&front, path);
        assert_eq!(cells(device, "reg"), [0, registers, 0, 0x1000]);
        assert_eq!(cells(device, "interrupts"), [0, spi, 1], "an edge");
        assert!(device.property("dma-coherent").is_some());
    }
    let back = tree(2);
    let given = node(&back, "/virtio-back@b2a0000");
    assert_eq!((text(given, "label"), text(given, "linux,uio-name")), ("rtos", "virtio-rtos"));
    assert_eq!(given.property("cassata,devices").unwrap().value, b"console\0block\0");
    assert_eq!(cells(given, "reg"), [&[0, 0x0b2a_0000, 0, 0x1_0000][..], &memory[..]].concat());
    assert_eq!(cells(given, "interrupts"), [0, 241, 1], "INTID 273, edge");
    assert!(back.find_node("/memory@21000000").is_none(), "it is no memory of the back's kernel");
}

#[test]
fn dtc_has_nothing_to_say() {
    for tree in trees().into_iter().chain(trees_of(BOARD)) {
        let mut dtc = Command::new("dtc")
            .args(["-I", "dtb", "-O", "dts", "-o", "/dev/null", "-"])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("this test needs `dtc` (Debian: device-tree-compiler)");
        dtc.stdin.take().unwrap().write_all(&tree).unwrap();
        let output = dtc.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{said}");
    }
}

#[test]
fn a_guest_finds_the_tasks_that_are_described_for_it() {
    let trees = trees();
    assert!(Fdt::new(&trees[0]).unwrap().find_node("/tasks").is_none(), "Linux has none");
    let tree = Fdt::new(&trees[1]).unwrap();
    let tasks = node(&tree, "/tasks");
    assert_eq!(text(tasks, "compatible"), "cassata,tasks-1.0");
    let labels: Vec<_> = tasks.children().map(|task| text(task, "label")).collect();
    assert_eq!(labels, ["log", "control"]);
    let (log, control) = (node(&tree, "/tasks/task-0"), node(&tree, "/tasks/task-1"));
    assert_eq!((cells(log, "vcpu"), cells(control, "priority")), (vec![0], vec![2]));
    assert_eq!(cells(log, "offset-ns"), [0, 2_000_000]);
    assert_eq!(cells(control, "period-ns"), [0, 50_000_000]);
    assert_eq!(cells(control, "jitter-ns"), [0, 1_000_000]);
    assert_eq!(cells(control, "wcet-ns"), [0, 1_000_000, 0, 100_000]);
    assert_eq!(control.property("holds").unwrap().value, b"lcs L\0gcs R\0");
    assert_eq!(log.property("holds").unwrap().value, b"nothing\0");
}
