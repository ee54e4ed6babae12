//! The machines that guests are tested on, with kernels that are never executed.

use abi::system::{System, flags};
use sched::policy::MigrationPolicy;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;
use zerocopy::FromBytes;

#[path = "../../../../system/tests/support/elf.rs"]
#[allow(dead_code, reason = "its other half is for tests of the ELF reader")]
mod elf;

/// A packed system.
pub struct Prepared {
    /// The file it is described in.
    pub name: String,
    /// The tables and what lies behind them, as the boot loader puts it.
    pub bundle: Vec<u8>,
    /// The hypervisor's code and constants, likewise: the first bytes of its memory.
    pub hypervisor: Vec<u8>,
}

impl Prepared {
    /// The tables.
    pub fn tables(&self) -> System {
        System::read_from_prefix(&self.bundle).expect("a bundle begins with the tables").0
    }

    /// Returns true if tasks of its VMs share resources.
    pub fn has_sections(&self) -> bool {
        self.tables().header.mutex_count > 0
    }

    /// Returns true if resources raise vCPUs.
    pub fn has_ceilings(&self) -> bool {
        self.tables().vcpus.iter().any(|vcpu| vcpu.gcs_ns > 0)
    }

    /// Returns true if it is refused on cores without FEAT_XNX: a policy of its VMs has views.
    pub fn needs_xnx(&self) -> bool {
        let tables = self.tables();
        let policies =
            tables.vms().iter().map(|vm| MigrationPolicy::from_number(vm.migration_policy));
        policies.flatten().any(|policy| policy.needs().views)
    }

    /// How long a core may take no interrupt, ticks; 0: no core watches.
    pub fn watchdog(&self) -> u64 {
        self.tables().header.watchdog_ns.into()
    }

    /// Returns true if the machine goes off when no VM is left.
    pub fn off_when_done(&self) -> bool {
        self.tables().header.flags & flags::OFF_WHEN_DONE != 0
    }
}

/// What a description says of a VM that each policy is tried with.
const WRITTEN: &str = "migration_policy = \"on-demand\"";

/// In these descriptions the VM that is named first gets devices of the other one.
const DEVICES: [(&str, &str, &str); 5] = [
    ("link-lives", "lives", "watches"),
    ("moved-asked", "probe", "rtos"),
    ("moved-on", "wandering", "beat"),
    ("moved-power", "probe", "rtos"),
    ("beside-reset", "resetting", "rtos"),
];

/// Every description; under every policy those that have one that can be any, also under
/// MPCP those whose tasks share resources, and one that consolidates with budgets too.
pub fn all() -> &'static [Prepared] {
    static ALL: OnceLock<Vec<Prepared>> = OnceLock::new();
    ALL.get_or_init(|| {
        let directory = tempfile::tempdir().expect("a temporary directory");
        fs::write(directory.path().join("flat.bin"), [0x14; 64]).expect("a kernel in it");
        let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests/probe/systems");
        let mut files: Vec<_> = fs::read_dir(home)
            .expect("the probe's descriptions")
            .map(|entry| entry.expect("a file").path())
            .collect();
        files.sort();
        let systems: Vec<_> =
            files.iter().flat_map(|file| prepare_all(file, directory.path())).collect();
        let used = |policy| {
            let uses = |system: &Prepared| {
                system.tables().vms().iter().any(|vm| vm.migration_policy == policy)
            };
            systems.iter().any(uses)
        };
        for &policy in MigrationPolicy::ALL {
            assert!(used(policy as u16), "no system for {}", policy.name());
        }
        systems
    })
}

