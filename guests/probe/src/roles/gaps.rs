//! A detector of gaps: each vCPU reads the counter without rest, and tells of stretches in which it did
//! not run.
//!
//! It is to be alone on its core. Then EL2 takes the core only for its own work, and counts its longest
//! stay. A longer gap was taken by what EL2 does not see: firmware at EL3, a secure interrupt, or a core
//! that stood still.

use crate::arch::cpu;
use crate::suite::{Check, Done};
use crate::timer::Timer;
use crate::{calls, cpus, ensure, needs_cassata, pass, platform, println, wait};
use abi::MAX_VCPUS_PER_VM;
use abi::status::{Exit, VcpuStatus};
use core::mem::offset_of;
use core::sync::atomic::{AtomicU64, Ordering::SeqCst};
use spin::Mutex;

/// How many gaps are told of with their times: the first of each vCPU.
const KEPT: usize = 16;
/// Bins of the histogram: the first is of gaps below 2 us, each next goes up to twice as far, and the
/// last has all that are longer.
const BINS: usize = 24;

/// A gap, in ticks.
#[derive(Clone, Copy)]
struct Gap {
    at: u64,
    length: u64,
}

/// What a vCPU has seen.
#[derive(Clone, Copy)]
struct Seen {
    watched: u64,
    looks: u64,
    gaps: u64,
    longest: u64,
    lost: u64,
    /// Gaps that a stay at EL2 explains.
    explained: u64,
    explained_longest: u64,
    /// The longest stay at EL2.
    stay: u64,
    bins: [u64; BINS],
    first: [Gap; KEPT],
}

impl Seen {
    const NOTHING: Self = Self {
        watched: 0,
        looks: 0,
        gaps: 0,
        longest: 0,
        lost: 0,
        explained: 0,
        explained_longest: 0,
        stay: 0,
        bins: [0; BINS],
        first: [Gap { at: 0, length: 0 }; KEPT],
    };

    /// Notes that the vCPU did not run for `gap.length`; `entered`: EL2 took an interrupt meanwhile.
    fn note(&mut self, gap: Gap, entered: bool) {
        if entered && gap.length <= self.stay {
            self.explained += 1;
            self.explained_longest = self.explained_longest.max(gap.length);
            return;
        }
        if let Some(place) = self.first.get_mut(self.gaps as usize) {
            *place = gap;
        }
        let us = wait::nanoseconds(gap.length) / 1_000;
        let bin = us.max(1).ilog2() as usize;
        self.bins[bin.min(BINS - 1)] += 1;
        self.gaps += 1;
        self.longest = self.longest.max(gap.length);
        self.lost += gap.length;
    }
}

static SEEN: [Mutex<Seen>; MAX_VCPUS_PER_VM] =
    [const { Mutex::new(Seen::NOTHING) }; MAX_VCPUS_PER_VM];
/// Counter up to which all watch.
static END: AtomicU64 = AtomicU64::new(0);

/// Word of the calling vCPU's counts at EL2.
fn counted(offset: usize) -> Check<u64> {
    let answer = calls::counter(cpu::index() as u64, (offset / size_of::<u64>()) as u64);
    answer.map_err(|error| crate::suite::text(format_args!("the counter call answers {error}")))
}

/// Reads the counter up to [`END`] with all interrupts masked, and notes what is longer than
/// `probe.threshold_ns` (10,000) between two reads.
fn watch() -> Check {
    let threshold = wait::ns(platform::get().number("threshold_ns", 10_000));
    let interrupts = offset_of!(VcpuStatus, exits) + Exit::Interrupt as usize * size_of::<u64>();
    cpu::mask_irq();
    let mut seen = *SEEN[cpu::index()].lock();
    let mut entries = counted(interrupts)?;
    let (begin, end) = (Timer::Virtual.now(), END.load(SeqCst));
    let mut last = begin;
    while last < end {
        let now = Timer::Virtual.now();
        seen.looks += 1;
        let gap = Gap { at: last, length: now - last };
        last = now;
        if gap.length > threshold {
            let entered = counted(interrupts)?;
            seen.stay = counted(offset_of!(VcpuStatus, longest_el2))?;
            seen.note(gap, entered > entries);
            entries = entered;
            // The calls are no gap.
            last = Timer::Virtual.now();
        }
    }
    seen.watched += last - begin;
    seen.stay = counted(offset_of!(VcpuStatus, longest_el2))?;
    *SEEN[cpu::index()].lock() = seen;
    cpu::unmask_irq();
    Ok(())
}

/// Tells all that was seen so far, a few lines for each vCPU.
fn tell() {
    for (vcpu, seen) in SEEN.iter().enumerate().take(platform::get().vcpus.len()) {
        let seen = *seen.lock();
        let ns = wait::nanoseconds;
        println!(
            "gaps vcpu={vcpu} watched_ns={} looks={} gaps={} longest_ns={} lost_ns={} explained={} \
             explained_longest_ns={} el2_longest_ns={}",
            ns(seen.watched),
            seen.looks,
            seen.gaps,
            ns(seen.longest),
            ns(seen.lost),
            seen.explained,
            ns(seen.explained_longest),
            ns(seen.stay)
        );
        for (bin, count) in seen.bins.iter().enumerate().filter(|(_, count)| **count > 0) {
            let from = if bin == 0 { 0 } else { 1_u64 << bin };
            println!("gaps-bin vcpu={vcpu} from_us={from} count={count}");
        }
        for gap in &seen.first[..KEPT.min(seen.gaps as usize)] {
            println!("gap vcpu={vcpu} at_ns={} length_ns={}", ns(gap.at), ns(gap.length));
        }
    }
    println!("gaps-told");
}

/// Watches with all vCPUs for `probe.for_ms` (1,000), and tells what it saw, `probe.rounds` (1) times,
/// or for ever if that is 0.
pub fn gaps() -> Check<Done> {
    needs_cassata!();
    let number = |name, default| platform::get().number(name, default);
    let (length_ms, rounds) = (number("for_ms", 1_000), number("rounds", 1));
    ensure!(length_ms > 0, "probe.for_ms is 0");
    let mut round = 0;
    while rounds == 0 || round < rounds {
        END.store(Timer::Virtual.now() + wait::us(length_ms * 1_000), SeqCst);
        cpus::together(watch, watch)?;
        tell();
        round += 1;
    }
    let found: u64 = SEEN.iter().map(|seen| seen.lock().gaps).sum();
    pass!("{found} gaps in {round} rounds of {length_ms} ms")
}
