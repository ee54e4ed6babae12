//! The packed system: what the host writes and EL2 uses in place.
//!
//! One [`System`] stands at the beginning of the *bundle*; behind it lie page
//! tables, device trees and guest images, at the physical addresses that the
//! tables name. Physical addresses (`*_pa`) and guest-physical addresses
//! (`*_ipa`) are in bytes, sizes in bytes, times in nanoseconds.
//!
//! The arrays are of fixed size and the counts say how much of each is used:
//! EL2 indexes them without ever computing an address from an offset that a
//! file supplied.

mod places;
mod reach;
mod region;
mod validate;

pub use places::Damaged;
pub use region::Region;
pub use validate::Invalid;

use crate::platform::MAX_LINKS;
use crate::{MAX_PCPUS, MAX_VCPUS, MAX_VMS};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// First eight bytes of the bundle.
pub const MAGIC: [u8; 8] = *b"CASSATA\0";
/// Version of the layout; any change to this module changes it.
pub const VERSION: u32 = 22;
/// Parts that a hypervisor has or has not: bits of [`Header::version`] beside [`VERSION`]. A hypervisor
/// refuses a system that wants a part that it lacks.
pub mod parts {
    /// Links between VMs.
    pub const LINKS: u32 = 1 << 16;
    /// A GICv2, for a board that has one: a hypervisor that has this part has no other interrupt controller.
    pub const GIC_V2: u32 = 1 << 17;
    /// A spin table, where the board has one.
    pub const SPIN_TABLE: u32 = 1 << 18;
    /// The UART of a Zynq, by Cadence. Of this bit and the others for UARTs a system has one at most; none: the
    /// board has a PL011, which every hypervisor drives.
    pub const UART_CADENCE: u32 = 1 << 19;
    /// An SMMU, by which VMs have devices that do DMA.
    pub const SMMU: u32 = 1 << 20;
    /// Virtio devices of one VM for another one.
    pub const VIRTIO: u32 = 1 << 21;
    /// Boosts, which guests or interrupts give to vCPUs.
    pub const BOOSTS: u32 = 1 << 22;
    /// Global critical sections, ceilings and mutexes.
    pub const SECTIONS: u32 = 1 << 23;
    /// Cores that are powered down while they have little to do.
    pub const CONSOLIDATION: u32 = 1 << 24;
    /// The UART of an i.MX.
    pub const UART_IMX: u32 = 1 << 25;
    /// A 16550.
    pub const UART_16550: u32 = 1 << 26;
    /// The mini UART of a BCM2835.
    pub const UART_MINI: u32 = 1 << 27;
    /// All that say which UART a board has, if it is no PL011.
    pub const UARTS: u32 = UART_CADENCE | UART_IMX | UART_16550 | UART_MINI;
    /// The parts of this build.
    pub const BUILT: u32 = if cfg!(feature = "links") { LINKS } else { 0 }
        | if cfg!(feature = "gic-v2") { GIC_V2 } else { 0 }
        | if cfg!(feature = "spin-table") { SPIN_TABLE } else { 0 }
        | if cfg!(feature = "uarts") { UARTS } else { 0 }
        | if cfg!(feature = "smmu") { SMMU } else { 0 }
        | if cfg!(feature = "virtio") { VIRTIO } else { 0 }
        | if cfg!(feature = "boosts") { BOOSTS } else { 0 }
        | if cfg!(feature = "sections") { SECTIONS } else { 0 }
        | if cfg!(feature = "consolidation") { CONSOLIDATION } else { 0 };

