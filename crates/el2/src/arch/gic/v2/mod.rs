//! A GICv2 (Arm IHI 0048B), whose registers are all in memory.
//!
//! The boot core says once [where they are](place). Private interrupts are in the distributor's
//! registers, of which each core finds its own at the same addresses. Priorities and masks are the
//! same as a GICv3's, in a secure and in a non-secure view (section 4.3.5).
//!
//! An SGI's end has to name the core that sent it. So [`cpu_interface`] ends it as it takes it: what
//! takes one, a doorbell, would do that next anyway.

pub mod cpu_interface;
pub mod distributor;
pub mod list_registers;
pub mod redistributor;

use abi::system::Board;
use core::sync::atomic::{AtomicU64, Ordering};

/// The distributor, the CPU interface, and the control of the virtual one.
static FRAMES: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

/// Says where the board has the registers. Boot core only, before it uses any.
pub fn place(board: &Board) {
    let frames = [board.gicd_pa, board.gicc_pa, board.gich_pa];
    for (place, frame) in FRAMES.iter().zip(frames) {
        place.store(frame, Ordering::Relaxed);
    }
}

/// Returns the address of a register of the distributor.
#[inline(always)]
fn gicd(offset: u64) -> u64 {
    FRAMES[0].load(Ordering::Relaxed) + offset
}

/// Returns the address of a register of the CPU interface.
#[inline(always)]
fn gicc(offset: u64) -> u64 {
    FRAMES[1].load(Ordering::Relaxed) + offset
}

/// Returns the address of a register that controls the virtual CPU interface.
#[inline(always)]
fn gich(offset: u64) -> u64 {
    FRAMES[2].load(Ordering::Relaxed) + offset
}

/// Returns what a guest may find out of this core's interface: it is the same for all, as there is one GIC.
pub fn kind() -> u64 {
    0
}

/// What [`claim`](cpu_interface::claim) refuses: nothing, as no guest reaches what EL2 uses.
pub const UNCLAIMED: &str = "a guest could switch this core's interrupt interface off";
/// What [`reaches`](cpu_interface::reaches) refuses.
pub const UNREACHED: &str = "an affinity above 7 is no number of a GICv2's CPU interface";
/// What [`serves`](redistributor::Redistributor::serves) refuses.
pub const ANOTHERS: &str =
    "a core's affinity (pcpu_mpidr) is not the number of its GICv2's CPU interface";

/// Offsets of the distributor.
mod offset {
    pub const IGROUPR: u64 = 0x080;
    pub const ISENABLER: u64 = 0x100;
    pub const ICENABLER: u64 = 0x180;
    pub const ICPENDR: u64 = 0x280;
    pub const ISACTIVER: u64 = 0x300;
    pub const ICACTIVER: u64 = 0x380;
    pub const IPRIORITYR: u64 = 0x400;
    pub const ITARGETSR: u64 = 0x800;
    pub const ICFGR: u64 = 0xc00;
    pub const SGIR: u64 = 0xf00;
}
