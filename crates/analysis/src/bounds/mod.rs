//! Bounds on response times under vMPCP (Kim, Wang and Rajkumar, RTSS 2014, with
//! the authors' correction of Equation 6 of 2015).
//!
//! | equation | function of [`Workload`] |
//! | --- | --- |
//! | 1, ght | [`global_resource_holding_time`](Workload::global_resource_holding_time) |
//! | 2, B^v of periodic servers | [`blocking_periodic`](Workload::blocking_periodic) |
//! | 3, sum_ght | [`accumulated_holding_time`](Workload::accumulated_holding_time) |
//! | 4, B^v of deferrable servers | [`blocking_deferrable`](Workload::blocking_deferrable) |
//! | 5, W^v | [`vcpu_response`](Workload::vcpu_response) |
//! | 6, W | [`task_response`](Workload::task_response) |
//! | 7, B^l-lcs | [`lcs_blocking`](Workload::lcs_blocking) |
//! | 8, B^l-gcs | [`gcs_blocking`](Workload::gcs_blocking) |
//! | 9, B^l | [`local_blocking`](Workload::local_blocking) |
//! | 10, B^r | [`remote_blocking`](Workload::remote_blocking) |
//! | 11, B^r of one gcs | [`remote_wait`](Workload::remote_wait) |
//! | 12, load | [`load`](Workload::load) |
//! | 13, vcpu_prm | [`vcpu_preemption`](Workload::vcpu_preemption) |
//! | 14, W^gcs, periodic with overrun | [`gcs_response_periodic_overrun`](Workload::gcs_response_periodic_overrun) |
//! | 15, W^gcs, deferrable with overrun | [`gcs_response_deferrable_overrun`](Workload::gcs_response_deferrable_overrun) |
//! | 16, W^gcs without overrun | [`gcs_response_no_overrun`](Workload::gcs_response_no_overrun) |
//!
//! [`analyze_with`] adds what EL2 takes, which the paper has not: [`Workload::el2_time`] enters
//! Equations 1, 5, 6 and 14 to 16. So does what the paper has not either: handlers of interrupts that
//! release no task ([`Workload::handler_time`]).
//!
//! The paper gives no bounds for MPCP under a hypervisor that does not know of
//! it; neither do we.

mod arithmetic;
mod el2;
mod handlers;
mod local;
mod remote;
mod task;
mod traffic;
mod vcpu;
mod verdict;
mod workload;

pub use arithmetic::{Computed, Uncomputable};
pub use verdict::{
    AnalysisError, Contribution, Section, Share, TaskBound, VcpuBound, Verdict, analyze,
    analyze_with,
};
pub use workload::Workload;

/// Which equations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Bounds {
    /// As the paper has them, with its correction of Equation 6.
    #[default]
    Published,
    /// With Equation 7 mended, which schedules exceed, and the window of Equation
    /// 11 widened, whose derivation leaves something out. Never less than published.
    Corrected,
}

#[cfg(test)]
mod tests;
