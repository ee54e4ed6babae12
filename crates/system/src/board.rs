//! Boards: plain data about physical machines.
//!
//! A board is a TOML file in `boards/`; adding one is adding a file and its
//! line in [`Board::all`].

use abi::platform::{GICC_PAGE, GICD_SIZE, GICD_V2_SIZE};
use abi::system::Region;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// A physical machine.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Board {
    /// The name in system descriptions.
    pub kind: String,
    /// What it is, for people.
    pub title: String,
    /// Beginning of RAM.
    pub ram_pa: u64,
    /// Most RAM it can have, bytes.
    #[serde(deserialize_with = "size")]
    pub ram_max: u64,
    /// Where the hypervisor is loaded; what lies between the beginning of RAM
    /// and this address is left alone.
    pub hypervisor_pa: u64,
    /// Affinity fields of MPIDR_EL1 of each pCPU; the first boots.
    pub pcpu_mpidr: Vec<u64>,
    /// The interrupt controller.
    pub gic: Gic,
    /// One past the last SPI that has a source.
    pub spi_end: u32,
    /// Rates at which its counter may count, Hz; none: not known.
    #[serde(default)]
    pub counter_hz: Vec<u64>,
    /// Picoseconds for an instruction at EL2, for bounds.
    pub instruction_ps: u64,
    /// List registers of each pCPU, for bounds; none: not known, so as many as there may be.
    pub list_registers: Option<usize>,
    /// What kind of UART carries all consoles.
    #[serde(default)]
    pub uart: UartKind,
    /// Where its registers are.
    pub uart_pa: u64,
    /// The interrupt.
    pub uart_intid: u32,
    /// How its firmware starts cores and ends the machine, if it has no PSCI.
    pub spin_table: Option<SpinTable>,
    /// The SMMUv3 that confines devices with [`Device::streams`], if there is one.
    pub smmu_pa: Option<u64>,
    /// What it is in QEMU.
    pub qemu: Qemu,
    /// What may be passed through to a guest.
    #[serde(default, rename = "device")]
    pub devices: Vec<Device>,
}

/// A UART that EL2 can drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UartKind {
    /// Arm's PL011.
    #[default]
    Pl011,
    /// That of a Zynq, by Cadence.
    Cadence,
    /// That of an i.MX.
    Imx,
    /// A 16550 whose registers are words, 4 bytes apart.
    #[serde(rename = "16550")]
    Ns16550,
    /// The mini UART of a BCM2835 to BCM2711; its address is that of the block (AUX) that it is in.
    Mini,
}

/// An interrupt controller, by the version of its architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Gic {
    /// GICv3 or later.
    V3(GicV3),
    /// GICv2.
    V2(GicV2),
}

/// Where a GICv3 has its registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GicV3 {
    /// The distributor.
    pub gicd_pa: u64,
    /// The first redistributor.
    pub gicr_pa: u64,
    /// Distance between two redistributors.
    pub gicr_stride: u64,
}

/// Where a GICv2 has its registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GicV2 {
    /// The distributor.
    pub gicd_pa: u64,
    /// The CPU interface: two pages, the second of which has only GICC_DIR.
    pub gicc_pa: u64,
    /// What controls the virtual CPU interface.
    pub gich_pa: u64,
    /// The virtual CPU interface, the first page of which guests have.
    pub gicv_pa: u64,
}

/// Firmware without PSCI, as on a Raspberry Pi: cores wait until there is an address in memory, where they go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpinTable {
    /// The address of the first core's; those of the others are each 8 bytes behind. The boot core has
    /// one, too, which is not used.
    pub release_pa: u64,
    /// Power management of a BCM2835 or a later one, a page of registers.
    pub power_pa: u64,
}

