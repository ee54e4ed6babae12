//! A vCPU that begins global critical sections only to have more of its core than its budget; one
//! above it, which waits meanwhile; and one below, which has what both leave. None of them judges:
//! each says what it had, and the host compares that with the tables.

use super::supply::Seen;
use crate::random::Random;
use crate::suite::{Check, Done, text};
use crate::timer::Timer;
use crate::{calls, ensure, ensure_eq, fail, needs_cassata, pass, platform, wait};
use abi::service::{FINISH_GCS, START_GCS};
use abi::status::VcpuStatus;
use core::mem::offset_of;

/// A shorter time between two looks at the counter passes for one in which the vCPU had its core,
/// microseconds: EL2 was at work for it. Any other vCPU has the core for longer.
const AWAY_US: u64 = 5;
/// How long it stays in a section when it begins them again and again, microseconds.
const AGAIN_US: u64 = 15;
/// The longest that it stays in a section, and out of it, by chance, microseconds.
const CHANCE_US: u64 = 400;
/// How long before the end of its budget it begins a section, microseconds: EL2 takes less of a
/// budget than that.
const EARLY_US: u64 = 10;

/// The part of a run that is counted, the same for all VMs of a system: they have one counter.
struct Stage {
    /// From this instant on periods count, ticks.
    from: u64,
    /// Until then each goes on as it does, so that what the others count is not over before.
    until: u64,
    /// How many periods count.
    periods: u64,
    /// The length of a period, ticks.
    period: u64,
}

impl Stage {
    /// Returns what is asked for. A guest that begins later than that does not see what the others do at first, and
    /// would count something else.
    fn set() -> Check<Self> {
        let number = |name, default| platform::get().number(name, default);
        let ms = |name, default| wait::us(1_000 * number(name, default));
        let stage = Self {
            from: ms("from_ms", 80),
            until: ms("until_ms", 285),
            periods: number("periods", 200),
            period: wait::us(number("period_us", 1_000)),
        };
        let now = Timer::Virtual.now();
        ensure!(now < stage.from, "it begins {} ticks after probe.from_ms", now - stage.from);
        Ok(stage)
    }
}

/// Looks at the counter again and again, and adds up how long the vCPU had its core.
struct Meter {
    last: u64,
    /// Ticks since the latest period began.
    ran: u64,
    /// A time away is at least so long.
    away: u64,
    /// A time away that is at least so long is the wait for a budget.
    wait: u64,
}

impl Meter {
    fn new(wait: u64) -> Self {
        Self { last: Timer::Virtual.now(), ran: 0, away: wait::us(AWAY_US), wait }
    }

    /// Looks once. Returns what the vCPU had in the period that is over, if another one begins.
    fn look(&mut self) -> Option<u64> {
        let now = Timer::Virtual.now();
        let passed = now - self.last;
        self.last = now;
        if passed < self.away {
            self.ran += passed;
        }
        (passed >= self.wait).then(|| core::mem::take(&mut self.ran))
    }
}

/// What EL2 counts of a vCPU with a budget.
const COUNTED: [usize; 5] = [
    offset_of!(VcpuStatus, throttled),
    offset_of!(VcpuStatus, replenished),
    offset_of!(VcpuStatus, overruns),
    offset_of!(VcpuStatus, overrun_stops),
    offset_of!(VcpuStatus, lowered),
];

fn counted() -> Check<[u64; 5]> {
    let mut counts = [0; 5];
    for (count, offset) in counts.iter_mut().zip(COUNTED) {
        *count = calls::counter(0, (offset / size_of::<u64>()) as u64)
            .map_err(|answer| text(format_args!("COUNTER answers {answer}")))?;
    }
    Ok(counts)
}

/// When it is in a section.
enum How {
    /// From the end of a budget on, for ever.
    Once,
    /// From the end of each budget on, and for so many ticks of the next one.
    Late(u64),
    /// Again and again, without a rest.
    Again,
    /// For a random time and not for a random time; until so many ticks of the period.
    Chance(Random, u64),
}

impl How {
    fn named() -> Check<Self> {
        let number = |name, default| platform::get().number(name, default);
        Ok(match platform::get().argument("how") {
            Some("once") => Self::Once,
            Some("late") => Self::Late(wait::us(number("hold_us", 0))),
            Some("again") => Self::Again,
            Some("chance") => Self::Chance(Random::seeded(number("seed", 1).max(1)), 0),
            how => fail!("no attack is called {how:?}"),
        })
    }

    /// Returns true if it is to be in a section now, when it has had `ran` ticks of a period, in
    /// which it begins to be late after `late`; it has been as it is, in one or not, since `since`
    /// of them.
    fn wants(&mut self, holds: bool, ran: u64, late: u64, since: u64) -> bool {
        match self {
            Self::Once => holds || ran >= late,
            Self::Late(hold) => ran < *hold || ran >= late,
            Self::Again => !holds || ran < since + wait::us(AGAIN_US),
            Self::Chance(random, end) => {
                if ran < *end {
                    return holds;
                }
                *end = ran + random.up_to(wait::us(CHANCE_US));
                !holds
            }
        }
    }
}