fn prepare_all(file: &Path, directory: &Path) -> Vec<Prepared> {
    let text = fs::read_to_string(file).expect("a description");
    let text: String = text.lines().flat_map(without_images).collect();
    let name = file.file_stem().expect("a name").to_string_lossy();
    let first = prepare(&name, &text, directory);
    let mut all = vec![first.unwrap_or_else(|report| panic!("{name}: {report}"))];
    if text.contains(WRITTEN) {
        let others = MigrationPolicy::ALL.iter().filter(|&&one| one != MigrationPolicy::OnDemand);
        for policy in others.map(|policy| policy.name()) {
            let written = format!("migration_policy = \"{policy}\"");
            let other = text.replace(WRITTEN, &written);
            // What cannot be is refused: consolidation does not go with every policy.
            all.extend(prepare(&format!("{name}.{policy}"), &other, directory));
        }
    }
    if text.contains("gcs = ") {
        let text = text.replace("overrun = true", "overrun = false");
        let head = "[hypervisor]\n";
        let text = if text.contains(head) { text } else { format!("{head}{text}") };
        let text = text.replace(head, &format!("{head}protocol = \"mpcp\"\n"));
        let name = format!("{name}.mpcp");
        all.push(
            prepare(&name, &text, directory).unwrap_or_else(|report| panic!("{name}: {report}")),
        );
    }
    // One whose cores may be powered down, and one whose cores have a console to write.
    if name == "gathered" || name == "beside-reports" {
        for resets in [false, true] {
            let head = "[hypervisor]\n";
            let text = if text.contains(head) { text.clone() } else { format!("{head}\n{text}") };
            let keys = format!("{head}watchdog = \"1ms\"\nreset_on_fault = {resets}\n");
            let name = format!("{name}.{}", if resets { "resets" } else { "watched" });
            let prepared = prepare(&name, &text.replacen(head, &keys, 1), directory);
            all.push(prepared.unwrap_or_else(|report| panic!("{name}: {report}")));
        }
    }
    // One with a real-time VM below another one on a core, and a VM below both.
    if name == "beside-reports" {
        let below = text
            .replace(
                "[{ pcpu = 1, priority = 1 }]",
                "[{ pcpu = 0, priority = 2 }, { pcpu = 1, priority = 2 }]",
            )
            .replace(
                "[{ pcpu = 2, priority = 1 }]\nrealtime = true",
                "[{ pcpu = 0, priority = 1 }, { pcpu = 2, priority = 1 }]",
            );
        let prepared = prepare("beside-reports.below", &below, directory);
        let prepared = prepared.unwrap_or_else(|report| panic!("beside-reports.below: {report}"));
        assert!(prepared.tables().vcpus.iter().any(abi::system::Vcpu::is_lower));
        all.push(prepared);
    }
    // One whose equals take turns below a real-time VM.
    if name == "turns-of-vms" {
        let lowest = "priority = 1, quantum = \"1ms\" }]";
        let above = text.replace(lowest, "priority = 3 }]\nrealtime = true");
        let prepared = prepare("turns-of-vms.below", &above, directory);
        all.push(prepared.unwrap_or_else(|report| panic!("turns-of-vms.below: {report}")));
        // And it has a budget.
        let server = "server = { kind = \"deferrable\", budget = \"3ms\", period = \"10ms\" }";
        let served = above.replace("priority = 3", &format!("priority = 3, {server}"));
        let prepared = prepare("turns-of-vms.served", &served, directory);
        all.push(prepared.unwrap_or_else(|report| panic!("turns-of-vms.served: {report}")));
    }
    // One whose siblings are real-time vCPUs of unequal priority, above another VM.
    if name == "unequal-2" {
        let other = "\n[[vm]]\nname = \"other\"\nkernel = \"flat.bin\"\nformat = \"flat\"\n\
                     memory = { size = \"64M\" }\nvcpus = [{ pcpu = 0, priority = 0 }]\n";
        let realtime = text.replace("[[vm]]\n", "[[vm]]\nrealtime = true\n") + other;
        let prepared = prepare("unequal-2.realtime", &realtime, directory);
        all.push(prepared.unwrap_or_else(|report| panic!("unequal-2.realtime: {report}")));
    }
    // One whose siblings meet, and may say so.
    if text.contains(WRITTEN) && name.starts_with("moved-") {
        let written = format!("{WRITTEN}\nyield = true");
        let name = format!("{name}.yields");
        let prepared = prepare(&name, &text.replace(WRITTEN, &written), directory);
        all.push(prepared.unwrap_or_else(|report| panic!("{name}: {report}")));
    }
    // One whose siblings meet, without what is done for them.
    if name == "moved-on" {
        let head = "[hypervisor]\n";
        let text = if text.contains(head) { text.clone() } else { format!("{head}\n{text}") };
        let keys = format!("{head}sibling_grace = \"0us\"\ndirected_yield = false\n");
        let prepared = prepare("moved-on.unaided", &text.replacen(head, &keys, 1), directory);
        all.push(prepared.unwrap_or_else(|report| panic!("moved-on.unaided: {report}")));
    }
    // Some in which one VM gives another one devices: VMs that stay, that are started again, that migrate.
    if let Some((_, front, back)) = DEVICES.iter().find(|(of, ..)| *of == name) {
        let devices = "devices = [\"block\", \"console\"]\nmemory = \"2M\"";
        let virtio = format!("\n[[virtio]]\nfront = \"{front}\"\nback = \"{back}\"\n{devices}\n");
        let name = format!("{name}.virtio");
        let prepared = prepare(&name, &(text.clone() + &virtio), directory);
        all.push(prepared.unwrap_or_else(|report| panic!("{name}: {report}")));
    }
    if name == "gathered" {
        let budgets = (1..=4).rev().fold(text, |text, priority| {
            let server = "server = { kind = \"deferrable\", budget = \"150us\", period = \"1ms\" }";
            let with = format!("priority = {priority}, {server}");
            text.replacen("priority = 1, quantum = \"100us\"", &with, 1)
        });
        let prepared = prepare("gathered.budgets", &budgets, directory);
        all.push(prepared.unwrap_or_else(|report| panic!("gathered.budgets: {report}")));
    }
    all
}

/// Replaces a guest's images by a kernel that is never executed.
fn without_images(line: &str) -> [&str; 2] {
    if line.starts_with("kernel = ") {
        ["kernel = \"flat.bin\"\nformat = \"flat\"", "\n"]
    } else if line.starts_with("initramfs = ") {
        ["", ""]
    } else {
        [line, "\n"]
    }
}

fn prepare(name: &str, text: &str, directory: &Path) -> Result<Prepared, String> {
    let checked =
        system::load_text(&directory.join(name), text).map_err(|report| report.plain())?;
    let packed = system::pack(&checked, &elf::plain_hypervisor()).expect("a sound hypervisor");
    let mut file = Vec::new();
    packed.write(&mut file).expect("memory");
    let unpacked = system::unpack(&file).expect("what was packed");
    let bundle = unpacked.at(unpacked.tables.header.bundle()).expect("a bundle").to_vec();
    let start = unpacked.tables.board.hypervisor_pa;
    let mut hypervisor = Vec::new();
    for segment in &unpacked.segments {
        if let Some(at) = segment.region.start.checked_sub(start).map(|at| at as usize)
            && segment.region.start < unpacked.tables.header.bundle_pa
        {
            hypervisor.resize(hypervisor.len().max(at + segment.data.len()), 0);
            hypervisor[at..at + segment.data.len()].copy_from_slice(segment.data);
        }
    }
    Ok(Prepared { name: name.into(), bundle, hypervisor })
}
