//! A VM's devices are silent when it starts: no DMA of an earlier life goes on.

use crate::arch::fake::machine;
use crate::arch::memory;
use abi::status::{Status, vm_state};
use abi::system::{FUNCTION_SIZE, System};

/// Asserts that EL2 has switched the DMA of each function of a VM that runs off since it was started,
/// which it does from the first to the last. To be called while no core is at EL2.
pub fn check(system: &System) {
    if system.smmu.registers_pa == 0 {
        return;
    }
    // SAFETY: it was added to the machine's memory, and no core executes.
    let status = unsafe { &*memory::at::<Status>(system.board.status_pa) };
    for device in system.smmu.confined.iter().filter(|device| device.functions_pa != 0) {
        if status.vms[usize::from(device.vm)].state != vm_state::RUNNING {
            continue;
        }
        machine::with(|machine| {
            let written = machine.smmu.as_ref().expect("there is one").written.iter().rev();
            let functions = device.functions();
            let own = written
                .filter(|(at, _)| (functions.start..functions.start + functions.size).contains(at));
            let commands = (0..u64::from(device.count)).rev();
            let commands = commands.map(|at| (functions.start + at * FUNCTION_SIZE + 4, 0));
            assert!(own.take(device.count.into()).copied().eq(commands), "a device is not silent");
        });
    }
}
