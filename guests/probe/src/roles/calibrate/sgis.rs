//! Software-generated interrupts: for the vCPU itself, for another one of its core, and for one of another core.

use super::timers::keep_clear;
use super::{ABOVE, Cache, SECOND_CORE, caches, longest_gap, prepare, rest, series};
use crate::arch::cpu;
use crate::arch::timed::{self, Span};
use crate::gic::{self, offset::*};
use crate::suite::{Check, Done};
use crate::{cpus, pass, wait};
use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

const SGI: u32 = 3;

/// Sends the SGI to a vCPU.
#[cfg(not(feature = "gic-v2"))]
fn send(vcpu: usize) -> Span {
    timed::send(u64::from(SGI) << 24 | 1 << vcpu)
}

/// Sends the SGI to a vCPU.
#[cfg(feature = "gic-v2")]
fn send(vcpu: usize) -> Span {
    timed::store(crate::platform::GICD, gic::v2::SGIR, 1 << (16 + vcpu) | SGI)
}

/// To the sender, which takes it afterwards.
pub fn own() -> Check<Done> {
    prepare()?;
    gic::set(ISENABLER, SGI);
    for cache in caches() {
        let mut series = series::begin(0);
        for _ in 0..cache.repetitions() {
            keep_clear();
            cache.prepare();
            cpu::mask_irq();
            series.span(send(cpu::index()));
            cpu::unmask_irq();
        }
        series.tell("sgi-self", cache)?;
        rest();
    }
    pass!("")
}

/// The round in which the other vCPU shall be woken, and in which it is ready; 0: it shall end.
static ROUND: AtomicU64 = AtomicU64::new(0);
static READY: AtomicU64 = AtomicU64::new(0);
/// The last round.
static ROUNDS: AtomicU64 = AtomicU64::new(0);
/// When it went on.
static WOKE: AtomicU64 = AtomicU64::new(0);

/// To a vCPU that sleeps on the same core, above the sender: the switch is part of it.
pub fn same_core() -> Check<Done> {
    prepare()?;
    for cache in caches() {
        let mut series = series::begin(0);
        ROUNDS.store(cache.repetitions(), SeqCst);
        cpus::start(ABOVE, || {
            gic::set(ISENABLER, SGI);
            for _ in 0..ROUNDS.load(SeqCst) {
                cpu::mask_irq();
                WOKE.store(timed::sleep().end, SeqCst);
                cpu::unmask_irq();
            }
            Ok(())
        })?;
        for _ in 0..cache.repetitions() {
            keep_clear();
            cache.prepare();
            let begin = send(ABOVE).begin;
            series.add(WOKE.load(SeqCst) - begin);
        }
        cpus::join(ABOVE)?;
        series.tell("sgi-core", cache)?;
        rest();
    }
    pass!("")
}

/// The cache of the sibling's repetitions: it counts as cold if this is not 0.
static COLD: AtomicU64 = AtomicU64::new(0);

/// Waits in each round for the interrupt, with interrupts masked, and notes how long EL2 took.
fn sibling() -> Check {
    const WATCHED_US: u64 = 40;
    gic::set(ISENABLER, SGI);
    let cache = if COLD.load(SeqCst) == 0 { Cache::Warm } else { Cache::Cold };
    let mut series = series::begin(1);
    for round in 1..=ROUNDS.load(SeqCst) {
        wait::until("the next round", || ROUND.load(SeqCst) == round)?;
        keep_clear();
        cache.prepare();
        cpu::mask_irq();
        READY.store(round, SeqCst);
        series.add(longest_gap(wait::now() + wait::us(WATCHED_US)));
        cpu::unmask_irq();
    }
    Ok(())
}

/// To a vCPU that runs on another core: what it takes the sender, and the doorbell there.
pub fn other_core() -> Check<Done> {
    prepare()?;
    for cache in caches() {
        let mut series = series::begin(0);
        ROUND.store(0, SeqCst);
        ROUNDS.store(cache.repetitions(), SeqCst);
        COLD.store((cache == Cache::Cold).into(), SeqCst);
        READY.store(0, SeqCst);
        cpus::start(SECOND_CORE, sibling)?;
        for round in 1..=cache.repetitions() {
            keep_clear();
            cache.prepare();
            ROUND.store(round, SeqCst);
            wait::until("the sibling", || READY.load(SeqCst) == round)?;
            wait::spin(wait::us(5));
            series.span(send(SECOND_CORE));
        }
        cpus::join(SECOND_CORE)?;
        series.tell("sgi-other", cache)?;
        series::of(1).tell("doorbell", cache)?;
        rest();
    }
    pass!("")
}
