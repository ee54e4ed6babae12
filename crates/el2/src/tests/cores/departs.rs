//! A vCPU that is to leave its base is halted before it does: it stays, as its VM is started there again.

use super::program::{self, loaded, sleep, trap};
use crate::arch::fake::machine;
use crate::arch::fake::registers::Register;
use crate::arch::gic::Doorbell;
use crate::arch::memory;
use crate::arch::sysreg::ec;
use crate::shared::BOARD;
use abi::status::Status;
use sched::{Message, VcpuId};

/// The VM that is reset, its first vCPU, which migrates, and a real-time one at the same base.
const VM: usize = 0;
const MIGRANT: VcpuId = VcpuId(0);
const REALTIME: VcpuId = VcpuId(2);

/// An instruction abort for which stage 2 refuses the permission.
const REFUSED_FETCH: u64 = ec::INSTRUCTION_ABORT << 26 | 1 << 25 | 0b00_1111;
/// SPSR_EL2: EL1 by its own stack pointer.
const KERNEL: u64 = 0b0101;

#[test]
fn a_vcpu_that_is_halted_does_not_depart() {
    program::run("moved-reset.trap-based", |core| {
        assert_eq!(loaded(core), Some(REALTIME));
        sleep(core, 1_000_000_000);
        assert_eq!(loaded(core), Some(MIGRANT));
        // The reset comes as it enters its kernel, which it does elsewhere.
        machine::with(|machine| {
            machine.core_mut().private.latched |= 1 << Doorbell::Ordinary as u32;
            machine.core_mut().registers[Register::named("spsr_el2").0] = KERNEL;
        });
        assert!(BOARD.mailbox(0).send(Message::VmsReset, VM));
        trap(core, REFUSED_FETCH);
        assert_eq!(loaded(core), Some(MIGRANT), "it is started anew");
        // SAFETY: EL2 has mapped the area, and only this core executes.
        let status = unsafe { &*memory::at::<Status>(core.system().board.status_pa) };
        assert_eq!(status.vcpus[MIGRANT.0 as usize].migrations, 0, "it has left and come back");
    });
}
