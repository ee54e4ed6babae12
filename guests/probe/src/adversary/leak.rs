//! What one VM leaves where another one finds it: a VM writes a pattern to everything that takes
//! it, another VM on the same core, of higher priority, looks at everything again and again.
//! Whatever is not as it was when that VM had just booted, and the writer had not begun, is a leak.
//!
//! A third role writes everything itself, and resets its VM: what it finds then must be what it
//! found when it booted first, in its memory too. What it found is kept in memory that it shares
//! with another VM, which no reset changes.

use super::actor::{Actor, scratch, table};
use super::registers::{LIFELINES, tamed};
use super::{deeds, interrupts};
use crate::arch::encodings::Encoding;
use crate::arch::fp::Registers;
use crate::arch::mmio::Window;
use crate::arch::{cpu, memory};
use crate::platform::{self, GICD};
use crate::roles::reset::note_start;
use crate::suite::{Check, Done};
use crate::timer::Timer;
use crate::{calls, ensure, fail, gic, pass, println, wait};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use spin::Once;

/// The first encoding of a register: op0 2. Below are instructions.
const FIRST: usize = 0x8000;
/// Registers that there may be.
const REGISTERS: usize = 0x1_0000 - FIRST;
/// Words of the distributor's banks, and of those of a redistributor.
const BANKS: usize = 0xd00 / 4;
/// Words of floating-point registers.
const FLOATS: usize = 66;
/// All that is looked at.
const ALL: usize = REGISTERS + 2 * BANKS + FLOATS;

/// Writes everything, for ever, from `probe.begin_ms` (200) on.
pub fn write() -> Check<Done> {
    note_start(1);
    deeds::open();
    let mut actor = Actor::new();
    let begin = wait::us(1_000 * platform::get().number("begin_ms", 200));
    while wait::now() < begin {}
    for round in 0_u64.. {
        fill(&mut actor, round);
        deeds::count(REGISTERS as u64);
    }
    fail!("an endless job ended")
}

/// Writes to everything but memory, other values in each `round`.
fn fill(actor: &mut Actor, round: u64) {
    actor.calm_down();
    match round % 2 {
        0 => interrupts::prepare_active(actor),
        _ => interrupts::prepare_pending(actor),
    }
    Registers::pattern(round).load();
    for number in FIRST..FIRST + REGISTERS {
        let encoding = Encoding(number as u16);
        if !LIFELINES.contains(&encoding) {
            let value = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ round;
            // Those that do not exist cannot leak.
            let _ = table().write(encoding, tamed(encoding, value));
        }
    }
}

/// Looks at everything `probe.looks` (3) times, `probe.rest_ms` (40) apart, and prints what has
/// changed since it booted.
pub fn look() -> Check<Done> {
    let (looks, rest) = (platform::get().number("looks", 3), platform::get().number("rest_ms", 40));
    let begin = wait::us(1_000 * platform::get().number("begin_ms", 200));
    let mut actor = Actor::new();
    actor.calm_down();
    // Its alarm as it is at each look.
    rest_until(&mut actor, wait::now());
    Registers::pattern(1).load();
    set_breakpoints();
    let first = Look::at(scratch());
    let second = Look::at(scratch() + Look::SIZE);
    first.take();
    second.take();
    ensure!(wait::now() < begin, "the writer began while this VM looked around");
    // What changes by itself, such as counters.
    let changes = (0..ALL).filter(|&number| !first.agrees(&second, number)).count();
    let again = Look::at(scratch() + 2 * Look::SIZE);
    let mut leaks = 0;
    rest_until(&mut actor, begin);
    for _ in 0..looks {
        rest_until(&mut actor, wait::now() + wait::us(1_000 * rest));
        again.take();
        for number in (0..ALL).filter(|&number| first.agrees(&second, number)) {
            if !first.agrees(&again, number) {
                leaks += 1;
                println!("LEAK {}", Place(number));
                // Once is enough.
                second.forget(number);
            }
        }
    }
    pass!("leaks={leaks} looks={looks} there={} changing={changes}", first.there())
}

/// What `restart` found in its second life.
static FOUND: Once<Found> = Once::new();

/// What is said of a second life.
struct Found {
    leaks: u64,
    there: u64,
    loaded: u64,
}

