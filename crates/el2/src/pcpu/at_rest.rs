//! What a test asks a core, and what must hold when all its guests sleep.

use super::Pcpu;
use crate::arch::context::General;
use crate::shared::{MUTEXES, SECTIONS};
use crate::vcpu::Vcpu;
use sched::{Instant, Member, Message, State, VcpuId};

impl Pcpu {
    /// Returns true if this core owns a vCPU.
    pub fn owns(&self, id: VcpuId) -> bool {
        self.roster.owns(id)
    }

    /// Returns true if this core has the account of a vCPU.
    pub fn has_account(&self, id: VcpuId) -> bool {
        self.scheduler.account(id).is_some()
    }

    /// Returns the general registers of a vCPU that this core owns and that is on, as of its
    /// latest exit.
    pub fn general(&self, id: VcpuId) -> Option<&General> {
        let loaded = self.roster.loaded().filter(|vcpu| vcpu.id() == id).map(|vcpu| &**vcpu);
        let vcpu = loaded.or_else(|| self.roster.parked(id).map(|vcpu| &**vcpu));
        vcpu.filter(|vcpu| vcpu.is_on()).map(Vcpu::general_at_exit)
    }

    /// Returns the messages that this core has taken and not read.
    pub fn unread(&self) -> impl Iterator<Item = (Message, usize)> + use<> {
        let mut unread = self.unread.clone();
        core::iter::from_fn(move || unread.pop())
    }

    /// Returns true if a vCPU of this core sleeps though interrupts were posted to it that it
    /// will not be told of before a guest runs.
    pub fn sleeps_through(&self, id: VcpuId) -> bool {
        self.scheduler.state(id) == Some(State::Sleeping)
            && !self.jobs.before_guest().has(id)
            && self.roster.peek(id).is_some_and(|vcpu| vcpu.is_on() && vcpu.has_news())
    }

    /// Returns true if a vCPU of this core sleeps, by its registers for something, and will not be told of
    /// anything before a guest runs.
    pub fn sleeps_for(&self, id: VcpuId, something: impl FnOnce(&General) -> bool) -> bool {
        self.scheduler.state(id) == Some(State::Sleeping)
            && !self.jobs.before_guest().has(id)
            && self.general(id).is_some_and(something)
    }

    /// Stops if something is left to do on this core, though all its guests sleep with
    /// their timers off.
    pub fn check_rest(&self, now: Instant) {
        assert!(self.jobs.pending().is_empty(), "jobs of {:?} are left", self.jobs.pending());
        assert!(self.unread.is_empty(), "{:?} is left unread", self.unread);
        self.coordination.check_rest();
        for id in self.owned() {
            let VcpuId(number) = id;
            let has_work = self.scheduler.state(id) != Some(State::Sleeping);
            assert!(!has_work, "vCPU {number} is ready, and does not run");
            assert!(!self.scheduler.is_held_back(id), "vCPU {number} is held back for ever");
            self.check_holds(id);
            let Some(vcpu) = self.roster.parked(id) else { continue };
            if vcpu.is_on() {
                assert!(vcpu.wakes_at() > now, "vCPU {number} sleeps beyond its timer");
                assert!(!vcpu.has_news(), "vCPU {number} sleeps though it is interrupted");
            }
        }
    }

    /// Stops if a vCPU does not know what it holds, or holds something though it is off.
    fn check_holds(&self, id: VcpuId) {
        let Some(vcpu) = self.roster.peek(id) else { return };
        for number in 0..MUTEXES.len() {
            let byte = self.held_byte(id, number);
            assert_eq!(vcpu.holds_of(number), byte, "vCPU {} and mutex {number}", id.0);
            assert!(byte == 0 || vcpu.is_on(), "vCPU {} is off, and holds mutex {number}", id.0);
        }
        let called = SECTIONS[id.number()].is_raised() && vcpu.is_on();
        assert_eq!(vcpu.is_called(), called, "vCPU {} was called upon", id.0);
    }
}
