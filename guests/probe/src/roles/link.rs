//! A link to another VM, as `link*.toml` describe it.

use super::report::Report;
use super::reset;
use crate::arch::{cpu, fault};
use crate::gic;
use crate::platform::{self, Link};
use crate::suite::{Check, Done};
use crate::{calls, ensure, ensure_eq, fail, irq, pass, wait};
use abi::link::{ARM, PEER, RING};
use abi::platform::LINK_STRIDE;
use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// In a half of the memory: the round that its writer has come to.
const ROUND: u64 = 0;
/// When its writer rang, ticks.
const RANG_AT: u64 = 8;
/// When its writer took the interrupt of its doorbell, ticks.
const TOOK_AT: u64 = 16;
/// What its writer waits for.
const STATE: u64 = 24;

/// When the doorbell's interrupt was taken last, ticks.
static TAKEN: AtomicU64 = AtomicU64::new(0);
/// How often it was taken.
static COUNT: AtomicU64 = AtomicU64::new(0);

/// The first link of this VM, its doorbell enabled.
fn open() -> Check<Link> {
    let Some(&link) = platform::get().links.first() else { fail!("there is no link") };
    COUNT.store(0, SeqCst);
    gic::enable_spi(link.intid, 0);
    irq::hook(|intid| {
        if platform::get().links.first().is_some_and(|link| link.intid == intid) {
            TAKEN.store(wait::now(), SeqCst);
            COUNT.fetch_add(1, SeqCst);
        }
    });
    Ok(link)
}

fn rounds() -> u64 {
    platform::get().number("rounds", 1_000)
}

/// Lets the peer know what is written, and rings.
fn ring(link: Link) {
    cpu::dsb();
    link.registers().write32(RING, 1);
}

fn arm(link: Link) {
    link.registers().write32(ARM, 1);
}

/// How a VM waits for its doorbell.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// It sleeps.
    Asleep,
    /// It spins, until its handler has run.
    Spinning,
    /// It spins with interrupts masked, until there is one: its handler's first instruction would be
    /// executed then.
    Masked,
}

impl Rest {
    /// As `probe.rest` says.
    fn asked_for() -> Check<Self> {
        Ok(match platform::get().argument("rest") {
            None => Self::Spinning,
            Some("asleep") => Self::Asleep,
            Some("masked") => Self::Masked,
            Some(other) => fail!("probe.rest={other} is unknown"),
        })
    }

    /// Waits for an interrupt beyond those that were counted, and returns when it came, ticks.
    fn wait(self, counted: u64, what: &str) -> Check<u64> {
        let came = || COUNT.load(SeqCst) > counted;
        match self {
            Self::Asleep => wait::asleep(came)?,
            Self::Spinning => wait::until(what, came)?,
            Self::Masked => {
                cpu::mask_irq();
                while !cpu::irq_pending() {}
                let pending = wait::now();
                cpu::unmask_irq();
                wait::until(what, came)?;
                return Ok(pending);
            }
        }
        Ok(TAKEN.load(SeqCst))
    }
}

/// What a VM may do with its end, and what it may not.
fn rights(link: Link) -> Check {
    let (registers, own, peer) = (link.registers(), link.own, link.peer);
    ensure_eq!(own.size, peer.size, "a half and the other one");
    for address in [own.base, own.base + own.size - 8, peer.base, peer.base + peer.size - 8] {
        ensure!(fault::execute(address).is_err(), "{address:#x} can be executed");
    }
    for address in [peer.base, peer.base + peer.size - 8] {
        ensure!(fault::read(address).is_ok(), "{address:#x} cannot be read");
        ensure!(fault::write(address).is_err(), "{address:#x} can be written");
    }
    for address in [own.base + 64, own.base + own.size - 8] {
        ensure!(fault::write(address).is_ok(), "{address:#x} cannot be written");
    }
    let end = own.base.max(peer.base) + own.size;
    for address in [end, link.registers + LINK_STRIDE] {
        ensure!(fault::read(address).is_err(), "{address:#x} can be read");
        ensure!(fault::write(address).is_err(), "{address:#x} can be written");
    }
    for offset in [RING, ARM, 12, LINK_STRIDE - 4] {
        ensure_eq!(registers.read32(offset), 0, "the register at {offset:#x}");
    }
    ensure!(registers.read32(PEER) >= 1, "the peer has no life");
    ensure_eq!(registers.read8(PEER), 0, "a byte of a register");
    ensure_eq!(registers.read64(PEER), 0, "two registers at once");
    Ok(())
}

/// One that is not armed does not ring; one that is rings once, however often it is rung.
fn rings_once(link: Link) -> Check {
    let (own, peer) = (link.own.window(), link.peer.window());
    for (state, before) in [(1, 0), (2, 0), (3, 1)] {
        own.write64(STATE, state);
        wait::until("the peer's rings", || peer.read64(STATE) == state)?;
        wait::spin(wait::us(20));
        ensure_eq!(COUNT.load(SeqCst), before, "interrupts in state {state}");
        if state == 2 {
            arm(link);
        }
    }
    // A byte is no access to a register, nor are two at once.
    link.registers().write8(ARM, 1);
    link.registers().write64(ARM - 4, 1);
    own.write64(STATE, 4);
    wait::until("the peer's rings", || peer.read64(STATE) == 4)?;
    wait::spin(wait::us(20));
    ensure_eq!(COUNT.load(SeqCst), 1, "interrupts after accesses of other widths");
    // One that is armed for a time rings in that time, and not later.
    for (state, within, after) in [(5, wait::us(1_000_000), 2), (6, wait::us(10), 2)] {
        link.registers().write32(ARM, within as u32);
        wait::spin(wait::us(20));
        own.write64(STATE, state);
        wait::until("the peer's rings", || peer.read64(STATE) == state)?;
        wait::spin(wait::us(20));
        ensure_eq!(COUNT.load(SeqCst), after, "interrupts of a doorbell armed for {within} ticks");
    }
    Ok(())
}