/// Before anything else, if that is asked. In the VM's first life it looks at everything, lets the
/// writer write for `probe.rest_ms` (100), writes everything itself, lets the writer write again,
/// and resets the VM; in the second it looks again, and prints what is not as it was.
pub fn restart_at_entry() {
    let Some(kept) = Kept::find() else { return };
    let contents = Contents::of_memory();
    let look = Look::at(scratch());
    if kept.is_there() {
        look.take_as_it_is();
        FOUND.call_once(|| compare(&kept, &look, &contents));
        return;
    }
    look.take_as_it_is();
    let again = Look::at(scratch() + Look::SIZE);
    again.take_as_it_is();
    for number in (0..ALL).filter(|&number| !look.agrees(&again, number)) {
        look.forget(number);
    }
    kept.keep(&look, &contents);
    let begin = wait::us(1_000 * platform::get().number("begin_ms", 200));
    if wait::now() >= begin {
        // Without its mark, what is kept is of no use, and the test fails.
        return kept.forget();
    }
    let mut actor = Actor::new();
    actor.calm_down();
    let rest = wait::us(1_000 * platform::get().number("rest_ms", 100));
    rest_until(&mut actor, begin + rest);
    fill_memory();
    fill(&mut actor, 1);
    // So that EL2 has it in its memory too, while the writer has the core.
    actor.calm_down();
    rest_until(&mut actor, wait::now() + rest);
    fill(&mut actor, 0);
    calls::system_reset()
}

/// Tells what the second life brought ([`restart_at_entry`]).
pub fn restart() -> Check<Done> {
    let Some(found) = FOUND.get() else { fail!("there was no first life with a look") };
    let Found { leaks, there, loaded } = found;
    pass!("leaks={leaks} there={there} loaded={loaded}")
}

/// Prints what differs from the first life.
fn compare(kept: &Kept, look: &Look, contents: &Contents) -> Found {
    let first = Look::at(scratch() + Look::SIZE);
    let contents_first = kept.fetch(&first);
    let mut leaks = 0;
    for number in (0..ALL).filter(|&number| first.stays(number)) {
        if !first.agrees(look, number) {
            leaks += 1;
            println!("LEAK {}", Place(number));
        }
    }
    if *contents != contents_first {
        leaks += 1;
        println!("LEAK memory");
        println!("was {contents_first:x?}, is {contents:x?}");
    }
    Found { leaks, there: first.there(), loaded: contents_first.words }
}

/// This VM's memory before and behind the image.
fn own_memory() -> impl Iterator<Item = &'static AtomicU64> {
    let platform = platform::get();
    let before = memory::words(platform.ram_base, memory::image_begin());
    let behind = memory::words(memory::image_end(), platform.ram_end());
    before.iter().chain(behind)
}

/// Returns the address of a word.
fn address(word: &AtomicU64) -> u64 {
    core::ptr::from_ref(word) as u64
}

/// Fills memory, but for the code by which registers are written.
fn fill_memory() {
    const PATTERN: u64 = 0x5ec2_e700_c0de_f111;
    let code = table().range();
    for word in own_memory().filter(|word| !code.contains(&address(word))) {
        word.store(PATTERN ^ address(word), Relaxed);
    }
    cpu::dsb();
}

/// What memory holds beside the image.
#[derive(Debug, PartialEq, Eq)]
struct Contents {
    /// Words that are not 0.
    words: u64,
    /// A checksum of all words, in order.
    sum: u64,
    /// Addresses of the first word and of the last one that are not 0.
    ends: [u64; 2],
}

impl Contents {
    /// Reads all of it.
    fn of_memory() -> Self {
        const PRIME: u64 = 0x0000_0100_0000_01b3;
        let mut all = Self { words: 0, sum: 0, ends: [u64::MAX, 0] };
        for word in own_memory() {
            let value = word.load(Relaxed);
            all.sum = (all.sum ^ value).wrapping_mul(PRIME).wrapping_add(1);
            if value != 0 {
                all.words += 1;
                all.ends = [all.ends[0].min(address(word)), address(word)];
            }
        }
        all
    }
}

/// What the first life found, where no reset changes it: in the first shared memory.
struct Kept {
    words: Window,
}

impl Kept {
    /// In its first word: it is whole.
    const MARK: u64 = 0x1ea7_0f00_f125_711f;
    /// Words before those of the look.
    const HEAD: u64 = 5;

    fn find() -> Option<Self> {
        Some(Self { words: platform::get().shared.first()?.window() })
    }

    fn is_there(&self) -> bool {
        self.words.read64(0) == Self::MARK
    }

    fn forget(&self) {
        self.words.write64(0, 0);
    }

    fn keep(&self, look: &Look, contents: &Contents) {
        let Contents { words, sum, ends: [first, last] } = *contents;
        for (at, word) in [words, sum, first, last].into_iter().enumerate() {
            self.words.write64(8 * (1 + at as u64), word);
        }
        for (at, word) in look.words.iter().enumerate() {
            self.words.write64(8 * (Self::HEAD + at as u64), word.load(Relaxed));
        }
        self.words.write64(0, Self::MARK);
        cpu::dsb();
    }

