//! Tests of the virtual interrupt controller against a model of the hardware.
//!
//! - [`cpu`]: list registers and the guest's CPU interface, as IHI 0069H has
//!   them. [`world`]: a VM's vCPUs, its controller, its devices and the doorbells
//!   between the cores, as the hypervisor connects them.
//! - [`registers`], [`delivery`], [`latch`], [`nesting`], [`routing`]: one thing
//!   at a time.
//! - [`random`]: random guests against [`ideal`], the interrupt controller
//!   without list registers or delays. [`delayed`]: the same with slow doorbells.
//! - [`work`]: how much is done between two looks at what is urgent.
//! - [`interleaved`]: two cores, access by access. [`threads`]: real ones.

mod cpu;
mod delayed;
mod delivery;
mod ideal;
mod interleaved;
mod latch;
mod nesting;
pub(super) mod pausing;
mod random;
mod registers;
mod routing;
mod scene;
mod steps;
mod threads;
mod work;
mod world;

use cpu::SPURIOUS;
use world::World;

/// List registers that the tests try: the least, few, usual, most.
const COUNTS: [usize; 4] = [1, 2, 4, 16];

const GICD_CTLR: u64 = 0x0000;
const IGROUPR: u64 = 0x080;
const ISENABLER: u64 = 0x100;
const ICENABLER: u64 = 0x180;
const ISPENDR: u64 = 0x200;
const ICPENDR: u64 = 0x280;
const ISACTIVER: u64 = 0x300;
const ICACTIVER: u64 = 0x380;
const IPRIORITYR: u64 = 0x400;
const ICFGR: u64 = 0xc00;
const IROUTER: u64 = 0x6000;
