//! The scheduler of the hypervisor in a discrete-event world.
//!
//! What decides here is [`sched`] itself: one
//! [`Scheduler`](sched::Scheduler) for each simulated core, the very type that EL2 uses,
//! and a [`Mailbox`](sched::Mailbox) through which the grant of a resource reaches another
//! core, as a posted interrupt does at EL2.
//! Around it there is what the hypervisor does not decide: guests that schedule
//! tasks by fixed priority, the time that tasks take, and a clock.
//!
//! The model is that of Kim, Wang and Rajkumar (RTSS 2014, Section II). Time is
//! in whole nanoseconds. A decision takes none, and a doorbell none either, unless
//! [`Costs`](system::Costs) say what EL2 takes.
//!
//! | module | story |
//! | --- | --- |
//! | [`system`] | what is simulated, and what makes no sense |
//! | `guest` | which task of a vCPU is next; local resources |
//! | [`mutex`] | global resources: one holder, a two-level priority queue |
//! | `task` | jobs, their segments and how long those take |
//! | [`world`] | events in the order of time |
//! | [`record`] | what became of the tasks |
//! | [`observer`] | what can be watched meanwhile |
//! | [`usage`] | an observer that counts what vCPUs have of their cores |
//! | [`timeline`] | an observer that keeps which vCPU ran when |
//! | [`lock_holders`] | an SMP guest with a lock beside a real-time vCPU, under policies |
//! | [`case_study`] | the system of the paper's Section V-B |
//! | [`checker`] | an observer that objects to whatever the protocol forbids |

#![forbid(unsafe_code)]

pub mod case_study;
pub mod checker;
mod guest;
pub mod lock_holders;
pub mod mutex;
pub mod observer;
pub mod record;
pub mod system;
mod task;
pub mod timeline;
pub mod usage;
pub mod world;

pub use observer::Observer;
pub use system::System;
pub use world::World;
