//! Offsets that a distributor and a redistributor's frame of private interrupts have alike, in a GICv2
//! (Arm IHI 0048B, table 4-1) and in a GICv3 (Arm IHI 0069, sections 12.8 and 12.10).

pub const IGROUPR: u64 = 0x080;
pub const ISENABLER: u64 = 0x100;
pub const ICENABLER: u64 = 0x180;
pub const ICPENDR: u64 = 0x280;
pub const ISACTIVER: u64 = 0x300;
pub const ICACTIVER: u64 = 0x380;
pub const IPRIORITYR: u64 = 0x400;
pub const ICFGR: u64 = 0xc00;
