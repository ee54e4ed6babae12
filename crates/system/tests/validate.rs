//! EL2's own check of the tables: never panics, believes what the packer
//! writes, and never believes a table that would break isolation.

mod support;

use abi::platform::UART_INTID;
use abi::system::vcpu_flags::{ADAPTS, LOWER, MARKABLE};
use abi::system::vm_flags::{DEVICES, INTERRUPTS_STAY, REALTIME};
use abi::system::{
    Confined, Invalid, MAX_SIBLING_GRACE_NS, MAX_TIMER_ADVANCE_NS, MIN_BOOST_NS, MIN_WATCHDOG_NS,
    System, Virtio, parts,
};
use proptest::prelude::*;
use std::sync::LazyLock;
use support::{elf, files, random, sound};
use system::pack;
use tempfile::TempDir;
use zerocopy::{FromBytes, IntoBytes};

static FILES: LazyLock<TempDir> = LazyLock::new(files);

fn tables(text: &str) -> Box<System> {
    pack(&sound(FILES.path(), text), &elf::plain_hypervisor()).unwrap().tables
}

const TEXT: &str = r#"
board = { kind = "qemu-virt", pcpus = 2, memory = "256M" }

[[vm]]
name = "one"
kernel = "Image"
memory = { size = "16M" }
vcpus = [{ pcpu = 0, priority = 1 }, { pcpu = 1, priority = 1 }]
report = "8K"
interrupts = [50, 51]

[[vm]]
name = "two"
kernel = "rtos.elf"
memory = { size = "4M" }
vcpus = [{ pcpu = 1, priority = 2 }]
interrupts = [52]
"#;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn believes_the_packer(text in random::description()) {
        for text in random::boards(&text) {
            prop_assert_eq!(tables(&text).validate(), Ok(()));
        }
    }

    #[test]
    fn survives_any_bytes(flips in prop::collection::vec((0..size_of::<System>(), 1..=255_u8), 1..20)) {
        static TABLES: LazyLock<Box<System>> = LazyLock::new(|| tables(TEXT));
        let mut bytes = TABLES.as_bytes().to_vec();
        for (at, flip) in flips {
            bytes[at] ^= flip;
        }
        let _ = System::read_from_bytes(&bytes).unwrap().validate();
    }

    #[test]
    fn survives_extreme_words(
        words in prop::collection::vec(
            (0..size_of::<System>() / 8, prop::sample::select(vec![0, 1, 0xfff, 1 << 39, u64::MAX - 4095, u64::MAX])),
            1..6,
        ),
    ) {
        static TABLES: LazyLock<Box<System>> = LazyLock::new(|| tables(TEXT));
        let mut bytes = TABLES.as_bytes().to_vec();
        for (at, word) in words {
            bytes[at * 8..at * 8 + 8].copy_from_slice(&word.to_le_bytes());
        }
        let _ = System::read_from_bytes(&bytes).unwrap().validate();
    }
}

/// Gives a vCPU a server: 0.5 ms in each ms.
fn serve(system: &mut System) -> &mut abi::system::Vcpu {
    let vcpu = &mut system.vcpus[0];
    vcpu.server = abi::system::server::DEFERRABLE;
    (vcpu.budget_ns, vcpu.period_ns) = (500_000, 1_000_000);
    vcpu
}

/// Gives a vCPU that a policy moves a server, with which it may migrate, and sections.
fn migrate_with_sections(system: &mut System) {
    let vcpu = serve(system);
    vcpu.affinity = 0b11;
    vcpu.fallback = 1 - vcpu.pcpu;
    assert_eq!(system.validate(), Ok(()), "without sections");
    system.header.version |= parts::SECTIONS;
    system.vcpus[0].gcs_ns = 1;
}