/// The other side of that.
fn rings_often(link: Link) -> Check {
    let (own, peer) = (link.own.window(), link.peer.window());
    for state in 1..=6 {
        wait::until("what the peer waits for", || peer.read64(STATE) == state)?;
        for _ in 0..10 {
            ring(link);
        }
        own.write64(STATE, state);
    }
    Ok(())
}

/// Rings so many times, and waits for an answer each time. Of each, a sample in the report area has
/// the ticks from before the store that rings until the interrupt, there and back.
pub fn calls() -> Check<Done> {
    let link = open()?;
    rights(link)?;
    rings_once(link)?;
    let (report, rest) = (Report::open(0), Rest::asked_for()?);
    let (own, peer) = (link.own.window(), link.peer.window());
    let mut most = [0; 2];
    for round in 1..=rounds() {
        wait::until("the peer's round", || peer.read64(ROUND) == round)?;
        // Long enough for it to sleep.
        wait::spin(wait::us(10));
        arm(link);
        let count = COUNT.load(SeqCst);
        own.write64(ROUND, round);
        cpu::dsb();
        let begin = wait::now();
        link.registers().write32(RING, 1);
        let answered = rest.wait(count, "the answer")?;
        let taken = [peer.read64(TOOK_AT) - begin, answered - peer.read64(RANG_AT)];
        for (most, taken) in most.iter_mut().zip(taken) {
            *most = taken.max(*most);
        }
        if let Some(report) = &report {
            report.sample(round - 1, 0, begin, taken[0], taken[1]);
        }
    }
    ensure_eq!(COUNT.load(SeqCst), rounds() + 2, "interrupts");
    pass!("rounds={} there_max={} back_max={}", rounds(), most[0], most[1])
}

/// Answers what [`calls()`] does.
pub fn answers() -> Check<Done> {
    let link = open()?;
    rights(link)?;
    rings_often(link)?;
    let rest = Rest::asked_for()?;
    let own = link.own.window();
    for round in 1..=rounds() {
        let count = COUNT.load(SeqCst);
        arm(link);
        own.write64(ROUND, round);
        own.write64(TOOK_AT, rest.wait(count, "the call")?);
        // The caller may still be on its way from its store.
        wait::spin(wait::us(5));
        own.write64(RANG_AT, wait::now());
        ring(link);
    }
    ensure_eq!(COUNT.load(SeqCst), rounds(), "interrupts");
    pass!("rounds={}", rounds())
}

/// Rings without end.
pub fn floods() -> Check<Done> {
    let link = open()?;
    loop {
        link.registers().write32(RING, 1);
    }
}

/// Arms its doorbell again and again, beside [`floods()`]: never two interrupts for one.
pub fn flooded() -> Check<Done> {
    let link = open()?;
    for round in 1..=rounds() {
        arm(link);
        wait::until("the doorbell", || COUNT.load(SeqCst) == round)?;
        wait::spin(wait::us(50));
        ensure_eq!(COUNT.load(SeqCst), round, "interrupts");
    }
    pass!("rounds={}", rounds())
}

/// Starts itself again and again, its doorbell armed each time, and switches itself off.
pub fn lives() -> Check<Done> {
    let link = open()?;
    let before = reset::starts_before();
    // The peer rings all the time: an armed one of the life before would have rung.
    wait::spin(wait::us(200));
    ensure_eq!(COUNT.load(SeqCst), 0, "interrupts before the doorbell was armed");
    arm(link);
    wait::until("the doorbell", || COUNT.load(SeqCst) == 1)?;
    link.own.window().write64(ROUND, before + 1);
    if before == rounds() {
        return pass!("{before} lives before");
    }
    reset::note_start(before + 1);
    cpu::mask_irq();
    arm(link);
    calls::system_reset()
}

/// Rings at [`lives()`], and sees each of its lives, and its end.
pub fn watches() -> Check<Done> {
    let link = open()?;
    let (registers, peer) = (link.registers(), link.peer.window());
    let mut seen = 1;
    loop {
        registers.write32(RING, 1);
        match u64::from(registers.read32(PEER)) {
            0 => break,
            life if life == seen => {}
            life => {
                ensure_eq!(life, seen + 1, "the peer's life");
                ensure_eq!(peer.read64(ROUND), seen, "what the peer wrote in the life before");
                seen = life;
            }
        }
    }
    // While it is being switched off, it has the number of a life that does not come.
    ensure!((rounds() + 1..=rounds() + 2).contains(&seen), "the peer's lives: {seen}");
    pass!("lives={seen}")
}
