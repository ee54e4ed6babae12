//! A vCPU that computes and takes interrupts of every kind while it is moved
//! from core to core: the first one, to whose core a real-time VM keeps coming, or that asks to go
//! elsewhere.

use crate::arch::cpu;
use crate::gic::{self, FREE_SPIS, offset::*};
use crate::random::Random;
use crate::suite::{Check, Done};
use crate::timer::Timer;
use crate::{
    calls, cpus, ensure, ensure_eq, fail, irq, needs_cassata, needs_two_vcpus, pass, platform, wait,
};
use abi::service;
use abi::status::VcpuStatus;
use core::mem::offset_of;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};

/// The vCPU that is moved.
const MIGRANT: usize = 0;
/// The token to the migrant, and the answer to it.
const TOKEN: u32 = 1;
const ANSWER: u32 = 2;
/// To all others.
const BROADCAST: u32 = 3;
/// Pended by software, routed to the migrant.
const SPI: u32 = FREE_SPIS.start;
/// A timer that is so late has been lost.
const LOST_US: u64 = 100_000;

static STOP: AtomicBool = AtomicBool::new(false);
/// What was sent, by kind.
static TOKENS: AtomicU32 = AtomicU32::new(0);
static BROADCASTS: AtomicU32 = AtomicU32::new(0);
static SPIS: AtomicU32 = AtomicU32::new(0);
/// Timers armed, and timer interrupts before their time.
static ARMED: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];
static EARLY: AtomicU32 = AtomicU32::new(0);

/// A linear congruential generator modulo 2^64 (Knuth, The Art of Computer
/// Programming 2, 3.3.4, table 1, line 26): what it is after n steps can be
/// had in 64, too.
const FACTOR: u64 = 6_364_136_223_846_793_005;
const SUMMAND: u64 = 1_442_695_040_888_963_407;

fn step(value: u64) -> u64 {
    value.wrapping_mul(FACTOR).wrapping_add(SUMMAND)
}

/// What `value` is after so many steps.
fn after(mut value: u64, mut steps: u64) -> u64 {
    let (mut factor, mut summand) = (FACTOR, SUMMAND);
    while steps > 0 {
        if steps & 1 == 1 {
            value = value.wrapping_mul(factor).wrapping_add(summand);
        }
        summand = summand.wrapping_mul(factor).wrapping_add(summand);
        factor = factor.wrapping_mul(factor);
        steps >>= 1;
    }
    value
}

/// Arms the next of a timer's interrupts: every few microseconds, the two
/// timers out of step.
fn arm(timer: Timer) {
    let number = ARMED[timer as usize].fetch_add(1, SeqCst);
    let stride = if timer == Timer::Virtual { 7 } else { 11 };
    timer.arm(wait::us(5 + u64::from(number) * stride % 40));
}

fn serve(intid: u32) {
    if let Some(timer) = Timer::of(intid) {
        if timer.now() < timer.compare() {
            EARLY.fetch_add(1, SeqCst);
        }
        timer.stop();
        if !STOP.load(SeqCst) {
            arm(timer);
        }
    }
    if intid == TOKEN {
        gic::send(ANSWER, [1]);
    }
}

/// Asks that a vCPU go to one of the first `pcpus` pCPUs, by chance. Returns where it is to be.
fn ask(vcpu: usize, pcpus: u64, random: &mut Random) -> Check<u64> {
    let to = random.up_to(pcpus - 1);
    let answer = calls::migrate(vcpu, to);
    ensure!(
        matches!(answer, 0 | service::ALREADY_THERE),
        "MIGRATE of vCPU {vcpu} to pCPU {to} answers {answer}"
    );
    Ok(to)
}

/// What is refused, and that it changes nothing.
fn refusals() -> Check {
    let (absent, stays) = (platform::get().vcpus.len(), 2);
    ensure_eq!(calls::migrate(absent, 0), service::INVALID_PARAMETER, "MIGRATE of no vCPU");
    ensure_eq!(calls::place(absent), Err(service::INVALID_PARAMETER), "WHERE of no vCPU");
    ensure_eq!(calls::migrate(stays, 2), service::ALREADY_THERE, "MIGRATE to where it is");
    for pcpu in [0, 1, 3, 16, 64, u64::MAX] {
        ensure_eq!(calls::migrate(stays, pcpu), service::NOT_ALLOWED, "MIGRATE to pCPU {pcpu}");
    }
    ensure_eq!(calls::place(stays), Ok(2), "where the vCPU is that stays");
    Ok(())
}

/// Sends a token to the migrant and sleeps until the answer is there.
fn tokens() -> Check {
    let (here, there) = (irq::seen(cpu::index()), irq::seen(MIGRANT));
    while !STOP.load(SeqCst) {
        let number = TOKENS.fetch_add(1, SeqCst) + 1;
        gic::send(TOKEN, [MIGRANT]);
        wait::asleep(|| here.count(ANSWER) >= number)?;
        ensure_eq!(there.count(TOKEN), number, "tokens that the migrant took");
        ensure_eq!(here.count(ANSWER), number, "answers of the migrant");
    }
    Ok(())
}

