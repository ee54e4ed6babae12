//! Where the probe runs: what its device tree and the hypervisor say.

use crate::arch::{cpu, memory, mmio::Window};
use crate::calls;
use crate::gic::IS_V2;
use abi::{MAX_VCPUS_PER_VM, MAX_VMS, platform as p};
use arrayvec::{ArrayString, ArrayVec};
use core::sync::atomic::AtomicU64;
use dtoolkit::fdt::{Fdt, FdtNode};
use dtoolkit::{Node, Property, ToCellInt};
use spin::Once;

/// Longest command line the probe reads, in bytes.
const ARGUMENTS_MAX: usize = 512;

/// What the device tree says.
#[derive(Debug)]
pub struct Platform {
    /// MPIDR affinity of each vCPU, the booting one first.
    pub vcpus: ArrayVec<u64, MAX_VCPUS_PER_VM>,
    /// Guest memory: guest-physical address.
    pub ram_base: u64,
    /// Its size in bytes.
    pub ram_size: u64,
    /// Memory that it shares with other VMs, in the order of the description.
    pub shared: ArrayVec<Shared, { p::MAX_SHARED }>,
    /// Its ends of links, in the order of the description.
    pub links: ArrayVec<Link, { p::MAX_LINKS }>,
    /// Whether it has a PCI bus.
    pub has_pci: bool,
    /// How many virtio devices it gets from another VM.
    pub virtio_devices: u64,
    /// What it has of each VM to which it gives some.
    pub virtio_backs: ArrayVec<Back, { MAX_VMS }>,
    /// `/chosen/bootargs`.
    arguments: ArrayString<ARGUMENTS_MAX>,
    /// Whether Cassata is underneath (else: the reference machine).
    pub cassata: bool,
    /// All that the device tree says.
    pub tree: Fdt<'static>,
}

/// Memory that this VM shares with others.
#[derive(Clone, Copy, Debug)]
pub struct Shared {
    /// Guest-physical address.
    pub base: u64,
    /// Its size in bytes.
    pub size: u64,
    /// Whether this VM may only read it.
    pub read_only: bool,
}

impl Shared {
    /// Its words.
    pub fn window(&self) -> Window {
        Window::new(self.base, self.size)
    }
}

/// This VM's end of a link.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// Its registers: guest-physical address.
    pub registers: u64,
    /// What this VM writes.
    pub own: Shared,
    /// What the peer writes.
    pub peer: Shared,
    /// The doorbell's interrupt.
    pub intid: u32,
}

impl Link {
    /// Its registers.
    pub fn registers(&self) -> Window {
        Window::new(self.registers, p::LINK_STRIDE)
    }
}

/// What this VM has of one to which it gives virtio devices.
#[derive(Clone, Copy, Debug)]
pub struct Back {
    /// Registers: guest-physical address.
    pub registers: u64,
    /// The memory of the devices.
    pub memory: Shared,
    /// The doorbell's interrupt.
    pub intid: u32,
}

static PLATFORM: Once<Platform> = Once::new();

/// The platform, after [`discover`].
pub fn get() -> &'static Platform {
    PLATFORM.get().expect("main discovers the platform first")
}

/// Reads the device tree at `address`, or at the beginning of memory, where
/// QEMU puts it for an ELF kernel, when `address` is 0.
pub fn discover(address: u64) -> Result<&'static Platform, &'static str> {
    let address = if address == 0 { memory::base() } else { address };
    let tree = Fdt::new(device_tree(address)?).map_err(|_| "device tree: malformed")?;
    let platform = read(tree)?;
    Ok(PLATFORM.call_once(|| platform))
}

/// The device tree's bytes.
fn device_tree(address: u64) -> Result<&'static [u8], &'static str> {
    const MAGIC: u32 = 0xd00d_feed;
    if !address.is_multiple_of(8) || memory::image_holds(address) || address < memory::base() {
        return Err("device tree: address (X0) is not 8-byte aligned in guest memory");
    }
    let header = memory::bytes(address, 8);
    let word = |at: usize| header[at..at + 4].iter().fold(0, |word, &b| word << 8 | u32::from(b));
    if word(0) != MAGIC {
        return Err("device tree: no magic at X0 (or at the beginning of memory)");
    }
    Ok(memory::bytes(address, word(4).into()))
}