/// Lets a vCPU be boosted, and does not say so.
fn boost_unsaid(system: &mut System) {
    system.header.version |= parts::BOOSTS;
    let vcpu = &mut system.vcpus[0];
    (vcpu.boost_budget_ns, vcpu.boost_period_ns) = (1_000_000, 10_000_000);
    vcpu.boost_priority = vcpu.priority + 1;
    assert_eq!(system.validate(), Ok(()), "a boost");
    system.header.version &= !parts::BOOSTS;
}

/// Gives a vCPU sections, and does not say so.
fn sections_unsaid(system: &mut System) {
    system.header.version |= parts::SECTIONS;
    serve(system).gcs_ns = 1;
    assert_eq!(system.validate(), Ok(()), "sections");
    system.header.version &= !parts::SECTIONS;
}

/// Makes a mutex, and then a mistake.
fn share(system: &mut System, mistake: impl FnOnce(&mut System)) {
    system.header.version |= parts::SECTIONS;
    serve(system).mutexes = 1;
    system.header.mutex_count = 1;
    system.mutexes[0].claimant_count = 1;
    assert_eq!(system.validate(), Ok(()), "a mutex");
    mistake(system);
}

/// Lets a vCPU of a real-time VM mark itself.
fn mark_realtime(system: &mut System) {
    system.vcpus[0].flags |= MARKABLE;
    assert_eq!(system.validate(), Ok(()), "one that is not real-time");
    system.vms[0].flags |= REALTIME;
}

/// Lets a vCPU mark itself that a policy moves.
fn mark_what_leaves(system: &mut System) {
    let vcpu = &mut system.vcpus[0];
    vcpu.affinity = 0b11;
    vcpu.fallback = 1 - vcpu.pcpu;
    assert_eq!(system.validate(), Ok(()), "one without marks");
    system.vcpus[0].flags |= MARKABLE;
}

/// Gives the first VM these flags and its first vCPU this timer advance.
fn set_advance(tables: &mut System, flags: u32, advance_ns: u32) {
    tables.vms[0].flags = flags;
    tables.vcpus[0].timer_advance_ns = advance_ns;
}

/// Lets a vCPU be boosted 10 us before its timer fires, and by interrupts for a window.
fn boost_in_advance(system: &mut System, window_ns: u32) {
    boost_unsaid(system);
    system.header.version |= parts::BOOSTS;
    set_advance(system, 0, 10_000);
    system.vcpus[0].boost_window_ns = 10_000 + MIN_BOOST_NS;
    assert_eq!(system.validate(), Ok(()), "a window that is longer");
    system.vcpus[0].boost_window_ns = window_ns;
}

/// Adapts an advance whose way may end when another real-time vCPU sleeps.
fn lower_that_adapts(tables: &mut System) {
    set_advance(tables, REALTIME, 4_000);
    for sound in [LOWER, ADAPTS] {
        tables.vcpus[0].flags = sound;
        assert_eq!(tables.validate(), Ok(()), "either alone");
    }
    tables.vcpus[0].flags = LOWER | ADAPTS;
}

/// Links VMs, and says so.
fn link(tables: &mut System, vms: [u16; 2]) {
    tables.header.version |= parts::LINKS;
    for sound in [[0, 1], [1, 0], [0, 0]] {
        tables.links[7].vms = sound;
        assert_eq!(tables.validate(), Ok(()), "{sound:?}");
    }
    tables.links[7].vms = vms;
}

/// Gives the first VM some streams, says so, and then makes a mistake.
fn confine(tables: &mut System, mistake: impl FnOnce(&mut System)) {
    tables.header.version |= parts::SMMU;
    tables.vms[0].flags |= DEVICES;
    tables.smmu.registers_pa = 0x0905_0000;
    let device = Confined { functions_pa: 0x3f00_0000, first: 0, count: 16, vm: 0, reserved: 0 };
    tables.smmu.confined[0] = device;
    assert_eq!(tables.validate(), Ok(()), "a device");
    tables.smmu.confined[3] = Confined { functions_pa: 0, first: 16, count: 240, ..device };
    assert_eq!(tables.validate(), Ok(()), "and another one beside it");
    mistake(tables);
}

