//! Below a real-time VM: which preemptions count as some of the kernel's.

use crate::arch::cpu;
use crate::gic::{self, offset::*};
use crate::suite::{Check, Done};
use crate::timer::{IMASK, Timer};
use crate::{calls, ensure, ensure_eq, fail, irq, needs_cassata, pass, platform, wait};
use abi::status::VcpuStatus;
use core::mem::offset_of;

/// Times that it is preempted, and times that it sleeps.
const ROUNDS: u64 = 50;

/// What is counted of this vCPU.
#[derive(Clone, Copy)]
struct Counts {
    switches: u64,
    stolen: u64,
    preemptions: u64,
    preempted: u64,
}

impl Counts {
    fn now() -> Check<Self> {
        let word = |offset: usize| match calls::counter(cpu::index() as u64, offset as u64 / 8) {
            Ok(value) => Ok(value),
            Err(code) => fail!("COUNTER of the word at {offset} answers {code}"),
        };
        Ok(Self {
            // First: see `settled`.
            switches: word(offset_of!(VcpuStatus, switches))?,
            stolen: word(offset_of!(VcpuStatus, stolen))?,
            preemptions: word(offset_of!(VcpuStatus, kernel_preemptions))?,
            preempted: word(offset_of!(VcpuStatus, kernel_preempted))?,
        })
    }

    fn since(self, before: Self) -> Self {
        Self {
            switches: self.switches - before.switches,
            stolen: self.stolen - before.stolen,
            preemptions: self.preemptions - before.preemptions,
            preempted: self.preempted - before.preempted,
        }
    }
}

/// Counts that belong together: the core was not lost between the first call
/// and the last.
fn settled() -> Check<Counts> {
    loop {
        let (first, second) = (Counts::now()?, Counts::now()?);
        if first.switches == second.switches {
            return Ok(first);
        }
    }
}

/// Spins, preempted by a VM that takes the core for `probe.busy_us` at a time;
/// then sleeps while that happens.
pub fn preempted() -> Check<Done> {
    needs_cassata!();
    let running = spinning()?;
    let asleep = sleeping()?;
    pass!("preemptions={} asleep={}", running.preemptions, asleep.preemptions)
}

/// Every time it loses the core, it loses it in kernel mode.
fn spinning() -> Check<Counts> {
    let before = settled()?;
    while Counts::now()?.switches < before.switches + ROUNDS {
        wait::spin(wait::us(20));
    }
    let seen = settled()?.since(before);
    ensure_eq!(seen.preemptions, seen.switches, "preemptions of a vCPU that never sleeps");
    ensure_eq!(seen.preempted, seen.stolen, "ticks it was preempted, of those it waited");
    let least = seen.preemptions * wait::us(platform::get().number("busy_us", 0));
    ensure!(least > 0 && seen.preempted >= least, "{} ticks, not {least}", seen.preempted);
    Ok(seen)
}

/// It wakes while another has the core now and then, and waits: that is stolen
/// time, but it was not in its kernel. Awake it is for so short a time that few
/// preemptions, if any, find it so.
fn sleeping() -> Check<Counts> {
    const TIMER: Timer = Timer::Virtual;
    gic::set(ISENABLER, TIMER.intid());
    irq::hook(|_| TIMER.set_control(IMASK));
    let seen = irq::seen(cpu::index());
    let before = settled()?;
    for round in 0..ROUNDS {
        let taken = seen.count(TIMER.intid());
        cpu::mask_irq();
        TIMER.arm(wait::us(1_000 + 37 * round));
        wait::asleep(|| seen.count(TIMER.intid()) > taken)?;
    }
    let counted = settled()?.since(before);
    let Counts { stolen, preemptions, preempted, .. } = counted;
    ensure!(preemptions <= ROUNDS / 10, "asleep it was preempted {preemptions} times");
    ensure!(stolen > preempted, "it woke {ROUNDS} times and never waited for the core");
    Ok(counted)
}