    /// Returns true if this build has a part: a constant, so that a build without it has no code for it.
    #[must_use]
    #[inline(always)]
    pub const fn has(part: u32) -> bool {
        part & !BUILT == 0
    }
}
/// Bytes of memory that belong to the hypervisor: its image, data and stacks.
/// The bundle begins right behind, so that EL2 finds it from its own address.
pub const HYPERVISOR_SIZE: u64 = 0x20_0000;
/// Most pieces of memory that are filled when VMs start, in a whole system.
pub const MAX_LOADS: usize = 64;
/// Longest period of a boost.
pub const MAX_BOOST_PERIOD_NS: u32 = 1_000_000_000;
/// Most vCPUs of a pCPU that may be boosted.
pub const MAX_BOOSTS: usize = 4;
/// Most global resources, in a whole system: each has a mutex.
pub const MAX_MUTEXES: usize = 16;
/// Most claimants of a mutex.
pub const MAX_CLAIMANTS: usize = 56;
/// Most parts that have a digest: the hypervisor's own, and everything behind the tables.
pub const MAX_PARTS: usize = 96;
/// How many streams an SMMU tells apart: those of one PCI bus.
pub const STREAMS: u16 = 256;
/// Most devices behind an SMMU that VMs have, in a whole system.
pub const MAX_CONFINED: usize = 4;
/// Bytes of the registers of an SMMUv3, both pages (Arm IHI 0070, section 6.1).
pub const SMMU_SIZE: u64 = 0x2_0000;
/// Bytes of the configuration space of a PCI function (ECAM).
pub const FUNCTION_SIZE: u64 = 0x1000;
/// Bytes of a digest: SHA-256 (FIPS 180-4).
pub const DIGEST_SIZE: usize = 32;
/// Bytes of a signature: Ed25519 (RFC 8032).
pub const SIGNATURE_SIZE: usize = 64;
/// Bytes of a public key: Ed25519.
pub const PUBLIC_KEY_SIZE: usize = 32;
/// What a signature of an image begins to sign: so that none of anything else that is made with the
/// same key is one of an image.
pub const SIGNED_AS: [u8; 12] = *b"Cassata boot";
/// Bytes that are signed: [`SIGNED_AS`], [`VERSION`] in four bytes (little-endian), and
/// [`Header::tables_sha256`].
pub const SIGNED_SIZE: usize = SIGNED_AS.len() + size_of::<u32>() + DIGEST_SIZE;
/// The symbol of the hypervisor's ELF file at which the packer puts the public key, if the build
/// checks signatures.
pub const PUBLIC_KEY_SYMBOL: &str = "cassata_public_key";
/// Most interrupts that are passed through, in a whole system.
pub const MAX_SPIS: usize = 128;

/// What a hypervisor that has a key says of an image that is not signed. It is not among the reasons
/// of [`Invalid`], because the build without a key has no use for it.
pub const UNSIGNED: &str = "the image is not signed, and this hypervisor has a key (Ed25519)";
/// What it says of one that is signed otherwise.
pub const WRONG_SIGNATURE: &str =
    "the signature is not one of this image by the key that this hypervisor has (Ed25519)";

/// Stage-2 tables of a VM.
pub const STAGE2_VIEWS: usize = 3;
/// Shortest [`Vm::delay_limit_ns`] of a VM whose policy makes others wait.
pub const MIN_DELAY_LIMIT_NS: u64 = 1_000;
/// Longest [`Vm::delay_limit_ns`], but for [`NO_DELAY_LIMIT`].
pub const MAX_DELAY_LIMIT_NS: u64 = 10_000_000;
/// [`Vm::delay_limit_ns`] of a VM for which others wait as long as it takes.
pub const NO_DELAY_LIMIT: u64 = u64::MAX;
/// Longest [`Header::sibling_grace_ns`].
pub const MAX_SIBLING_GRACE_NS: u64 = 10_000_000;
/// Longest [`Vcpu::timer_advance_ns`].
pub const MAX_TIMER_ADVANCE_NS: u32 = 50_000;
/// How much longer than its [`Vcpu::timer_advance_ns`] a boost lasts, at least: its guest takes the timer's interrupt
/// meanwhile.
pub const MIN_BOOST_NS: u32 = 1_000;
/// Shortest [`Header::consolidation_window_ns`]: looking must stay cheap against it.
pub const MIN_CONSOLIDATION_WINDOW_NS: u64 = 100_000;
/// Longest [`Header::consolidation_window_ns`].
pub const MAX_CONSOLIDATION_WINDOW_NS: u64 = 1_000_000_000;
/// Shortest [`Header::watchdog_ns`]: EL2 may do without interrupts for a good part of it.
pub const MIN_WATCHDOG_NS: u32 = 1_000_000;
/// Longest [`Header::watchdog_ns`].
pub const MAX_WATCHDOG_NS: u32 = 4_000_000_000;
/// Highest scheduling priority; the lowest is 0.
pub const MAX_PRIORITY: u16 = 255;
/// Shortest round-robin quantum: a switch must stay small against it.
pub const MIN_QUANTUM_NS: u64 = 50_000;
/// Longest round-robin quantum.
pub const MAX_QUANTUM_NS: u64 = 10_000_000_000;
/// Shortest [`Vcpu::budget_ns`]: a switch must stay small against it.
pub const MIN_BUDGET_NS: u64 = 50_000;
/// Longest [`Vcpu::period_ns`].
pub const MAX_PERIOD_NS: u64 = 10_000_000_000;
/// Granule of all tables and of everything that is mapped, bytes.
pub const PAGE_SIZE: u64 = 0x1000;
/// Alignment of guest memory, bytes: one level 2 block.
pub const RAM_ALIGN: u64 = 0x20_0000;
/// Alignment of what is copied into guest memory, bytes.
pub const LOAD_ALIGN: u64 = 64;
/// One past the last SPI (GICv3 without extended ranges).
pub const SPI_END: u32 = 1020;

