//! vCPUs that may not run here for a while, and keep their turns.
//!
//! A vCPU is *away* while another core owns it, and *held back* while it is here and must
//! not run. Either keeps what is left of its quantum, and its turn until an equal has used
//! up a quantum meanwhile: else, of two that leave and return together, the same one would
//! be first each time.

use super::{ABSENT, Scheduler, VcpuId};
use notes::each;

impl Scheduler {
    /// Marks a vCPU as gone to another core, from which it may [come
    /// back](Self::come_back). Returns true if it had work. A vCPU that runs has to be
    /// [charged](Self::charge) before. While it is away the other core knows whether it
    /// sleeps, and it is neither woken nor put to sleep here.
    pub fn set_away(&mut self, id: VcpuId) -> bool {
        let Some(at) = self.find(id) else { return false };
        let bit = 1 << at;
        if usize::from(self.yielded_to) == at {
            self.yielded_to = ABSENT;
        }
        if self.special & bit != 0 {
            return self.set_away_special(at);
        }
        let was_ready = self.ready & bit != 0;
        self.away |= self.ready & bit;
        self.ready &= !bit;
        was_ready
    }

    /// Takes back a vCPU that was away, ready or asleep.
    pub fn come_back(&mut self, id: VcpuId, ready: bool) {
        let Some(at) = self.find(id) else { return };
        if self.special >> at & 1 == 1 {
            return self.come_back_special(at, ready);
        }
        self.away &= !(1 << at);
        self.ready |= u64::from(ready) << at;
    }

    /// Keeps a vCPU from running until it is [released](Self::release), even if it has work.
    /// Waking and sleeping are recorded meanwhile.
    #[inline(never)]
    pub fn hold_back(&mut self, id: VcpuId) {
        if let Some(at) = self.find(id) {
            self.make_special(at);
            self.extras.held_back |= 1 << at;
            self.place(at);
        }
    }

    /// Lets a vCPU run again that was held back. Returns true if it is ready now.
    #[inline(never)]
    pub fn release(&mut self, id: VcpuId) -> bool {
        let Some(at) = self.find(id) else { return false };
        if self.special >> at & 1 == 1 {
            notes::needs::<{ each::EXTRA }>();
            self.extras.held_back &= !(1 << at);
            self.place(at);
        }
        self.ready >> at & 1 == 1
    }

    /// Returns true if any vCPU is held back.
    #[must_use]
    pub const fn holds_back(&self) -> bool {
        self.extras.held_back != 0
    }

    /// Returns true if a vCPU is here and held back.
    #[must_use]
    pub fn is_held_back(&self, id: VcpuId) -> bool {
        self.find(id).is_some_and(|at| self.extras.held_back >> at & 1 == 1)
    }
}
