//! SYSTEM_RESET: the same VM again, from the beginning.

use crate::arch::cpu;
use crate::gic::{self, FREE_SPIS, offset::*};
use crate::suite::{Check, Done};
use crate::tests::boot::fresh;
use crate::timer::Timer;
use crate::{calls, cpus, ensure, ensure_eq, pass, platform, println, wait};
use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Marks the surviving word as ours; the low half counts boots.
const MARK: u64 = 0x9e57_b007 << 32;
/// In the image: only a reloaded image holds this value again.
static IN_DATA: AtomicU64 = AtomicU64::new(0x600d_da7a);
/// Not in the image, cleared by the entry code.
static IN_BSS: AtomicU64 = AtomicU64::new(0);

/// How often this VM has started before, counted in memory that survives.
pub fn starts_before() -> u64 {
    let word = platform::surviving_word().load(SeqCst);
    if word & !0xffff_ffff == MARK { word & 0xffff_ffff } else { 0 }
}

/// Says that the VM has started once more.
pub fn note_next_start() {
    let before = starts_before();
    println!("start {before}");
    note_start(before + 1);
}

/// Counts a start.
pub fn note_start(count: u64) {
    platform::surviving_word().store(MARK | count, SeqCst);
    cpu::dsb();
}

/// Resets `probe.resets` times (3), each time from as unlike a fresh state as
/// possible, and checks that the next start finds a fresh one.
pub fn few() -> Check<Done> {
    let before = starts_before();
    let resets = platform::get().number("resets", 3);
    ensure_eq!(IN_DATA.load(SeqCst), 0x600d_da7a, "a word of the image");
    ensure_eq!(IN_BSS.load(SeqCst), 0, "a word of cleared memory");
    cpus::all_off()?;
    fresh()?;
    if before == resets {
        platform::surviving_word().store(0, SeqCst);
        return pass!("{resets} resets");
    }
    note_start(before + 1);
    println!("start {before}");
    make_a_mess()?;
    calls::system_reset()
}

/// Every vCPU busy, memory changed, interrupts pending, active and masked,
/// timers running.
fn make_a_mess() -> Check {
    fn job() -> Check {
        Timer::Virtual.arm(wait::us(10));
        loop {
            IN_BSS.fetch_add(1, SeqCst);
        }
    }
    for index in platform::get().others() {
        cpus::start(index, job)?;
    }
    IN_DATA.store(0, SeqCst);
    cpu::mask_irq();
    for spi in FREE_SPIS {
        gic::enable_spi(spi, 0);
        gic::set(ISPENDR, spi);
        gic::set(ISACTIVER, spi + 1 - spi % 2);
    }
    for timer in Timer::there() {
        timer.arm(0);
        gic::set(ISENABLER, timer.intid());
    }
    gic::send(1, [0]);
    Ok(())
}

/// Resets again and again; `probe.resets=N` ends it after N.
pub fn endless() -> Check<Done> {
    let before = starts_before();
    println!("start {before}");
    let resets = platform::get().number("resets", u64::MAX);
    if before >= resets {
        platform::surviving_word().store(0, SeqCst);
        return pass!("{resets} resets");
    }
    note_start(before + 1);
    wait::spin(wait::us(2000));
    ensure!(starts_before() == before + 1, "memory changes by itself");
    calls::system_reset()
}
