//! A guest that takes turns with an equal one, and says when what it runs is urgent: by calls, in its
//! line, or not at all.

use super::preemption::{TASK, counted, line, spin_us};
use crate::platform::LINES;
use crate::suite::{Check, Done};
use crate::timer::{ENABLE, Timer};
use crate::{calls, ensure, ensure_eq, irq, needs_cassata, pass, wait};
use abi::service::{BOOST, BUSY, DEBOOST, INVALID_PARAMETER, NOT_ALLOWED, NOT_SUPPORTED, boost};
use abi::status::VcpuStatus;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

const TIMER: Timer = Timer::Virtual;
/// How often its timer starts something in each part, and how far apart.
const WAKES: u64 = 100;
const PERIOD_US: u64 = 373;
/// What the description says: the quantum of the equals, and what boosts may take in a period.
const QUANTUM_US: u64 = 5_000;
const BUDGET_US: u64 = 2_000;
const LIMIT_PERIOD_US: u64 = 10_000;
/// For so long an interrupt boosts a guest that says nothing.
const WINDOW_US: u64 = 200;
/// What it says that it runs: a process of SCHED_FIFO with priority 80.
const URGENT: [u64; 2] = [boost::FIFO, 80];
/// The same in a line.
const TASK_URGENT: u32 = (URGENT[0] | URGENT[1] << 8) as u32;
/// X1 of a call about the calling vCPU.
const MYSELF: u64 = u64::MAX;

/// How far apart interrupts are that come within one another's windows.
const DENSE_US: u64 = 150;

/// When the next interrupt is due, and how many there were.
static DUE: AtomicU64 = AtomicU64::new(0);
static WOKEN: AtomicU64 = AtomicU64::new(0);
/// The greatest lateness of them, ticks.
static WORST: AtomicU64 = AtomicU64::new(0);
/// How long after an interrupt the next one is due.
static PAUSE_US: AtomicU64 = AtomicU64::new(PERIOD_US);
/// How long the handler of the next interrupt takes.
static HANDLER_US: AtomicU64 = AtomicU64::new(0);
/// The longest time without the core in such a handler, ticks.
static ABSENT: AtomicU64 = AtomicU64::new(0);

fn wake(_intid: u32) {
    let due = DUE.load(SeqCst);
    WORST.fetch_max(TIMER.now().saturating_sub(due), SeqCst);
    WOKEN.fetch_add(1, SeqCst);
    set_timer();
    let lasts_us = HANDLER_US.swap(0, SeqCst);
    if lasts_us > 0 {
        ABSENT.fetch_max(longest_absence(lasts_us), SeqCst);
    }
}

fn set_timer() {
    let due = TIMER.now() + wait::us(PAUSE_US.load(SeqCst));
    DUE.store(due, SeqCst);
    TIMER.set_compare(due);
}

fn begin() {
    irq::hook(wake);
    crate::gic::set(crate::gic::offset::ISENABLER, TIMER.intid());
    set_timer();
    TIMER.set_control(ENABLE);
}

/// Spins until there have been so many more interrupts.
fn await_interrupts(count: u64) {
    let before = WOKEN.load(SeqCst);
    while WOKEN.load(SeqCst) < before + count {
        core::hint::spin_loop();
    }
}

/// Spins for this long. Returns the longest time without the core meanwhile, ticks.
fn longest_absence(us: u64) -> u64 {
    let begin = wait::now();
    let (mut last, mut longest) = (begin, 0);
    while last < begin + wait::us(us) {
        let now = wait::now();
        longest = longest.max(now - last);
        last = now;
    }
    longest
}

/// Returns how late the timer's interrupts are at worst while the vCPU sleeps in between, ticks.
fn worst_asleep() -> Check<u64> {
    WORST.store(0, SeqCst);
    let before = WOKEN.load(SeqCst);
    wait::asleep(|| WOKEN.load(SeqCst) >= before + WAKES)?;
    Ok(WORST.load(SeqCst))
}

/// Returns how late they are while it never sleeps, as beside work that is not urgent.
fn worst_awake() -> u64 {
    WORST.store(0, SeqCst);
    await_interrupts(WAKES);
    WORST.load(SeqCst)
}

fn is_late(ticks: u64) -> bool {
    ticks > wait::us(QUANTUM_US) / 2
}

fn is_early(ticks: u64) -> bool {
    ticks < wait::us(20)
}

/// As late as an interrupt is that comes to a vCPU which has its core already, with the checks of the checked build. Without a
/// timer advance it waits for a decision and a switch: 1,330 ns.
fn is_at_once(ticks: u64) -> bool {
    ticks < wait::us(1_150) / 1_000
}

fn say(which: u64, [policy, priority]: [u64; 2]) -> i64 {
    calls::hvc(BOOST, &[which, policy, priority])
}

/// Spins until this vCPU loses its core for long. Returns how long it had that, ticks.
fn stretch() -> u64 {
    let begin = wait::now();
    let mut last = begin;
    loop {
        let now = wait::now();
        if now - last > wait::us(QUANTUM_US / 2) {
            return last - begin;
        }
        last = now;
    }
}