/// What QEMU has to be told to be a board.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Qemu {
    /// `-M`, with EL2.
    pub machine: String,
    /// `-cpu`.
    pub cpu: String,
    /// The only size that its RAM may have, bytes, if there is but one.
    #[serde(default, deserialize_with = "optional_size")]
    pub memory: Option<u64>,
    /// The only number of cores that it may have, if there is but one.
    pub cpus: Option<u32>,
    /// Which of its serial ports, from 0, is the UART that carries all consoles.
    #[serde(default)]
    pub serial: usize,
    /// What its model has not connected, and has to be before it starts.
    #[serde(default)]
    pub wires: Vec<Wire>,
    /// Further options.
    #[serde(default)]
    pub options: Vec<String>,
    /// What it boots.
    #[serde(default)]
    pub image: QemuImage,
}

/// A line of an interrupt in QEMU's model of a board, by the paths of QEMU's objects.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wire {
    /// The device that it comes from.
    pub device: String,
    /// Which of that device's outputs it is.
    pub output: String,
    /// The input that it leads to.
    pub input: String,
}

/// What QEMU's model of a board takes as a kernel that is to be entered at EL2, on one core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QemuImage {
    /// An ELF file.
    #[default]
    Elf,
    /// An arm64 Image: an ELF file would be entered by every core.
    Image,
}

/// A device that may be passed through to a guest.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// The name in system descriptions.
    pub name: String,
    /// What it is, for people.
    pub title: String,
    /// Name of its device tree node, without the unit address; `name` if none.
    pub node: Option<String>,
    /// Physical address of its registers; the guest sees them there as well.
    pub address: u64,
    /// Bytes of registers.
    pub size: u64,
    /// Where the functions of a PCI host bridge have their registers, by 32-bit addresses that are the same
    /// on the bus; the device's own registers are their configuration space (ECAM), that of bus 0 only.
    pub window: Option<Window>,
    /// Device tree `compatible`, most special first.
    pub compatible: Vec<String>,
    /// The interrupts, in the order its device tree binding wants.
    pub interrupts: Vec<Interrupt>,
    /// Names of its clock inputs.
    #[serde(default)]
    pub clocks: Vec<String>,
    /// The rates of the inputs, Hz, in the order of their names, as firmware sets them, or higher: a driver divides
    /// by what is said here. None: all are that of the virtual platform's clock.
    #[serde(default)]
    pub clock_hz: Vec<u32>,
    /// Further device tree properties.
    #[serde(default)]
    pub properties: BTreeMap<String, Property>,
    /// True if it reads or writes memory by itself.
    #[serde(default)]
    pub dma: bool,
    /// True if its properties keep drivers from having it do so: then its VM may see other addresses than the board's.
    #[serde(default)]
    pub idle_dma: bool,
    /// By which streams it does that, if the board's SMMU is between it and memory.
    pub streams: Option<Streams>,
    /// What QEMU calls it, if a disk or a network can be plugged into it: see [`Device::slot_kind`].
    pub slot: Option<String>,
    /// How many of them stand side by side, addresses `size` and interrupts 1
    /// apart; only in the file, expanded when it is read.
    repeat: Option<u32>,
}

/// Addresses that a PCI host bridge hands on to its bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// The first one, physical; the guest sees it there as well.
    pub address: u64,
    /// Bytes.
    pub size: u64,
}

/// What can be plugged into a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotKind {
    /// A virtio device, by virtio-mmio.
    Virtio,
    /// Virtio devices, by PCI: several.
    Pci,
    /// An SD card, which is a disk: QEMU's board has the card, and the slot's name is the options of its drive.
    Card,
    /// An SD card, by the bus of an SD host to which QEMU's board gives none.
    CardBus,
    /// A network, by the network card that the board has as so many-th, from 0.
    Nic(usize),
}

impl SlotKind {
    /// How [`Device::slot`] of an SD host begins, if QEMU's board has its card.
    const CARD: &str = "if=sd,";
    /// How it begins if it is the path of a bus.
    const PATH: &str = "/";
    /// How that of a network card of the board begins.
    const NIC: &str = "nic=";

    /// Returns true for a slot for SD cards.
    #[must_use]
    pub const fn is_card(self) -> bool {
        matches!(self, Self::Card | Self::CardBus)
    }

