//! Loads and stores in every form, also those for which the architecture describes no syndrome to
//! a hypervisor, at any address: they may fault.

use super::cpu;
use super::fault::{self, Fault};
use abi::MAX_VCPUS_PER_VM;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// An instruction and a return, bytes.
const SLOT: u64 = 8;

macro_rules! forms {
    ($($instruction:literal),* $(,)?) => {
        /// How many forms there are.
        pub const COUNT: u64 = [$($instruction),*].len() as u64;

        /// Each form, followed by a return. X1 has the address, X0, X2 and X3 what is loaded or
        /// stored.
        #[unsafe(naked)]
        extern "C" fn all() -> ! {
            core::arch::naked_asm!(
                ".arch_extension fp",
                ".arch_extension simd",
                ".arch_extension lse",
                $(concat!($instruction, "\nret\n"),)*
            )
        }
    };
}

// Loads first: what follows writes.
forms!(
    "ldrb w0, [x1]",
    "ldrsb x0, [x1]",
    "ldrh w0, [x1]",
    "ldrsh w0, [x1]",
    "ldr w0, [x1]",
    "ldrsw x0, [x1]",
    "ldr x0, [x1]",
    "ldr wzr, [x1]",
    "ldur x0, [x1, #1]",
    "ldar w0, [x1]",
    "ldxr w0, [x1]",
    "ldp w0, w2, [x1]",
    "ldp x0, x2, [x1]",
    "ldr w0, [x1], #4",
    "ldr x0, [x1, #8]!",
    "ldr q0, [x1]",
    "ldp q0, q1, [x1]",
    "prfm pldl1keep, [x1]",
    "dc cvac, x1",
    "ic ivau, x1",
    "at s1e1w, x1",
    "strb w0, [x1]",
    "strh w0, [x1]",
    "str w0, [x1]",
    "str x0, [x1]",
    "str wzr, [x1]",
    "stur x0, [x1, #1]",
    "stlr w0, [x1]",
    "stxr w3, w0, [x1]",
    "stp w0, w2, [x1]",
    "stp x0, x2, [x1]",
    "str w0, [x1], #4",
    "str x0, [x1, #8]!",
    "str q0, [x1]",
    "stp q0, q1, [x1]",
    "ldadd x0, x2, [x1]",
    "cas x0, x2, [x1]",
    "swp w0, w2, [x1]",
    "dc civac, x1",
);

/// How many of them only read: the first.
pub const READS: u64 = 21;

/// Executes form `number` (less than [`COUNT`]) at `address`, with `value` where it stores.
///
/// # Panics
/// When it would write into the image of this program.
pub fn execute(number: u64, address: u64, value: u64) -> Result<(), Fault> {
    assert!(number < COUNT && (number < READS || !near_image(address)));
    fault::access(all as *const () as u64 + number * SLOT, address, value)
}

/// Whether a vCPU goes on behind a form at which an interrupt comes.
static GIVES_UP: [AtomicBool; MAX_VCPUS_PER_VM] =
    [const { AtomicBool::new(false) }; MAX_VCPUS_PER_VM];

/// Lets this vCPU go on behind a form that an interrupt finds not executed yet, or no longer do so. Some accesses wait for
/// another VM.
pub fn give_up_when_interrupted(gives_up: bool) {
    GIVES_UP[cpu::index()].store(gives_up, Relaxed);
}

/// Returns where to go on after an interrupt that came at `elr`, if this vCPU gives up what is there.
pub fn given_up(elr: u64) -> Option<u64> {
    let offset = elr.checked_sub(all as *const () as u64)?;
    let is_form = offset < COUNT * SLOT && offset.is_multiple_of(SLOT);
    (is_form && GIVES_UP.get(cpu::index())?.load(Relaxed)).then_some(elr + 4)
}

/// Whether one of the forms could reach the image from there.
fn near_image(address: u64) -> bool {
    let (from, to) = (address.saturating_sub(64), address.saturating_add(64));
    super::memory::image_holds(from) || super::memory::image_holds(to)
}
