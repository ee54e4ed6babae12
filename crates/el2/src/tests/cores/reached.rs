//! How often EL2 did what histories are to make it do, by its own counters.

use crate::arch::fake::machine;
use crate::arch::memory;
use abi::status::{EXIT_CAUSES, EXIT_NAMES, Status};
use abi::system::{System, server};

/// What is counted besides exits.
const OTHERS: [&str; 14] = [
    "migration",
    "power_down",
    "restart",
    "doorbell",
    "kernel_preemption",
    "rest",
    "raise",
    "overrun",
    "lowered",
    "misuse",
    "throttled",
    "migration_with_budget",
    "throttled_and_migrates",
    "error_of_a_guest_that_has_left",
];

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reached([u64; EXIT_CAUSES + OTHERS.len()]);

impl Reached {
    /// Reads the status area of the machine as it is; `rests`: it came to rest.
    pub fn of(system: &System, rests: bool) -> Self {
        // SAFETY: no core executes, so nothing else accesses the area.
        let status = unsafe { &*memory::at::<Status>(system.board.status_pa) };
        let mut counts = [0; EXIT_CAUSES + OTHERS.len()];
        let (exits, others) = counts.split_at_mut(EXIT_CAUSES);
        for (vcpu, table) in status.vcpus.iter().zip(&system.vcpus) {
            if table.server != server::NONE && vcpu.migrations > 0 {
                others[11] += vcpu.migrations;
                others[12] += vcpu.throttled;
            }
            exits.iter_mut().zip(vcpu.exits).for_each(|(sum, count)| *sum += count);
            others[0] += vcpu.migrations;
            others[4] += vcpu.kernel_preemptions;
            others[6] += vcpu.raised;
            others[7] += vcpu.overruns;
            others[8] += vcpu.lowered;
            others[9] += vcpu.misuses;
            others[10] += vcpu.throttled;
        }
        for pcpu in &status.pcpus {
            others[1] += pcpu.power_downs;
            others[3] += pcpu.doorbells;
        }
        others[13] = machine::with(|machine| machine.errors_ended);
        others[5] = u64::from(rests);
        others[2] = status.vms.iter().map(|vm| vm.starts.saturating_sub(1)).sum();
        Self(counts)
    }

    /// Adds what happened in another history.
    pub fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, count)| *sum += count);
    }

    /// What was counted, by name.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
        EXIT_NAMES.into_iter().chain(OTHERS).zip(self.0)
    }
}
