//! Breakpoints and watchpoints: each vCPU hits its own and no other's, however it is switched.

use crate::arch::encodings::Encoding;
use crate::arch::fault::{self, Fault, PLACES, class};
use crate::arch::{cpu, sysreg::read, sysreg::write};
use crate::suite::{Check, Done, Test};
use crate::tests::context::happen;
use crate::tests::{get, set};
use crate::{cpus, ensure, ensure_eq, fail, needs_cassata, pass, platform};
use core::sync::atomic::AtomicU64;

/// The tests of this file.
pub const TESTS: &[Test] =
    &[Test { name: "debug.own", body: own }, Test { name: "debug.confined", body: confined }];

const MDSCR: Encoding = Encoding::new(2, 0, 0, 2, 2);
const OSLAR: Encoding = Encoding::new(2, 0, 1, 0, 4);
/// MDSCR_EL1.KDE and MDE: breakpoints and watchpoints act, at EL1 too.
const ACT: u64 = 1 << 13 | 1 << 15;
/// DBGBCR: enabled, at EL1, for the whole instruction.
const BREAK: u64 = 1 | 1 << 1 | 0xf << 5;
/// The same, linked to breakpoint [`CONTEXT`].
const BREAK_IN_CONTEXT: u64 = BREAK | (CONTEXT as u64) << 16 | 1 << 20;
/// The context of that: CONTEXTIDR_EL1 has the value.
const IN_CONTEXT: u64 = BREAK | 3 << 20;
/// DBGWCR: enabled, at EL1, for loads and stores of eight bytes.
const WATCH: u64 = 1 | 1 << 1 | 3 << 3 | 0xff << 5;
/// Breakpoints and watchpoints, of which there are at least as many; the last breakpoint knows
/// contexts.
const BREAKPOINTS: u16 = 6;
const WATCHPOINTS: u16 = 4;
const CONTEXT: u16 = BREAKPOINTS - 1;

/// What is watched, of which there is as much as there are places to break at.
static WORDS: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];

/// DBGBVR, DBGBCR.
fn breakpoint(number: u16) -> [Encoding; 2] {
    [4, 5].map(|kind| Encoding::new(2, 0, 0, number, kind))
}

/// DBGWVR, DBGWCR.
fn watchpoint(number: u16) -> [Encoding; 2] {
    [6, 7].map(|kind| Encoding::new(2, 0, 0, number, kind))
}

/// All registers of breakpoints and watchpoints.
fn all() -> impl Iterator<Item = Encoding> {
    (0..BREAKPOINTS).flat_map(breakpoint).chain((0..WATCHPOINTS).flat_map(watchpoint))
}

/// Sets a value and its control.
fn set_pair(pair: [Encoding; 2], values: [u64; 2]) -> Check {
    pair.into_iter().zip(values).try_for_each(|(register, value)| set(register, value))
}

/// Clears all. What is cleared only after it has stopped acting may still be on the hardware, where
/// it slows an emulator down.
fn clear() -> Check {
    all().try_for_each(|register| set(register, 0))?;
    set(MDSCR, 0)
}

/// Returns true if an access was caught by `class`, false if by nothing.
fn hit<T>(outcome: Result<T, Fault>, class: u8) -> Check<bool> {
    match outcome {
        Ok(_) => Ok(false),
        Err(fault) if fault.class == class => Ok(true),
        Err(fault) => fail!("exception class {:#x} instead of {class:#x}", fault.class),
    }
}

fn own() -> Check<Done> {
    cpus::together(job, job)?;
    pass!("{} rounds on each vCPU", rounds())
}

fn rounds() -> u64 {
    platform::get().number("rounds.debug", 60)
}

fn job() -> Check {
    // A core without a hypervisor begins with it locked.
    set(OSLAR, 0)?;
    for register in all() {
        ensure_eq!(get(register)?, 0, "{register} after reset");
    }
    ensure_eq!(read::mdscr_el1() & ACT, 0, "MDSCR_EL1 after reset");
    let context = read::contextidr_el1();
    cpu::unmask_debug();
    let outcome = (0..rounds()).try_for_each(round);
    cpu::mask_debug();
    write::contextidr_el1(context);
    if cpu::index() == 0 {
        // The others are switched off with theirs.
        clear()?;
    }
    outcome
}

/// Sets a breakpoint and a watchpoint that differ from those of the other vCPUs and of the other
/// VM at the same addresses, lets all sorts of things happen, and looks what hits.
fn round(number: u64) -> Check {
    let me = cpu::index();
    let seed = platform::get().number("seed", 1) << 4 | me as u64;
    let mixed = (seed << 16 | number).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let (place, word) = (mixed as usize % PLACES, (mixed >> 8) as usize % PLACES);
    let (acts, linked, in_context) = (number % 8 != 5, number % 3 == 2, number.is_multiple_of(2));
    let slot = (number % u64::from(CONTEXT)) as u16;
    let control = if linked { BREAK_IN_CONTEXT } else { BREAK };
    let breaks = [fault::place(place), control];
    let watches = [&raw const WORDS[word] as u64, WATCH];
    let watch = watchpoint((number % u64::from(WATCHPOINTS)) as u16);
    set_pair(breakpoint(CONTEXT), [seed, IN_CONTEXT])?;
    set_pair(breakpoint(slot), breaks)?;
    set_pair(watch, watches)?;
    set(MDSCR, if acts { ACT } else { 0 })?;
    write::contextidr_el1(if in_context { seed } else { !seed });
    happen(number)?;
    for (at, watched) in WORDS.iter().enumerate() {
        let wanted = acts && at == place && (in_context || !linked);
        let found = hit(fault::visit(at), class::BREAKPOINT)?;
        ensure!(found == wanted, "breakpoint at place {at}, not {place}, in round {number}");
        let wanted = acts && at == word;
        let found = hit(fault::read(&raw const *watched as u64), class::WATCHPOINT)?;
        ensure!(found == wanted, "watchpoint of word {at}, not {word}, in round {number}");
    }
    let pairs = [(breakpoint(slot), breaks), (watch, watches)];
    for (registers, values) in pairs {
        for (register, value) in registers.into_iter().zip(values) {
            ensure_eq!(get(register)?, value, "{register} in round {number}");
        }
    }
    set_pair(breakpoint(slot), [0, 0])?;
    set_pair(watch, [0, 0])
}

/// The hypervisor hits nothing, whatever a guest sets: all that it executes, and each access.
fn confined() -> Check<Done> {
    needs_cassata!();
    /// DBGBCR.HMC and SSC, and the same of DBGWCR.
    const BEYOND: u64 = 0b111 << 13;
    let mut found = 0;
    // This guest itself masks what hits.
    set(MDSCR, ACT)?;
    for number in 0..BREAKPOINTS {
        // Those that know contexts: whatever is executed in this one.
        let pair = breakpoint(number);
        set_pair(pair, [read::contextidr_el1(), !(0xf << 20) | 2 << 20])?;
        found |= get(pair[1])?;
    }
    // The lowest two gigabytes.
    for pair in (0..WATCHPOINTS).map(watchpoint) {
        set_pair(pair, [0, u64::MAX])?;
        found |= get(pair[1])?;
    }
    for number in 0..8 {
        happen(number)?;
    }
    clear()?;
    ensure_eq!(found & BEYOND, 0, "fields for other exception levels and security states");
    pass!("")
}