/// What EL2 must know of the stage-1 tables that the host has built for it:
/// 4 KiB granule, T0SZ = 25 (39-bit addresses), start at level 1, identity below [`ALIAS`].
///
/// [`ALIAS`]: stage1::ALIAS
pub mod stage1 {
    /// Where the upper half of the input addresses begins. Guest memory at `pa` is mapped at its
    /// *alias*, `ALIAS + pa`, and only by the root of its VM ([`super::Vm::stage1_pa`]). The common
    /// root ([`super::Board::stage1_pa`]) has invalid descriptors from here on, so that no TLB holds
    /// anything of it that a VM's root contradicts. All else that EL2 reaches lies below.
    pub const ALIAS: u64 = 1 << 38;
    /// Value for MAIR_EL2.
    pub const MAIR: u64 = (0xff << (8 * ATTR_NORMAL)) | (0x04 << (8 * ATTR_DEVICE));
    /// AttrIndx of Device-nGnRE memory (0x04).
    pub const ATTR_DEVICE: u64 = 0;
    /// AttrIndx of Normal memory, inner and outer write-back, read- and
    /// write-allocate (0xff).
    pub const ATTR_NORMAL: u64 = 1;
    /// TCR_EL2.T0SZ and VTCR_EL2.T0SZ: 39-bit input addresses.
    pub const T0SZ: u64 = 25;
}

/// The tables.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Debug)]
#[repr(C)]
pub struct System {
    /// Identity, integrity and counts.
    pub header: Header,
    /// The machine.
    pub board: Board,
    /// The virtual machines; `header.vm_count` are used.
    pub vms: [Vm; MAX_VMS],
    /// Their vCPUs, those of one VM side by side; `header.vcpu_count` are used.
    pub vcpus: [Vcpu; MAX_VCPUS],
    /// What is copied into guest memory when a VM starts or restarts, those of
    /// one VM side by side; `header.load_count` are used.
    pub loads: [Load; MAX_LOADS],
    /// Interrupts passed through; `header.spi_count` are used.
    pub spis: [Spi; MAX_SPIS],
    /// Mutexes; `header.mutex_count` are used.
    pub mutexes: [Mutex; MAX_MUTEXES],
    /// Links, by their numbers; what is not used is zero.
    pub links: [Link; MAX_LINKS],
    /// What confines the DMA of devices that VMs have; zero where no VM has one.
    pub smmu: Smmu,
    /// By VM: the virtio devices that it gets; zero: none.
    pub virtio: [Virtio; MAX_VMS],
    /// The hypervisor's code and constants, then all that lies behind the tables, in ascending
    /// order and without gaps; `header.part_count` are used.
    pub parts: [Part; MAX_PARTS],
    /// Ed25519 signature of [`System::signed`]. Zeros: the image is not signed. Only a hypervisor
    /// that has a key looks at it.
    pub signature: [u8; SIGNATURE_SIZE],
}

