//! Low and high tide: all vCPUs rest until they are on one core, then work until
//! each is on its own again.

use super::reset;
use crate::arch::cpu;
use crate::gic::{self, offset::*};
use crate::suite::{Check, Done};
use crate::timer::{IMASK, Timer};
use crate::{
    calls, cpus, ensure, ensure_eq, fail, irq, needs_cassata, needs_two_vcpus, pass, platform, wait,
};
use abi::MAX_VCPUS_PER_VM;
use abi::status::VcpuStatus;
use core::mem::offset_of;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst};

/// To one, which answers, and to all others.
const TOKEN: u32 = 1;
const BROADCAST: u32 = 2;
/// To those that rest: there is work.
const WORK: u32 = 3;
/// The answer of vCPU 0; behind it come those of the others. Each has its own, as two
/// pending SGIs of one number are one, also from two senders.
const ANSWER: u32 = 8;
const _: () = assert!(ANSWER as usize + MAX_VCPUS_PER_VM <= 16, "there are 16 SGIs");
/// How long a vCPU rests at a stretch.
const REST_US: u64 = 400;
/// Exchanges of interrupts among vCPUs on one core, in each low tide.
const EXCHANGES: u32 = 3;

static WORKING: AtomicBool = AtomicBool::new(false);
static STOP: AtomicBool = AtomicBool::new(false);
/// Steps of work that each has done, and timers that each has armed.
static STEPS: [AtomicU64; MAX_VCPUS_PER_VM] = [const { AtomicU64::new(0) }; MAX_VCPUS_PER_VM];
static ARMED: [AtomicU32; MAX_VCPUS_PER_VM] = [const { AtomicU32::new(0) }; MAX_VCPUS_PER_VM];

fn all_vcpus() -> impl Iterator<Item = usize> {
    core::iter::once(0).chain(platform::get().others())
}

/// The pCPU that a vCPU is on.
fn pcpu(index: usize) -> Check<u64> {
    const WORD: u64 = offset_of!(VcpuStatus, pcpu) as u64 / 8;
    match calls::counter(index as u64, WORD) {
        Ok(pcpu) => Ok(pcpu),
        Err(code) => fail!("COUNTER of the pCPU answers {code}"),
    }
}

fn serve(intid: u32) {
    if intid == Timer::Virtual.intid() {
        Timer::Virtual.set_control(IMASK);
    }
    if intid == TOKEN {
        gic::send(ANSWER + cpu::index() as u32, [0]);
    }
}

/// Sleeps until this vCPU's timer has come, which must.
fn rest() -> Check {
    let me = cpu::index();
    let number = ARMED[me].fetch_add(1, SeqCst) + 1;
    Timer::Virtual.arm(wait::us(REST_US));
    wait::asleep(|| irq::seen(me).count(Timer::Virtual.intid()) >= number)?;
    ensure_eq!(irq::seen(me).count(Timer::Virtual.intid()), number, "timer interrupts");
    Ok(())
}

/// Some microseconds of sums whose result is known.
fn work() -> Check {
    const COUNT: u64 = 2_000;
    let sum = (1..=COUNT).fold(0, |sum, n| core::hint::black_box(sum + n));
    ensure_eq!(sum, COUNT * (COUNT + 1) / 2, "a sum");
    STEPS[cpu::index()].fetch_add(1, SeqCst);
    Ok(())
}

fn job() -> Check {
    irq::hook(serve);
    gic::set(ISENABLER, Timer::Virtual.intid());
    while !STOP.load(SeqCst) {
        if WORKING.load(SeqCst) { work()? } else { rest()? }
    }
    Ok(())
}

/// SGIs to each of the others and to all of them; `sent`: how often before.
fn exchange(sent: u32) -> Check {
    let answers = |other: usize| irq::seen(0).count(ANSWER + other as u32);
    let others = platform::get().others();
    gic::send(TOKEN, others.clone());
    for other in others.clone() {
        wait::asleep(|| answers(other) > sent)?;
        ensure_eq!(answers(other), sent + 1, "answers of vCPU {other}");
    }
    gic::broadcast(BROADCAST);
    for other in others {
        let taken = || irq::seen(other).count(BROADCAST);
        wait::until("a broadcast", || taken() > sent)?;
        ensure_eq!(taken(), sent + 1, "broadcasts that vCPU {other} took");
    }
    Ok(())
}

/// `probe.rounds.tides` (20) times: with nothing to do all vCPUs come to be on the
/// first one's core, where timers and SGIs reach them; with work, each on the core
/// that it began on.
pub fn tides() -> Check<Done> {
    needs_cassata!();
    needs_two_vcpus!();
    let rounds = platform::get().number("rounds.tides", 20) as u32;
    let mut bases = [0; MAX_VCPUS_PER_VM];
    for index in all_vcpus() {
        bases[index] = pcpu(index)?;
    }
    irq::hook(serve);
    gic::set(ISENABLER, Timer::Virtual.intid());
    for index in platform::get().others() {
        cpus::start(index, job)?;
    }
    let mut outcome = (0..rounds).try_for_each(|round| tide(round, &bases));
    STOP.store(true, SeqCst);
    gic::broadcast(WORK);
    for index in platform::get().others() {
        let joined = cpus::join_after(index, outcome);
        outcome = joined;
    }
    outcome?;
    let steps: u64 = STEPS.iter().map(|steps| steps.load(SeqCst)).sum();
    ensure!(steps > 0, "no vCPU worked");
    pass!("{rounds} tides, steps={steps}")
}

/// Resets its VM `probe.resets` (40) times: by turns while all vCPUs rest, each
/// time a bit later, and while all begin to work after they were on one core. So it
/// is stopped while cores leave, are away, and come back.
pub fn ebb() -> Check<Done> {
    needs_cassata!();
    needs_two_vcpus!();
    let before = reset::starts_before();
    let resets = platform::get().number("resets", 40);
    cpus::all_off()?;
    if before >= resets {
        platform::surviving_word().store(0, SeqCst);
        return pass!("{resets} resets");
    }
    reset::note_start(before + 1);
    let shore = pcpu(0)?;
    irq::hook(serve);
    gic::set(ISENABLER, Timer::Virtual.intid());
    for index in platform::get().others() {
        cpus::start(index, job)?;
    }
    if before.is_multiple_of(2) {
        while !all_vcpus_are(&|_| shore)? {
            rest()?;
        }
        WORKING.store(true, SeqCst);
        gic::broadcast(WORK);
        wait::spin(wait::us(before * 29 % 900));
    } else {
        for _ in 0..before % 5 {
            rest()?;
        }
        wait::spin(wait::us(before * 13 % 100));
    }
    calls::system_reset()
}

fn all_vcpus_are(there: &dyn Fn(usize) -> u64) -> Check<bool> {
    for index in all_vcpus() {
        if pcpu(index)? != there(index) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn tide(round: u32, bases: &[u64]) -> Check {
    while !all_vcpus_are(&|_| bases[0])? {
        rest()?;
    }
    for number in 0..EXCHANGES {
        exchange(round * EXCHANGES + number)?;
        rest()?;
    }
    WORKING.store(true, SeqCst);
    gic::broadcast(WORK);
    while !all_vcpus_are(&|index| bases[index])? {
        work()?;
    }
    WORKING.store(false, SeqCst);
    Ok(())
}
