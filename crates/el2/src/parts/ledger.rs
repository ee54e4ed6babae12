//! Which vCPU has the core, and since when.

use abi::status::PcpuStatus;
use sched::{Duration, Instant, VcpuId};

/// The status area's word for no vCPU.
const NO_VCPU: u64 = u64::MAX;

/// The core's time: each tick is booked once, to one vCPU or to idling.
///
/// The same is written into the status area for the host. EL2 does not read it there.
pub struct Ledger {
    /// When the present turn began.
    since: Instant,
    /// The vCPU whose turn it is, as the status area has it.
    current: u64,
    status: &'static mut PcpuStatus,
}

/// A turn that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The vCPU that had the core; none: it idled.
    pub of: Option<VcpuId>,
    /// How long it took.
    pub took: Duration,
}

impl Ledger {
    /// Makes the part of a core that begins to idle now. No other core writes `status`.
    pub fn new(status: &'static mut PcpuStatus, now: Instant) -> Self {
        status.online = 1;
        status.current = NO_VCPU;
        status.since = now.0;
        Self { since: now, current: NO_VCPU, status }
    }

    /// Returns the vCPU that has the core; none while it idles.
    #[must_use]
    #[inline]
    pub fn current(&self) -> Option<VcpuId> {
        (self.current != NO_VCPU).then_some(VcpuId(self.current as u8))
    }

    /// Returns true if this vCPU has the core.
    #[must_use]
    #[inline]
    pub fn is_current(&self, id: VcpuId) -> bool {
        self.current == u64::from(id.0)
    }

    /// Returns when the present turn, or rest, began.
    #[must_use]
    pub fn since(&self) -> Instant {
        self.since
    }

    /// Gives the core to a vCPU, or to none. Returns the turn that ends by that; none
    /// if the core does not change hands.
    #[must_use]
    #[inline(always)]
    pub fn give(&mut self, next: Option<VcpuId>, now: Instant) -> Option<Turn> {
        let next = next.map_or(NO_VCPU, |id| u64::from(id.0));
        if self.current == next {
            return None;
        }
        let turn = Turn { of: self.current(), took: now.since(self.since) };
        if turn.of.is_none() {
            self.book_rest(now);
        }
        (self.since, self.current) = (now, next);
        (self.status.since, self.status.current) = (now.0, next);
        Some(turn)
    }

    /// Records that the core is about to be powered down.
    pub fn powers_down(&mut self, now: Instant) {
        self.begin_rest(now);
        self.status.power_downs += 1;
        self.status.online = 0;
    }

    /// Records that the core could not be powered down.
    pub fn stayed(&mut self, now: Instant) {
        self.begin_rest(now);
        self.status.online = 1;
    }

    /// Records that the core was powered down and is back. Returns how long it was off.
    #[must_use]
    pub fn is_back(&mut self, now: Instant) -> Duration {
        let away = now.since(self.since);
        self.begin_rest(now);
        self.status.powered_down += away.0;
        self.status.online = 1;
        away
    }

    /// Counts a doorbell of another core.
    pub fn count_doorbell(&mut self) {
        self.status.doorbells += 1;
    }

    /// Counts an interrupt that belongs to no VM.
    pub fn count_spurious(&mut self) {
        self.status.spurious += 1;
    }

    fn book_rest(&mut self, now: Instant) {
        self.status.idle += now.since(self.since).0;
    }

    /// Begins a new idle time.
    fn begin_rest(&mut self, now: Instant) {
        self.book_rest(now);
        self.since = now;
        self.status.since = now.0;
    }

    /// Asserts what stands at the type.
    #[cfg(any(test, feature = "checked"))]
    pub fn check(&self) {
        assert_eq!(self.current, self.status.current, "the status area says whose turn it is");
        assert_eq!(self.since.0, self.status.since, "and since when");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::FromZeros;

    const A: VcpuId = VcpuId(0);
    const B: VcpuId = VcpuId(63);

    fn ledger(now: u64) -> Ledger {
        Ledger::new(Box::leak(Box::new(PcpuStatus::new_zeroed())), Instant(now))
    }

    /// Every tick is booked once, whatever the order of turns.
    #[test]
    fn each_tick_is_booked_once() {
        let mut ledger = ledger(100);
        let mut booked = 0;
        let turns = [Some(A), Some(B), None, None, Some(A), Some(A), None, Some(B), None];
        for (step, next) in turns.into_iter().enumerate() {
            let now = Instant(100 + 7 * (step as u64 + 1));
            booked +=
                ledger.give(next, now).filter(|turn| turn.of.is_some()).map_or(0, |t| t.took.0);
            ledger.check();
            assert_eq!(ledger.current(), next);
        }
        let end = Instant(100 + 7 * 10);
        assert_eq!(ledger.give(Some(A), end).map(|turn| turn.of), Some(None), "it rested");
        assert_eq!(booked + ledger.status.idle, 70);
    }

    #[test]
    fn a_turn_goes_on_while_the_core_does_not_change_hands() {
        let mut ledger = ledger(0);
        assert_eq!(ledger.give(Some(A), Instant(5)), Some(Turn { of: None, took: Duration(5) }));
        assert_eq!(ledger.give(Some(A), Instant(6)), None);
        assert!(ledger.is_current(A) && !ledger.is_current(B));
        let turn = Turn { of: Some(A), took: Duration(4) };
        assert_eq!(ledger.give(Some(B), Instant(9)), Some(turn));
    }

    #[test]
    fn a_core_that_was_off_has_rested() {
        let mut ledger = ledger(0);
        ledger.powers_down(Instant(10));
        assert_eq!(ledger.status.online, 0);
        assert_eq!(ledger.is_back(Instant(50)), Duration(40));
        ledger.check();
        assert!(ledger.give(Some(A), Instant(60)).is_some());
        assert_eq!(ledger.status.idle, 60);
        assert_eq!((ledger.status.powered_down, ledger.status.power_downs), (40, 1));
        assert_eq!(ledger.status.online, 1);
    }
}
