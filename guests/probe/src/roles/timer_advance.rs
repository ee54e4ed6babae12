//! A real-time guest that gets its core ahead of its timer, and must not notice:
//! neither does its sleep end early, nor does an interrupt come early or not at
//! all. A sibling on another core ends sleeps that no timer may end.

use crate::arch::cpu;
use crate::gic::{self, offset::*};
use crate::suite::{Check, Done};
use crate::timer::{ENABLE, IMASK, Timer};
use crate::{
    calls, cpus, ensure, ensure_eq, fail, irq, needs_cassata, needs_two_vcpus, pass, platform, wait,
};
use abi::status::VcpuStatus;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};

const TIMER: Timer = Timer::Virtual;
const SLEEPER: usize = 0;
const HELPER: usize = 1;
/// What the helper sends.
const SGI: u32 = 3;
/// Sleeps that only a timer ends.
const SLEEPS: u32 = 600;
/// By then, of the counter, the neighbour that has the core meanwhile is started.
const NEIGHBOUR_RUNS_US: u64 = 20_000;
/// Ends of sleeps are alike if they are no further apart: by a few instructions.
const ALIKE_NS: u64 = 100;
/// A switch takes as long at least.
const SWITCH_NS: u64 = 1_000;
/// How long the helper lets it sleep: its timer falls due long before.
const HELP_US: u64 = 400;

/// What the helper does when the sleeper sleeps: one after the other.
const ACTS: [fn(); 3] = [send, enable, send];
/// The act that the sleeper waits for, from 1, and the one that is being done.
static WANTED: AtomicU32 = AtomicU32::new(0);
static DONE: AtomicU32 = AtomicU32::new(0);
static EARLY: AtomicU32 = AtomicU32::new(0);

fn send() {
    gic::send(SGI, [SLEEPER]);
}

fn enable() {
    gic::sgi_frame(SLEEPER).write32(ISENABLER, 1 << TIMER.intid());
}

fn help() -> Check {
    for (act, number) in ACTS.iter().zip(1..) {
        wait::until("the sleeper", || WANTED.load(SeqCst) == number)?;
        wait::spin(wait::us(HELP_US));
        DONE.store(number, SeqCst);
        cpu::dsb();
        act();
    }
    Ok(())
}

fn stop_timer(intid: u32) {
    if intid == TIMER.intid() {
        if TIMER.now() < TIMER.compare() {
            EARLY.fetch_add(1, SeqCst);
        }
        TIMER.set_control(ENABLE | IMASK);
    }
}

/// Sleeps, interrupts masked, until the helper has done its next act. Sleep may
/// end for nothing `spurious` times.
fn sleep_until_helped(spurious: u32) -> Check {
    let act = WANTED.fetch_add(1, SeqCst) + 1;
    let mut ends = 0;
    while DONE.load(SeqCst) != act {
        cpu::wfi();
        ends += 1;
    }
    ensure!(ends <= 1 + spurious, "sleep {act} ended {} times for nothing", ends - 1);
    Ok(())
}

/// Sleeps until an instant of the counter.
fn sleep_until(instant: u64) {
    cpu::mask_irq();
    TIMER.set_compare(instant);
    TIMER.set_control(ENABLE);
    while TIMER.now() < instant {
        cpu::wfi();
    }
    cpu::unmask_irq();
    gic::let_in();
}

fn switches() -> Check<u64> {
    let word = offset_of!(VcpuStatus, switches) as u64 / 8;
    match calls::counter(SLEEPER as u64, word) {
        Ok(switches) => Ok(switches),
        Err(error) => fail!("it cannot ask how often it got its core: {error}"),
    }
}

/// How late sleeps ended, ticks.
struct Lateness {
    least: u64,
    most: u64,
}

impl Lateness {
    fn add(&mut self, ticks: u64) {
        self.least = self.least.min(ticks);
        self.most = self.most.max(ticks);
    }

    /// All ends are alike if the sleeper has its core before its timer fires, and those of the longer sleeps
    /// are later by a switch if it has not.
    fn judge(&self, is_ahead: bool) -> Check {
        let Self { least, most } = self;
        let ns = wait::nanoseconds(most - least);
        let holds = if is_ahead { ns <= ALIKE_NS } else { ns >= SWITCH_NS };
        ensure!(holds, "sleeps ended {least} to {most} ticks late");
        Ok(())
    }
}