// A change to any of these is a change of VERSION.
const _: () = {
    use core::mem::offset_of;
    assert!(size_of::<System>() == 22_024);
    assert!(offset_of!(System, board) == 112 && size_of::<Header>() == 112);
    assert!(offset_of!(System, vms) == 320 && size_of::<Board>() == 208);
    assert!(offset_of!(System, vcpus) == 1472 && size_of::<Vm>() == 144);
    assert!(offset_of!(System, loads) == 7616 && size_of::<Vcpu>() == 96);
    assert!(offset_of!(System, spis) == 9664 && size_of::<Load>() == 32);
    assert!(offset_of!(System, mutexes) == 11_712 && size_of::<Spi>() == 16);
    assert!(offset_of!(System, links) == 16_448 && size_of::<Mutex>() == 296);
    assert!(offset_of!(System, smmu) == 16_480 && size_of::<Link>() == 4);
    assert!(offset_of!(System, virtio) == 16_552 && size_of::<Smmu>() == 72);
    assert!(offset_of!(System, parts) == 16_584 && size_of::<Virtio>() == 4);
    assert!(offset_of!(System, signature) == 21_960 && size_of::<Part>() == 56);
    // What is read before the version is known to be right.
    assert!(offset_of!(Header, magic) == 0 && offset_of!(Header, version) == 8);
};

/// Identity, integrity and counts.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, Debug)]
#[repr(C)]
pub struct Header {
    /// [`MAGIC`].
    pub magic: [u8; 8],
    /// [`VERSION`], and the [`parts`] that the system wants.
    pub version: u32,
    /// Used entries of [`System::parts`].
    pub part_count: u32,
    /// Physical address of the [`System`] itself, 4 KiB aligned.
    pub bundle_pa: u64,
    /// Size of the bundle, a multiple of 4 KiB.
    pub bundle_size: u64,
    /// See [`flags`].
    pub flags: u32,
    /// How long a core may take no interrupt before another one reports it; 0: none does.
    pub watchdog_ns: u32,
    /// Used entries of [`System::vms`].
    pub vm_count: u32,
    /// Used entries of [`System::vcpus`].
    pub vcpu_count: u32,
    /// Used entries of [`System::loads`].
    pub load_count: u32,
    /// Used entries of [`System::spis`].
    pub spi_count: u32,
    /// How often a core that may be powered down, and a consolidation target with
    /// vCPUs of other cores, looks at its load.
    pub consolidation_window_ns: u64,
    /// How long a vCPU may stay in its kernel when it is the turn of a sibling, which would spin for
    /// a lock that the vCPU may hold; 0: it gives the core up at once.
    pub sibling_grace_ns: u64,
    /// Used entries of [`System::mutexes`].
    pub mutex_count: u32,
    /// Size of the ring in which each pCPU records what it does ([`crate::trace`]); 0: there is
    /// none. Else a power of two.
    pub trace_size: u32,
    /// SHA-256 of the [`System`] with this field zero, and without [`System::signature`].
    pub tables_sha256: [u8; DIGEST_SIZE],
}

/// Bits of [`Header::flags`].
pub mod flags {
    /// Interrupts of real-time VMs have higher priorities than others, which stay pending while a
    /// real-time vCPU runs.
    pub const PRIORITY_SEPARATION: u32 = 1 << 0;
    /// Switch the machine off (PSCI SYSTEM_OFF) when no VM is left running.
    pub const OFF_WHEN_DONE: u32 = 1 << 1;
    /// Reset the machine (PSCI SYSTEM_RESET) after a fault of the hypervisor's own; else the core
    /// that had it stops, and the others go on.
    pub const RESET_ON_FAULT: u32 = 1 << 2;
    /// A vCPU for which a sibling on its core waits runs before its turn.
    pub const DIRECTED_YIELD: u32 = 1 << 3;
}

