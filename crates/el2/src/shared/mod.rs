//! The memory that more than one core writes.
//!
//! Mailboxes, and for each VM what its vCPUs share: interrupt bits, console bytes,
//! whether a sibling is on. All of it is atomic; no core waits for another.
//!
//! What one VM or one core writes often is in cache lines of its own (of 128 bytes, as processors fetch
//! pairs of 64): else a guest could make another one's store-exclusives fail, as often as it likes.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`mutex`] | a mutex that vCPUs of several VMs share |
//! | [`sections`] | how often calls of its VM have raised a vCPU |
//! | [`power`] | whether a vCPU is on |
//! | [`rest`] | how long a core has idled |
//! | [`set`] | a set that several cores change |
//! | [`hand_over`] | a vCPU on its way from one core to another |
//! | [`ring`] | bytes that any core fills and one empties |
//! | [`pl011`] | a VM's console |

pub mod hand_over;
pub mod mutex;
pub mod pl011;
pub mod power;
pub mod rest;
pub mod ring;
pub mod sections;
pub mod set;

use crate::arch::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64};
use crate::arch::statics;
use abi::platform::MAX_LINKS;
use abi::system::MAX_MUTEXES;
use abi::{MAX_PCPUS, MAX_VCPUS, MAX_VMS};
use core::ops::Deref;
use mutex::Mutex;
use pl011::Pl011;
use power::Power;
use rest::Rest;
use ring::Ring;
use sched::consolidation::Presence;
use sched::{Location, Mailbox, Message, Recalls, Switchboard};
pub use sections::Sections;
pub use set::{AtomicSet, Sibling, SiblingSet, VmIndex, VmSet, siblings};
use vgic::Gic;

/// Something in cache lines of its own.
#[repr(align(128))]
pub struct Apart<T>(pub T);

impl<T> Deref for Apart<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}

/// What a VM's vCPUs share.
pub struct Vm {
    /// The interrupt controller.
    pub gic: Gic,
    /// The console.
    pub uart: Pl011,
    /// Changes whenever the VM is stopped; written by its coordinator.
    pub epoch: AtomicU32,
    /// The vCPUs that are halted: off, and at their base or on its consolidation target.
    pub halted: AtomicSet<Sibling>,
    /// The vCPUs that could run and are displaced, and for which their siblings stop
    /// (coscheduling).
    pub stalled: AtomicSet<Sibling>,
    /// It has caused a system error that came when none of its vCPUs ran there any more.
    pub erred: AtomicBool,
    /// What its migration policy says when a vCPU is displaced ([`sched::policy::Answers`]).
    pub answers: AtomicU32,
}

/// A link between two VMs.
pub struct Link {
    /// By side: until when its doorbell is armed, ticks; 0: it is not.
    pub armed_until: [AtomicU64; 2],
}

/// What a VM with virtio devices of another one has asked of that ([`abi::virtio`]).
pub struct Front {
    /// The access that the back has to carry out ([`abi::virtio::Request`]).
    pub request: AtomicU64,
    /// The vCPUs that sleep until that changes, and more.
    pub waiting: AtomicSet<Sibling>,
    /// Queues of which it has notified, bit 8 * device + queue, and [`abi::virtio::RESTARTED`].
    pub notified: AtomicU64,
    /// What its interrupts are for, a byte for each device.
    pub raised: AtomicU32,
    /// The back's doorbell is armed.
    pub armed: AtomicBool,
}

statics! {
    /// By VM; the boot core resets the interrupt controllers before others run.
    pub static VMS: [Vm; MAX_VMS] = [const {
        Vm {
            gic: Gic::before_reset(),
            uart: Pl011::new(),
            epoch: AtomicU32::new(0),
            halted: AtomicSet::new(),
            stalled: AtomicSet::new(),
            erred: AtomicBool::new(false),
            answers: AtomicU32::new(0),
        }
    }; MAX_VMS];

    /// By vCPU.
    pub static POWER: [Apart<Power>; MAX_VCPUS] = [const { Apart(Power::new()) }; MAX_VCPUS];

    /// By vCPU.
    pub static SECTIONS: [Apart<Sections>; MAX_VCPUS] =
        [const { Apart(Sections::new()) }; MAX_VCPUS];

    /// By their numbers in the tables.
    pub static MUTEXES: [Apart<Mutex>; MAX_MUTEXES] = [const { Apart(Mutex::new()) }; MAX_MUTEXES];

    /// By their numbers in the tables.
    pub static LINKS: [Apart<Link>; MAX_LINKS] =
        [const { Apart(Link { armed_until: [const { AtomicU64::new(0) }; 2] }) }; MAX_LINKS];

    /// By VM.
    pub static FRONTS: [Apart<Front>; MAX_VMS] = [const {
        Apart(Front {
            request: AtomicU64::new(0),
            waiting: AtomicSet::new(),
            notified: AtomicU64::new(0),
            raised: AtomicU32::new(0),
            armed: AtomicBool::new(false),
        })
    }; MAX_VMS];

    /// Messages between cores, and where vCPUs are.
    pub static BOARD: Switchboard<MAX_PCPUS, MAX_VCPUS, AtomicU64, AtomicU8> = Switchboard::within(
        [const {
            Mailbox::within(AtomicU64::new(0), [const { AtomicU64::new(0) }; Message::KINDS])
        }; MAX_PCPUS],
        [const { Location::within(AtomicU8::new(0)) }; MAX_VCPUS],
        Recalls::within(AtomicU64::new(0)),
        [const { Presence::within(AtomicU8::new(0)) }; MAX_PCPUS],
    );

    /// By vCPU: the core where it was asked to be, or its base, if its policy is `on-request`.
    pub static REQUESTED: [AtomicU8; MAX_VCPUS] = [const { AtomicU8::new(0) }; MAX_VCPUS];

    /// By core: how long it has idled; kept where vCPUs are consolidated.
    pub static RESTS: [Rest; MAX_PCPUS] = [const { Rest::new() }; MAX_PCPUS];

    /// Cores that have nothing to run. Only cores to which vCPUs may come that have a choice
    /// are ever in it.
    pub static IDLE: AtomicSet<usize> = AtomicSet::new();

    /// Cores that have visitors.
    pub static HOSTS: AtomicSet<usize> = AtomicSet::new();

    /// By core: a vCPU that is based there is displaced. Only set where a policy asks.
    pub static TAKEN: [Apart<AtomicBool>; MAX_PCPUS] =
        [const { Apart(AtomicBool::new(false)) }; MAX_PCPUS];

    /// Counter when the first period of every budget begins; the boot core sets it before
    /// others run.
    pub static EPOCH: AtomicU64 = AtomicU64::new(0);

    /// By core: counter when it last gave the watchdog a sign of life; 0: no core waits for one.
    pub static SIGNS: [Apart<AtomicU64>; MAX_PCPUS] =
        [const { Apart(AtomicU64::new(0)) }; MAX_PCPUS];

    /// VMs that are not switched off.
    pub static ALIVE: AtomicSet<VmIndex> = AtomicSet::new();

    /// The hypervisor's own console.
    pub static LOG: Ring<8192> = Ring::new();
}
