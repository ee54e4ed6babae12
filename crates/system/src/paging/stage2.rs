//! What a VM can reach: stage-2 descriptors (Arm DDI 0487, D8.3.2, and D8.4.6
//! for MemAttr without FEAT_S2FWB).

use super::{Mapping, Tables};
use abi::system::Region;
use sched::policy::View;

/// AF: no access flag faults.
const ACCESSED: u64 = 1 << 10;
/// SH = inner shareable.
const INNER_SHAREABLE: u64 = 0b11 << 8;
/// S2AP: readable.
const READ: u64 = 0b01 << 6;
/// S2AP: writable.
const WRITE: u64 = 0b10 << 6;
/// MemAttr = Normal, inner and outer write-back: stage 1 decides.
const NORMAL: u64 = 0b1111 << 2;
/// MemAttr = Normal, inner and outer non-cacheable, unless stage 1 says Device.
const NON_CACHEABLE: u64 = 0b0101 << 2;
/// MemAttr = Device-nGnRE.
const DEVICE: u64 = 0b0001 << 2;
/// XN\[1:0\] = 0b10: not executable, at EL0 or at EL1.
const NO_EXECUTE: u64 = 0b10 << 53;

/// XN\[1:0\] = 0b01: executable at EL0 only (FEAT_XNX).
const EXECUTE_AT_EL0: u64 = 0b01 << 53;
/// XN\[1:0\] = 0b11: executable at EL1 only (FEAT_XNX).
const EXECUTE_AT_EL1: u64 = 0b11 << 53;

/// What a range of guest-physical addresses is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Guest memory, of which that view lets something be executed.
    Ram(View),
    /// Memory that holds data only: the report area, shared memory.
    Data,
    /// Memory the guest may only read: stolen time, shared memory.
    ReadOnly,
    /// A half of a link's memory.
    Link {
        /// Stage 1 decides whether it is cached. Else it is not, whatever stage 1 says: so both guests see
        /// the same, also where one of them maps it as a device's, as Linux's `uio_pdrv_genirq` does.
        cached: bool,
        /// The half that this VM writes.
        writable: bool,
    },
    /// A passed-through device.
    Device,
    /// The window of a PCI host bridge, which is large.
    Window,
}

impl Kind {
    const fn attributes(self) -> u64 {
        let kind = match self {
            Self::Ram(view) => {
                let execute = match view {
                    View::Full => 0,
                    View::UserOnly => EXECUTE_AT_EL0,
                    View::KernelOnly => EXECUTE_AT_EL1,
                };
                NORMAL | INNER_SHAREABLE | READ | WRITE | execute
            }
            Self::Data => NORMAL | INNER_SHAREABLE | READ | WRITE | NO_EXECUTE,
            Self::ReadOnly => NORMAL | INNER_SHAREABLE | READ | NO_EXECUTE,
            Self::Link { cached, writable } => {
                let kind = if cached { NORMAL } else { NON_CACHEABLE };
                kind | INNER_SHAREABLE | READ | if writable { WRITE } else { 0 } | NO_EXECUTE
            }
            Self::Device | Self::Window => DEVICE | READ | WRITE | NO_EXECUTE,
        };
        kind | ACCESSED
    }
}

/// Lets the guest reach `size` bytes of `output` at `ipa`.
pub(crate) fn map(tables: &mut Tables, ipa: u64, output: Region, kind: Kind) {
    let input = Region::new(ipa, output.size);
    let blocks = kind != Kind::Device;
    tables.map(Mapping { input, output: output.start, attributes: kind.attributes(), blocks });
}