/// The machine.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, Debug)]
#[repr(C)]
pub struct Board {
    /// Beginning of RAM.
    pub ram_pa: u64,
    /// Size of RAM.
    pub ram_size: u64,
    /// Beginning of the hypervisor's own memory (image, data, stacks).
    pub hypervisor_pa: u64,
    /// The size.
    pub hypervisor_size: u64,
    /// Root of EL2's own stage-1 table: 4 KiB granule, starts at level 1,
    /// T0SZ = 25, identity. It maps no guest memory.
    pub stage1_pa: u64,
    /// The status area ([`crate::status::Status`]), written by EL2 and read by
    /// the host.
    pub status_pa: u64,
    /// The distributor of the interrupt controller.
    pub gicd_pa: u64,
    /// First redistributor of a GICv3.
    pub gicr_pa: u64,
    /// Distance between two redistributors.
    pub gicr_stride: u64,
    /// CPU interface of a GICv2, each core's own.
    pub gicc_pa: u64,
    /// What controls the virtual CPU interface of a GICv2, each core's own.
    pub gich_pa: u64,
    /// That virtual CPU interface, which guests have.
    pub gicv_pa: u64,
    /// The UART that carries all consoles.
    pub uart_pa: u64,
    /// Where firmware without PSCI looks for what the cores that wait in its spin table execute: 8 bytes
    /// for each pCPU.
    pub release_pa: u64,
    /// What resets the machine and switches it off where firmware has no PSCI, a page of registers.
    pub power_pa: u64,
    /// The INTID.
    pub uart_intid: u32,
    /// Used entries of `pcpu_mpidr`.
    pub pcpu_count: u32,
    /// Affinity (MPIDR_EL1, affinity fields only) of each pCPU. The first is
    /// the one that boots.
    pub pcpu_mpidr: [u64; MAX_PCPUS],
    /// For each pCPU, the pCPU that takes over its vCPUs while it is powered down;
    /// its own index if it is never powered down.
    pub consolidation_target: [u16; MAX_PCPUS],
}

/// A virtual machine.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, Debug)]
#[repr(C)]
pub struct Vm {
    /// UTF-8, filled up with zero bytes.
    pub name: [u8; 16],
    /// See [`vm_flags`].
    pub flags: u32,
    /// First of its vCPUs in [`System::vcpus`].
    pub vcpu_first: u16,
    /// How many it has.
    pub vcpu_count: u16,
    /// First of its pieces in [`System::loads`].
    pub load_first: u16,
    /// How many it has.
    pub load_count: u16,
    /// What happens to its vCPUs when others take their pCPUs: the number of a
    /// migration policy of crate `sched`.
    pub migration_policy: u16,
    /// Numbers of the policies that it may have from some moment on ([`crate::console::Order`]), a bit
    /// for each; 0: it keeps its own.
    pub other_policies: u16,
    /// Where its first vCPU begins, in EL1h with interrupts masked and the
    /// MMU off.
    pub entry_ipa: u64,
    /// What its first vCPU finds in X0 (the device tree).
    pub entry_x0: u64,
    /// Roots of its stage-2 tables: 4 KiB granule, start at level 1, T0SZ = 25.
    /// All map the same; what may be executed in its memory is anything, by the
    /// second only what EL0 executes, by the third only what EL1 does. The
    /// second and third are those of the first if its policy needs none.
    pub stage2_pa: [u64; STAGE2_VIEWS],
    /// Root of EL2's stage-1 table while a core fills the VM's memory: it has
    /// the tables of [`Board::stage1_pa`], and maps the memory at its alias
    /// ([`stage1::ALIAS`]).
    pub stage1_pa: u64,
    /// Guest memory.
    pub ram_ipa: u64,
    /// Where it really is.
    pub ram_pa: u64,
    /// The size.
    pub ram_size: u64,
    /// Stolen-time page; 4 KiB, EL2 writes.
    pub stolen_pa: u64,
    /// The page of its lines of preemption; EL2 and the guest write. 0 when there is none.
    pub lines_pa: u64,
    /// Report area.
    pub report_pa: u64,
    /// The size; 0 when there is none.
    pub report_size: u64,
    /// How long a vCPU of higher priority waits for one of its vCPUs at most, if
    /// its policy makes it wait.
    pub delay_limit_ns: u64,
}

