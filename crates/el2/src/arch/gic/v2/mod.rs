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

/// GICD_ITARGETSR: by interrupt, the numbers of the CPU interfaces it goes to.
const ITARGETSR: u64 = 0x800;

/// Everything is in group 0.
pub const GROUP: u32 = 0;

/// Checks this core's interface and that it reaches the others', by the core's index and affinity.
///
/// # Errors
/// Says in words why they cannot be had as EL2 needs them.
pub fn check(board: &Board, index: usize, affinity: u64) -> Result<(), &'static str> {
    if !redistributor::serves(redistributor::frame(board, index), affinity) {
        return Err(
            "a core's affinity (pcpu_mpidr) is not the number of its GICv2's CPU interface",
        );
    }
    if board.pcpu_mpidr.into_iter().any(|affinity| affinity & 0xff > 7) {
        return Err("an affinity above 7 is no number of a GICv2's CPU interface");
    }
    Ok(())
}
