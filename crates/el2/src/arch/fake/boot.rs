//! Where a core begins, and its stack.

use super::machine;

/// `boot!(start)`: where each core begins.
macro_rules! boot {
    ($start:path) => {
        const _: extern "C-unwind" fn(usize) -> ! = $start;
    };
}
pub(crate) use boot;

/// Bytes of one core's stack.
pub const STACK_SIZE: usize = 0x4000;

/// Where the hypervisor would lie.
pub fn image_pa() -> u64 {
    machine::with(|machine| machine.board.hypervisor_pa)
}

/// The word on top of a core's stack.
pub fn stack_top(index: usize) -> *mut u64 {
    machine::with(|machine| &raw mut machine.cores[index].stack_top)
}
