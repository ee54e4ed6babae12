//! What a guest and EL2 tell each other about preemption, in memory: a line of 64 bytes for each vCPU,
//! which both read and write ([`crate::service::PREEMPTION_LINE`]; Uhlig and others, VM 2004; thesis,
//! section 2.2.2). Words are little-endian.

use crate::platform::LINE_STRIDE;
use core::sync::atomic::{AtomicU32, Ordering};

/// The line of a vCPU. The guest may write anything at any time: EL2 uses each word that it reads once
/// and for nothing but one decision, and reads no word that it has written itself.
#[derive(Debug)]
#[repr(C)]
pub struct Line {
    /// Written by the guest: how many locks that others spin for it holds. While it is not 0, a vCPU
    /// that displaces this one waits, under `delayed-page`.
    pub desire_no_preempt: AtomicU32,
    /// Written by EL2: 1 when another vCPU waits for this one. The guest clears it when it has released
    /// its last lock, and then calls [`crate::service::YIELD`].
    pub cancelled: AtomicU32,
    /// Written by EL2, when the vCPU is switched on: how long others wait at most, nanoseconds;
    /// `u32::MAX`: as long as it takes.
    pub grace_ns: AtomicU32,
    /// Written by EL2: 1 while another vCPU of the VM is on the same core, running or not; else 0.
    pub overcommitted: AtomicU32,
    /// Written by the guest: what it runs, as X2 of [`crate::service::BOOST`] and from bit 8 on X3; 0:
    /// nothing urgent. EL2 reads it when it decides which vCPU has the core.
    pub task: AtomicU32,
    /// Written by EL2: 1 while the vCPU is boosted and others share its core. A guest that has cleared
    /// `task` calls [`crate::service::DEBOOST`] then.
    pub awaited: AtomicU32,
    reserved: [u32; 10],
}

const _: () = assert!(size_of::<Line>() as u64 == LINE_STRIDE);

impl Line {
    /// Begins a life of the vCPU. What an earlier life wrote is forgotten.
    pub fn begin(&self, grace_ns: u32) {
        self.desire_no_preempt.store(0, Ordering::Relaxed);
        self.cancelled.store(0, Ordering::Relaxed);
        self.task.store(0, Ordering::Relaxed);
        self.awaited.store(0, Ordering::Relaxed);
        self.grace_ns.store(grace_ns, Ordering::Relaxed);
    }

    /// Returns true if the guest asks not to be preempted now.
    #[must_use]
    pub fn asks(&self) -> bool {
        self.desire_no_preempt.load(Ordering::Relaxed) != 0
    }
}
