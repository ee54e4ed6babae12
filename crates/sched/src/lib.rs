//! Who runs next.
//!
//! A [`Scheduler`] is the state of one physical core: events go in (a vCPU
//! arrives, departs, wakes, sleeps), and [`Scheduler::decide`] answers which
//! vCPU runs and until when. A [`Mailbox`] is how other cores reach that core.
//!
//! | module | story |
//! | --- | --- |
//! | [`Scheduler`] | fixed priorities, round robin among equals |
//! | [`ceiling`] | priorities inside and outside global critical sections |
//! | [`server`] | budgets: how much of a core a vCPU gets, and when again |
//! | [`BudgetScheduler`] | a [`Scheduler`] whose vCPUs have servers and ceilings |
//! | [`mutex`] | global resources: one holder, a two-level priority queue |
//! | [`Mailbox`] | how other cores reach a core |
//! | [`Place`] | on which core a vCPU is |
//! | [`consolidation`] | when a core is powered down, and when it is wanted again |
//! | [`policy`] | what becomes of a vCPU when another takes its core |
//!
//! Nothing here has a clock, a register, an allocation or a lock: the caller
//! says what time it is and carries the decision out. The hypervisor does so at
//! EL2, the simulator on a laptop, with this very code (docs/src/design/decisions.md, 1).

#![no_std]
#![forbid(unsafe_code)]

mod budget;
pub mod ceiling;
pub mod consolidation;
mod mailbox;
pub mod mutex;
mod place;
pub mod policy;
mod recall;
mod scheduler;
pub mod server;
mod time;

pub use budget::{Allotment, BudgetScheduler, Departure};
pub use mailbox::{Mailbox, Members, Message, Word};
pub use place::{Place, Slot};
pub use recall::Recalls;
pub use scheduler::{Decision, Params, Priority, Refusal, Scheduler, State, VcpuId};
pub use time::{Duration, Instant};

/// Most vCPUs that can exist in a system, and therefore on one core.
pub const MAX_VCPUS: usize = 64;
