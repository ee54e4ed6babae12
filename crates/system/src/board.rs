//! Boards: plain data about physical machines.
//!
//! A board is a TOML file in `boards/`; adding one is adding a file and its
//! line in [`Board::all`].

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
    /// GICv3 distributor.
    pub gicd_pa: u64,
    /// First GICv3 redistributor.
    pub gicr_pa: u64,
    /// Distance between two redistributors.
    pub gicr_stride: u64,
    /// One past the last SPI that has a source.
    pub spi_end: u32,
    /// Rates at which its counter may count, Hz; none: not known.
    #[serde(default)]
    pub counter_hz: Vec<u64>,
    /// Picoseconds for an instruction at EL2, for bounds.
    pub instruction_ps: u64,
    /// List registers of each pCPU, for bounds; none: not known, so as many as there may be.
    pub list_registers: Option<usize>,
    /// The PL011 that carries all consoles.
    pub uart_pa: u64,
    /// The interrupt.
    pub uart_intid: u32,
    /// What may be passed through to a guest.
    #[serde(rename = "device")]
    pub devices: Vec<Device>,
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
    /// Device tree `compatible`, most special first.
    pub compatible: Vec<String>,
    /// The interrupts, in the order its device tree binding wants.
    pub interrupts: Vec<Interrupt>,
    /// Names of its clock inputs.
    #[serde(default)]
    pub clocks: Vec<String>,
    /// Further device tree properties.
    #[serde(default)]
    pub properties: BTreeMap<String, Property>,
    /// True if it reads or writes memory by itself.
    #[serde(default)]
    pub dma: bool,
    /// What QEMU calls it, if a disk or a network can be plugged into it.
    pub slot: Option<String>,
    /// How many of them stand side by side, addresses `size` and interrupts 1
    /// apart; only in the file, expanded when it is read.
    repeat: Option<u32>,
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
        static ALL: LazyLock<Vec<Board>> =
            LazyLock::new(|| [include_str!("../boards/qemu-virt.toml")].map(Board::read).into());
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

impl Device {
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

fn size<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let text = String::deserialize(deserializer)?;
    crate::size::parse(&text).map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::platform::OCCUPIED;
    use abi::system::stage1::ALIAS;
    use abi::system::{HYPERVISOR_SIZE, PAGE_SIZE, RAM_ALIGN, SPI_END};

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
            for address in [board.gicd_pa, board.gicr_pa, board.uart_pa] {
                assert!(address.is_multiple_of(PAGE_SIZE) && address < board.ram_pa);
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
            let own = [
                (board.gicd_pa, 0x1_0000),
                (board.gicr_pa, board.gicr_stride * board.pcpu_mpidr.len() as u64),
                (board.uart_pa, 0x1000),
            ];
            for device in &board.devices {
                for (base, size) in OCCUPIED.into_iter().chain(own) {
                    let clear = !device.pages().overlaps(Region::new(base, size));
                    assert!(clear, "{}: {}", board.kind, device.name);
                }
                assert!(device.interrupts.iter().all(|irq| irq.intid != board.uart_intid));
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
