//! Calls, and accesses that trap: EL2 is entered by an instruction and comes back to the next one.

use super::series::{self, Series};
use super::timers::{find_phase_again, keep_clear};
use super::{Cache, SERVED, caches, prepare, rest};
use crate::arch::timed;
use crate::gic::{self, offset::*};
use crate::platform::GICD;
use crate::roles::mutex::Claim;
use crate::suite::{Check, Done};
use crate::{calls, cpus, ensure_eq, needs_cassata, pass, wait};
use abi::service;

/// Reads of the counter for each sample of `own-gap`.
const ROUNDS: u64 = 64;

/// Measures path `name` again and again: `act` adds a time or more.
fn repeat(name: &str, mut act: impl FnMut(&mut Series, Cache) -> Check) -> Check<Done> {
    needs_cassata!();
    for cache in caches() {
        let mut series = series::begin(0);
        // The first one after a rest has EL2 take note of the timer's interrupt, too.
        act(&mut series, cache)?;
        series.clear();
        for _ in 0..cache.repetitions() {
            act(&mut series, cache)?;
        }
        series.tell(name, cache)?;
        rest();
    }
    pass!("")
}

/// What the measuring itself takes: an instruction that does nothing, and [`ROUNDS`] reads of the counter without
/// rest.
pub fn own() -> Check<Done> {
    prepare()?;
    repeat("own-gap", |series, _| {
        keep_clear();
        let begin = wait::now();
        let end = (1..ROUNDS).fold(begin, |last, _| last.max(wait::now()));
        series.add(wait::now().max(end) - begin);
        Ok(())
    })?;
    repeat("own", |series, cache| {
        keep_clear();
        cache.prepare();
        series.span(timed::nothing());
        Ok(())
    })
}

/// A call that does nothing.
pub fn null() -> Check<Done> {
    prepare()?;
    repeat("null", |series, cache| {
        keep_clear();
        cache.prepare();
        let (span, answer) = timed::call(service::NULL, 0);
        ensure_eq!(answer, 0, "NULL");
        series.span(span);
        Ok(())
    })
}

/// Where an interrupt that no device has stands in a bank of bits.
const FREE_WORD: u64 = (gic::FREE_SPIS.start / 32 * 4) as u64;
const FREE_BIT: u32 = 1 << (gic::FREE_SPIS.start % 32);

/// A register of the distributor is read.
pub fn gic_read() -> Check<Done> {
    prepare()?;
    repeat("gic-read", |series, cache| {
        keep_clear();
        cache.prepare();
        series.span(timed::load(GICD, ISENABLER + FREE_WORD));
        Ok(())
    })
}

/// Registers of the distributor are written: an interrupt of no device is enabled, and disabled.
pub fn gic_write() -> Check<Done> {
    prepare()?;
    repeat("gic-write", |series, cache| {
        for bank in [ISENABLER, ICENABLER] {
            keep_clear();
            cache.prepare();
            series.span(timed::store(GICD, bank + FREE_WORD, FREE_BIT));
        }
        Ok(())
    })
}

/// Does `job` on the vCPU that has a server and tasks, which is above this one.
fn served(job: cpus::Job) -> Check<Done> {
    prepare()?;
    cpus::start(SERVED, job)?;
    cpus::join(SERVED)?;
    pass!("")
}

/// The calls of a section, and of a mutex with what they answer.
const SECTION: [u32; 2] = [service::START_GCS, service::FINISH_GCS];
const USE: [(u32, i64); 2] = [(service::MUTEX_LOCK, service::HELD), (service::MUTEX_UNLOCK, 0)];

/// A global critical section begins and ends.
pub fn gcs() -> Check<Done> {
    served(|| {
        find_phase_again()?;
        repeat("gcs", |series, cache| {
            keep_clear();
            // With the first section of a period EL2 decides anew, which takes longer.
            for function in SECTION {
                ensure_eq!(calls::hvc(function, &[SERVED as u64]), 0, "{function:#x}");
            }
            for function in SECTION {
                cache.prepare();
                let (span, answer) = timed::call(function, SERVED as u64);
                ensure_eq!(answer, 0, "{function:#x}");
                series.span(span);
            }
            Ok(())
        })
        .map(drop)
    })
}

/// A mutex that no other vCPU wants is locked and unlocked.
pub fn mutex() -> Check<Done> {
    served(|| {
        find_phase_again()?;
        let claim = Claim::named("R", "high")?;
        repeat("mutex", |series, cache| {
            keep_clear();
            claim.take()?;
            claim.give_back()?;
            for (function, wanted) in USE {
                cache.prepare();
                let (span, answer) = timed::call(function, claim.handle());
                ensure_eq!(answer, wanted, "{function:#x}");
                series.span(span);
            }
            Ok(())
        })
        .map(drop)
    })
}