/// Gives a VM virtio devices of another one, and says so.
fn give(tables: &mut System, front: usize, back: u16, devices: u16) {
    tables.header.version |= parts::VIRTIO;
    tables.virtio[0] = Virtio { back: 1, devices: 4 };
    assert_eq!(tables.validate(), Ok(()), "four devices");
    tables.virtio[0] = Virtio { back: 0, devices: 0 };
    tables.virtio[front] = Virtio { back, devices };
}

/// Lets the interrupts of a VM come to a pCPU.
fn stays(tables: &mut System, pcpu: u16) {
    tables.vms[0].flags |= INTERRUPTS_STAY;
    for sound in [1, 0] {
        tables.spis[0].pcpu = sound;
        assert_eq!(tables.validate(), Ok(()), "any that is there");
    }
    tables.spis[0].pcpu = pcpu;
}

/// One thing that is changed, and what must come of it.
type Case = (&'static str, fn(&mut System), Invalid);

#[test]
fn finds_every_fault() {
    let cases: &[Case] = &[
        ("magic", |s| s.header.magic[0] = 0, Invalid::Magic),
        ("version", |s| s.header.version += 1, Invalid::Version),
        ("a link of no VM", |s| link(s, [0, 9]), Invalid::Link),
        ("half a link", |s| link(s, [1, 1]), Invalid::Link),
        ("a link, and not said so", |s| s.links[3].vms = [0, 1], Invalid::Link),
        ("devices of no VM", |s| give(s, 0, 9, 1), Invalid::Virtio),
        ("devices of its own", |s| give(s, 1, 1, 1), Invalid::Virtio),
        ("devices for no VM", |s| give(s, 5, 0, 1), Invalid::Virtio),
        ("too many devices", |s| give(s, 0, 1, 5), Invalid::Virtio),
        ("no devices of a VM", |s| give(s, 0, 1, 0), Invalid::Virtio),
        (
            "devices, and not said so",
            |s| s.virtio[0] = Virtio { back: 1, devices: 1 },
            Invalid::Virtio,
        ),
        ("a boost, and not said so", boost_unsaid, Invalid::Vcpu),
        ("sections, and not said so", sections_unsaid, Invalid::Vcpu),
        ("a mutex, and not said so", |s| s.header.mutex_count = 1, Invalid::Mutex),
        ("a mutex of no vCPU", |s| share(s, |s| s.mutexes[0].claimant_count = 0), Invalid::Mutex),
        ("a mutex of another vCPU", |s| share(s, |s| s.vcpus[0].mutexes = 2), Invalid::Mutex),
        (
            "a claimant without a server",
            |s| share(s, |s| s.mutexes[0].vcpus[0] = 1),
            Invalid::Mutex,
        ),
        ("unknown part", |s| s.header.version |= 1 << 30, Invalid::Version),
        ("no VM", |s| s.header.vm_count = 0, Invalid::Counts),
        ("VM count", |s| s.header.vm_count = 9, Invalid::Counts),
        ("vCPU count", |s| s.header.vcpu_count = 65, Invalid::Counts),
        ("load count", |s| s.header.load_count = u32::MAX, Invalid::Counts),
        ("SPI count", |s| s.header.spi_count = 129, Invalid::Counts),
        ("pCPU count", |s| s.board.pcpu_count = 9, Invalid::Counts),
        ("no pCPU", |s| s.board.pcpu_count = 0, Invalid::Counts),
        ("unknown flag", |s| s.header.flags |= 1 << 9, Invalid::Flags),
        ("trace no power of two", |s| s.header.trace_size = 0x3000, Invalid::Trace),
        ("trace too small", |s| s.header.trace_size = 0x800, Invalid::Trace),
        ("trace too large", |s| s.header.trace_size = 1 << 27, Invalid::Trace),
        ("trace over stolen time", |s| s.header.trace_size = 0x1000, Invalid::Overlap),
        ("unknown VM flag", |s| s.vms[1].flags |= 1 << 9, Invalid::Flags),
        ("RAM wraps", |s| s.board.ram_size = !0xfff, Invalid::Ram),
        ("watchdog", |s| s.header.watchdog_ns = MIN_WATCHDOG_NS - 1, Invalid::Watchdog),
        (
            "siblings wait for long",
            |s| s.header.sibling_grace_ns = MAX_SIBLING_GRACE_NS + 1,
            Invalid::SiblingGrace,
        ),
        ("RAM out of reach", |s| s.board.ram_pa = 1 << 39, Invalid::Ram),
        ("RAM where aliases are", |s| s.board.ram_pa = 1 << 38, Invalid::Ram),
        ("hypervisor's size", |s| s.board.hypervisor_size += 4096, Invalid::Hypervisor),
        ("hypervisor outside", |s| s.board.hypervisor_pa = 0x2020_0000, Invalid::Hypervisor),
        ("bundle elsewhere", |s| s.header.bundle_pa += 4096, Invalid::Bundle),
        ("bundle empty", |s| s.header.bundle_size = 0, Invalid::Bundle),
        ("bundle too large", |s| s.header.bundle_size = 1 << 30, Invalid::Bundle),
        ("GIC in RAM", |s| s.board.gicd_pa = s.board.ram_pa, Invalid::Device),
        ("UART unaligned", |s| s.board.uart_pa += 8, Invalid::Device),
        ("redistributors wrap", |s| s.board.gicr_stride = 1 << 63, Invalid::Device),
        ("redistributors overlap", |s| s.board.gicr_stride = 0x1_0000, Invalid::Device),
        ("UART's interrupt", |s| s.board.uart_intid = 31, Invalid::UartIntid),
        ("two equal cores", |s| s.board.pcpu_mpidr[1] = 0, Invalid::Pcpu),
        ("no affinity", |s| s.board.pcpu_mpidr[1] = 1 << 31, Invalid::Pcpu),
        ("stage 1 in the tables", |s| s.board.stage1_pa = s.header.bundle_pa, Invalid::Stage1),
        ("stage 1 unaligned", |s| s.board.stage1_pa += 8, Invalid::Stage1),
        ("alias in the tables", |s| s.vms[1].stage1_pa = s.header.bundle_pa, Invalid::Stage1),
        ("stage 2 in guest memory", |s| s.vms[0].stage2_pa[1] = s.vms[0].ram_pa, Invalid::VmStage2),
        ("status in guest memory", |s| s.board.status_pa = s.vms[0].ram_pa, Invalid::Overlap),
        ("guests overlap", |s| s.vms[1].ram_pa = s.vms[0].ram_pa, Invalid::Overlap),
        (
            "guest over the hypervisor",
            |s| s.vms[1].ram_pa = s.board.hypervisor_pa,
            Invalid::Overlap,
        ),
        (
            "stolen time in the bundle",
            |s| s.vms[1].stolen_pa = s.header.bundle_pa,
            Invalid::Overlap,
        ),
        ("report in guest memory", |s| s.vms[0].report_pa = s.vms[1].ram_pa, Invalid::Overlap),
        ("guest outside RAM", |s| s.vms[1].ram_pa = 0x8000_0000, Invalid::OutsideRam),
        ("status outside RAM", |s| s.board.status_pa = 0, Invalid::OutsideRam),
        ("stolen time unaligned", |s| s.vms[1].stolen_pa = 0x4fff_0040, Invalid::OutsideRam),
        ("name empty", |s| s.vms[0].name[0] = 0, Invalid::VmName),
        ("name not plain", |s| s.vms[0].name[0] = 0xff, Invalid::VmName),
        ("name too long", |s| s.vms[0].name = [b'a'; 16], Invalid::VmName),
        ("vCPUs not in order", |s| s.vms[1].vcpu_first = 0, Invalid::VmVcpus),
        ("no vCPU", |s| s.vms[1].vcpu_count = 0, Invalid::VmVcpus),
        ("vCPU too many", |s| s.vms[1].vcpu_count = 9, Invalid::VmVcpus),
        ("vCPU left over", |s| s.header.vcpu_count += 1, Invalid::VmVcpus),
        ("loads not in order", |s| s.vms[1].load_first += 1, Invalid::VmLoads),
        ("load left over", |s| s.header.load_count += 1, Invalid::VmLoads),
        ("memory empty", |s| s.vms[0].ram_size = 0, Invalid::VmMemory),
        ("memory unaligned", |s| s.vms[0].ram_ipa += 4096, Invalid::VmMemory),
        ("memory beyond 39 bits", |s| s.vms[0].ram_ipa = 1 << 39, Invalid::VmMemory),
        ("memory over the GIC", |s| s.vms[0].ram_ipa = 0x0800_0000, Invalid::VmMemory),
        ("entry outside", |s| s.vms[0].entry_ipa = 0, Invalid::VmEntry),
        ("entry odd", |s| s.vms[0].entry_ipa += 2, Invalid::VmEntry),
        ("device tree outside", |s| s.vms[0].entry_x0 = 0x7000_0000, Invalid::VmEntry),
        ("lines over memory", |s| s.vms[0].lines_pa = s.vms[0].ram_pa, Invalid::Overlap),
        ("lines unaligned", |s| s.vms[0].lines_pa = s.vms[0].stolen_pa + 64, Invalid::Overlap),
        ("report too large", |s| s.vms[0].report_size = 1 << 30, Invalid::VmReport),
        ("report unaligned", |s| s.vms[0].report_size = 100, Invalid::VmReport),
        ("vCPU of another VM", |s| s.vcpus[0].vm = 1, Invalid::Vcpu),
        ("vCPU's index", |s| s.vcpus[1].index = 0, Invalid::Vcpu),
        ("vCPU's pCPU", |s| s.vcpus[2].pcpu = 2, Invalid::Vcpu),
        ("vCPU's priority", |s| s.vcpus[2].priority = 256, Invalid::Vcpu),
        ("vCPU's quantum", |s| s.vcpus[2].quantum_ns = 0, Invalid::Vcpu),
        ("advance of no real-time VM", |s| set_advance(s, 0, 1), Invalid::Vcpu),
        (
            "advance of a boost, as long as its window",
            |s| boost_in_advance(s, 10_000),
            Invalid::Vcpu,
        ),
        ("advance of a boost without a window", |s| boost_in_advance(s, 0), Invalid::Vcpu),
        ("advance too long", |s| set_advance(s, REALTIME, MAX_TIMER_ADVANCE_NS + 1), Invalid::Vcpu),
        ("target's number", |s| s.board.consolidation_target[1] = 2, Invalid::Consolidation),
        ("target that may go off", |s| s.board.consolidation_target[0] = 1, Invalid::Consolidation),
        (
            "consolidation target that may go off",
            |s| s.board.consolidation_target[1] = 0,
            Invalid::Consolidation,
        ),
        ("no window", |s| s.header.consolidation_window_ns = 0, Invalid::Consolidation),
        ("affinity to no pCPU", |s| s.vcpus[0].affinity |= 1 << 2, Invalid::Vcpu),
        ("affinity without the base", |s| s.vcpus[0].affinity = 1 << 1, Invalid::Vcpu),
        ("fallback outside the affinity", |s| s.vcpus[0].fallback = 1, Invalid::Vcpu),
        ("fallback that is no pCPU", |s| s.vcpus[0].fallback = 16, Invalid::Vcpu),
        ("unknown vCPU flag", |s| s.vcpus[0].flags |= 1 << 4, Invalid::Vcpu),
        ("lower, and no real-time vCPU", |s| s.vcpus[0].flags |= LOWER, Invalid::Vcpu),
        ("lower, with an advance that adapts", lower_that_adapts, Invalid::Vcpu),
        ("marks itself with a budget", |s| serve(s).flags |= MARKABLE, Invalid::Vcpu),
        ("marks itself and is real-time", mark_realtime, Invalid::Vcpu),
        ("marks itself and may leave", mark_what_leaves, Invalid::Vcpu),
        ("rotation outside the affinity", |s| s.vcpus[0].rotation = 1 << 1, Invalid::Vcpu),
        ("budget without a server", |s| s.vcpus[0].budget_ns = 1_000_000, Invalid::Vcpu),
        ("unknown server", |s| (s.vcpus[0].server, s.vcpus[0].period_ns) = (3, 1), Invalid::Vcpu),
        ("budget above its period", |s| serve(s).budget_ns = 1_000_001, Invalid::Vcpu),
        ("overrun without a server", |s| s.vcpus[0].overrun_ns = 1, Invalid::Vcpu),
        ("budget and overrun above the period", |s| serve(s).overrun_ns = 500_001, Invalid::Vcpu),
        ("sections of one that migrates", migrate_with_sections, Invalid::Vcpu),
        ("offset of a period", |s| serve(s).offset_ns = 1_000_000, Invalid::Vcpu),
        ("load from the tables", |s| s.loads[0].src_pa = s.header.bundle_pa, Invalid::Load),
        ("load into another VM", |s| s.loads[0].dst_pa = s.vms[1].ram_pa, Invalid::Load),
        ("load clears too much", |s| s.loads[0].zero_size = 1 << 40, Invalid::Load),
        ("load wraps", |s| s.loads[0].zero_size = u64::MAX, Invalid::Load),
        ("load unaligned", |s| s.loads[0].dst_pa += 8, Invalid::Load),
        ("SMMU of no system", |s| s.smmu.registers_pa = 0x0905_0000, Invalid::Smmu),
        ("streams without an SMMU", |s| s.smmu.confined[1].count = 1, Invalid::Smmu),
        ("no SMMU", |s| confine(s, |s| s.smmu.registers_pa = 0), Invalid::Smmu),
        ("SMMU in memory", |s| confine(s, |s| s.smmu.registers_pa = 0x4000_0000), Invalid::Device),
        ("SMMU unaligned", |s| confine(s, |s| s.smmu.registers_pa += 4), Invalid::Device),
        ("SMMU too high", |s| confine(s, |s| s.smmu.registers_pa = 1 << 40), Invalid::Device),
        ("streams of no VM", |s| confine(s, |s| s.smmu.confined[0].vm = 2), Invalid::Smmu),
        ("of one without devices", |s| confine(s, |s| s.smmu.confined[0].vm = 1), Invalid::Smmu),
        ("streams twice", |s| confine(s, |s| s.smmu.confined[3].first = 15), Invalid::Smmu),
        ("streams beyond", |s| confine(s, |s| s.smmu.confined[3].first = 17), Invalid::Smmu),
        ("streams that wrap", |s| confine(s, |s| s.smmu.confined[3].count = 65535), Invalid::Smmu),
        (
            "functions in memory",
            |s| confine(s, |s| s.smmu.confined[0].functions_pa = 0x4000_0000),
            Invalid::Smmu,
        ),
        (
            "functions unaligned",
            |s| confine(s, |s| s.smmu.confined[0].functions_pa += 4),
            Invalid::Smmu,
        ),
        ("half a device", |s| confine(s, |s| s.smmu.confined[1].first = 1), Invalid::Smmu),
        ("SPI of no VM", |s| s.spis[0].vm = 2, Invalid::Spi),
        ("SPI to no pCPU", |s| stays(s, 2), Invalid::Spi),
        ("SPI to where no first vCPU is", |s| s.spis[0].pcpu ^= 1, Invalid::Spi),
        ("SPI of no trigger", |s| s.spis[0].trigger = 2, Invalid::Spi),
        ("SPI that is a PPI", |s| s.spis[0].physical = 27, Invalid::Spi),
        ("SPI beyond the GIC", |s| s.spis[0].physical = 1020, Invalid::Spi),
        ("SPI beyond the guest's", |s| s.spis[0].virtual_ = 288, Invalid::Spi),
        ("SPI of the console", |s| s.spis[0].physical = s.board.uart_intid, Invalid::Spi),
        ("SPI as the console", |s| s.spis[0].virtual_ = UART_INTID, Invalid::Spi),
        ("SPI twice", |s| s.spis[0].physical = s.spis[2].physical, Invalid::Spi),
        ("SPI twice for the guest", |s| s.spis[0].virtual_ = s.spis[1].virtual_, Invalid::Spi),
    ];
    find(TEXT, cases);
}

/// A system one of whose pCPUs may be powered down.
const GATHERED: &str = r#"
board = { kind = "qemu-virt", pcpus = 3, memory = "256M" }

[[vm]]
name = "one"
kernel = "Image"
memory = { size = "16M" }
vcpus = [{ pcpu = 0, priority = 1 }, { pcpu = 1, priority = 1 }, { pcpu = 2, priority = 1 }]
consolidate = true
interrupts_to = 0
interrupts = [{ physical = 40, virtual = 64, trigger = "edge" }]
"#;

#[test]
fn finds_every_pcpu_that_must_stay_on() {
    let good = tables(GATHERED);
    assert_eq!(good.board.consolidation_target[..3], [0; 3]);
    assert_eq!(good.validate(), Ok(()));
    let cases: &[Case] = &[
        ("target that goes off", |s| s.board.consolidation_target[1] = 2, Invalid::Consolidation),
        (
            "boot core",
            |s| s.board.consolidation_target = [1, 1, 1, 0, 0, 0, 0, 0],
            Invalid::Consolidation,
        ),
        ("affinity", |s| s.vcpus[0].affinity |= 1 << 1, Invalid::Consolidation),
        ("interrupts come there", |s| s.spis[0].pcpu = 1, Invalid::Consolidation),
        ("real-time", |s| s.vms[0].flags |= 1, Invalid::Consolidation),
        ("marks itself", |s| s.vcpus[1].flags |= MARKABLE, Invalid::Consolidation),
        ("not said so", |s| s.header.version &= !parts::CONSOLIDATION, Invalid::Consolidation),
        ("long window", |s| s.header.consolidation_window_ns = 1 << 40, Invalid::Consolidation),
    ];
    find(GATHERED, cases);
}

fn find(text: &str, cases: &[Case]) {
    let good = tables(text);
    for (name, change, expected) in cases {
        let mut bad = good.clone();
        change(&mut bad);
        assert_eq!(bad.validate(), Err(*expected), "{name}");
    }
}

/// A hypervisor without a part compares the whole word, and refuses the system.
#[test]
fn a_system_says_which_parts_it_needs() {
    let boost = TEXT.replacen("priority = 1 }", "priority = 1, boost = { priority = 9 } }", 1);
    for (text, needed) in
        [(TEXT, 0), (boost.as_str(), parts::BOOSTS), (GATHERED, parts::CONSOLIDATION)]
    {
        assert_eq!(tables(text).header.version, abi::system::VERSION | needed, "{text}");
    }
}

#[test]
fn an_affinity_needs_no_fallback_and_a_fallback_is_in_it() {
    let mut tables = tables(TEXT);
    tables.vcpus[0].affinity |= 1 << 1;
    assert_eq!(tables.validate(), Ok(()));
    tables.vcpus[0].fallback = 1;
    assert_eq!(tables.validate(), Ok(()));
}
