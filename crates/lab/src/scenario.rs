//! Tests of the hypervisor on a machine, with the probe guest.
//!
//! | module | story |
//! | --- | --- |
//! | [`probe`] | what the probe's console says |
//! | [`expect`] | what is expected of each VM, and whether that has come |
//! | [`staged`] | a system description from `guests/probe/systems`, booted and judged |
//! | [`moved`] | vCPUs that migrate while something else happens, under each policy |
//! | [`gathered`] | cores that are powered down while there is little to do |
//! | [`stock`] | stock Linux under each policy, beside an RTOS and a neighbour that crashes |
//! | [`reference`] | the probe without a hypervisor, which keeps its tests honest |
//! | [`damaged`] | systems that EL2 must refuse |
//! | [`typed`] | what is typed reaches the guest it is meant for |
//! | [`list`] | all of them |
//!
//! Systems of ours run in virtual time, so that a busy computer changes nothing;
//! the reference runs in real time, as it asks for no more than order. Time
//! limits here are failsafes that turn a hang into a message; nothing is
//! concluded from how long anything took.

pub mod damaged;
pub mod expect;
pub mod gathered;
pub mod list;
pub mod moved;
pub mod probe;
pub mod reference;
pub mod staged;
pub mod stock;
pub mod typed;

pub use list::all;

use std::time::Duration;

/// When a scenario that has not come to its end never will.
const LIMIT: Duration = Duration::from_secs(600);
