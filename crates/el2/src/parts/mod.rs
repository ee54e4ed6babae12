//! Parts: each decides one thing on one core.
//!
//! A part owns one invariant, which its documentation states and its `check`
//! asserts. Its fields are private; its methods return small values that must be
//! used. No part sees the core, another part or a register: the core calls the
//! parts, and carries out what they return.
//!
//! | part | owns |
//! | --- | --- |
//! | [`Ledger`] | which vCPU has the core, and since when |
//! | [`Deadlines`] | what EL2's timer is set to |
//! | [`PriorityMask`] | which physical interrupts are kept pending |
//! | [`Jobs`] | what EL2 does in pieces, in the time of a vCPU |
//! | [`Precedence`] | whose pieces come before whose guest |
//! | [`Displacement`] | which vCPUs are displaced, and which the core awaits back |
//! | [`Visitors`] | vCPUs that are here and belong elsewhere |
//! | [`IdleNews`] | when this core tells others that it idles |
//! | [`KernelWait`] | delayed preemption: a vCPU keeps the core until it has left its kernel |
//! | [`TimerAdvance`] | vCPUs that were woken before their timers fire |
//! | [`Consolidation`] | when the core gives its vCPUs away and is powered down |
//! | [`Watchdog`] | whether other cores still take interrupts |
//! | [`Coordination`] | starting and stopping the VMs that this core coordinates |

mod consolidation;
mod coordination;
mod deadlines;
mod displacement;
mod idle_news;
mod jobs;
mod kernel_wait;
mod ledger;
mod precedence;
mod priority_mask;
mod timer_advance;
mod visitors;
mod watchdog;

pub use consolidation::{BUILT as CONSOLIDATES, Consolidation, Idled, Verdict};
pub use coordination::{Coordination, Step};
pub use deadlines::{Deadlines, NEVER};
pub use displacement::Displacement;
pub use idle_news::IdleNews;
pub use jobs::{Cause, Job, Jobs};
pub use kernel_wait::{Gate, KernelWait, Limit};
pub use ledger::Ledger;
pub use precedence::{Precedence, Standing};
pub use priority_mask::{Mask, PriorityMask};
pub use timer_advance::{Advance, TimerAdvance, wakes_at};
pub use visitors::Visitors;
pub use watchdog::{UNWATCHED, Watchdog};