/// Sends an SGI to all at once, then an SPI to the migrant.
fn broadcasts() -> Check {
    let (pcpus, mut random) = (platform::get().number("asks", 0), Random::seeded(2));
    while !STOP.load(SeqCst) {
        let number = BROADCASTS.fetch_add(1, SeqCst) + 1;
        gic::broadcast(BROADCAST);
        for other in platform::get().others() {
            let taken = || irq::seen(other).count(BROADCAST);
            wait::until("the broadcast", || taken() >= number)?;
            ensure_eq!(taken(), number, "broadcasts that vCPU {other} took");
        }
        let number = SPIS.fetch_add(1, SeqCst) + 1;
        gic::set(ISPENDR, SPI);
        wait::until("the SPI", || irq::seen(MIGRANT).count(SPI) >= number)?;
        ensure_eq!(irq::seen(MIGRANT).count(SPI), number, "SPIs that the migrant took");
        if pcpus > 0 {
            ask(1, pcpus, &mut random)?;
        }
    }
    Ok(())
}

fn job() -> Check {
    if cpu::index() == 1 { tokens() } else { broadcasts() }
}

fn migrations() -> Check<u64> {
    let word = offset_of!(VcpuStatus, migrations) as u64 / 8;
    match calls::counter(MIGRANT as u64, word) {
        Ok(value) => Ok(value),
        Err(code) => fail!("COUNTER of the migrations answers {code}"),
    }
}

/// Computes, by turns awake and asleep, until this vCPU has arrived on another
/// core `probe.migrations` (10,000) times. Every interrupt of every kind comes,
/// once, and the result is right.
pub fn migrant() -> Check<Done> {
    needs_cassata!();
    needs_two_vcpus!();
    let wanted = platform::get().number("migrations", 10_000);
    gic::enable_spi(SPI, MIGRANT);
    irq::hook(serve);
    let outcome = {
        for index in platform::get().others() {
            cpus::start(index, job)?;
        }
        for timer in Timer::ALL {
            gic::set(ISENABLER, timer.intid());
            arm(timer);
        }
        let outcome = compute(wanted);
        STOP.store(true, SeqCst);
        let timers = timers_end();
        let mut outcome = outcome.and_then(|steps| timers.map(|()| steps));
        for index in platform::get().others() {
            let joined = cpus::join_after(index, outcome.as_ref().map(|_| ()).map_err(|&why| why));
            outcome = joined.and(outcome);
        }
        outcome
    };
    let steps = outcome?;
    let seen = irq::seen(MIGRANT);
    let sent = [(TOKEN, &TOKENS), (BROADCAST, &BROADCASTS), (SPI, &SPIS)];
    for (intid, sent) in sent {
        ensure_eq!(seen.count(intid), sent.load(SeqCst), "interrupts {intid} that were taken");
    }
    ensure_eq!(EARLY.load(SeqCst), 0, "timer interrupts before their time");
    pass!(
        "steps={steps} tokens={} broadcasts={} spis={} timers={}",
        seen.count(TOKEN),
        seen.count(BROADCAST),
        seen.count(SPI),
        Timer::ALL.iter().map(|timer| seen.count(timer.intid())).sum::<u32>()
    )
}

/// Answers how many steps were computed, all of them right.
fn compute(wanted: u64) -> Check<u64> {
    const SEED: u64 = 0x600d_5eed;
    /// Between two looks, a few microseconds.
    const BLOCK: u64 = 1_000;
    let (pcpus, mut random) = (platform::get().number("asks", 0), Random::seeded(1));
    if pcpus > 0 {
        refusals()?;
    }
    let before = migrations()?;
    let (mut value, mut steps) = (SEED, 0);
    while migrations()? - before < wanted {
        for _ in 0..BLOCK {
            value = core::hint::black_box(step(value));
        }
        steps += BLOCK;
        ensure_eq!(value, after(SEED, steps), "the result after {steps} steps");
        if pcpus > 0 {
            let to = ask(MIGRANT, pcpus, &mut random)?;
            wait::until("the pCPU it asked for", || calls::place(MIGRANT) == Ok(to))?;
        }
        if (steps / BLOCK).is_multiple_of(4) {
            let total = irq::seen(MIGRANT).total();
            wait::asleep(|| irq::seen(MIGRANT).total() > total)?;
        }
        for timer in Timer::ALL {
            let late = timer.now() > timer.compare() + wait::us(LOST_US);
            ensure!(!late, "{timer:?} timer's interrupt does not come");
        }
    }
    Ok(steps)
}

/// Every timer that was armed has had its interrupt.
fn timers_end() -> Check {
    for timer in Timer::ALL {
        let seen = || irq::seen(MIGRANT).count(timer.intid());
        let armed = || ARMED[timer as usize].load(SeqCst);
        wait::until("a timer's last interrupt", || seen() >= armed())?;
        gic::let_in();
        ensure_eq!(seen(), armed(), "{timer:?} timer's interrupts");
    }
    Ok(())
}

/// Asleep, with no timer but one that ends it: being moved wakes no vCPU.
pub fn sleeper() -> Check<Done> {
    needs_cassata!();
    const TIMER: Timer = Timer::Virtual;
    const ASLEEP_US: u64 = 30_000;
    gic::set(ISENABLER, TIMER.intid());
    irq::hook(|_| TIMER.stop());
    let seen = irq::seen(MIGRANT);
    let before = migrations()?;
    let mut awake = 0;
    cpu::mask_irq();
    TIMER.arm(wait::us(ASLEEP_US));
    wait::asleep(|| {
        awake += 1;
        seen.count(TIMER.intid()) > 0
    })?;
    let moves = migrations()? - before;
    // Before it slept, after its timer, and at the end of the wait.
    ensure_eq!(awake, 3, "looks at what it waits for, in {moves} moves");
    ensure!(moves >= 500, "it was moved {moves} times only");
    pass!("moves={moves}")
}
