//! Which vCPU runs next.
//!
//! A [`Scheduler`] is the state of one physical core: events go in (a vCPU
//! arrives, departs, wakes, sleeps), and [`Scheduler::decide`] returns which
//! vCPU runs and until when. Other cores send that core messages in a [`Mailbox`].
//!
//! | module | story |
//! | --- | --- |
//! | [`Scheduler`] | fixed priorities, round robin among equals, budgets, ceilings |
//! | [`ceiling`] | priorities inside and outside global critical sections |
//! | [`claims`] | the mutex of a global resource, in one word |
//! | [`server`] | budgets: how long a vCPU may run in each period |
//! | [`Mailbox`] | messages for a core |
//! | [`Location`] | on which core a vCPU is |
//! | [`Switchboard`] | the protocol by which vCPUs move between cores |
//! | [`consolidation`] | when a core is powered down, and when it is called back |
//! | [`topology`] | which vCPUs share cores, and which displace others |
//! | [`VcpuSet`], [`CoreSet`], [`VcpuMap`] | sets and maps of vCPUs and cores |
//! | [`policy`] | what becomes of a vCPU when another takes its core |
//!
//! Nothing here has a clock, a register, an allocation or a lock: the caller
//! passes the time and carries the decision out. The hypervisor does so at EL2, and
//! the simulator on a host (docs/src/design/decisions.md, 1).

#![no_std]
#![forbid(unsafe_code)]

pub mod ceiling;
pub mod claims;
pub mod consolidation;
mod location;
mod mailbox;
pub mod policy;
mod recall;
mod scheduler;
pub mod server;
mod sets;
mod switchboard;
mod time;
pub mod topology;
mod unread;

pub use location::{AtomicCell, Location};
pub use mailbox::{Mailbox, Members, Message, Word};
pub use recall::Recalls;
pub use scheduler::{
    Boost, Compact, Decision, MAX_BOOSTS, Params, Priority, Refusal, Removed, Reported, Scheduler,
    State, VcpuId, Woken,
};
pub use sets::{CoreSet, Member, Set, VcpuMap, VcpuSet};
pub use switchboard::{Recall, Received, Switchboard};
pub use time::{Duration, Instant};
pub use unread::Unread;

/// Most vCPUs that can exist in a system, and therefore on one core.
pub const MAX_VCPUS: usize = 64;
