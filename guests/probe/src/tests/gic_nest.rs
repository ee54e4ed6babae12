//! Many at once: more pending, and more active, than there are list registers.

use crate::arch::{cpu, sysreg::read};
use crate::gic::{self, FREE_SPIS, offset::*};
use crate::suite::{Check, Done, Test};
use crate::tests::icc::implemented;
use crate::{ensure, ensure_eq, irq, pass, platform, wait};
use core::sync::atomic::{AtomicU32, Ordering::SeqCst};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    Test { name: "gic.flood", body: flood },
    Test { name: "gic.flood_equal", body: flood_equal },
    Test { name: "gic.nested", body: nested },
    Test { name: "gic.nested_flood", body: nested_flood },
];

/// SPIs in a flood.
const FLOOD: u32 = 40;

fn flood_intids() -> impl Iterator<Item = u32> + Clone {
    (0..16).chain(FREE_SPIS.take(FLOOD as usize))
}

fn pend(intid: u32) {
    if intid < 16 { gic::send(intid, [cpu::index()]) } else { gic::set(ISPENDR, intid) }
}

/// Every interrupt of the flood was taken once; answers their order.
fn each_once() -> Check {
    gic::expect_total(flood_intids().count())?;
    for intid in flood_intids() {
        ensure_eq!(irq::seen(cpu::index()).count(intid), 1, "interrupt {intid} taken");
    }
    Ok(())
}

/// 56 pending behind the mask, then let in: each once, in priority order.
fn flood() -> Check<Done> {
    let rounds = platform::get().number("rounds.flood", 20);
    for round in 0..rounds as u32 {
        irq::reset(cpu::index());
        cpu::mask_irq();
        for intid in flood_intids() {
            if intid >= 16 {
                gic::enable_spi(intid, 0);
            }
            let mixed = (intid + round * 7).wrapping_mul(0x9e37_79b9) >> 24;
            gic::set_priority(intid, mixed as u8 & 0x7f);
        }
        flood_intids().for_each(pend);
        cpu::unmask_irq();
        each_once()?;
        let mut last = 0;
        for intid in irq::seen(cpu::index()).order() {
            let priority = gic::priority(intid) & implemented();
            ensure!(priority >= last, "{intid} at {priority:#x} was taken after {last:#x}");
            last = priority;
        }
    }
    pass!("{rounds} rounds of {}", flood_intids().count())
}

/// Tests nesting at one priority, where any order is right.
fn flood_equal() -> Check<Done> {
    for _ in 0..5 {
        irq::reset(cpu::index());
        cpu::mask_irq();
        flood_intids().filter(|&intid| intid >= 16).for_each(|spi| gic::enable_spi(spi, 0));
        flood_intids().for_each(pend);
        cpu::unmask_irq();
        each_once()?;
    }
    pass!("")
}

/// How deep handlers interrupt each other.
const DEPTH: u32 = 14;
static DEEPEST: AtomicU32 = AtomicU32::new(0);
static WRONG: AtomicU32 = AtomicU32::new(0);

/// The handler of level n pends level n + 1 at a higher priority and lets it in.
fn nested() -> Check<Done> {
    ensure!(implemented() & 0xf0 == 0xf0, "fewer than 16 priorities");
    for level in 0..DEPTH {
        gic::enable_spi(FREE_SPIS.start + level, 0);
        gic::set_priority(FREE_SPIS.start + level, level_priority(level));
    }
    irq::hook(descend);
    let rounds = platform::get().number("rounds.nested", 50) as usize;
    for round in 1..=rounds {
        DEEPEST.store(0, SeqCst);
        WRONG.store(0, SeqCst);
        gic::set(ISPENDR, FREE_SPIS.start);
        gic::expect_total(round * DEPTH as usize)?;
        ensure_eq!(DEEPEST.load(SeqCst), DEPTH, "levels");
        ensure_eq!(WRONG.load(SeqCst), 0, "levels at which ICC_RPR_EL1 was wrong");
        ensure_eq!(read::icc_rpr_el1(), 0xff, "ICC_RPR_EL1 afterwards");
        ensure_eq!(read::icc_ap1r0_el1(), 0, "ICC_AP1R0_EL1 afterwards");
    }
    pass!("{DEPTH} levels, {rounds} rounds")
}

fn level_priority(level: u32) -> u8 {
    0xf0 - 0x10 * level as u8
}

fn descend(intid: u32) {
    let level = intid - FREE_SPIS.start;
    check_running(level);
    DEEPEST.fetch_max(level + 1, SeqCst);
    if level + 1 < DEPTH {
        let seen = irq::seen(cpu::index());
        let before = seen.count(intid + 1);
        gic::set(ISPENDR, intid + 1);
        cpu::unmask_irq();
        // Should it not come, DEEPEST tells.
        let _ = wait::until("the next level", || seen.count(intid + 1) > before);
        cpu::mask_irq();
    }
    check_running(level);
}

fn check_running(level: u32) {
    if read::icc_rpr_el1() != u64::from(level_priority(level)) {
        WRONG.fetch_add(1, SeqCst);
    }
}

/// With four levels active, 40 more of lower and of higher priority come: the
/// higher ones get in at once, the lower ones after the last level has ended.
fn nested_flood() -> Check<Done> {
    const LEVELS: u32 = 4;
    const LOWER: core::ops::Range<u32> = FREE_SPIS.start + 20..FREE_SPIS.start + 40;
    const HIGHER: core::ops::Range<u32> = FREE_SPIS.start + 40..FREE_SPIS.start + 60;
    static DONE: AtomicU32 = AtomicU32::new(0);
    DONE.store(0, SeqCst);
    for spi in FREE_SPIS.start..HIGHER.end {
        gic::enable_spi(spi, 0);
    }
    (0..LEVELS)
        .for_each(|level| gic::set_priority(FREE_SPIS.start + level, 0x80 - 0x10 * level as u8));
    LOWER.for_each(|spi| gic::set_priority(spi, 0xe0));
    HIGHER.for_each(|spi| gic::set_priority(spi, 0x10));
    irq::hook(|intid| {
        let level = intid - FREE_SPIS.start;
        if level + 1 < LEVELS {
            gic::set(ISPENDR, intid + 1);
            cpu::unmask_irq();
            gic::let_in();
        } else if level + 1 == LEVELS {
            LOWER.chain(HIGHER).for_each(|spi| gic::set(ISPENDR, spi));
            cpu::unmask_irq();
            let seen = irq::seen(cpu::index());
            let higher = || HIGHER.map(|spi| seen.count(spi)).sum::<u32>();
            let lower = || LOWER.map(|spi| seen.count(spi)).sum::<u32>();
            let arrived = wait::until("higher ones", || higher() == HIGHER.len() as u32).is_ok();
            DONE.store(u32::from(arrived && lower() == 0), SeqCst);
        }
    });
    gic::set(ISPENDR, FREE_SPIS.start);
    gic::expect_total(LEVELS as usize + LOWER.len() + HIGHER.len())?;
    ensure_eq!(DONE.load(SeqCst), 1, "higher ones got in, lower ones waited");
    for spi in LOWER.chain(HIGHER) {
        ensure_eq!(irq::seen(cpu::index()).count(spi), 1, "SPI {spi} taken");
    }
    pass!("")
}
