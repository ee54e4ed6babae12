//! How long a contended grant takes, to a vCPU that sleeps on another core.

use super::mutex::Claim;
use super::report::Report;
use crate::gic::{self, offset::*};
use crate::suite::{Check, Done};
use crate::{cpus, ensure_eq, fail, irq, needs_two_vcpus, pass, platform, println, wait};
use abi::platform::ppi::GRANT;
use abi::service::{MUTEX_LOCK, QUEUED};
use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// The round that the sibling may begin, and the one in which it waits.
static ROUND: AtomicU64 = AtomicU64::new(0);
static WAITS: AtomicU64 = AtomicU64::new(0);
/// The round in which it has given the mutex back.
static BACK: AtomicU64 = AtomicU64::new(0);
/// When the sibling took the interrupt of its grant, and when its task had the mutex, ticks;
/// 0: not yet.
static INTERRUPTED: AtomicU64 = AtomicU64::new(0);
static HELD: AtomicU64 = AtomicU64::new(0);

fn rounds() -> u64 {
    platform::get().number("repetitions", 10_000)
}

fn sibling() -> Check {
    gic::set(ISENABLER, GRANT);
    irq::hook(|intid| {
        if intid == GRANT {
            INTERRUPTED.store(wait::now(), SeqCst);
        }
    });
    let other = Claim::named("R", "other")?;
    for round in 1..=rounds() {
        wait::until("the next round", || ROUND.load(SeqCst) == round)?;
        ensure_eq!(other.call(MUTEX_LOCK), QUEUED, "MUTEX_LOCK by the sibling");
        WAITS.store(round, SeqCst);
        wait::asleep(|| other.holds())?;
        HELD.store(wait::now(), SeqCst);
        other.give_back()?;
        BACK.store(round, SeqCst);
    }
    Ok(())
}

/// Gives the mutex to the sibling so many times. Of each, a sample in the report area has the
/// ticks from the call that gives it back until the sibling takes its interrupt, and until its
/// task goes on.
fn here(report: &Report) -> Check {
    const REST_US: u64 = 20;
    let high = Claim::named("R", "high")?;
    println!("BENCH grant begin");
    for round in 1..=rounds() {
        high.take()?;
        HELD.store(0, SeqCst);
        ROUND.store(round, SeqCst);
        wait::until("the sibling", || WAITS.load(SeqCst) == round)?;
        let asleep = wait::now() + wait::us(REST_US);
        wait::until("the sibling's sleep", || wait::now() >= asleep)?;
        let begin = wait::now();
        high.give_back()?;
        wait::until("the grant", || HELD.load(SeqCst) != 0)?;
        let took = |word: &AtomicU64| word.load(SeqCst).saturating_sub(begin);
        report.sample(round - 1, 0, begin, took(&INTERRUPTED), took(&HELD));
        wait::until("the mutex", || BACK.load(SeqCst) == round)?;
    }
    println!("BENCH grant end");
    Ok(())
}

/// A mutex goes from this vCPU to the sibling on the other core, which sleeps, and back.
pub fn grant() -> Check<Done> {
    needs_two_vcpus!();
    let Some(report) = Report::open(0) else { fail!("there is no report area") };
    gic::set(ISENABLER, GRANT);
    cpus::start(1, sibling)?;
    let done = here(&report);
    cpus::join_after(1, done)?;
    pass!("repetitions={}", rounds())
}
