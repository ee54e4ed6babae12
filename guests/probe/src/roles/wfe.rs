//! Two vCPUs on one pCPU: one spins with WFE for what the other one holds, which it has interrupted.

use crate::arch::cpu;
use crate::suite::{Check, Done};
use crate::{cpus, ensure, gic, irq, needs_cassata, needs_two_vcpus, pass, platform, wait};
use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

const ROUNDS: u32 = 20;
/// SGIs: a lock is held, and it was waited for.
const HELD: u32 = 3;
const WAITED: u32 = 4;
/// How long the lock is held by a vCPU that is not interrupted.
const HOLD_US: u64 = 5;
/// The longest wait where WFE traps, and the shortest of the longest where it does not: the quantum is
/// 10 ms.
const SOON_US: u64 = 100;
const LATE_US: u64 = 5_000;

static LOCK: AtomicU64 = AtomicU64::new(0);
/// The longest wait, ticks, and how many there were.
static LONGEST: AtomicU64 = AtomicU64::new(0);
static WAITS: AtomicU64 = AtomicU64::new(0);

/// Waits for the lock whenever it is told that it is held.
fn spins() -> Check {
    for round in 1..=ROUNDS {
        wait::asleep(|| irq::seen(1).count(HELD) >= round)?;
        let begin = wait::now();
        if LOCK.load(SeqCst) != 0 {
            WAITS.fetch_add(1, SeqCst);
        }
        while LOCK.load(SeqCst) != 0 {
            cpu::wfe();
        }
        LONGEST.fetch_max(wait::now() - begin, SeqCst);
        gic::send(WAITED, [0]);
    }
    Ok(())
}

/// Holds the lock while it tells the other vCPU so, which has the core then. `probe.trapped`: WFE traps, and
/// it has the core back at once; else when the other one's quantum is over.
pub fn wfe() -> Check<Done> {
    needs_cassata!();
    needs_two_vcpus!();
    let trapped = platform::get().number("trapped", 0) != 0;
    // An SGI that comes before interrupts can reach it is lost.
    cpus::start(1, spins)?;
    let outcome = (1..=ROUNDS).try_for_each(|round| {
        LOCK.store(1, SeqCst);
        gic::send(HELD, [1]);
        wait::spin(wait::us(HOLD_US));
        LOCK.store(0, SeqCst);
        wait::asleep(|| irq::seen(0).count(WAITED) >= round)
    });
    cpus::join_after(1, outcome)?;
    let waits = WAITS.load(SeqCst);
    ensure!(
        waits >= u64::from(ROUNDS) / 2,
        "the lock was held {waits} times when it was waited for"
    );
    let longest_us = wait::nanoseconds(LONGEST.load(SeqCst)) / 1_000;
    let fits = if trapped { longest_us <= SOON_US } else { longest_us >= LATE_US };
    ensure!(fits, "WFE traps: {trapped}, and the longest of {waits} waits took {longest_us} us");
    pass!("{waits} waits, the longest {longest_us} us")
}