/// Bits of [`Vm::flags`].
pub mod vm_flags {
    /// A real-time guest: see [`super::flags::PRIORITY_SEPARATION`].
    pub const REALTIME: u32 = 1 << 0;
    /// It has a console.
    pub const CONSOLE: u32 = 1 << 1;
    /// Restart it when it cannot go on, instead of stopping it.
    pub const RESTART_ON_FAULT: u32 = 1 << 2;
    /// It reaches registers of devices: what it writes there a bus may refuse later.
    pub const DEVICES: u32 = 1 << 3;
    /// The vCPUs may give up their turns ([`crate::service::YIELD`]).
    pub const YIELD: u32 = 1 << 4;
    /// The preemption count of its kernel's threads lies 16 bytes behind the beginning of their
    /// `thread_info`, not 8.
    pub const COUNT_AT_16: u32 = 1 << 5;
    /// The interrupts of its devices stay on the pCPUs to which they are routed first
    /// ([`super::Spi::pcpu`]). Else they go where its first vCPU goes.
    pub const INTERRUPTS_STAY: u32 = 1 << 6;
}

/// Bits of [`Vcpu::flags`].
pub mod vcpu_flags {
    /// Messages for it are urgent while it is on: it must be reached while a real-time vCPU runs.
    pub const URGENT: u16 = 1 << 0;
    /// It may mark itself as real-time: then it is above all other vCPUs of its pCPU, where it
    /// stays.
    pub const MARKABLE: u16 = 1 << 1;
    /// It is a real-time one that stays on its pCPU, and another real-time one is above it there: what
    /// is for this one waits while that one runs.
    pub const LOWER: u16 = 1 << 2;
    /// EL2 adapts its timer advance to what the way to its guest takes.
    pub const ADAPTS: u16 = 1 << 3;
}

/// A virtual CPU.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, Debug)]
#[repr(C)]
pub struct Vcpu {
    /// Index of its VM.
    pub vm: u16,
    /// The index within the VM, which is also its affinity level 0.
    pub index: u16,
    /// The pCPU it starts on.
    pub pcpu: u16,
    /// Scheduling priority; larger is higher.
    pub priority: u16,
    /// Round-robin quantum among equals on one pCPU.
    pub quantum_ns: u64,
    /// The pCPU it migrates to by default while another vCPU has `pcpu`; `pcpu` if
    /// it stays.
    pub fallback: u16,
    /// See [`vcpu_flags`].
    pub flags: u16,
    /// All pCPUs where its policy may place it, a bit for each: `pcpu`, `fallback`,
    /// and others that it may use while they are idle.
    pub affinity: u16,
    /// The pCPUs of its affinity where it takes turns with vCPUs of its own VM and
    /// priority, a bit for each. While it shares a core, it moves from one of them
    /// to the next.
    pub rotation: u16,
    /// How long before its virtual timer fires a sleeping vCPU is given its core, at most
    /// that if it adapts, and one that may be boosted is boosted; 0: not before. Only for a real-time VM, which
    /// may adapt, and for a vCPU that interrupts boost, for less than its window and its budget.
    pub timer_advance_ns: u32,
    /// What limits it: see [`server`].
    pub server: u32,
    /// What it may run in each period; 0 without a server, else not above the period.
    pub budget_ns: u64,
    /// From one replenishment of its budget to the next; 0 without a server.
    pub period_ns: u64,
    /// What its global critical sections may take beyond the budget in each period, 0
    /// without a server; budget and overrun are not above the period.
    pub overrun_ns: u64,
    /// When its first period begins, after the instant that all servers count from; below the
    /// period, 0 without a server.
    pub offset_ns: u64,
    /// How long its global critical sections may raise it above all others in each period; 0:
    /// it has none, and the service refuses it.
    pub gcs_ns: u64,
    /// How often other vCPUs of its VM may raise it in each period: each time costs its pCPU at
    /// most two interrupts, one as it begins and one as it ends.
    pub gcs_calls: u32,
    /// The mutexes that its tasks may lock, a bit for each.
    pub mutexes: u32,
    /// How long it may run at its higher priority in each period; the whole period: as long as it
    /// likes. 0 if it cannot be boosted, as are the fields below.
    pub boost_budget_ns: u32,
    /// The period of its boosts.
    pub boost_period_ns: u32,
    /// For how long an interrupt boosts it; 0: interrupts do not boost it.
    pub boost_window_ns: u32,
    /// The priority that boosts give it, above its own.
    pub boost_priority: u16,
    /// Zero.
    pub reserved: u16,
}

