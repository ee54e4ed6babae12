//! Tests of the virtual interrupt controller against a model of the hardware.
//!
//! - [`cpu`]: list registers and the guest's CPU interface, as IHI 0069H has
//!   them. [`world`]: a VM's vCPUs, its controller, its devices and the doorbells
//!   between the cores, as the hypervisor connects them.
//! - [`registers`], [`registers_v2`], [`delivery`], [`latch`], [`nesting`], [`routing`]: one thing
//!   at a time.
//! - [`random`]: random guests against [`ideal`], the interrupt controller
//!   without list registers or delays. [`delayed`]: the same with slow doorbells.
//! - [`exhaustive`]: every register, in every width. [`best`]: every small choice of the most
//!   urgent.
//! - [`work`]: how much is done between two looks at what is urgent.
//! - [`interleaved`]: two cores, access by access. [`threads`]: real ones.

mod addresses;
mod best;
mod both;
mod chance;
mod cpu;
mod delayed;
mod delivery;
mod exhaustive;
mod ideal;
mod interleaved;
mod latch;
mod ledger;
mod nesting;
pub(super) mod pausing;
mod random;
mod registers;
mod registers_v2;
mod routing;
mod scene;
mod steps;
mod threads;
mod work;
mod world;

use addresses::*;
use cpu::SPURIOUS;
use world::World;

/// List registers that the tests try: the least, few, usual, most.
const COUNTS: [usize; 4] = [1, 2, 4, 16];
