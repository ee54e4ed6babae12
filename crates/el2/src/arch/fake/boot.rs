//! Where a core begins, and its stack.

use super::machine;
use abi::system::Region;

/// `boot!(start)`: where each core begins.
macro_rules! boot {
    ($start:path) => {
        const _: extern "C-unwind" fn(usize) -> ! = $start;
    };
}
pub(crate) use boot;

/// As on the machine.
pub const STACK_SIZE: usize = 0x8000;

/// Where the hypervisor would lie.
pub fn image_pa() -> u64 {
    machine::with(|machine| machine.board.hypervisor_pa)
}

/// A core's stack, as far as EL2 looks at it: a word.
pub fn stack(index: usize) -> Region {
    Region::new(stack_top(index) as u64, 8)
}

/// The word on top of a core's stack.
pub fn stack_top(index: usize) -> *mut u64 {
    machine::with(|machine| &raw mut machine.cores[index].stack_top)
}