fn read(tree: Fdt<'static>) -> Result<Platform, &'static str> {
    let mut vcpus = ArrayVec::new();
    for cpu in tree.cpus().map_err(|_| "device tree: no /cpus")?.cpus() {
        let mut ids = cpu.ids().map_err(|_| "device tree: cpu without reg")?;
        let id = ids.next().ok_or("device tree: cpu without reg")?;
        let id = id.to_int::<u64>().map_err(|_| "device tree: cpu reg over 64 bits")?;
        vcpus.try_push(id).map_err(|_| "device tree: more than 8 cpus")?;
    }
    let memory = tree.memory().map_err(|_| "device tree: no /memory")?;
    let mut regions = memory
        .reg()
        .map_err(|_| "device tree: /memory has a bad reg")?
        .ok_or("device tree: /memory without reg")?;
    let region = regions.next().ok_or("device tree: /memory is empty")?;
    let mut shared = ArrayVec::new();
    for node in tree.root().children() {
        if node.name_without_address() != "shared-memory" {
            continue;
        }
        let mut reg = node.reg().ok().flatten().ok_or("device tree: bad shared-memory")?;
        let reg = reg.next().ok_or("device tree: empty shared-memory")?;
        let base = reg.address::<u64>().map_err(|_| "device tree: shared-memory address")?;
        let size = reg.size::<u64>().map_err(|_| "device tree: shared-memory size")?;
        let read_only = node.property("read-only").is_some();
        let known = shared.try_push(Shared { base, size, read_only });
        known.map_err(|_| "device tree: more than 8 pieces of shared memory")?;
    }
    let mut links = ArrayVec::new();
    for node in tree.root().children() {
        if node.name_without_address() == "link" {
            let known = links.try_push(link(&node).ok_or("device tree: bad link")?);
            known.map_err(|_| "device tree: more than 8 links")?;
        }
    }
    let has_pci = tree.root().children().any(|node| node.name_without_address() == "pcie");
    let (mut virtio_devices, mut virtio_backs) = (0, ArrayVec::new());
    for node in tree.root().children() {
        match node.name_without_address() {
            "virtio" => virtio_devices = node.children().count() as u64,
            "virtio-back" => {
                let known =
                    virtio_backs.try_push(back(&node).ok_or("device tree: bad virtio-back")?);
                known.map_err(|_| "device tree: more than 8 VMs with virtio devices")?;
            }
            _ => {}
        }
    }
    let mut arguments = ArrayString::new();
    if let Some(chosen) = tree.chosen() {
        let text = chosen.bootargs().map_err(|_| "device tree: bootargs are no string")?;
        arguments.try_push_str(text.unwrap_or("")).map_err(|_| "bootargs over 512 bytes")?;
    }
    Ok(Platform {
        vcpus,
        ram_base: region.address::<u64>().map_err(|_| "device tree: memory address")?,
        ram_size: region.size::<u64>().map_err(|_| "device tree: memory size")?,
        shared,
        links,
        has_pci,
        virtio_devices,
        virtio_backs,
        arguments,
        cassata: calls::is_cassata(),
        tree,
    })
}

/// An end of a link: registers, own half, peer's half; an SPI.
fn link(node: &FdtNode<'static>) -> Option<Link> {
    let mut reg = node.reg().ok().flatten()?;
    let mut next = |read_only| {
        let reg = reg.next()?;
        Some(Shared { base: reg.address().ok()?, size: reg.size().ok()?, read_only })
    };
    let (registers, own, peer) = (next(false)?.base, next(false)?, next(true)?);
    Some(Link { registers, own, peer, intid: spi(node)? })
}

/// The INTID of the one interrupt of a node, an SPI.
fn spi(node: &FdtNode<'static>) -> Option<u32> {
    let interrupt = node.property("interrupts")?;
    let number = interrupt.value().get(4..8)?;
    Some(p::SPI_FIRST + u32::from_be_bytes(number.try_into().ok()?))
}

/// What this VM has of one to which it gives virtio devices: registers, memory; an SPI.
fn back(node: &FdtNode<'static>) -> Option<Back> {
    let mut reg = node.reg().ok().flatten()?;
    let registers = reg.next()?.address().ok()?;
    let memory = reg.next()?;
    let (base, size) = (memory.address().ok()?, memory.size().ok()?);
    let memory = Shared { base, size, read_only: false };
    Some(Back { registers, memory, intid: spi(node)? })
}

impl Platform {
    /// The value of `probe.NAME=VALUE` on the command line.
    pub fn argument(&self, name: &str) -> Option<&str> {
        let mut words = self.arguments.split_ascii_whitespace();
        words.find_map(|word| word.strip_prefix("probe.")?.strip_prefix(name)?.strip_prefix('='))
    }

    /// A number on the command line, or `default`.
    pub fn number(&self, name: &str, default: u64) -> u64 {
        self.argument(name).and_then(|text| text.parse().ok()).unwrap_or(default)
    }

    /// Indices of all vCPUs but the calling one.
    pub fn others(&self) -> impl Iterator<Item = usize> + Clone + use<> {
        let me = cpu::index();
        (0..self.vcpus.len()).filter(move |&index| index != me)
    }

    /// End of guest memory.
    pub fn ram_end(&self) -> u64 {
        self.ram_base + self.ram_size
    }
}

/// Address of a word outside the image: it survives SYSTEM_RESET, which brings
/// only images back. 16 MiB above the beginning of memory.
fn surviving() -> u64 {
    memory::base() + 0x100_0000
}

/// The word at [`surviving`].
pub fn surviving_word() -> &'static AtomicU64 {
    &memory::words(surviving(), surviving() + 8)[0]
}

/// First address of guest memory that is not used.
pub fn free_memory() -> u64 {
    surviving() + 0x1000
}

/// The distributor.
pub const GICD: Window =
    Window::new(p::GICD_BASE, if IS_V2 { p::GICD_V2_SIZE } else { p::GICD_SIZE });
/// All redistributors.
pub const GICR: Window = Window::new(p::GICR_BASE, p::GICR_STRIDE * MAX_VCPUS_PER_VM as u64);
/// The report area, of `size` bytes.
pub fn report_window(size: u64) -> Window {
    Window::new(p::REPORT_BASE, size.min(p::REPORT_MAX_SIZE))
}
/// The stolen-time structures.
pub const STOLEN: Window = Window::new(p::STOLEN_BASE, p::STOLEN_SIZE);
/// The lines of preemption, in a VM that has some.
pub const LINES: Window = Window::new(p::LINES_BASE, p::LINES_SIZE);