    /// Returns true if a disk can be plugged in.
    #[must_use]
    pub const fn takes_disk(self) -> bool {
        !matches!(self, Self::Nic(_))
    }

    /// Returns true if a network can be plugged in.
    #[must_use]
    pub const fn takes_network(self) -> bool {
        !self.is_card()
    }
}

/// Streams of an SMMU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Streams {
    /// The first one's number.
    pub first: u16,
    /// How many there are.
    pub count: u16,
}

/// An interrupt of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interrupt {
    /// INTID, an SPI.
    pub intid: u32,
    /// How it is signalled.
    pub trigger: Trigger,
}

/// How an interrupt is signalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Trigger {
    /// By a rising edge.
    Edge,
    /// By a high level.
    Level,
}

/// A device tree property.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Property {
    /// There or not.
    Flag(bool),
    /// One cell.
    Cell(u32),
    /// Several cells.
    Cells(Vec<u32>),
    /// A string.
    Text(String),
}

impl Board {
    /// Every board this program knows.
    #[must_use]
    pub fn all() -> &'static [Self] {
        static ALL: LazyLock<Vec<Board>> = LazyLock::new(|| {
            [
                include_str!("../boards/qemu-virt.toml"),
                include_str!("../boards/qemu-virt-gicv2.toml"),
                include_str!("../boards/imx8mp.toml"),
                include_str!("../boards/raspi4b.toml"),
                include_str!("../boards/raspi4b-mini.toml"),
                include_str!("../boards/versal.toml"),
                include_str!("../boards/zcu102.toml"),
            ]
            .map(Board::read)
            .into()
        });
        &ALL
    }

    /// The board of that name.
    #[must_use]
    pub fn find(kind: &str) -> Option<&'static Self> {
        Self::all().iter().find(|board| board.kind == kind)
    }

    /// The device of that name.
    #[must_use]
    pub fn device(&self, name: &str) -> Option<&Device> {
        self.devices.iter().find(|device| device.name == name)
    }

    /// Returns devices into which a disk and a network can be plugged, not the same one: the last that are listed.
    #[must_use]
    pub fn slots(&self) -> [Option<&Device>; 2] {
        let last = |takes: fn(SlotKind) -> bool, other: Option<&Device>| {
            let fits = |device: &&Device| device.slot_kind().is_some_and(takes);
            self.devices.iter().rev().filter(fits).find(|&device| Some(device) != other)
        };
        let disk = last(SlotKind::takes_disk, None);
        [disk, last(SlotKind::takes_network, disk)]
    }

    /// Returns the least time, nanoseconds, that is a whole number of ticks at every rate
    /// at which its counter may count; 1 if none is known.
    #[must_use]
    pub fn tick_grain_ns(&self) -> u64 {
        const SECOND: u64 = 1_000_000_000;
        let grains = self.counter_hz.iter().map(|&hz| SECOND / common_divisor(SECOND, hz));
        grains.fold(1, |all, grain| all / common_divisor(all, grain) * grain)
    }

    /// Reads a board that is built in, so a mistake in it is one of ours and
    /// the tests find it.
    fn read(text: &str) -> Self {
        let mut board: Self = toml::from_str(text).expect("built-in boards are tested");
        board.devices = board.devices.iter().flat_map(Device::expand).collect();
        board
    }
}

impl Gic {
    /// Returns true if it is a GICv2.
    #[must_use]
    pub const fn is_v2(self) -> bool {
        matches!(self, Self::V2(_))
    }

    /// Returns what EL2 has of it on a board with so many pCPUs.
    #[must_use]
    pub fn frames(self, pcpus: usize) -> Vec<Region> {
        match self {
            Self::V3(gic) => vec![
                Region::new(gic.gicd_pa, GICD_SIZE),
                Region::new(gic.gicr_pa, gic.gicr_stride * pcpus as u64),
            ],
            Self::V2(gic) => vec![
                Region::new(gic.gicd_pa, GICD_V2_SIZE),
                Region::new(gic.gicc_pa, 2 * GICC_PAGE),
                Region::new(gic.gich_pa, GICC_PAGE),
            ],
        }
    }
}

