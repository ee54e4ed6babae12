//! The power state of a vCPU, which its siblings may change (Arm DEN0022D, section 5.6).
//!
//! A sibling that calls CPU_ON claims the vCPU and leaves a request; the core that owns the
//! vCPU accepts it. A request carries the VM's *epoch*, which changes whenever the VM is
//! stopped, so that a request from before a reset cannot switch a vCPU on after it.

use crate::arch::atomic::{AtomicU32, AtomicU64};
use core::sync::atomic::Ordering;

const OFF: u32 = 0;
/// Claimed; the request is being written.
const CLAIMED: u32 = 1;
/// The request is complete.
const PENDING: u32 = 2;
const ON: u32 = 3;
/// On as far as its guest can tell; it will not run again before its VM is stopped.
const DEAF: u32 = 4;

/// See the module.
pub struct Power {
    state: AtomicU32,
    entry: AtomicU64,
    context: AtomicU64,
    epoch: AtomicU32,
}

/// The state in which a vCPU begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Guest-physical address of its first instruction.
    pub pc: u64,
    /// What it finds in X0.
    pub x0: u64,
}

/// Why a vCPU cannot be switched on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is on.
    AlreadyOn,
    /// Another sibling is switching it on.
    OnPending,
}

/// What AFFINITY_INFO answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Affinity {
    /// On.
    On = 0,
    /// Off.
    Off = 1,
    /// Being switched on.
    OnPending = 2,
}

impl Power {
    /// Makes the state of a vCPU that is off.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            state: AtomicU32::new(OFF),
            entry: AtomicU64::new(0),
            context: AtomicU64::new(0),
            epoch: AtomicU32::new(0),
        }
    }

    /// Leaves a request to switch the vCPU on. After `Ok`, its owner must be notified.
    ///
    /// # Errors
    /// When it is not off.
    pub fn request(&self, entry: Entry, epoch: u32) -> Result<(), Refusal> {
        match self.state.compare_exchange(OFF, CLAIMED, Ordering::Acquire, Ordering::Relaxed) {
            Err(ON | DEAF) => return Err(Refusal::AlreadyOn),
            Err(_) => return Err(Refusal::OnPending),
            Ok(_) => {}
        }
        self.entry.store(entry.pc, Ordering::Relaxed);
        self.context.store(entry.x0, Ordering::Relaxed);
        self.epoch.store(epoch, Ordering::Relaxed);
        self.state.store(PENDING, Ordering::Release);
        Ok(())
    }

    /// Accepts a request of this epoch, on the core that owns the vCPU. Discards a request of
    /// an earlier epoch.
    pub fn accept(&self, epoch: u32) -> Option<Entry> {
        if self.state.load(Ordering::Acquire) != PENDING {
            return None;
        }
        if self.epoch.load(Ordering::Relaxed) != epoch {
            self.state.store(OFF, Ordering::Release);
            return None;
        }
        let entry = Entry {
            pc: self.entry.load(Ordering::Relaxed),
            x0: self.context.load(Ordering::Relaxed),
        };
        self.state.store(ON, Ordering::Release);
        Some(entry)
    }

    /// Records that its owner has switched it on without a request: the VM's first vCPU.
    pub fn switch_on(&self) {
        self.state.store(ON, Ordering::Release);
    }

    /// Records that its owner has switched it off. If it was off already and a request has come,
    /// the request stays until the owner accepts or discards it.
    pub fn switch_off(&self) {
        let off =
            |from| self.state.compare_exchange(from, OFF, Ordering::Release, Ordering::Relaxed);
        let _ = off(ON).or_else(|_| off(DEAF));
    }

    /// Records that its owner will not let it run again before its VM is stopped.
    pub fn deafen(&self) {
        let _ = self.state.compare_exchange(ON, DEAF, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Returns true if it can take an interrupt, now or when a request to switch it on is
    /// accepted.
    pub fn hears(&self) -> bool {
        !matches!(self.state.load(Ordering::Relaxed), OFF | DEAF)
    }

    /// Returns what AFFINITY_INFO answers.
    pub fn affinity(&self) -> Affinity {
        match self.state.load(Ordering::Acquire) {
            OFF => Affinity::Off,
            ON | DEAF => Affinity::On,
            _ => Affinity::OnPending,
        }
    }
}

impl Default for Power {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: Entry = Entry { pc: 0x4000_0000, x0: 7 };

    #[test]
    fn on_is_requested_once_and_accepted_once() {
        let power = Power::new();
        assert_eq!(power.affinity(), Affinity::Off);
        assert_eq!(power.request(ENTRY, 1), Ok(()));
        assert_eq!(power.request(ENTRY, 1), Err(Refusal::OnPending));
        assert_eq!(power.affinity(), Affinity::OnPending);
        assert_eq!(power.accept(1), Some(ENTRY));
        assert_eq!(power.accept(1), None);
        assert_eq!(power.request(ENTRY, 1), Err(Refusal::AlreadyOn));
        power.switch_off();
        assert_eq!(power.request(ENTRY, 1), Ok(()));
    }

    #[test]
    fn a_deaf_vcpu_hears_nothing_and_passes_for_on() {
        let power = Power::new();
        assert!(!power.hears());
        power.deafen();
        assert_eq!(power.affinity(), Affinity::Off, "it was not on");
        power.request(ENTRY, 1).unwrap();
        assert!(power.hears(), "it will be on");
        power.accept(1).unwrap();
        power.deafen();
        assert!(!power.hears());
        assert_eq!(power.affinity(), Affinity::On);
        assert_eq!(power.request(ENTRY, 1), Err(Refusal::AlreadyOn));
        power.switch_off();
        assert_eq!(power.request(ENTRY, 1), Ok(()));
    }

    #[test]
    fn a_request_from_before_a_reset_starts_nothing() {
        let power = Power::new();
        power.request(ENTRY, 1).unwrap();
        assert_eq!(power.accept(2), None);
        assert_eq!(power.affinity(), Affinity::Off);
    }

    /// The message to stop a VM may be read late, when it has been started again: a
    /// vCPU that is off is switched off once more while a sibling asks for it.
    #[test]
    fn a_vcpu_that_is_switched_off_twice_is_still_asked_for() {
        let power = Power::new();
        power.request(ENTRY, 1).unwrap();
        power.switch_off();
        assert_eq!(power.affinity(), Affinity::OnPending);
        assert_eq!(power.accept(1), Some(ENTRY));
    }

    /// Exactly one of many that ask at once is served, with its own entry.
    #[test]
    fn one_of_many_wins() {
        for _ in 0..500 {
            let power = Power::new();
            let winners = std::sync::Mutex::new(Vec::new());
            std::thread::scope(|scope| {
                for asker in 0..4 {
                    let (power, winners) = (&power, &winners);
                    scope.spawn(move || {
                        if power.request(Entry { pc: asker, x0: asker }, 0).is_ok() {
                            winners.lock().unwrap().push(asker);
                        }
                    });
                }
            });
            let winners = winners.into_inner().unwrap();
            assert_eq!(winners.len(), 1);
            assert_eq!(power.accept(0), Some(Entry { pc: winners[0], x0: winners[0] }));
        }
    }
}
