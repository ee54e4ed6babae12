//! What a vCPU with a budget gets of its core, or of several, as it sees it itself in every
//! period.

use crate::suite::{Check, Done};
use crate::timer::Timer;
use crate::{ensure, needs_cassata, pass, platform, wait};

/// Ticks between two looks at the counter that are no gap: what EL2 does while the vCPU keeps
/// its core is shorter, and the wait for a budget longer.
pub const LOOP: u64 = 300;
/// What EL2 may take of a budget, nanoseconds: it gives the core and takes it away.
const SWITCHES_NS: u64 = 1_500;
/// By how much a period may seem longer or shorter, nanoseconds.
const JITTER_NS: u64 = 500;
/// Periods at the start that are not counted: the neighbour boots in them and says so, and what
/// its lines take of EL2 may fall into any budget.
const NEIGHBOUR_BOOTS: u64 = 100;

/// Ticks between two looks that the vCPU did not run: it was away, under way between two cores, or
/// EL2 was long at work.
const AWAY: u64 = 50;
/// What EL2 may take of a budget each time that the vCPU leaves a core for another, nanoseconds.
const MOVE_NS: u64 = 2_500;
/// How late a period may seem to begin, nanoseconds: the vCPU is on its way to another core and
/// back then, of which each takes up to 6 us in the build that checks itself.
const UNDER_WAY_NS: u64 = 12_000;

/// Least and most of what was seen so far, the sum, and how often something was.
pub struct Seen {
    pub least: u64,
    pub most: u64,
    pub sum: u64,
    pub count: u64,
}

impl Seen {
    pub const NOTHING: Self = Self { least: u64::MAX, most: 0, sum: 0, count: 0 };

    pub fn note(&mut self, value: u64) {
        self.least = self.least.min(value);
        self.most = self.most.max(value);
        self.sum += value;
        self.count += 1;
    }
}

/// Never rests, with everything masked, and counts `probe.periods` (10,000) periods of
/// `probe.period_us`, in each of which it is to have `probe.budget_us`: from each wait for a
/// budget to the next so much less what EL2 takes, and never more; and so many periods are
/// as long as they are to be, to the jitter of one.
pub fn supply() -> Check<Done> {
    needs_cassata!();
    let number = |name, default| platform::get().number(name, default);
    let periods = number("periods", 10_000);
    let [period, budget] = [number("period_us", 100), number("budget_us", 50)].map(wait::us);
    let (mut supplies, mut lengths) = (Seen::NOTHING, Seen::NOTHING);
    let (mut begun, mut waits) = (0, 0);
    let mut last = Timer::Virtual.now();
    while lengths.count < periods {
        let now = Timer::Virtual.now();
        if now - last >= LOOP {
            if waits > NEIGHBOUR_BOOTS {
                supplies.note(last - begun);
                lengths.note(now - begun);
            }
            waits += 1;
            begun = now;
        }
        last = now;
    }
    let [taken, jitter] = [SWITCHES_NS, JITTER_NS].map(wait::ns);
    for (what, seen, least, most) in [
        ("budgets", &supplies, budget - taken, budget),
        ("periods", &lengths, period - jitter, period + jitter),
    ] {
        ensure!(
            seen.least >= least && seen.most <= most,
            "{what} of {} to {} ns, not {} to {}",
            wait::nanoseconds(seen.least),
            wait::nanoseconds(seen.most),
            wait::nanoseconds(least),
            wait::nanoseconds(most)
        );
    }
    let drift = lengths.sum.abs_diff(periods * period);
    ensure!(drift <= jitter, "{periods} periods are off by {} ns", wait::nanoseconds(drift));
    pass!(
        "{periods} periods, {} to {} ns in each, {} in the mean",
        wait::nanoseconds(supplies.least),
        wait::nanoseconds(supplies.most),
        wait::nanoseconds(supplies.sum / periods)
    )
}

/// Never rests, with everything masked, for `probe.periods` (10,000) periods of
/// `probe.period_us`, in each of which it is to have `probe.budget_us`, on whichever cores: so much
/// less what EL2 takes, each time that it leaves a core for another too, and never more. It has to
/// be taken off a core `probe.moves` (10,000) times at least meanwhile.
pub fn moved() -> Check<Done> {
    needs_cassata!();
    let number = |name, default| platform::get().number(name, default);
    let (periods, wanted) = (number("periods", 10_000), number("moves", 10_000));
    let [period, budget] = [number("period_us", 100), number("budget_us", 50)].map(wait::us);
    let [taken, per_move, under_way] = [SWITCHES_NS, MOVE_NS, UNDER_WAY_NS].map(wait::ns);
    let (mut supplies, mut moves, mut lost) = (Seen::NOTHING, 0, 0);
    // The first period is not whole.
    let (mut ran, mut gaps, mut whole, mut first, mut late) = (0, 0, false, 0, 0);
    // It never rests, so it waits longer for a budget than for anything else.
    let spent = (period - budget) / 2;
    let mut last = Timer::Virtual.now();
    while supplies.count < periods {
        let now = Timer::Virtual.now();
        // Clocks of two cores may differ a little.
        let passed = now.saturating_sub(last);
        last = now;
        if passed < AWAY {
            ran += passed;
        } else if passed < spent {
            gaps += 1;
        } else {
            if whole {
                let least = budget.saturating_sub(taken + gaps * per_move);
                ensure!(
                    (least..=budget).contains(&ran),
                    "{} ns in a period, not {} to {}, with {gaps} gaps",
                    wait::nanoseconds(ran),
                    wait::nanoseconds(least),
                    wait::nanoseconds(budget)
                );
                supplies.note(ran);
                moves += gaps;
                lost += budget - ran;
                // Periods begin at multiples of one length, wherever that is.
                let begun = (now - first + period / 2) % period;
                late = late.max(begun.abs_diff(period / 2));
            } else {
                first = now;
            }
            (ran, gaps, whole) = (0, 0, true);
        }
    }
    ensure!(moves >= wanted, "it was taken off a core {moves} times, not {wanted}");
    ensure!(late <= under_way, "a period began {} ns off", wait::nanoseconds(late));
    pass!(
        "{periods} periods, {} to {} ns in each, {} lost in the mean, {moves} moves, periods began \
         {} ns off at most",
        wait::nanoseconds(supplies.least),
        wait::nanoseconds(supplies.most),
        wait::nanoseconds(lost / periods),
        wait::nanoseconds(late)
    )
}
