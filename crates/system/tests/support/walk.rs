//! Walks translation tables as the architecture's pseudocode does
//! (AArch64.S2Walk and S1Walk, 4 KiB granule, start at level 1), knowing
//! nothing of how they were built.

use abi::system::Region;
use system::Unpacked;

/// One translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaf {
    pub input: u64,
    pub output: u64,
    pub size: u64,
    /// The descriptor.
    pub descriptor: u64,
}

impl Leaf {
    pub fn output(&self) -> Region {
        Region::new(self.output, self.size)
    }

    pub fn input(&self) -> Region {
        Region::new(self.input, self.size)
    }

    /// A bit field of the descriptor.
    pub fn bits(&self, low: u32, count: u32) -> u64 {
        self.descriptor >> low & ((1 << count) - 1)
    }
}

/// Every translation below a root, in ascending order of input address.
pub fn walk(system: &Unpacked<'_>, root: u64) -> Vec<Leaf> {
    let mut leaves = Vec::new();
    table(system, root, 1, 0, &mut leaves);
    leaves
}

fn table(system: &Unpacked<'_>, pa: u64, level: u32, base: u64, leaves: &mut Vec<Leaf>) {
    assert_eq!(pa % 4096, 0, "a table at {pa:#x}");
    let bytes = system.at(Region::new(pa, 4096)).expect("tables lie in the bundle");
    let size = match level {
        1 => 1 << 30,
        2 => 1 << 21,
        _ => 1 << 12,
    };
    for (i, entry) in bytes.chunks_exact(8).enumerate() {
        let descriptor = u64::from_le_bytes(entry.try_into().unwrap());
        let input = base + i as u64 * size;
        let output = descriptor & 0x0000_ffff_ffff_f000;
        match (level, descriptor & 0b11) {
            (_, 0b00) => assert_eq!(descriptor, 0, "an invalid descriptor that is not empty"),
            (1 | 2, 0b11) => {
                assert_eq!(descriptor & !0x0000_ffff_ffff_f003, 0, "table attributes");
                table(system, output, level + 1, input, leaves);
            }
            (1 | 2, 0b01) | (3, 0b11) => {
                assert_eq!(output % size, 0, "an unaligned block at {input:#x}");
                leaves.push(Leaf { input, output, size, descriptor });
            }
            _ => panic!("reserved descriptor {descriptor:#x} at level {level}"),
        }
    }
}

/// Where an input address leads, and with which descriptor.
pub fn translate(leaves: &[Leaf], address: u64) -> Option<(u64, Leaf)> {
    let i = leaves.partition_point(|leaf| leaf.input <= address).checked_sub(1)?;
    let leaf = leaves[i];
    let offset = address - leaf.input;
    (offset < leaf.size).then_some((leaf.output + offset, leaf))
}
