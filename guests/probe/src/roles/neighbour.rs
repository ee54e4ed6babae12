//! A real-time guest beside an adversary: it notices what is taken from it or changed.

use super::rhythm::beat;
use crate::arch::fp::Registers;
use crate::arch::memory;
use crate::arch::sysreg::{read, write};
use crate::suite::{Check, Done};
use crate::{ensure_eq, platform, println};
use core::hint::black_box;
use core::sync::atomic::Ordering::Relaxed;

/// Words of memory that it looks at.
const WORDS: u64 = 512;
/// Activations from one line on its console to the next.
const LINES: u64 = 8;

/// In each activation it looks whether its registers and its memory are as it left them, works
/// for as long as it always does (`probe.work`, 20000 rounds of a loop), and reports when that is
/// done as its dispatch latency. Each eighth time it says so on its console, with a number that
/// shows what is lost.
pub fn neighbour() -> Check<Done> {
    let rounds = platform::get().number("work", 20_000);
    leave(0);
    beat(|number| {
        look(number)?;
        leave(number + 1);
        for round in 0..rounds {
            black_box(round);
        }
        if number % LINES == 0 {
            println!("beat {} of a neighbour that loses nothing", number / LINES);
        }
        Ok(())
    })
}

/// Something for word `number` of activation `seed`.
fn pattern(seed: u64, number: u64) -> u64 {
    (seed << 16 | number).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Leaves a pattern.
fn leave(seed: u64) {
    Registers::pattern(seed).load();
    write::tpidr_el0(pattern(seed, 0));
    write::tpidr_el1(pattern(seed, 1));
    write::tpidrro_el0(pattern(seed, 2));
    write::sp_el0(pattern(seed, 3));
    write::contextidr_el1(pattern(seed, 4) & 0xffff_ffff);
    let begin = platform::free_memory();
    for (number, word) in memory::words(begin, begin + 8 * WORDS).iter().enumerate() {
        word.store(pattern(seed, number as u64), Relaxed);
    }
}

/// Looks for it.
fn look(seed: u64) -> Check {
    let floats = Registers::store().difference(&Registers::pattern(seed));
    ensure_eq!(floats, None, "a floating-point register that has changed");
    ensure_eq!(read::tpidr_el0(), pattern(seed, 0), "TPIDR_EL0");
    ensure_eq!(read::tpidr_el1(), pattern(seed, 1), "TPIDR_EL1");
    ensure_eq!(read::tpidrro_el0(), pattern(seed, 2), "TPIDRRO_EL0");
    ensure_eq!(read::sp_el0(), pattern(seed, 3), "SP_EL0");
    ensure_eq!(read::contextidr_el1(), pattern(seed, 4) & 0xffff_ffff, "CONTEXTIDR_EL1");
    let begin = platform::free_memory();
    for (number, word) in memory::words(begin, begin + 8 * WORDS).iter().enumerate() {
        ensure_eq!(word.load(Relaxed), pattern(seed, number as u64), "word {number} of memory");
    }
    Ok(())
}