/// Values of [`Vcpu::server`].
pub mod server {
    /// Nothing limits it.
    pub const NONE: u32 = 0;
    /// A budget in each period, which is idled away.
    pub const PERIODIC: u32 = 1;
    /// A budget in each period, which is kept until the period ends.
    pub const DEFERRABLE: u32 = 2;
}

/// A piece of guest memory to be filled when its VM starts: `size` bytes
/// copied from the bundle, then zeros.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, Debug)]
#[repr(C)]
pub struct Load {
    /// In the bundle; 64-byte aligned.
    pub src_pa: u64,
    /// In the VM's memory; 64-byte aligned.
    pub dst_pa: u64,
    /// Bytes to copy.
    pub size: u64,
    /// Bytes to clear behind them.
    pub zero_size: u64,
}

/// A part of the image. EL2 compares it with its digest before it uses anything of it: what fills
/// a VM's memory before that VM starts for the first time, the rest before anything else.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, Debug)]
#[repr(C)]
pub struct Part {
    /// Where it is.
    pub pa: u64,
    /// The bytes.
    pub size: u64,
    /// What it is: see [`part`].
    pub kind: u32,
    /// The VMs that use it, a bit for each; 0 for the hypervisor's own.
    pub vms: u32,
    /// The SHA-256.
    pub sha256: [u8; DIGEST_SIZE],
}

/// Kinds of [`Part`]s.
pub mod part {
    /// The hypervisor's code, or its constants.
    pub const HYPERVISOR: u32 = 0;
    /// EL2's page table.
    pub const STAGE1: u32 = 1;
    /// A VM's page table.
    pub const STAGE2: u32 = 2;
    /// A guest's kernel.
    pub const KERNEL: u32 = 3;
    /// A guest's initramfs.
    pub const INITRAMFS: u32 = 4;
    /// A guest's device tree.
    pub const DEVICETREE: u32 = 5;
    /// How many kinds there are.
    pub const KINDS: u32 = 6;
}

/// An interrupt passed through to a guest.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, Debug)]
#[repr(C)]
pub struct Spi {
    /// Physical INTID.
    pub physical: u32,
    /// INTID the guest sees.
    pub virtual_: u32,
    /// Index of the VM it belongs to.
    pub vm: u16,
    /// The pCPU to which it is routed first: the first vCPU's, unless the VM's interrupts stay.
    pub pcpu: u16,
    /// How it is signalled: [`LEVEL`] or [`EDGE`].
    pub trigger: u32,
}

/// A mutex, whose claimants are the tasks that may lock it.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, Debug)]
#[repr(C)]
pub struct Mutex {
    /// [`crate::service::hash`] of its name.
    pub name: u64,
    /// Used entries of `vcpus` and `tasks`.
    pub claimant_count: u32,
    /// 0.
    pub reserved: u32,
    /// By rank, the order in which those that wait are served: index of the vCPU in
    /// [`System::vcpus`].
    pub vcpus: [u8; MAX_CLAIMANTS],
    /// By rank: [`crate::service::hash`] of the task's name, the lower half.
    pub tasks: [u32; MAX_CLAIMANTS],
}

/// A link between two VMs.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Link {
    /// Indices of the VMs, by side; two times the same: there is no such link.
    pub vms: [u16; 2],
}

/// An SMMUv3 (Arm IHI 0070), and the devices behind it.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Smmu {
    /// The registers, [`SMMU_SIZE`] bytes; 0: the system needs none.
    pub registers_pa: u64,
    /// The devices; what is not used is zero.
    pub confined: [Confined; MAX_CONFINED],
}

