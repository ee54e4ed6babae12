//! What EL2 itself can reach: stage-1 descriptors of the non-VHE EL2 regime
//! (Arm DDI 0487, D8.3.1 and D8.4.1), identity but for guest memory while EL2 fills it.

use super::{Mapping, Root, Tables};
use abi::system::Region;
use abi::system::stage1::{ALIAS, ATTR_DEVICE, ATTR_NORMAL};

/// AF: no access flag faults.
const ACCESSED: u64 = 1 << 10;
/// SH = inner shareable.
const INNER_SHAREABLE: u64 = 0b11 << 8;
/// AP\[1\], which is RES1 in a regime with one exception level.
const AP1_RES1: u64 = 1 << 6;
/// AP\[2\]: read-only.
const READ_ONLY: u64 = 1 << 7;
/// XN.
const NO_EXECUTE: u64 = 1 << 54;

/// What EL2 may do with a range of memory. There is no kind that is both
/// writable and executable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Instructions (and the constants among them).
    Code,
    /// Constants, and the bundle.
    Constant,
    /// Data, stacks, guest memory at its alias.
    Data,
    /// Registers.
    Device,
}

impl Kind {
    const fn attributes(self) -> u64 {
        let normal = (ATTR_NORMAL << 2) | INNER_SHAREABLE;
        let kind = match self {
            Self::Code => normal | READ_ONLY,
            Self::Constant => normal | READ_ONLY | NO_EXECUTE,
            Self::Data => normal | NO_EXECUTE,
            Self::Device => (ATTR_DEVICE << 2) | NO_EXECUTE,
        };
        kind | ACCESSED | AP1_RES1
    }
}

/// Lets EL2 reach a range, with the largest blocks that fit.
pub(crate) fn map(tables: &mut Tables, region: Region, kind: Kind) {
    tables.map(mapping(region, kind, true));
}

/// Like [`map`], in pages only: so that the number of tables does not depend
/// on where one kind of memory ends and the next begins.
pub(crate) fn map_pages(tables: &mut Tables, region: Region, kind: Kind) {
    tables.map(mapping(region, kind, false));
}

/// Makes a root by which EL2 reaches a VM's memory at its alias, and all that is mapped so far.
pub(crate) fn alias(tables: &mut Tables, ram: Region) -> Root {
    let root = tables.second_root();
    let input = Region::new(ALIAS + ram.start, ram.size);
    tables.map_below(root, Mapping { input, ..mapping(ram, Kind::Data, true) });
    root
}

const fn mapping(region: Region, kind: Kind, blocks: bool) -> Mapping {
    Mapping { input: region, output: region.start, attributes: kind.attributes(), blocks }
}
