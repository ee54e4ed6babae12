//! The lines that medians may not cross: what each event may cost, and what it last did.

use analysis::overheads::instructions;

/// What an event may cost, in instructions at EL2.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// Most that the median may have; for visits that are judged together, the mean of what they take.
    pub goal: u32,
    /// What it was when it was last recorded; [`super::smoke`] says when it is exceeded.
    pub recorded: u32,
    /// The median before EL2 enforced budgets (commit c375a69), where there was such an event: systems
    /// without them were not to pay.
    pub before: Option<u32>,
}

/// A virtual timer interrupt that needs no switch: what published hypervisors compare (Bao
/// takes about 189).
pub const TIMER: Line = Line { goal: 190, recorded: 157, before: Some(159) };
/// A call that does nothing.
pub const NULL_CALL: Line = Line { goal: 100, recorded: 87, before: Some(87) };
/// A switch to a vCPU that its timer wakes: an interrupt and a switch in one visit.
pub const WAKE: Line = Line { goal: TIMER.goal + SLEEP.goal, recorded: 702, before: Some(710) };
/// A switch from a vCPU that goes to sleep.
pub const SLEEP: Line = Line { goal: 600, recorded: 595, before: Some(599) };
/// A call that begins or ends a global critical section of the vCPU that runs; the dearer one.
pub const GCS: Line = Line { goal: 150, recorded: 128, before: None };
/// A call that locks or unlocks a mutex that no other vCPU wants; the dearer one.
pub const MUTEX: Line = Line { goal: 250, recorded: 227, before: None };
/// A new period of the server of the vCPU that runs.
pub const REPLENISHMENT: Line = Line { goal: 200, recorded: 172, before: None };
/// The departure of a vCPU, by which the wake of a real-time one is longer.
pub const DEPARTURE: Line = Line { goal: 200, recorded: 169, before: Some(158) };
/// A doorbell that tells the vCPU that runs of a new interrupt. The goal of this and of the next
/// two is what bounds assume of them.
pub const DOORBELL: Line =
    Line { goal: instructions::DOORBELL as u32, recorded: 637, before: None };
/// A call that gives a mutex to a vCPU on another core.
pub const PASS_ON: Line = Line { goal: instructions::GCS_CALL as u32, recorded: 957, before: None };
/// A doorbell that brings a mutex to a vCPU that sleeps, and the switch to that vCPU.
pub const GRANT: Line = Line {
    goal: (instructions::DOORBELL + instructions::GRANT + instructions::SWITCH_ON_WAKE) as u32,
    recorded: 1_624,
    before: None,
};
/// A read of a register that EL2 emulates. The goal of this and of the next two is what bounds
/// assume of another duty.
pub const GIC_READ: Line = Line { goal: instructions::DUTY as u32, recorded: 278, before: None };
/// A write that enables or disables an interrupt; the dearer one.
pub const GIC_WRITE: Line = Line { goal: instructions::DUTY as u32, recorded: 876, before: None };
/// A device's interrupt for the vCPU that runs.
pub const DEVICE: Line = Line { goal: instructions::DUTY as u32, recorded: 722, before: None };
/// The interrupts by which the core that drives the UART learns of 32 bytes, and sends them: one to three, by how many
/// bytes the guest has written when the first comes. The dearest way is recorded, so what makes another one dearer
/// by up to 650 is not seen. The goal is what bounds assume of two other duties, as which the burst counts.
pub const CONSOLE: Line =
    Line { goal: 2 * instructions::DUTY as u32, recorded: 5_372, before: None };

// A burst is two of the other duties, and each of the others is one; a device's interrupt may release
// a job, too.
const _: () = assert!(CONSOLE.recorded <= 2 * instructions::DUTY as u32);
const _: () = assert!(GIC_READ.recorded <= instructions::DUTY as u32);
const _: () = assert!(GIC_WRITE.recorded <= instructions::DUTY as u32);
const _: () = assert!(DEVICE.recorded <= instructions::DEVICE_INTERRUPT as u32);
