//! Instructions that are meant to fault, and what they faulted with.

use super::{cpu, sysreg};
use abi::MAX_VCPUS_PER_VM;
use core::arch::asm;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};

/// A synchronous exception that a test provoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Exception class, ESR_EL1.EC.
    pub class: u8,
    /// Instruction-specific syndrome, ESR_EL1.ISS.
    pub iss: u32,
    /// FAR_EL1.
    pub far: u64,
    /// ELR_EL1: the instruction that faulted.
    pub elr: u64,
}

/// Exception classes (ESR_EL1.EC).
pub mod class {
    /// Unknown reason: an instruction that is not there.
    pub const UNKNOWN: u8 = 0x00;
    /// Floating point disabled by CPACR_EL1.
    pub const FP: u8 = 0x07;
    /// SVC in AArch64.
    pub const SVC: u8 = 0x15;
    /// Instruction abort, same exception level.
    pub const INSTRUCTION_ABORT: u8 = 0x21;
    /// Data abort, same exception level.
    pub const DATA_ABORT: u8 = 0x25;
    /// Breakpoint, same exception level.
    pub const BREAKPOINT: u8 = 0x31;
    /// Watchpoint, same exception level.
    pub const WATCHPOINT: u8 = 0x35;
    /// BRK.
    pub const BRK: u8 = 0x3c;
}

/// Fault status code of a synchronous external abort, not on a table walk.
pub const EXTERNAL_ABORT: u32 = 0x10;

const NOT_ARMED: u8 = 0;
/// Go on behind the instruction.
const SKIP: u8 = 1;
/// Go on at the address in the link register.
const RETURN: u8 = 2;
/// As `SKIP`, for exceptions that already return behind the instruction.
const STAY: u8 = 3;

struct Trap {
    armed: AtomicU8,
    sprung: AtomicBool,
    esr: AtomicU64,
    far: AtomicU64,
    elr: AtomicU64,
}

static TRAPS: [Trap; MAX_VCPUS_PER_VM] = [const {
    Trap {
        armed: AtomicU8::new(NOT_ARMED),
        sprung: AtomicBool::new(false),
        esr: AtomicU64::new(0),
        far: AtomicU64::new(0),
        elr: AtomicU64::new(0),
    }
}; MAX_VCPUS_PER_VM];

/// Called on a synchronous exception at `elr`: notes it and answers where to go
/// on, if a test expects it.
pub fn caught(elr: u64, link: u64) -> Option<u64> {
    let trap = TRAPS.get(cpu::index())?;
    let armed = trap.armed.swap(NOT_ARMED, Relaxed);
    trap.esr.store(sysreg::read::esr_el1(), Relaxed);
    trap.far.store(sysreg::read::far_el1(), Relaxed);
    trap.elr.store(elr, Relaxed);
    trap.sprung.store(true, Relaxed);
    match armed {
        SKIP => Some(elr + 4),
        RETURN => Some(link),
        STAY => Some(elr),
        _ => None,
    }
}

/// Runs `body`, which is one instruction that may fault.
#[inline(always)]
fn attempt(resume: u8, body: impl FnOnce()) -> Option<Fault> {
    let trap = &TRAPS[cpu::index()];
    trap.sprung.store(false, Relaxed);
    trap.armed.store(resume, Relaxed);
    body();
    // An instruction that faults asynchronously late would be missed.
    cpu::dsb();
    trap.armed.store(NOT_ARMED, Relaxed);
    trap.sprung.load(Relaxed).then(|| Fault {
        class: (trap.esr.load(Relaxed) >> 26) as u8 & 0x3f,
        iss: trap.esr.load(Relaxed) as u32 & 0x1ff_ffff,
        far: trap.far.load(Relaxed),
        elr: trap.elr.load(Relaxed),
    })
}

/// Reads eight bytes at `address`.
pub fn read(address: u64) -> Result<u64, Fault> {
    let mut value = 0;
    let fault = attempt(SKIP, || {
        // SAFETY: A load cannot harm Rust's objects; its fault is caught.
        unsafe {
            asm!("ldr {0}, [{1}]", inout(reg) 0u64 => value, in(reg) address,
                 options(nostack, preserves_flags));
        }
    });
    fault.map_or(Ok(value), Err)
}

/// Writes eight zero bytes at `address`.
///
/// # Panics
/// When `address` lies where this program may: in its image.
pub fn write(address: u64) -> Result<(), Fault> {
    assert!(!super::memory::image_holds(address), "the probe would overwrite itself");
    let fault = attempt(SKIP, || {
        // SAFETY: No Rust object lives there (asserted); its fault is caught.
        unsafe {
            asm!("str xzr, [{0}]", in(reg) address, options(nostack, preserves_flags));
        }
    });
    fault.map_or(Ok(()), Err)
}

