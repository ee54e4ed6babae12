//! What a vCPU with a budget gets of its core when it asks for another part of it in each period.

use super::supply::LOOP;
use crate::gic::{self, offset::ISENABLER};
use crate::random::Random;
use crate::suite::{Check, Done};
use crate::timer::{ENABLE, Timer};
use crate::{ensure, irq, needs_cassata, pass, platform, wait};
use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

const TIMER: Timer = Timer::Virtual;
/// What EL2 may take of a budget, nanoseconds: the vCPU wakes, is stopped, goes on and sleeps.
const SWITCHES_NS: u64 = 3_000;
/// By how much a demand that is not stopped may be met later than its length, nanoseconds: the
/// vCPU wakes first.
const LATE_NS: u64 = 3_000;

static RANG: AtomicU64 = AtomicU64::new(0);

fn ring(_intid: u32) {
    TIMER.stop();
    RANG.fetch_add(1, SeqCst);
}

/// What it got in one period.
struct Had {
    /// Ticks for which it executed.
    executed: u64,
    /// From the instant at which it wanted to begin until it had all or the period was over.
    elapsed: u64,
    /// It was stopped meanwhile, or the period was over before it had all.
    stopped: bool,
}

/// Executes for `demand` ticks from `begin` on, at most until `end`.
fn execute(begin: u64, end: u64, demand: u64) -> Had {
    let (mut executed, mut stopped) = (0, false);
    let mut last = TIMER.now();
    while executed < demand {
        let now = TIMER.now();
        if now >= end {
            stopped = true;
            break;
        }
        if now - last >= LOOP {
            stopped = true;
        } else {
            executed += now - last;
        }
        last = now;
    }
    Had { executed, elapsed: TIMER.now().saturating_sub(begin), stopped }
}

/// Finds when a period begins: all of the budget is used up until it is replenished.
fn release() -> u64 {
    let mut last = TIMER.now();
    let mut gaps = 0;
    loop {
        let now = TIMER.now();
        gaps += u64::from(now - last >= LOOP);
        // The first gap may be anything.
        if gaps == 3 {
            return now;
        }
        last = now;
    }
}

/// Asks in each of `probe.periods` (10,000) periods of `probe.period_us` (200) for a random part
/// of the core, from none to nearly twice `probe.budget_us` (50), after it slept for a random
/// part of the period. It is to have the lesser of demand and budget, less what EL2 takes: a
/// demand within the budget without a stop, a greater one with all of the budget. A budget that
/// is idled away (`probe.idles=1`) is less by the time for which it slept.
pub fn demand() -> Check<Done> {
    needs_cassata!();
    let number = |name, default| platform::get().number(name, default);
    let (periods, idles) = (number("periods", 10_000), number("idles", 0) == 1);
    let [period, budget] = [number("period_us", 200), number("budget_us", 50)].map(wait::us);
    let [switches, late] = [SWITCHES_NS, LATE_NS].map(wait::ns);
    ensure!(
        budget > 2 * switches && period > budget + 6 * switches,
        "a budget of {budget} ticks in {period} is too small or too large for this"
    );
    let mut random = Random::seeded(number("seed", 1).max(1));
    gic::set(ISENABLER, TIMER.intid());
    irq::hook(ring);
    let first = release() + period;
    let (mut whole, mut cut, mut least) = (0, 0, u64::MAX);
    for number in 0..periods {
        let begin = first + number * period;
        // A budget that is kept is to end within the period.
        let latest = if idles { budget } else { period - budget - 3 * switches };
        let phase = switches + random.up_to(latest);
        let demand = random.up_to(2 * budget - switches);
        let has = if idles { budget.saturating_sub(phase) } else { budget };
        let rang = RANG.load(SeqCst);
        TIMER.set_compare(begin + phase);
        TIMER.set_control(ENABLE);
        wait::asleep(|| RANG.load(SeqCst) > rang)?;
        let had = execute(begin + phase, begin + period, demand);
        let (executed, stopped) = (had.executed, had.stopped);
        ensure!(
            executed <= has.max(wait::ns(500)),
            "period {number}: {executed} ticks, of a budget that is {has} after {phase}"
        );
        if demand + switches <= has {
            whole += 1;
            ensure!(
                executed >= demand && !stopped && had.elapsed <= demand + late,
                "period {number}: a demand of {demand} ticks after {phase} had {executed} of {has} \
                 within {}, stopped: {stopped}",
                had.elapsed
            );
        } else if demand > has {
            cut += u64::from(has > switches);
            least = least.min((executed + switches).saturating_sub(has));
            ensure!(
                executed + switches >= has && stopped,
                "period {number}: a demand of {demand} ticks after {phase} had {executed} of {has}, \
                 stopped: {stopped}"
            );
        }
    }
    ensure!(
        whole > periods / 8 && cut > periods / 8,
        "{whole} demands were within the budget, {cut} not"
    );
    let spare = wait::nanoseconds(least);
    pass!(
        "{periods} periods: {whole} demands within the budget had all of it, {cut} beyond it had \
         the budget less at most {} ns",
        SWITCHES_NS - spare.min(SWITCHES_NS)
    )
}
