//! The state of 32 interrupts, a bit each.
//!
//! | word | written by |
//! | --- | --- |
//! | enabled, group, edge, priority | guests' register writes |
//! | pending | any core posts; the owner of the target takes |
//! | level | the emulated device |
//! | active, running | the owner of the vCPU that took the interrupt; GICD_ISACTIVER |
//! | listed | the owner, while the interrupt is in one of its list registers |
//! | drop_pending, drop_active | a register write about an interrupt that a vCPU has listed or active: its owner obeys when it takes it back |
//! | drop_physical | GICD_ICPENDR, of a latch that may have stood for a physical interrupt, while the interrupt was listed: its owner deactivates that |

use crate::atomic::{AtomicU8, AtomicU32};
use core::sync::atomic::Ordering;

/// See the module.
pub struct Bank {
    pub(crate) enabled: AtomicU32,
    /// 1: group 1.
    pub(crate) group: AtomicU32,
    /// 1: edge-triggered.
    pub(crate) edge: AtomicU32,
    /// Latched.
    pub(crate) pending: AtomicU32,
    /// State of the line.
    pub(crate) level: AtomicU32,
    pub(crate) active: AtomicU32,
    pub(crate) listed: AtomicU32,
    pub(crate) drop_pending: AtomicU32,
    pub(crate) drop_active: AtomicU32,
    pub(crate) drop_physical: AtomicU32,
    pub(crate) priority: [AtomicU8; 32],
    /// With which priority an active interrupt was acknowledged: the order in
    /// which they end, whatever was written to `priority` since.
    pub(crate) running: [AtomicU8; 32],
}

impl Bank {
    /// All zero: nothing enabled, nothing pending, group 0, level-sensitive.
    pub(crate) const fn new() -> Self {
        Self {
            enabled: AtomicU32::new(0),
            group: AtomicU32::new(0),
            edge: AtomicU32::new(0),
            pending: AtomicU32::new(0),
            level: AtomicU32::new(0),
            active: AtomicU32::new(0),
            listed: AtomicU32::new(0),
            drop_pending: AtomicU32::new(0),
            drop_active: AtomicU32::new(0),
            drop_physical: AtomicU32::new(0),
            priority: [const { AtomicU8::new(0) }; 32],
            running: [const { AtomicU8::new(0) }; 32],
        }
    }

    /// As [`Self::new`] made it, but for what is edge-triggered: `edge`.
    pub(crate) fn reset(&self, edge: u32) {
        for word in [
            &self.enabled,
            &self.group,
            &self.pending,
            &self.level,
            &self.active,
            &self.listed,
            &self.drop_pending,
            &self.drop_active,
            &self.drop_physical,
        ] {
            word.store(0, Ordering::Relaxed);
        }
        self.edge.store(edge, Ordering::Relaxed);
        self.priority.iter().for_each(|priority| priority.store(0, Ordering::Relaxed));
    }

    /// Pending as a guest sees it: latched, or by its level.
    pub(crate) fn pending_bits(&self) -> u32 {
        let level = self.level.load(Ordering::Relaxed) & !self.edge.load(Ordering::Relaxed);
        self.pending.load(Ordering::Acquire) | level
    }

    /// Pending, and [`Self::acceptable`].
    pub(crate) fn deliverable(&self, ctlr: u32) -> u32 {
        self.pending_bits() & self.acceptable(ctlr)
    }

    /// Enabled, its group enabled in GICD_CTLR, and not being dealt with
    /// already.
    pub(crate) fn acceptable(&self, ctlr: u32) -> u32 {
        let group = self.group.load(Ordering::Relaxed);
        let mut groups = 0;
        if ctlr & crate::CTLR_GROUP1 != 0 {
            groups |= group;
        }
        if ctlr & crate::CTLR_GROUP0 != 0 {
            groups |= !group;
        }
        self.enabled.load(Ordering::Relaxed) & groups & !self.busy()
    }

    /// Listed, or active without being listed. In this order, since an active
    /// one that leaves its list register becomes active here first.
    pub(crate) fn busy(&self) -> u32 {
        let listed = self.listed.load(Ordering::Acquire);
        listed | self.active.load(Ordering::Acquire)
    }

    pub(crate) fn is_active(&self, intid: u32) -> bool {
        self.active.load(Ordering::Acquire) >> (intid % 32) & 1 != 0
    }

    /// Takes a request back, `bit` of [`Self::drop_pending`] or
    /// [`Self::drop_active`]. Answers whether there was one.
    pub(crate) fn take_request(&self, requests: &AtomicU32, bit: u32) -> bool {
        requests.load(Ordering::Acquire) & bit != 0
            && requests.fetch_and(!bit, Ordering::AcqRel) & bit != 0
    }

    /// Returns true if a register write asks something of the holder of any interrupt.
    pub(crate) fn has_requests(&self) -> bool {
        let requests = [&self.drop_pending, &self.drop_active, &self.drop_physical];
        requests.iter().any(|word| word.load(Ordering::Acquire) != 0)
    }

    /// Takes these requests back. Answers those of them that there were.
    pub(crate) fn take_requests(requests: &AtomicU32, bits: u32) -> u32 {
        if bits == 0 { 0 } else { requests.fetch_and(!bits, Ordering::AcqRel) & bits }
    }

    /// Requests that came too late for the former holder of an interrupt do not
    /// concern the next.
    pub(crate) fn forget_requests(&self, bit: u32) {
        self.take_request(&self.drop_pending, bit);
        self.take_request(&self.drop_active, bit);
    }
}
