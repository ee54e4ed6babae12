//! From reset to Rust: the page table, and the entry of secondary vCPUs.

use aarch64_rt::{InitialPagetable, Stack, initial_pagetable, set_exception_vector};
use abi::MAX_VCPUS_PER_VM;
use core::arch::naked_asm;

/// Block descriptor: valid, access flag, inner shareable, executable.
const BLOCK: usize = 0b01 | 1 << 10 | 0b11 << 8;
/// Index into the MAIR value of `aarch64-rt`: Normal, write-back.
const NORMAL: usize = 1 << 2;
const GIB: usize = 1 << 30;

/// The virtual address that leads to the first guest-physical one behind the 39
/// bits ([`abi::platform::IPA_BITS`]) that stage 2 translates.
pub const BEYOND_IPA_VA: u64 = 511 * GIB as u64;

/// All virtual addresses of 39 bits: identity, but for the last gigabyte,
/// which leads to what stage 2 cannot translate. Guest memory (gigabytes 1 and
/// 2) is Normal, the rest Device; all of it may be executed, so that it is
/// stage 2 that stops an attempt.
const fn identity() -> InitialPagetable {
    let mut table = [0; 512];
    let mut gigabyte = 0;
    while gigabyte < 512 {
        let kind = if gigabyte == 1 || gigabyte == 2 { BLOCK | NORMAL } else { BLOCK };
        let target = if gigabyte == 511 { 512 } else { gigabyte };
        table[gigabyte] = (target * GIB) | kind;
        gigabyte += 1;
    }
    InitialPagetable(table)
}

initial_pagetable!(identity());

/// Pages of stack for each secondary vCPU.
const STACK_PAGES: usize = 16;

static mut STACKS: [Stack<STACK_PAGES>; MAX_VCPUS_PER_VM] =
    [const { Stack::new() }; MAX_VCPUS_PER_VM];

/// What a vCPU found in its registers at its very first instruction.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// X0: the context identifier of PSCI CPU_ON.
    pub context: u64,
    /// CurrentEL.
    pub current_el: u64,
    /// SCTLR_EL1.
    pub sctlr: u64,
    /// DAIF.
    pub daif: u64,
    /// SPSel.
    pub spsel: u64,
    /// MPIDR_EL1.
    pub mpidr: u64,
}

/// Where secondary vCPUs begin, as CPU_ON wants it.
pub fn secondary_entry_address() -> u64 {
    secondary_entry as *const () as u64
}

/// Keeps the state that PSCI promises (DEN0022D, section 6.4) in registers
/// that neither MMU set-up nor the vector set-up touches, and hands it to Rust.
#[unsafe(naked)]
extern "C" fn secondary_entry() -> ! {
    naked_asm!(
        "mov x19, x0",
        "mrs x20, CurrentEL",
        "mrs x21, sctlr_el1",
        "mrs x22, daif",
        "mrs x23, spsel",
        "mrs x24, mpidr_el1",
        "bl enable_mmu",
        "mrs x8, cpacr_el1",
        "orr x8, x8, #(0x3 << 20)",
        "msr cpacr_el1, x8",
        "isb",
        // Only an affinity that has a stack may go on.
        "and x9, x24, #0xff",
        "cmp x9, #{cpus}",
        "0: b.hs 0b",
        "add x9, x9, #1",
        "mov x10, #{stack_size}",
        "adrp x11, {stacks}",
        "add x11, x11, :lo12:{stacks}",
        "madd x11, x9, x10, x11",
        "mov sp, x11",
        "bl {set_exception_vector}",
        "mov x0, x19",
        "mov x1, x20",
        "mov x2, x21",
        "mov x3, x22",
        "mov x4, x23",
        "mov x5, x24",
        "b {rust}",
        cpus = const MAX_VCPUS_PER_VM,
        stack_size = const size_of::<Stack<STACK_PAGES>>(),
        stacks = sym STACKS,
        set_exception_vector = sym set_exception_vector,
        rust = sym secondary_rust,
    )
}

extern "C" fn secondary_rust(
    context: u64,
    current_el: u64,
    sctlr: u64,
    daif: u64,
    spsel: u64,
    mpidr: u64,
) -> ! {
    crate::cpus::secondary(&Entry { context, current_el, sctlr, daif, spsel, mpidr })
}

/// Takes an exception for which there is no handler: the vectors are moved to
/// guest-physical address 0, where there is nothing, and nothing is read there.
pub fn crash() -> ! {
    // SAFETY: The end of this program, on purpose.
    unsafe {
        core::arch::asm!(
            "msr daifset, #15",
            "msr vbar_el1, xzr",
            "isb",
            "mov x0, xzr",
            "ldr x0, [x0]",
            "0: b 0b",
            options(noreturn)
        )
    }
}