impl Device {
    /// Returns what can be plugged in, if anything can: by its slot's name, unless it has a bus.
    #[must_use]
    pub fn slot_kind(&self) -> Option<SlotKind> {
        let slot = self.slot.as_ref()?;
        if self.window.is_some() {
            return Some(SlotKind::Pci);
        }
        if let Some(number) = slot.strip_prefix(SlotKind::NIC) {
            return number.parse().ok().map(SlotKind::Nic);
        }
        Some(match slot {
            slot if slot.starts_with(SlotKind::CARD) => SlotKind::Card,
            slot if slot.starts_with(SlotKind::PATH) => SlotKind::CardBus,
            _ => SlotKind::Virtio,
        })
    }

    /// Returns the interrupts, each once: queues of a device may share one.
    pub fn distinct_interrupts(&self) -> impl Iterator<Item = Interrupt> {
        let all = &self.interrupts;
        let is_first = |at: usize| all[..at].iter().all(|other| other.intid != all[at].intid);
        (0..all.len()).filter(move |&at| is_first(at)).map(|at| all[at])
    }

    /// Returns the registers.
    #[must_use]
    pub fn registers(&self) -> Region {
        Region::new(self.address, self.size)
    }

    /// The whole pages its registers lie in.
    #[must_use]
    pub fn pages(&self) -> Region {
        let start = self.address & !(abi::system::PAGE_SIZE - 1);
        let end = (self.address + self.size).next_multiple_of(abi::system::PAGE_SIZE);
        Region::new(start, end - start)
    }

    /// All whole pages that its VM reaches: those of its registers, and the window of a PCI host bridge.
    pub fn reached(&self) -> impl Iterator<Item = Region> {
        let window = self.window.map(|window| Region::new(window.address, window.size));
        std::iter::once(self.pages()).chain(window)
    }

    /// Returns true if something of a region is reached.
    #[must_use]
    pub fn overlaps(&self, region: Region) -> bool {
        self.reached().any(|reached| reached.overlaps(region))
    }

    fn expand(&self) -> Vec<Self> {
        let Some(count) = self.repeat else { return vec![self.clone()] };
        let copy = |n: u32| Self {
            name: format!("{}-{n}", self.name),
            node: Some(self.node.as_ref().unwrap_or(&self.name).clone()),
            address: self.address + u64::from(n) * self.size,
            slot: self.slot.as_ref().map(|slot| format!("{slot}.{n}")),
            interrupts: self
                .interrupts
                .iter()
                .map(|irq| Interrupt { intid: irq.intid + n, ..*irq })
                .collect(),
            repeat: None,
            ..self.clone()
        };
        (0..count).map(copy).collect()
    }
}

/// The greatest common divisor (Euclid).
fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

fn optional_size<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<u64>, D::Error> {
    size(deserializer).map(Some)
}

