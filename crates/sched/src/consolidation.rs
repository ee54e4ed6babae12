//! When a core is powered down, and when it is called back.
//!
//! A core whose vCPUs have little to do hands them over to another core, its
//! *consolidation target*, and is powered down. The target
//! calls it back when it has too much to do. A core decides for itself when it
//! leaves ([`Leaver`]), and its target when it comes back ([`Target`]). Each looks
//! at *windows* of time, all of one length: for how much of the last one some vCPU
//! ran.
//!
//! The two share a [`Presence`].

use crate::Duration;
use crate::location::AtomicCell;
use core::sync::atomic::{AtomicU8, Ordering};

/// How much of a window some vCPU ran on a core, in parts of a thousand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Load(u16);

impl Load {
    /// All of the time.
    pub const FULL: Self = Self(1000);

    /// Computes the load of a window of this length in which the core idled so long; more
    /// than the window counts as all of it.
    #[must_use]
    pub fn of(window: Duration, idle: Duration) -> Self {
        if window.0 == 0 {
            return Self::FULL;
        }
        let busy = window.0.saturating_sub(idle.0);
        // Where the product has no room, a thousandth of the window is years.
        let per_mille = match busy.checked_mul(1000) {
            Some(busy) => busy / window.0,
            None => busy / (window.0 / 1000).max(1),
        };
        Self(per_mille as u16)
    }

    /// Returns the load in parts of a thousand: 0 to 1000.
    #[must_use]
    pub const fn per_mille(self) -> u16 {
        self.0
    }
}

/// The most load that a core and its target may have together for the core to leave.
pub const LOW: u16 = 500;
/// The load at which a target calls cores back: nothing but the lack of idle time shows
/// that it has too much to do.
pub const HIGH: u16 = 900;
/// Windows in a row with little to do before a core leaves.
pub const PATIENCE: u16 = 4;
/// The most such windows, after a core was called back again and again.
pub const MOST_PATIENCE: u16 = 64;
/// Windows in a row with too much to do before a target calls cores back.
pub const ENDURANCE: u16 = 2;

/// A core that may be powered down.
#[derive(Clone, Copy, Debug)]
pub struct Leaver {
    /// Windows in a row with little to do.
    quiet: u16,
    /// How many of them it takes for the core to leave.
    patience: u16,
}

impl Leaver {
    /// Makes the state of a core that was never called back.
    #[must_use]
    pub const fn new() -> Self {
        Self { quiet: 0, patience: PATIENCE }
    }

    /// Takes the loads of a window. Returns true if the core leaves; then this is not called
    /// again until it is [`back`](Self::back).
    pub fn window(&mut self, own: Load, target: Load) -> bool {
        self.quiet = if own.0 + target.0 <= LOW { self.quiet + 1 } else { 0 };
        self.quiet >= self.patience
    }

    /// Records that the core was called back after so many windows. If that was soon, it
    /// should not have left: it waits twice as long before it leaves again.
    pub fn back(&mut self, windows: u64) {
        self.quiet = 0;
        self.patience = if windows < u64::from(MOST_PATIENCE) {
            (self.patience * 2).min(MOST_PATIENCE)
        } else {
            PATIENCE
        };
    }

    /// Records that the core must not leave now: it begins to count windows again.
    pub fn stays(&mut self) {
        self.quiet = 0;
    }
}

impl Default for Leaver {
    fn default() -> Self {
        Self::new()
    }
}

/// A consolidation target, which has vCPUs of cores that are powered down.
#[derive(Clone, Copy, Debug, Default)]
pub struct Target {
    /// Windows in a row with too much to do.
    crowded: u16,
}

impl Target {
    /// Makes the state of a target to which the first vCPUs come.
    #[must_use]
    pub const fn new() -> Self {
        Self { crowded: 0 }
    }

    /// Takes the load of a window. Returns true if the cores that are off are called back.
    pub fn window(&mut self, own: Load) -> bool {
        self.crowded = if own.0 >= HIGH { (self.crowded + 1).min(ENDURANCE) } else { 0 };
        self.crowded >= ENDURANCE
    }
}

const HERE: u8 = 0;
const AWAY: u8 = 1;

/// True if a core is on, for its vCPUs. Only the core writes it; its consolidation target
/// reads it.
///
/// | core | does |
/// | --- | --- |
/// | core | [`depart`](Presence::depart) when it owns every vCPU that is based there, and then only hands them over |
/// | target | keeps the vCPUs until they are recalled, and ignores a recall of a core that [is away](Presence::is_away) |
/// | core | [`come_back`](Presence::come_back), and then recalls its vCPUs |
///
/// So no vCPU ever goes to a core that is away: a target that has a vCPU has got it
/// after the core wrote that it leaves, and sees that or something later. If it then
/// finds the core present, the core has come back since, and cannot leave again without
/// this very vCPU. Messages that others send to a core that is away concern vCPUs that
/// it does not own, and are dropped when it comes back ([`crate::Location`]).
///
/// The core may still be on its way to CPU_OFF when it is called back: the firmware
/// says so, and the target calls again a window later, as long as it has to.
#[derive(Debug)]
pub struct Presence<S = AtomicU8>(S);

impl Presence {
    /// Makes the word of a core that is on.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicU8::new(HERE))
    }
}

impl Default for Presence {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: AtomicCell> Presence<S> {
    /// Makes the word of a core that is on, in a cell that holds 0.
    #[must_use]
    pub const fn within(cell: S) -> Self {
        Self(cell)
    }

    /// Records that the core leaves. Called before it hands the first of its vCPUs over.
    pub fn depart(&self) {
        self.0.store(AWAY, Ordering::Release);
    }

    /// Records that the core is back. Called before it recalls the first of its vCPUs.
    pub fn come_back(&self) {
        self.0.store(HERE, Ordering::Release);
    }

    /// Returns true if the core has left. Exact only when called by the core that currently
    /// owns one of its vCPUs.
    #[must_use]
    pub fn is_away(&self) -> bool {
        self.0.load(Ordering::Acquire) == AWAY
    }
}

#[cfg(test)]
mod tests;
