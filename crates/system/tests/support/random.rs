//! Random descriptions that are valid by construction.

use proptest::prelude::*;
use std::fmt::Write;

/// What the devices of a random system may be; `virtio-mmio-N` needs identity
/// memory, and 8 of them share a page.
const DEVICES: [&str; 3] = ["rtc", "gpio", "uart1"];

#[derive(Clone, Debug)]
struct Vm {
    mib: u64,
    address: Option<u64>,
    identity: bool,
    kernel: usize,
    vcpus: Vec<usize>,
    console: bool,
    realtime: bool,
    report_pages: u64,
    virtio: bool,
    /// For each piece of shared memory: whether the VM has it, and whether it may write it.
    shared: [Option<bool>; 3],
}

fn vm(pcpus: usize) -> impl Strategy<Value = Vm> {
    let memory = (1..=24_u64, prop::option::of(0..64_u64), any::<bool>());
    let rest = (0..3_usize, prop::collection::vec(0..pcpus, 1..=8), any::<[bool; 3]>());
    let report = prop_oneof![Just(0), 1..64_u64, 512..1100_u64];
    let shared = any::<[Option<bool>; 3]>();
    (memory, rest, report, shared).prop_map(
        |((blocks, address, identity), (kernel, vcpus, flags), report, shared)| {
            let [console, realtime, virtio] = flags;
            // An ELF kernel wants the usual address.
            let identity = identity && kernel != 1;
            let address = address.filter(|_| !identity && kernel != 1);
            let address = address.map(|n| 0x4000_0000 + n * 0x1fe0_0000);
            let (mib, report_pages) = (2 * blocks, report);
            Vm {
                mib,
                address,
                identity,
                kernel,
                vcpus,
                console,
                realtime,
                report_pages,
                virtio,
                shared,
            }
        },
    )
}

/// A description whose files are those of [`super::files`].
pub fn description() -> impl Strategy<Value = String> {
    (1..=8_usize)
        .prop_flat_map(|pcpus| (Just(pcpus), prop::collection::vec(vm(pcpus), 1..=8), 0..4_usize))
        .prop_map(|(pcpus, vms, rotate)| text(pcpus, &vms, rotate))
}

fn text(pcpus: usize, vms: &[Vm], rotate: usize) -> String {
    let mut text = format!("[board]\nkind = \"qemu-virt\"\npcpus = {pcpus}\nmemory = \"1G\"\n");
    if rotate == 3 {
        text.push_str("[hypervisor]\ntrace = \"64K\"\n");
    }
    // One in pages, one with blocks, and all of different sizes.
    for (number, size) in ["68K", "3M", "4K"].iter().enumerate() {
        let _ = writeln!(text, "[[shared_memory]]\nname = \"shared-{number}\"\nsize = \"{size}\"");
    }
    for (number, size) in ["24K", "4M"].iter().enumerate().take(vms.len() - 1) {
        let ends = [format!("vm-{number}"), format!("vm-{}", number + 1)];
        let _ = writeln!(
            text,
            "[[link]]\nname = \"link-{number}\"\nbetween = {ends:?}\nsize = \"{size}\"\n\
             cached = {}",
            rotate % 2 == number
        );
    }
    for (number, size) in ["6M", "8M"].iter().enumerate().take(vms.len() - 1) {
        let [front, back] = [format!("vm-{number}"), format!("vm-{}", vms.len() - 1)];
        let kinds = &["block", "console", "network"][..1 + rotate % 3];
        let _ = writeln!(
            text,
            "[[virtio]]\nfront = {front:?}\nback = {back:?}\nmemory = \"{size}\"\ndevices = {kinds:?}"
        );
    }
    let mut virtio_pages = 0..4;
    for (i, vm) in vms.iter().enumerate() {
        let kernel = ["Image", "rtos.elf", "flat.bin"][vm.kernel];
        let mut devices: Vec<_> = DEVICES
            .iter()
            .skip((i + rotate) % 4)
            .take(usize::from(i == 0))
            .map(ToString::to_string)
            .collect();
        if vm.virtio
            && vm.identity
            && let Some(page) = virtio_pages.next()
        {
            devices.extend([8 * page, 8 * page + 3].map(|n| format!("virtio-mmio-{n}")));
        }
        if i == rotate && !(0x2000_0000..0x4000_0000).contains(&vm.address.unwrap_or(0)) {
            devices.push("pcie".into());
        }
        let vcpus: Vec<_> = vm
            .vcpus
            .iter()
            .map(|pcpu| {
                format!("{{ pcpu = {pcpu}, priority = {} }}", if vm.realtime { 9 } else { 3 })
            })
            .collect();
        let _ = writeln!(
            text,
            "[[vm]]\nname = \"vm-{i}\"\nkernel = \"{kernel}\"\nmemory = {{ size = \"{}M\"{}, identity = {} }}\n\
             vcpus = [{}]\nconsole = {}\nrealtime = {}\ndevices = {devices:?}\ninterrupts = [{}]",
            vm.mib,
            vm.address.map_or(String::new(), |address| format!(", address = {address:#x}")),
            vm.identity,
            vcpus.join(", "),
            vm.console,
            vm.realtime,
            200 + i,
        );
        if vm.console && !vm.realtime {
            // Several views of its memory.
            text.push_str("migration_policy = \"trap-based\"\n");
        }
        if !vm.realtime && i % 2 == 0 {
            // Lines of preemption.
            text.push_str("yield = true\n");
        }
        if vm.report_pages > 0 {
            let _ = writeln!(text, "report = {}", vm.report_pages * 4096);
        }
        let shares = (0..).zip(vm.shared).filter_map(|(number, writes)| {
            let access = if writes? { "read-write" } else { "read-only" };
            Some(format!("{{ name = \"shared-{number}\", access = \"{access}\" }}"))
        });
        let shares = shares.collect::<Vec<_>>().join(", ");
        let _ = writeln!(text, "shared_memory = [{shares}]");
        if vm.kernel == 2 {
            text.push_str("format = \"flat\"\n");
        }
        if vm.kernel == 0 && vm.console {
            text.push_str("initramfs = \"initramfs\"\n");
        }
    }
    text
}

/// Returns a description, and the same for a board with a GICv2 if that has all that it names.
pub fn boards(text: &str) -> Vec<String> {
    let others = [text.replace("\"qemu-virt\"", "\"qemu-virt-gicv2\"")];
    let others = others.into_iter().filter(|_| !text.contains("\"pcie\""));
    [text.to_owned()].into_iter().chain(others).collect()
}