/// Every sleep lasts until the timer, the interrupt comes once, and no sleep ends
/// whose timer is masked, disabled, or still active, but when the sibling says so. Without an advance
/// (`probe.ahead=0`), one whose timer is disabled ends once for nothing.
pub fn timer_advance() -> Check<Done> {
    needs_cassata!();
    needs_two_vcpus!();
    let seen = irq::seen(SLEEPER);
    let is_ahead = platform::get().number("ahead", 1) != 0;
    let spurious = u32::from(!is_ahead);
    irq::hook(stop_timer);
    gic::set(ISENABLER, TIMER.intid());
    sleep_until(wait::us(NEIGHBOUR_RUNS_US));
    ensure_eq!(seen.count(TIMER.intid()), 1, "timer interrupts of the first sleep");
    let mut late = Lateness { least: u64::MAX, most: 0 };
    for number in 1..=SLEEPS {
        cpu::mask_irq();
        // From shorter than the advance to longer than a round trip.
        let compare = TIMER.arm(wait::us(u64::from(number) * 7 % 90));
        cpu::wfi();
        let woken = TIMER.now();
        ensure!(woken >= compare, "a sleep ended {} ticks early", compare - woken);
        late.add(woken - compare);
        cpu::unmask_irq();
        gic::let_in();
        ensure_eq!(seen.count(TIMER.intid()), 1 + number, "timer interrupts");
    }
    late.judge(is_ahead)?;
    cpus::start(HELPER, help)?;
    cpu::mask_irq();
    let before = switches()?;

    // Its interrupt is masked at the timer.
    TIMER.set_compare(TIMER.now() + wait::us(100));
    TIMER.set_control(ENABLE | IMASK);
    sleep_until_helped(0)?;
    TIMER.stop();
    cpu::unmask_irq();
    gic::let_in();
    ensure_eq!(seen.count(TIMER.intid()), 1 + SLEEPS, "interrupts of a masked timer");

    // It is disabled in the GIC, until the sibling enables it.
    cpu::mask_irq();
    gic::set(ICENABLER, TIMER.intid());
    TIMER.arm(wait::us(100));
    sleep_until_helped(spurious)?;
    cpu::unmask_irq();
    gic::let_in();
    ensure_eq!(seen.count(TIMER.intid()), SLEEPS + 2, "interrupts of a timer enabled late");

    // It has been taken and not ended, and the timer is due again.
    cpu::mask_irq();
    TIMER.arm(0);
    wait::until("the timer", cpu::irq_pending)?;
    ensure_eq!(gic::acknowledge(), TIMER.intid(), "what is acknowledged");
    TIMER.arm(wait::us(100));
    sleep_until_helped(0)?;
    gic::end(TIMER.intid());
    cpu::unmask_irq();
    gic::let_in();
    ensure_eq!(seen.count(TIMER.intid()), SLEEPS + 3, "interrupts after the end of one");

    // A due timer that can do nothing takes no time from those below.
    let turns = switches()? - before;
    let most = u64::from(ACTS.len() as u32 * 3);
    ensure!(turns <= most, "it got its core {turns} times, for {} sleeps", ACTS.len());
    cpus::join(HELPER)?;
    ensure_eq!(EARLY.load(SeqCst), 0, "timer interrupts before their time");
    let Lateness { least, most } = late;
    pass!("{SLEEPS} sleeps, late least={least} most={most}, {turns} turns for {} more", ACTS.len())
}

/// When the sleeper's timer will fire; 0: not yet known.
static DUE: AtomicU64 = AtomicU64::new(0);

fn reset_before_timer() -> Check {
    wait::until("the sleeper", || DUE.load(SeqCst) != 0)?;
    // In the middle of the advance, which is 50 us.
    let when = DUE.load(SeqCst) - wait::us(25);
    wait::until("the timer advance", || TIMER.now() >= when)?;
    calls::system_reset()
}

/// Its VM is reset while it is ahead of its timer, again and again.
pub fn reset() -> Check<Done> {
    needs_two_vcpus!();
    super::reset::note_next_start();
    irq::hook(stop_timer);
    gic::set(ISENABLER, TIMER.intid());
    sleep_until(wait::us(NEIGHBOUR_RUNS_US));
    cpus::start(HELPER, reset_before_timer)?;
    cpu::mask_irq();
    DUE.store(TIMER.arm(wait::us(300)), SeqCst);
    cpu::wfi();
    // The reset comes from another core, to a guest that may be back by then.
    ensure!(TIMER.now() >= TIMER.compare(), "the sleep ended early");
    wait::until("the reset", || false)?;
    pass!("")
}
