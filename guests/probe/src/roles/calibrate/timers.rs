//! Interrupts of timers for a vCPU that runs, with its interrupts masked: EL2 comes and goes between two reads of
//! the counter.

use super::{Cache, SERVED, TIMER, caches, longest_gap, number, prepare, rest, series};
use crate::arch::cpu;
use crate::suite::{Check, Done};
use crate::{cpus, ensure, pass, wait};
use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// The guest's virtual timer fires: no switch is needed.
pub fn timer() -> Check<Done> {
    prepare()?;
    for cache in caches() {
        let mut series = series::begin(0);
        for _ in 0..cache.repetitions() {
            keep_clear();
            cache.prepare();
            cpu::mask_irq();
            let due = TIMER.arm(wait::us(10)) - TIMER.now();
            series.add(longest_gap(wait::now() + due + wait::us(10)));
            TIMER.stop();
            cpu::unmask_irq();
        }
        series.tell("timer", cache)?;
        rest();
    }
    pass!("")
}

/// Where the periods of the servers begin, which only EL2 knows, whether the vCPUs are on or off. What is
/// measured keeps clear of them, but for replenishments themselves.
static PHASE: AtomicU64 = AtomicU64::new(0);
/// How long before the next period nothing is begun any more, ticks: there is time to empty the caches.
static MARGIN: AtomicU64 = AtomicU64::new(0);

fn period() -> u64 {
    wait::us(number("period_us", 4_000))
}

/// Returns when the longest gap began of one period from now on.
fn longest_gap_at() -> u64 {
    // What is between the first two reads would be a gap.
    let period = period();
    let mut last = wait::now();
    let (end, mut longest, mut begin) = (last + period, 0, last);
    while last < end {
        let now = wait::now();
        if now - last > longest {
            (longest, begin) = (now - last, last);
        }
        last = now;
    }
    begin
}

/// Finds where periods begin, unless that is known: the calling vCPU is interrupted there, period after period.
pub fn find_phase() -> Check {
    if PHASE.load(SeqCst) > 0 { Ok(()) } else { find_phase_again() }
}

/// Finds where periods begin: the server's own, once its vCPU is on, are others than while it was off.
pub fn find_phase_again() -> Check {
    const TRIES: u32 = 20;
    let margin = caches().last().unwrap_or(Cache::Warm).settles(200);
    ensure!(margin < period() / 2, "memory of probe.sweep_kib takes {margin} ticks, too long");
    MARGIN.store(margin, SeqCst);
    let near = period() / 100;
    cpu::mask_irq();
    let mut last = longest_gap_at();
    let found = (0..TRIES).any(|_| {
        let begin = longest_gap_at();
        let off = (begin - last) % period();
        last = begin;
        off < near || off > period() - near
    });
    cpu::unmask_irq();
    ensure!(found, "no interrupt comes each {} ticks, when budgets are replenished", period());
    PHASE.store(last, SeqCst);
    Ok(())
}

/// Returns when the first period begins that does so at `from` or later.
fn next(from: u64) -> u64 {
    let phase = PHASE.load(SeqCst);
    phase + (from - phase).div_ceil(period()) * period()
}

/// How long what EL2 does at the beginning of a period takes at most, microseconds.
const AFTER_US: u64 = 100;

/// Returns `instant`, or later if need be, when no replenishment is near.
pub fn clear(instant: u64) -> u64 {
    let (margin, next) = (MARGIN.load(SeqCst), next(instant));
    if PHASE.load(SeqCst) > 0 && next - instant < margin {
        next + wait::us(AFTER_US)
    } else {
        instant
    }
}

/// Waits, if need be, until no replenishment is near.
pub fn keep_clear() {
    let now = wait::now();
    wait::spin(clear(now) - now);
}

/// The budget of the vCPU that runs is replenished as it ends: no switch is needed.
pub fn replenish() -> Check<Done> {
    prepare()?;
    cpus::start(SERVED, || {
        find_phase_again()?;
        for cache in caches() {
            let mut series = series::begin(0);
            // EL2 decides anew with the first one, which takes longer.
            for number in 0..=cache.few() {
                let due = next(wait::now() + MARGIN.load(SeqCst));
                cache.prepare();
                cpu::mask_irq();
                while wait::now() < due - wait::us(20) {}
                let gap = longest_gap(due + wait::us(20));
                cpu::unmask_irq();
                if number > 0 {
                    series.add(gap);
                }
            }
            series.tell_of("replenish", cache, cache.few())?;
            rest();
        }
        Ok(())
    })?;
    cpus::join(SERVED)?;
    pass!("")
}