    fn fetch(&self, look: &Look) -> Contents {
        for (at, word) in look.words.iter().enumerate() {
            word.store(self.words.read64(8 * (Self::HEAD + at as u64)), Relaxed);
        }
        let [words, sum, first, last] = [1, 2, 3, 4].map(|at| self.words.read64(8 * at));
        Contents { words, sum, ends: [first, last] }
    }
}

/// Leaves the core to the other VM until the counter shows `end`.
fn rest_until(actor: &mut Actor, end: u64) {
    loop {
        let left_us = end.saturating_sub(wait::now()) / wait::us(1);
        actor.set_alarm(left_us + 1);
        cpu::wfi();
        settle();
        actor.let_interrupts_in();
        if wait::now() >= end {
            return;
        }
    }
}

/// Fills the registers of its breakpoints and watchpoints, none of which is enabled, and has all
/// that are enabled act: the writer's would.
fn set_breakpoints() {
    const MDSCR: Encoding = Encoding::new(2, 0, 0, 2, 2);
    const KDE_AND_MDE: u64 = 1 << 13 | 1 << 15;
    const ENABLED: u64 = 1;
    for register in (0..16).flat_map(|number| (4..8).map(move |kind| (number, kind))) {
        let (number, kind) = register;
        let value = u64::from(number << 3 | kind).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // Those that do not exist cannot leak.
        let _ = table().write(Encoding::new(2, 0, 0, number, kind), value & !ENABLED);
    }
    let _ = table().write(MDSCR, KDE_AND_MDE);
    cpu::unmask_debug();
}

/// The timer and its interrupt as they are at each look.
fn settle() {
    Timer::Virtual.stop();
    Timer::Virtual.set_compare(0);
    gic::let_in();
}

/// What was seen: for each place whether there is something, and what.
struct Look {
    words: &'static [AtomicU64],
}

impl Look {
    const SIZE: u64 = 2 * ALL as u64 * 8;

    /// Keeps it in the memory at `base`, which nothing else uses.
    fn at(base: u64) -> Self {
        Self { words: memory::words(base, base + Self::SIZE) }
    }

    /// Looks at everything, with the timer and its interrupt as they are at each look.
    fn take(&self) {
        settle();
        self.take_as_it_is();
    }

    /// Looks at everything.
    fn take_as_it_is(&self) {
        let floats = Registers::store();
        for number in 0..ALL {
            let value = match number {
                ..REGISTERS => table().read(Encoding((FIRST + number) as u16)).ok(),
                _ => Some(other(&floats, number - REGISTERS)),
            };
            self.words[2 * number].store(value.is_some().into(), Relaxed);
            self.words[2 * number + 1].store(value.unwrap_or(0), Relaxed);
        }
    }

    fn get(&self, number: usize) -> [u64; 2] {
        [0, 1].map(|half| self.words[2 * number + half].load(Relaxed))
    }

    fn agrees(&self, other: &Self, number: usize) -> bool {
        self.get(number) == other.get(number)
    }

    /// Makes `number` one of those that change by themselves.
    fn forget(&self, number: usize) {
        self.words[2 * number].store(2, Relaxed);
    }

    /// Returns true if `number` is none of those that change by themselves.
    fn stays(&self, number: usize) -> bool {
        self.get(number)[0] < 2
    }

    /// How many registers there are, but for those that change by themselves.
    fn there(&self) -> u64 {
        (0..REGISTERS).filter(|&number| self.get(number)[0] == 1).count() as u64
    }
}

/// What is no system register: the interrupt controller's banks, floating-point registers.
fn other(floats: &Registers, number: usize) -> u64 {
    let [distributor, redistributor] = [BANKS, 2 * BANKS];
    if number < distributor {
        return GICD.read32(number as u64 * 4).into();
    }
    if number < redistributor {
        return gic::sgi_frame(0).read32((number - distributor) as u64 * 4).into();
    }
    match number - redistributor {
        64 => floats.fpcr,
        65 => floats.fpsr,
        half => floats.v[half / 2][half % 2],
    }
}

/// What people call a place.
struct Place(usize);

impl core::fmt::Display for Place {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        let Some(other) = self.0.checked_sub(REGISTERS) else {
            return write!(f, "{}", Encoding((FIRST + self.0) as u16));
        };
        match other / BANKS {
            0 => write!(f, "GICD+{:#x}", other * 4),
            1 => write!(f, "GICR+{:#x}", (other - BANKS) * 4),
            _ => write!(f, "FP{}", other - 2 * BANKS),
        }
    }
}
