//! When a core is powered down, and when it is wanted again.
//!
//! A core whose vCPUs have little to do gives them to another core, its
//! *shelter*, and is powered down. The shelter calls it back when it has too
//! much to do. There is no governor: a core decides for itself when it goes
//! ([`Leaver`]), its shelter when it comes back ([`Target`]). Each looks at
//! *windows* of time, all of one length: how much of the last one some vCPU ran.
//!
//! [`Presence`] is what the two must agree on.

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
        Self((u128::from(busy) * 1000 / u128::from(window.0)) as u16)
    }

    /// Returns the load in parts of a thousand: 0 to 1000.
    #[must_use]
    pub const fn per_mille(self) -> u16 {
        self.0
    }
}

/// What a core and its shelter may have to do together for the core to leave.
pub const LOW: u16 = 500;
/// What a shelter has to do when it calls cores back: it can be told from a core
/// that has too much to do by nothing but having no time left.
pub const HIGH: u16 = 900;
/// Windows in a row with little to do before a core leaves.
pub const PATIENCE: u16 = 4;
/// The most, after it was called back again and again.
pub const MOST_PATIENCE: u16 = 64;
/// Windows in a row with too much to do before a shelter calls.
pub const ENDURANCE: u16 = 2;

/// A core that may be powered down.
#[derive(Clone, Copy, Debug)]
pub struct Leaver {
    /// Windows in a row with little to do.
    quiet: u16,
    /// How many it takes.
    patience: u16,
}

impl Leaver {
    /// Patient as at first.
    #[must_use]
    pub const fn new() -> Self {
        Self { quiet: 0, patience: PATIENCE }
    }

    /// Takes the loads of a window. Returns true if the core leaves; then it is not asked
    /// again until it is [`back`](Self::back).
    pub fn window(&mut self, own: Load, shelter: Load) -> bool {
        self.quiet = if own.0 + shelter.0 <= LOW { self.quiet + 1 } else { 0 };
        self.quiet >= self.patience
    }

    /// It was called back after so many windows. If that was soon, it should not
    /// have left: it takes twice the time before it does so again.
    pub fn back(&mut self, windows: u64) {
        self.quiet = 0;
        self.patience = if windows < u64::from(MOST_PATIENCE) {
            (self.patience * 2).min(MOST_PATIENCE)
        } else {
            PATIENCE
        };
    }

    /// Something keeps it from leaving: it begins again to wait.
    pub fn stays(&mut self) {
        self.quiet = 0;
    }
}

impl Default for Leaver {
    fn default() -> Self {
        Self::new()
    }
}

/// A core that shelters vCPUs of cores that are powered down.
#[derive(Clone, Copy, Debug, Default)]
pub struct Target {
    /// Windows in a row with too much to do.
    crowded: u16,
}

impl Target {
    /// At the beginning, and whenever vCPUs come when it had none.
    #[must_use]
    pub const fn new() -> Self {
        Self { crowded: 0 }
    }

    /// Takes the load of a window. Returns true if the cores it shelters are called back.
    pub fn window(&mut self, own: Load) -> bool {
        self.crowded = if own.0 >= HIGH { (self.crowded + 1).min(ENDURANCE) } else { 0 };
        self.crowded >= ENDURANCE
    }
}

const HERE: u8 = 0;
const AWAY: u8 = 1;

/// Says if a core is there for its vCPUs. The core alone writes; its shelter reads.
///
/// | core | does |
/// | --- | --- |
/// | core | [`depart`](Presence::depart) when it owns every vCPU that belongs to it, and then only gives them away |
/// | shelter | keeps what it is given until it is asked for it, and ignores a core that asks while that [is away](Presence::is_away) |
/// | core | [`come_back`](Presence::come_back), and then asks for its vCPUs |
///
/// So no vCPU ever goes to a core that is away: a shelter that has one was given it
/// after the core said that it leaves, and sees that or something later. If it then
/// finds the core there, that has come back since, and cannot leave again without
/// this very vCPU. What others send to a core that is away concerns vCPUs that it
/// does not have, and is dropped when it comes back ([`crate::Location`]).
///
/// The core may still be on its way to the firmware when it is wanted: that says
/// so, and the shelter asks again a window later, as long as it wants.
#[derive(Debug)]
pub struct Presence<S = AtomicU8>(S);

impl Presence {
    /// There.
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
    /// In a cell that holds 0.
    #[must_use]
    pub const fn within(cell: S) -> Self {
        Self(cell)
    }

    /// Says that the core leaves. Called before the first of its vCPUs is given away.
    pub fn depart(&self) {
        self.0.store(AWAY, Ordering::Release);
    }

    /// Says that the core is there again. Called before the first of its vCPUs is asked for.
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