/// A device whose DMA an SMMU confines to what its VM reaches.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Confined {
    /// The configuration space of the PCI function that has the first stream, behind which stand those of
    /// the others, [`FUNCTION_SIZE`] bytes each; 0: it is no PCI device.
    pub functions_pa: u64,
    /// The first of its streams.
    pub first: u16,
    /// How many it has; 0: there is no such device.
    pub count: u16,
    /// Index of the VM.
    pub vm: u16,
    /// 0.
    pub reserved: u16,
}

/// The virtio devices that a VM gets from another one.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Virtio {
    /// Index of the VM that gives them.
    pub back: u16,
    /// How many there are; 0: the VM gets none.
    pub devices: u16,
}

/// [`Spi::trigger`]: by a high level.
pub const LEVEL: u32 = 0;
/// [`Spi::trigger`]: by a rising edge.
pub const EDGE: u32 = 1;

impl Default for System {
    /// All counts zero.
    fn default() -> Self {
        <Self as zerocopy::FromZeros>::new_zeroed()
    }
}

impl Link {
    /// Returns the side that a VM has; none if the link is none of its.
    #[must_use]
    pub fn side_of(&self, vm: usize) -> Option<usize> {
        let [first, second] = self.vms.map(usize::from);
        (first != second).then_some(())?;
        [first, second].iter().position(|&side| side == vm)
    }
}

impl Confined {
    /// There is no such device.
    pub const NONE: Self = Self { functions_pa: 0, first: 0, count: 0, vm: 0, reserved: 0 };

    /// Returns one past the last of its streams.
    #[must_use]
    pub const fn end(&self) -> u32 {
        self.first as u32 + self.count as u32
    }

    /// Returns true if a stream belongs to both.
    #[must_use]
    pub const fn has_stream_of(&self, other: &Self) -> bool {
        (self.first as u32) < other.end() && (other.first as u32) < self.end()
    }
}

impl Vcpu {
    /// Returns the pCPUs of its affinity other than `pcpu`, a bit for each; none if
    /// its policy never moves it.
    #[must_use]
    pub const fn elsewhere(&self) -> u16 {
        self.affinity & !(1 << (self.pcpu & 15))
    }

    /// Returns true if it may be raised to its ceiling or hold a mutex: then it stays on its pCPU. False
    /// without looking in a build without that part.
    #[must_use]
    #[inline(always)]
    pub const fn has_sections(&self) -> bool {
        parts::has(parts::SECTIONS) && (self.gcs_ns > 0 || self.mutexes != 0)
    }

    /// Returns true if it may be raised to its ceiling: false without looking in a build without that part.
    #[must_use]
    #[inline(always)]
    pub const fn has_ceiling(&self) -> bool {
        parts::has(parts::SECTIONS) && self.gcs_ns > 0
    }

    /// Returns true if it must be reached while a real-time vCPU runs.
    #[must_use]
    pub const fn is_urgent(&self) -> bool {
        self.flags & vcpu_flags::URGENT != 0
    }

    /// Returns true if another real-time vCPU of its pCPU is above this one.
    #[must_use]
    pub const fn is_lower(&self) -> bool {
        self.flags & vcpu_flags::LOWER != 0
    }

    /// Returns true if EL2 adapts its timer advance.
    #[must_use]
    pub const fn adapts(&self) -> bool {
        self.flags & vcpu_flags::ADAPTS != 0
    }

    /// Returns true if it may mark itself as real-time.
    #[must_use]
    pub const fn is_markable(&self) -> bool {
        self.flags & vcpu_flags::MARKABLE != 0
    }

    /// Returns true if it may be boosted: false without looking in a build without that part.
    #[must_use]
    #[inline(always)]
    pub const fn may_be_boosted(&self) -> bool {
        parts::has(parts::BOOSTS) && self.boost_period_ns != 0
    }
}

impl Vm {
    /// The name, without the filling.
    #[must_use]
    pub fn name(&self) -> &str {
        let end = self.name.iter().position(|&b| b == 0).unwrap_or(self.name.len());
        core::str::from_utf8(&self.name[..end]).unwrap_or("?")
    }

    /// Returns true if a flag of [`vm_flags`] is set.
    #[must_use]
    pub fn is(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }
}
