//! What decides on one core.
//!
//! A part owns one invariant, which its documentation states and its `check`
//! asserts. Its fields are private; it is asked, and answers with a small value
//! that must be used. No part sees the core, another part or a register: the
//! core's loop asks and carries out what they answer.
//!
//! | part | owns |
//! | --- | --- |
//! | [`Ledger`] | which vCPU has the core, and since when |
//! | [`Deadlines`] | what EL2's timer is set to |
//! | [`PriorityMask`] | which physical interrupts are kept pending |
//! | [`Jobs`] | what is done for vCPUs before their guests run |
//! | [`Displacement`] | which vCPUs others displace, and which of them are awaited |
//! | [`Visitors`] | vCPUs that are here and belong elsewhere |
//! | [`IdleNews`] | when other cores are told that this one idles |
//! | [`KernelWait`] | a vCPU that may stay until it has left its kernel |
//! | [`TimerAdvance`] | vCPUs that were woken before their timers fire |
//! | [`Consolidation`] | when the core gives its vCPUs away and is powered down |
//! | [`Coordination`] | what becomes of the VMs that are started and stopped here |

mod consolidation;
mod coordination;
mod deadlines;
mod displacement;
mod idle_news;
mod jobs;
mod kernel_wait;
mod ledger;
mod priority_mask;
mod timer_advance;
mod visitors;

pub use consolidation::{Consolidation, Idled, Verdict};
pub use coordination::{Conclusion, Coordination, STOPS};
pub use deadlines::{Deadlines, NEVER};
pub use displacement::Displacement;
pub use idle_news::IdleNews;
pub use jobs::{Cause, Job, Jobs};
pub use kernel_wait::{Gate, KernelWait, Limit};
pub use ledger::Ledger;
pub use priority_mask::{Mask, PriorityMask};
pub use timer_advance::{TimerAdvance, wakes_at};
pub use visitors::Visitors;