/// Reads a pair at `address`: an access for which there is no instruction
/// syndrome to emulate by.
pub fn read_pair(address: u64) -> Result<(), Fault> {
    let fault = attempt(SKIP, || {
        // SAFETY: A load cannot harm Rust's objects; its fault is caught.
        unsafe {
            asm!("ldp {0}, {1}, [{2}]", out(reg) _, out(reg) _, in(reg) address,
                 options(nostack, preserves_flags));
        }
    });
    fault.map_or(Ok(()), Err)
}

/// Calls `address`, which is expected to have no executable memory.
///
/// Should it be mapped after all, whatever lies there runs.
pub fn execute(address: u64) -> Result<(), Fault> {
    let fault = attempt(RETURN, || {
        // SAFETY: The callers pass addresses that no mapping should reach; if
        // one does, the run is lost and says so. The fault returns here.
        unsafe {
            asm!("blr {0}", in(reg) address, out("x30") _, options(nostack));
        }
    });
    fault.map_or(Ok(()), Err)
}

/// Room for one instruction and a return, for each vCPU.
#[repr(C, align(64))]
struct Code(UnsafeCell<[u32; 2]>);
// SAFETY: Each vCPU uses its own element only.
unsafe impl Sync for Code {}
static CODE: [Code; MAX_VCPUS_PER_VM] =
    [const { Code(UnsafeCell::new([0, RETURN_TO_CALLER])) }; MAX_VCPUS_PER_VM];
/// `RET`
const RETURN_TO_CALLER: u32 = 0xd65f_03c0;
/// `NOP`
const NOTHING: u32 = 0xd503_201f;

/// How many places there are that [`visit`] can go to.
pub const PLACES: usize = 16;
/// An instruction that does nothing, and a return. They are never written.
static VISITED: [Code; PLACES] =
    [const { Code(UnsafeCell::new([NOTHING, RETURN_TO_CALLER])) }; PLACES];

/// Returns the address of a place.
pub fn place(number: usize) -> u64 {
    VISITED[number].0.get() as u64
}

/// Executes the instruction at a place, which does nothing.
pub fn visit(number: usize) -> Result<(), Fault> {
    call(place(number), 0).map(|_| ())
}

/// Runs the instruction word `instruction` with `x0` and answers X0.
///
/// Meant for instructions that use no register but X0 and do not branch.
pub fn instruction(instruction: u32, x0: u64) -> Result<u64, Fault> {
    run(SKIP, instruction, x0)
}

/// As [`instruction`], for those whose exception returns behind them (SVC).
pub fn call_instruction(instruction: u32) -> Result<u64, Fault> {
    run(STAY, instruction, 0)
}

/// Calls the code at `code` with `x0` and answers X0: one instruction that only changes X0, and
/// a return.
pub(super) fn call(code: u64, x0: u64) -> Result<u64, Fault> {
    let mut result = x0;
    let fault = attempt(SKIP, || {
        // SAFETY: The modules beside this one pass code of that kind.
        unsafe {
            asm!("blr {0}", in(reg) code, inout("x0") result, out("x30") _, options(nostack));
        }
    });
    fault.map_or(Ok(result), Err)
}

/// Calls the code at `code`: one load or store at `address` in X1, which may change X0 to X3, and
/// a return.
pub(super) fn access(code: u64, address: u64, value: u64) -> Result<(), Fault> {
    let fault = attempt(SKIP, || {
        // SAFETY: The module beside this one passes code of that kind, and refuses to write where
        // this program lives; its fault is caught.
        unsafe {
            asm!("blr {0}", in(reg) code, inout("x0") value => _, inout("x1") address => _,
                 inout("x2") !value => _, inout("x3") 0u64 => _, out("x30") _, options(nostack));
        }
    });
    fault.map_or(Ok(()), Err)
}

fn run(resume: u8, instruction: u32, x0: u64) -> Result<u64, Fault> {
    let code = CODE[cpu::index()].0.get();
    // SAFETY: Only this vCPU uses this element, and nothing borrows it; the
    // cache maintenance makes the store visible to instruction fetch.
    unsafe {
        (*code)[0] = instruction;
        asm!("dc cvau, {0}", "dsb ish", "ic ivau, {0}", "dsb ish", "isb", in(reg) code,
             options(nostack, preserves_flags));
    }
    let mut result = x0;
    let fault = attempt(resume, || {
        // SAFETY: The code is one instruction that only changes X0, then RET.
        unsafe {
            asm!("blr {0}", in(reg) code, inout("x0") result, out("x30") _, options(nostack));
        }
    });
    fault.map_or(Ok(result), Err)
}
