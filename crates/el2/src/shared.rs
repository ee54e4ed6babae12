//! All the memory that more than one core writes.
//!
//! Mailboxes, and per VM what its vCPUs share by the nature of the devices they
//! share: interrupt bits, console bytes, whether a sibling is on. Atomics
//! throughout; nobody waits for anybody.

use crate::pcpu::Pcpu;
use crate::transit::Transit;
use crate::vcpu::Vcpu;
use abi::{MAX_PCPUS, MAX_VCPUS, MAX_VMS};
use core::sync::atomic::{AtomicBool, AtomicU32};
use el2::pl011::Pl011;
use el2::power::Power;
use el2::ring::Ring;
use el2::vgic::Gic;
use sched::consolidation::Presence;
use sched::{Mailbox, Place, Recalls};

/// What a VM's vCPUs share.
pub struct Vm {
    /// Its interrupt controller.
    pub gic: Gic,
    /// Its console.
    pub uart: Pl011,
    /// Changes whenever the VM is stopped; written by its home core.
    pub epoch: AtomicU32,
    /// Its vCPUs (bit set by index) that are stopped, and at their base.
    pub halted: AtomicU32,
    /// Its vCPUs (bit set by index) that could run and are displaced, and for
    /// which the others stop.
    pub awaited: AtomicU32,
}

/// By VM; the boot core resets the interrupt controllers before others run.
pub static VMS: [Vm; MAX_VMS] = [const {
    Vm {
        gic: Gic::before_reset(),
        uart: Pl011::new(),
        epoch: AtomicU32::new(0),
        halted: AtomicU32::new(0),
        awaited: AtomicU32::new(0),
    }
}; MAX_VMS];

/// By vCPU.
pub static POWER: [Power; MAX_VCPUS] = [const { Power::new() }; MAX_VCPUS];

/// By vCPU: the core that owns it.
pub static PLACES: [Place; MAX_VCPUS] = [const { Place::new() }; MAX_VCPUS];

/// By vCPU, while it is between two cores.
pub static TRANSITS: [Transit<Vcpu>; MAX_VCPUS] = [const { Transit::new() }; MAX_VCPUS];

/// By core.
pub static MAILBOXES: [Mailbox; MAX_PCPUS] = [const { Mailbox::new() }; MAX_PCPUS];

/// By core: whether it is there, or powered down.
pub static PRESENCE: [Presence; MAX_PCPUS] = [const { Presence::new() }; MAX_PCPUS];

/// By core: its state while it is powered down.
pub static RESTING: [Transit<Pcpu>; MAX_PCPUS] = [const { Transit::new() }; MAX_PCPUS];

/// Cores (bit set) that have nothing to run; kept only where vCPUs may come that
/// could go elsewhere.
pub static IDLE: AtomicU32 = AtomicU32::new(0);

/// Cores (bit set) that have vCPUs which belong elsewhere; kept only as above.
pub static HOSTS: AtomicU32 = AtomicU32::new(0);

/// vCPUs that their bases want back; kept for those that may go on from where they are.
pub static RECALLS: Recalls = Recalls::new();

/// By core: a vCPU of its has lost it to another; kept only if a policy asks.
pub static TAKEN: [AtomicBool; MAX_PCPUS] = [const { AtomicBool::new(false) }; MAX_PCPUS];

/// VMs (bit set) that are not switched off.
pub static ALIVE: AtomicU32 = AtomicU32::new(0);

/// The hypervisor's own console.
pub static LOG: Ring<8192> = Ring::new();
