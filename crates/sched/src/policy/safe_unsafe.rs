//! A vCPU that displaces one in its kernel waits until the latter returns to a program
//! or sleeps, up to a limit (Uhlig, LeVasseur, Skoglund and Dannowski, VM 2004).
//!
//! No vCPU migrates, and no lock holder is preempted within the limit; the real-time
//! guest pays with its latency. An idle kernel sleeps (WFI), and delays no vCPU.

use super::Policy;

pub const POLICY: Policy = Policy { delays_for_kernel: true, ..Policy::NONE };