/// What it wakes for is late by a quantum unless it says that it is urgent, by a call or in its line;
/// and what it says helps it for no longer than the description allows.
pub fn says() -> Check<Done> {
    needs_cassata!();
    for (which, what, answer) in [
        (MYSELF, [boost::FIFO, 0], INVALID_PARAMETER),
        (MYSELF, [boost::RR, 100], INVALID_PARAMETER),
        (MYSELF, [boost::NORMAL, 1], INVALID_PARAMETER),
        (MYSELF, [3, 1], INVALID_PARAMETER),
        (9, URGENT, INVALID_PARAMETER),
        (1, URGENT, NOT_ALLOWED),
        (2, URGENT, NOT_SUPPORTED),
    ] {
        ensure_eq!(say(which, what), answer, "BOOST {which:#x} {what:?}");
    }
    begin();
    let before = worst_asleep()?;
    ensure!(is_late(before), "without a boost: late by {before} ticks only");
    ensure_eq!(say(0, URGENT), 0, "BOOST");
    ensure_eq!(counted(offset_of!(VcpuStatus, report))?, boost::FIFO | 80 << 8, "the report");
    let boosted = worst_asleep()?;
    ensure!(is_early(boosted), "boosted: late by {boosted} ticks, {before} before");
    ensure_eq!(calls::hvc(DEBOOST, &[MYSELF]), 0, "DEBOOST");
    ensure_eq!(counted(offset_of!(VcpuStatus, report))?, 0, "no report");
    let after = worst_asleep()?;
    ensure!(is_late(after), "after the boost: late by {after} ticks only");
    let by_line = by_line()?;
    TIMER.stop();
    limited()?;
    pass!("late by {boosted} ticks boosted by a call, {by_line} by its line, {before} otherwise")
}

/// Says it in the line, which EL2 reads when it decides which vCPU has the core.
fn by_line() -> Check<u64> {
    let line = line()?;
    LINES.write32(line + TASK, TASK_URGENT);
    let boosted = worst_asleep()?;
    LINES.write32(line + TASK, 0);
    let after = worst_asleep()?;
    ensure!(is_early(boosted), "boosted by its line: late by {boosted} ticks");
    ensure!(is_late(after), "after the line said nothing: late by {after} ticks only");
    Ok(boosted)
}

/// A guest that is urgent for ever has its budget in each period, and then waits for its equal.
fn limited() -> Check {
    spin_us(3 * LIMIT_PERIOD_US);
    ensure_eq!(say(MYSELF, URGENT), 0, "BOOST in a new period");
    let ran = stretch();
    let (least, most) = (wait::us(BUDGET_US - 100), wait::us(BUDGET_US + 100));
    ensure!((least..most).contains(&ran), "boosted for {ran} ticks");
    let end = wait::now() + wait::us(5 * LIMIT_PERIOD_US);
    while say(MYSELF, URGENT) != BUSY {
        ensure!(wait::now() < end, "no boost is refused");
    }
    let counted = counted(offset_of!(VcpuStatus, boosts_refused))?;
    ensure!(counted > 0, "no refusal is counted");
    Ok(())
}

/// A guest that says nothing: its interrupts boost it, asleep or not, each for a window, also where its
/// guest does not see that interrupt before the window of another one ends. Those of its timer boost it before that fires.
/// When its line says then that what follows is urgent, it is boosted for longer.
pub fn silent() -> Check<Done> {
    needs_cassata!();
    begin();
    let asleep = worst_asleep()?;
    ensure!(is_at_once(asleep), "woken: late by {asleep} ticks");
    let awake = worst_awake();
    ensure!(is_at_once(awake), "interrupted at work: late by {awake} ticks");
    let dense = interrupted_densely();
    ensure!(
        is_early(dense),
        "{dense} ticks without the core between interrupts {DENSE_US} us apart"
    );
    let handler = interrupted_again();
    ensure!(
        is_early(handler),
        "{handler} ticks without the core in a handler, with the next one due"
    );
    ensure_eq!(counted(offset_of!(VcpuStatus, boosts))?, 0, "what it has said");
    let line = line()?;
    let window = interrupted_for(|_| {});
    ensure!(!is_early(window), "{window} ticks without the core after a window");
    let said = interrupted_for(|is_urgent| {
        LINES.write32(line + TASK, if is_urgent { TASK_URGENT } else { 0 });
    });
    ensure!(is_early(said), "{said} ticks without the core while its line says that it is urgent");
    pass!("late by {asleep} ticks when it is woken, {awake} when it works")
}

/// Is interrupted, and works for longer than a window. Calls `says` with true at the begin of that, and
/// with false at the end. Returns the longest time without the core meanwhile, ticks.
fn interrupted_for(says: impl Fn(bool)) -> u64 {
    begin();
    await_interrupts(1);
    TIMER.stop();
    says(true);
    let longest = longest_absence(10 * WINDOW_US);
    says(false);
    longest
}

/// Is interrupted again within each interrupt's window. Returns the longest time without the core
/// meanwhile, ticks.
fn interrupted_densely() -> u64 {
    PAUSE_US.store(DENSE_US, SeqCst);
    begin();
    await_interrupts(1);
    let longest = longest_absence(5 * WINDOW_US);
    TIMER.stop();
    PAUSE_US.store(PERIOD_US, SeqCst);
    longest
}

/// Handles an interrupt for longer than its window, while the next one is due already, which its
/// virtual interface does not have yet: the one before is active. Returns the longest time without the
/// core in the handler, ticks.
fn interrupted_again() -> u64 {
    PAUSE_US.store(DENSE_US, SeqCst);
    HANDLER_US.store(3 * WINDOW_US / 2, SeqCst);
    begin();
    await_interrupts(1);
    TIMER.stop();
    PAUSE_US.store(PERIOD_US, SeqCst);
    ABSENT.load(SeqCst)
}