/// Never rests until `probe.until_ms` of the counter, with sections as `probe.how` says, and counts what
/// it has in each of `probe.periods` periods of `probe.period_us`, with `probe.budget_us` in each, from
/// `probe.from_ms` on.
pub fn grasp() -> Check<Done> {
    needs_cassata!();
    let (stage, mut how) = (Stage::set()?, How::named()?);
    let budget = wait::us(platform::get().number("budget_us", 300));
    let late = budget - wait::us(EARLY_US);
    // It waits for most of what it does not have, and for others a shorter time.
    let mut meter = Meter::new((stage.period - budget) / 4);
    let (mut holds, mut since, mut had) = (false, 0, Seen::NOTHING);
    let (mut begun, mut before, mut after) = (false, None, None);
    while meter.last < stage.until {
        if let Some(ran) = meter.look() {
            since = 0;
            if let How::Chance(_, end) = &mut how {
                *end = end.saturating_sub(ran);
            }
            if after.is_none() {
                if begun {
                    had.note(ran);
                }
                begun = meter.last >= stage.from;
                if had.count == stage.periods {
                    after = Some(counted()?);
                } else if begun && before.is_none() {
                    before = Some(counted()?);
                }
            }
        }
        if begun && how.wants(holds, meter.ran, late, since) != holds {
            holds = !holds;
            since = meter.ran;
            let function = if holds { START_GCS } else { FINISH_GCS };
            ensure_eq!(calls::hvc(function, &[0]), 0, "{function:#x}");
        }
    }
    let (Some(before), Some(after)) = (before, after) else {
        fail!("only {} periods were over", had.count)
    };
    let counts: [u64; 5] = core::array::from_fn(|index| after[index] - before[index]);
    let [throttled, replenished, overruns, stops, lowered] = counts;
    pass!(
        "periods={} least_ns={} most_ns={} sum_ns={} throttled={throttled} \
         replenished={replenished} overruns={overruns} overrun_stops={stops} lowered={lowered}",
        had.count,
        wait::nanoseconds(had.least),
        wait::nanoseconds(had.most),
        wait::nanoseconds(had.sum),
    )
}

/// Never rests, and counts what it has in each period as [`grasp`] does, and how much later than
/// the earliest each of its periods begins: it has the core as soon as it is due, but for a vCPU
/// that is raised above it. Two of its periods are one of that vCPU's: `both_ns` is the longest that
/// it was late in both together, whichever of two that follow one another they are.
pub fn outranked() -> Check<Done> {
    needs_cassata!();
    let stage = Stage::set()?;
    let budget = wait::us(platform::get().number("budget_us", 100));
    let mut meter = Meter::new((stage.period - budget) / 3);
    let (mut had, mut first) = (Seen::NOTHING, 0);
    // Against the period that was seen first.
    let (mut earliest, mut latest, mut sum) = (0_i64, 0_i64, 0_i64);
    // By whether the second one's number is even or odd.
    let (mut last, mut both) = (0_i64, [i64::MIN; 2]);
    while meter.last < stage.until {
        let Some(ran) = meter.look() else { continue };
        if first == 0 {
            first = if meter.last < stage.from { 0 } else { meter.last };
        } else if had.count < stage.periods {
            had.note(ran);
            let off = (meter.last - first).wrapping_sub(had.count * stage.period) as i64;
            (earliest, latest, sum) = (earliest.min(off), latest.max(off), sum + off);
            let pair = &mut both[(had.count % 2) as usize];
            *pair = (*pair).max(last + off);
            last = off;
        }
    }
    ensure_eq!(had.count, stage.periods, "periods that were over");
    ensure!(
        latest - earliest < (stage.period / 2) as i64,
        "it was not due as often as it began: {earliest} to {latest} ticks off"
    );
    let late = |off: i64, periods: u64| wait::nanoseconds((off - earliest * periods as i64) as u64);
    let both = both[0].min(both[1]);
    pass!(
        "periods={} least_ns={} most_ns={} latest_ns={} both_ns={} late_ns={}",
        had.count,
        wait::nanoseconds(had.least),
        wait::nanoseconds(had.most),
        late(latest, 1),
        late(both, 2),
        late(sum, had.count),
    )
}

/// Never rests, and counts what it has in each of `probe.periods` stretches of `probe.period_us`,
/// one after the other from `probe.from_ms` of the counter on.
pub fn leftover() -> Check<Done> {
    let stage = Stage::set()?;
    let mut meter = Meter::new(u64::MAX);
    let (mut had, mut end) = (Seen::NOTHING, stage.from);
    let mut begun = false;
    while meter.last < stage.until {
        meter.look();
        if meter.last >= end {
            let ran = core::mem::take(&mut meter.ran);
            if begun && had.count < stage.periods {
                had.note(ran);
            }
            begun = true;
            end += stage.period;
        }
    }
    ensure_eq!(had.count, stage.periods, "stretches that were over");
    pass!(
        "periods={} least_ns={} most_ns={} sum_ns={}",
        had.count,
        wait::nanoseconds(had.least),
        wait::nanoseconds(had.most),
        wait::nanoseconds(had.sum),
    )
}
