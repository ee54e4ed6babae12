//! Links between VMs: their doorbells ([`abi::link`]). The memory is mapped, and EL2 never looks at
//! it.

use super::Pcpu;
use crate::shared::{ALIVE, LINKS, VMS, VmIndex};
use abi::MAX_VMS;
use abi::platform::{LINK_INTID, MAX_LINKS};
use abi::system::{System, parts};
use core::sync::atomic::Ordering;
use notes::Bounded;

/// Until when a doorbell is armed that rings at any time: no time is as late.
const ALWAYS: u64 = u64::MAX;

/// One VM's end of a link.
#[derive(Clone, Copy)]
pub struct End {
    link: usize,
    side: usize,
    /// The VM at the other end.
    peer: usize,
}

impl End {
    fn of(system: &System, vm: usize, link: usize) -> Option<Self> {
        let table = system.links.get(link)?;
        let side = table.side_of(vm)?;
        // The tables name VMs that there are; this way the compiler knows, and a ring is not checked again.
        let peer = usize::from(table.vms[1 - side]) % MAX_VMS;
        Some(Self { link, side, peer })
    }

    /// Returns the peer's [`abi::link::PEER`].
    #[must_use]
    pub fn peer_life(self) -> u32 {
        let epoch = VMS[self.peer].epoch.load(Ordering::Acquire);
        let alive = ALIVE.load(Ordering::Acquire).has(VmIndex(self.peer));
        // Life 0 comes again after 2^32 lives, which last milliseconds each.
        if alive { epoch.wrapping_add(1).max(1) } else { 0 }
    }
}

impl Pcpu {
    /// Returns the loaded VM's end of a link; none if that has none.
    #[must_use]
    pub fn loaded_end(&self, link: usize) -> Option<End> {
        End::of(self.system, self.loaded()?.vm(), link)
    }

    /// Arms the doorbell of an end: the next ring is an interrupt, if it comes within so many ticks; at any
    /// time for 0 and 1.
    pub fn arm_doorbell(&self, end: End, ticks: u32) {
        let until = if ticks > 1 { self.entered.0 + u64::from(ticks) } else { ALWAYS };
        LINKS[end.link].armed_until[end.side].store(until, Ordering::Release);
    }

    /// Rings the doorbell at the other end, if it is armed.
    pub fn ring_peer(&mut self, end: End) {
        let until = LINKS[end.link].armed_until[1 - end.side].swap(0, Ordering::AcqRel);
        if until > self.entered.0 {
            let effects = VMS[end.peer].gic.post(0, LINK_INTID + end.link as u32);
            self.notify(end.peer, effects);
        }
    }
}

/// Lets a VM that is halted have no doorbell that is armed.
pub(super) fn disarm(system: &System, vm: usize) {
    let built = if parts::has(parts::LINKS) { MAX_LINKS } else { 0 };
    let ends = (0..built).at_most::<MAX_LINKS>().filter_map(|link| End::of(system, vm, link));
    ends.for_each(|end| LINKS[end.link].armed_until[end.side].store(0, Ordering::Relaxed));
}