fn size<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let text = String::deserialize(deserializer)?;
    crate::size::parse(&text).map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::platform::OCCUPIED;
    use abi::system::stage1::ALIAS;
    use abi::system::{
        FUNCTION_SIZE, HYPERVISOR_SIZE, PAGE_SIZE, RAM_ALIGN, SMMU_SIZE, SPI_END, STREAMS,
    };

    #[test]
    fn every_board_is_sound() {
        for board in Board::all() {
            assert!(board.hypervisor_pa.is_multiple_of(RAM_ALIGN), "{}", board.kind);
            assert!(board.hypervisor_pa >= board.ram_pa);
            assert!(board.ram_pa + board.ram_max <= ALIAS, "{}", board.kind);
            assert!((1..=abi::MAX_PCPUS).contains(&board.pcpu_mpidr.len()));
            assert!((33..=SPI_END).contains(&board.spi_end));
            assert!(board.counter_hz.iter().all(|&hz| hz > 0), "{}", board.kind);
            assert!(board.instruction_ps > 0, "{}", board.kind);
            let uart = Region::new(board.uart_pa, PAGE_SIZE);
            for own in board.gic.frames(board.pcpu_mpidr.len()).into_iter().chain([uart]) {
                assert!(own.is_aligned(PAGE_SIZE), "{}", board.kind);
                assert!(!own.overlaps(Region::new(board.ram_pa, board.ram_max)));
            }
            assert!(board.hypervisor_pa + HYPERVISOR_SIZE < board.ram_pa + board.ram_max);
        }
    }

    #[test]
    fn ticks_are_whole_at_every_rate() {
        let grain = |counter_hz: &[u64]| {
            let board = Board::all()[0].clone();
            Board { counter_hz: counter_hz.to_vec(), ..board }.tick_grain_ns()
        };
        assert_eq!(grain(&[]), 1);
        assert_eq!(grain(&[62_500_000, 1_000_000_000]), 16);
        assert_eq!(grain(&[24_000_000]), 125, "three ticks");
        assert_eq!(grain(&[24_000_000, 62_500_000]), 2_000);
    }

    #[test]
    fn no_device_hides_the_virtual_platform_or_takes_the_hypervisors_own() {
        for board in Board::all() {
            let mut own = board.gic.frames(board.pcpu_mpidr.len());
            own.push(Region::new(board.uart_pa, PAGE_SIZE));
            own.extend(board.smmu_pa.map(|pa| Region::new(pa, SMMU_SIZE)));
            own.extend(OCCUPIED.map(|(base, size)| Region::new(base, size)));
            for device in &board.devices {
                let clear = own.iter().all(|own| !device.overlaps(*own));
                assert!(clear, "{}: {}", board.kind, device.name);
                assert!(device.interrupts.iter().all(|irq| irq.intid < board.spi_end));
                assert!(device.interrupts.iter().all(|irq| irq.intid != board.uart_intid));
            }
        }
    }

    /// They are one board, with another UART.
    #[test]
    fn both_kinds_of_raspberry_pi_have_the_same_devices() {
        let devices = |kind| format!("{:?}", Board::find(kind).unwrap().devices);
        assert_eq!(devices("raspi4b"), devices("raspi4b-mini"));
    }

    /// A driver that knows a clock as slower than it is makes what it divides too fast.
    #[test]
    fn slots_have_a_kind_and_clocks_a_rate_each_or_none() {
        for board in Board::all() {
            for device in &board.devices {
                assert!(device.dma || !device.idle_dma, "{}", device.name);
                assert_eq!(device.slot.is_some(), device.slot_kind().is_some(), "{}", device.name);
                let rates = device.clock_hz.len();
                assert!(rates == 0 || rates == device.clocks.len(), "{}", device.name);
            }
        }
    }

    /// EL2 switches DMA off by the configuration space of each stream's function.
    #[test]
    fn what_an_smmu_confines_has_streams_and_a_function_for_each() {
        for board in Board::all() {
            for device in &board.devices {
                let Some(streams) = device.streams else { continue };
                assert!(device.dma && board.smmu_pa.is_some(), "{}", device.name);
                assert!(streams.count > 0 && streams.first + streams.count <= STREAMS);
                let functions = u64::from(streams.count) * FUNCTION_SIZE;
                assert!(device.window.is_none() || device.size == functions, "{}", device.name);
            }
        }
    }

    #[test]
    fn names_are_unique_and_repeated_devices_stand_side_by_side() {
        let board = Board::find("qemu-virt").unwrap();
        let last = board.device("virtio-mmio-31").unwrap();
        assert_eq!(last.address, 0x0a00_3e00);
        assert_eq!(last.interrupts[0].intid, 79);
        assert_eq!(last.slot.as_deref(), Some("virtio-mmio-bus.31"));
        for (i, device) in board.devices.iter().enumerate() {
            assert!(!board.devices[i + 1..].iter().any(|other| other.name == device.name));
        }
    }
}
