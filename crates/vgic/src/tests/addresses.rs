//! Offsets of registers in the distributor, and in the frames of the redistributors that have the same.

pub const GICD_CTLR: u64 = 0x0000;
pub const IGROUPR: u64 = 0x080;
pub const ISENABLER: u64 = 0x100;
pub const ICENABLER: u64 = 0x180;
pub const ISPENDR: u64 = 0x200;
pub const ICPENDR: u64 = 0x280;
pub const ISACTIVER: u64 = 0x300;
pub const ICACTIVER: u64 = 0x380;
pub const IPRIORITYR: u64 = 0x400;
pub const ICFGR: u64 = 0xc00;
pub const IROUTER: u64 = 0x6000;
