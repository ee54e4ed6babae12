//! What a guest has in registers, while others use them.

pub use super::machine::float::Float;
use super::machine::instructions;
use super::sysreg::{SPSR_EL1H_MASKED, cptr, ec, read_sysreg, write_sysreg};
use sched::policy::Mode;

/// General registers and where to go on. The exception vectors know the
/// offsets: this comes first in a vCPU, and `x` first in this.
#[derive(Clone, Default)]
#[repr(C, align(16))]
pub struct General {
    /// X0 to X30.
    pub x: [u64; 31],
    /// Where it goes on; valid while not loaded.
    pub pc: u64,
    /// The processor state; valid while not loaded.
    pub pstate: u64,
}

// The exception vectors store X0 to X30 at these offsets.
const _: () = {
    assert!(core::mem::offset_of!(General, x) == 0);
    assert!(core::mem::offset_of!(General, pc) == 248);
};

impl General {
    /// As a guest starts (arm64 boot protocol, PSCI CPU_ON).
    pub fn starting_at(pc: u64, x0: u64) -> Self {
        let mut general = Self { pc, pstate: SPSR_EL1H_MASKED, ..Self::default() };
        general.x[0] = x0;
        general
    }

    /// The register an instruction names; 31 is zero.
    pub fn get(&self, index: usize) -> u64 {
        self.x.get(index).copied().unwrap_or(0)
    }

    /// Sets the register an instruction names; 31 is discarded.
    pub fn set(&mut self, index: usize, value: u64) {
        if let Some(register) = self.x.get_mut(index) {
            *register = value;
        }
    }

    /// Takes the return state off the hardware.
    pub fn save_return(&mut self) {
        self.pc = read_sysreg!("elr_el2");
        self.pstate = read_sysreg!("spsr_el2");
    }

    /// All ones if the guest on the hardware, of which this is the return state,
    /// was in kernel mode: at EL1, with either stack pointer (DDI 0487, C5.2.20,
    /// SPSR_EL2.M). AArch32 is at EL0 only, where this bit is clear as well.
    pub fn kernel_mode() -> u64 {
        const EL1: u32 = 2;
        0u64.wrapping_sub(read_sysreg!("spsr_el2") >> EL1 & 1)
    }

    /// Puts the return state back and makes the vectors use these registers.
    pub fn load_return(&mut self) {
        // SAFETY: the vectors write only the first 248 bytes of what TPIDR_EL2
        // points to, which are `self.x`, only while this vCPU is loaded, and only
        // while a guest runs: no reference to them is in use then.
        unsafe {
            write_sysreg!("elr_el2", self.pc);
            write_sysreg!("spsr_el2", self.pstate);
            write_sysreg!("tpidr_el2", (&raw mut *self) as u64);
        }
    }
}

macro_rules! el1_registers {
    ($(($first:ident = $first_name:literal, $second:ident = $second_name:literal)),* $(,)?) => {
        /// EL1's and EL0's system registers (DDI 0487, D19.2).
        #[derive(Clone, Default)]
        #[repr(C)]
        pub struct System {
            $(
                #[doc = $first_name] pub $first: u64,
                #[doc = $second_name] pub $second: u64,
            )*
        }

        impl System {
            /// Takes them off the hardware.
            pub fn save(&mut self) {
                // By twos, as memory is written by twos.
                $(
                    let (first, second) = (read_sysreg!($first_name), read_sysreg!($second_name));
                    (self.$first, self.$second) = (first, second);
                )*
            }

            /// Puts them back.
            pub fn load(&self) {
                $(
                    let (first, second) = (self.$first, self.$second);
                    // SAFETY: they govern EL1 and EL0 only.
                    unsafe {
                        write_sysreg!($first_name, first);
                        write_sysreg!($second_name, second);
                    }
                )*
            }
        }
    };
}

el1_registers! {
    (sctlr = "sctlr_el1", cpacr = "cpacr_el1"),
    (ttbr0 = "ttbr0_el1", ttbr1 = "ttbr1_el1"),
    (tcr = "tcr_el1", mair = "mair_el1"),
    (amair = "amair_el1", vbar = "vbar_el1"),
    (contextidr = "contextidr_el1", esr = "esr_el1"),
    (far = "far_el1", afsr0 = "afsr0_el1"),
    (afsr1 = "afsr1_el1", par = "par_el1"),
    (elr = "elr_el1", spsr = "spsr_el1"),
    (sp_el1 = "sp_el1", sp_el0 = "sp_el0"),
    (tpidr_el0 = "tpidr_el0", tpidrro_el0 = "tpidrro_el0"),
    (tpidr_el1 = "tpidr_el1", csselr = "csselr_el1"),
    (cntkctl = "cntkctl_el1", mdscr = "mdscr_el1"),
}

impl System {
    /// As after reset: MMU and caches off.
    pub fn reset() -> Self {
        /// SCTLR_EL1's RES1 bits.
        const SCTLR_OFF: u64 = 0x30d0_0800;
        Self { sctlr: SCTLR_OFF, ..Self::default() }
    }
}

/// Lets the guest use floating point, or lets its first use trap.
pub fn open_float(open: bool) {
    let value = if open { cptr::FP_OPEN } else { cptr::FP_TRAPPED };
    // SAFETY: a trap control; the compiler uses no floating point at EL2.
    unsafe {
        write_sysreg!("cptr_el2", value);
    }
}

/// [`open_float`], effective before the next instruction at EL2.
pub fn open_float_now() {
    open_float(true);
    instructions::synchronize();
}

/// Does something for which EL2 itself uses these registers.
pub fn with_open_float(act: impl FnOnce()) {
    let former = read_sysreg!("cptr_el2");
    open_float_now();
    act();
    // SAFETY: as it was; what comes before the guest's next instruction synchronizes it.
    unsafe { write_sysreg!("cptr_el2", former) };
}

/// A guest's physical address space, and the identity a vCPU has in there.
#[derive(Clone, Copy)]
pub struct Space {
    vttbr: u64,
    vmpidr: u64,
}

impl Space {
    /// The space of the stage-2 tables at `root`, for the vCPU of this affinity.
    pub const fn new(root: u64, vmid: u64, affinity: u64) -> Self {
        /// MPIDR_EL1's bit that is always one.
        const RES1: u64 = 1 << 31;
        Self { vttbr: vmid << 48 | root, vmpidr: RES1 | affinity }
    }

    /// Forgets what the TLBs of all cores hold of it.
    pub fn forget(self) {
        let in_force = read_sysreg!("vttbr_el2");
        // SAFETY: no guest runs on this core before the former space is in force again.
        unsafe {
            write_sysreg!("vttbr_el2", self.vttbr);
            instructions::forget_both_stages_everywhere();
            write_sysreg!("vttbr_el2", in_force);
        }
    }

    /// Puts it in force.
    pub fn enter(self) {
        // SAFETY: takes effect in the guest only; the tables are the host's,
        // whose checksum was verified.
        unsafe {
            write_sysreg!("vttbr_el2", self.vttbr);
            write_sysreg!("vmpidr_el2", self.vmpidr);
        }
    }
}

/// What the latest exception from a guest says of itself.
#[derive(Clone, Copy)]
pub struct Syndrome(pub u64);

impl Syndrome {
    /// Of the exception being handled.
    pub fn read() -> Self {
        Self(read_sysreg!("esr_el2"))
    }

    /// Returns true if stage 2 refused to have executed what it maps (an instruction
    /// abort with a permission fault: DDI 0487, D19.2.37).
    pub fn is_refused_fetch(self) -> bool {
        const STATUS: u64 = 0b11_1100;
        const PERMISSION_FAULT: u64 = 0b00_1100;
        self.class() == ec::INSTRUCTION_ABORT && self.iss() & STATUS == PERMISSION_FAULT
    }

    /// The exception class.
    pub fn class(self) -> u64 {
        self.0 >> 26 & 0x3f
    }

    /// The class's own bits.
    pub fn iss(self) -> u64 {
        self.0 & 0x1ff_ffff
    }
}

/// Address the guest used, and its page as the guest sees physical memory.
pub fn fault_addresses() -> (u64, u64) {
    let virtual_address = read_sysreg!("far_el2");
    let page = (read_sysreg!("hpfar_el2") & 0xfff_ffff_fff0) << 8;
    (virtual_address, page | (virtual_address & 0xfff))
}

/// What the guest executed when it came here.
pub fn guest_mode() -> Mode {
    mode_of(read_sysreg!("spsr_el2"))
}

/// Returns true if the guest that came here had masked its interrupts.
pub fn guest_masks_interrupts() -> bool {
    /// SPSR_EL2.I (Arm DDI 0487, C5.2.19).
    const I: u64 = 1 << 7;
    read_sysreg!("spsr_el2") & I != 0
}

/// What a guest with this processor state executes.
pub fn mode_of(pstate: u64) -> Mode {
    /// SPSR_EL2.M: AArch64, EL0; the same of AArch32, User mode.
    const EL0: [u64; 2] = [0, 0x10];
    if EL0.contains(&(pstate & 0x1f)) { Mode::User } else { Mode::Kernel }
}

/// Program counter of the guest.
pub fn guest_pc() -> u64 {
    read_sysreg!("elr_el2")
}

/// Goes on behind the instruction that trapped with this syndrome, which is four bytes long but
/// for some of T32 (ESR_EL2.IL). A guest that steps takes its exception before the next one.
#[inline(always)]
pub fn skip_instruction(syndrome: Syndrome) {
    const IL: u64 = 1 << 25;
    /// SPSR_EL2.SS.
    const STEPS: u64 = 1 << 21;
    if syndrome.0 & IL == 0 {
        go_back_two_bytes();
    }
    let pstate = read_sysreg!("spsr_el2");
    // SAFETY: the guest's program counter and processor state.
    unsafe {
        write_sysreg!("elr_el2", guest_pc().wrapping_add(4));
        if pstate & STEPS != 0 {
            write_sysreg!("spsr_el2", pstate & !STEPS);
        }
    }
}

#[cold]
fn go_back_two_bytes() {
    // SAFETY: the guest's program counter.
    unsafe { write_sysreg!("elr_el2", guest_pc().wrapping_sub(2)) };
}

/// What is delivered to the guest's EL1.
#[derive(Clone, Copy)]
pub enum Fault {
    /// An undefined instruction.
    Undefined,
    /// An external abort on an instruction fetch from this address.
    Instruction(u64),
    /// An external abort on a data access to this address; true: a write.
    Data(u64, bool),
}

/// Lets the guest take a synchronous exception to EL1, as the architecture
/// would (DDI 0487, D1.3 and AArch64.TakeException). Answers false when it
/// already was at the vector it would go to: it cannot go on.
pub fn inject(fault: Fault) -> bool {
    const FROM_EL0_32: u64 = 0x600;
    const FROM_EL0_64: u64 = 0x400;
    const FROM_EL1_SPX: u64 = 0x200;
    /// Synchronous external abort, not on a table walk.
    const EXTERNAL: u64 = 0x10;
    const WRITE: u64 = 1 << 6;
    const IL: u64 = 1 << 25;
    /// SCTLR_EL1.SPAN.
    const SPAN: u64 = 1 << 23;
    const PAN: u64 = super::sysreg::SPSR_PAN;
    /// SPSR_EL2.DIT.
    const DIT: u64 = 1 << 24;
    /// SPSR_EL2.SSBS, which is set as SCTLR_EL1.DSSBS says.
    const SSBS: u64 = 1 << 12;
    const DSSBS: u64 = 1 << 44;

    let pc = guest_pc();
    let pstate = read_sysreg!("spsr_el2");
    let (from_el0, offset) = match pstate & 0x1f {
        mode if mode & 0x10 != 0 => (true, FROM_EL0_32),
        0 => (true, FROM_EL0_64),
        4 => (false, 0),
        _ => (false, FROM_EL1_SPX),
    };
    // VBAR_EL1 is the guest's, with bits below the offset on some cores.
    let vector = read_sysreg!("vbar_el1").wrapping_add(offset);
    if matches!(fault, Fault::Instruction(_)) && pc == vector {
        return false;
    }
    let lower = |class: u64| if from_el0 { class } else { class + 1 };
    let (syndrome, address) = match fault {
        Fault::Undefined => (ec::UNKNOWN << 26 | IL, None),
        Fault::Instruction(address) => {
            (lower(ec::INSTRUCTION_ABORT) << 26 | IL | EXTERNAL, Some(address))
        }
        Fault::Data(address, write) => {
            let write = if write { WRITE } else { 0 };
            (lower(ec::DATA_ABORT) << 26 | IL | EXTERNAL | write, Some(address))
        }
    };
    let sctlr = read_sysreg!("sctlr_el1");
    let pan = if sctlr & SPAN == 0 { PAN } else { pstate & PAN };
    let ssbs = if sctlr & DSSBS == 0 { 0 } else { SSBS };
    // SAFETY: the guest's own exception registers, as its hardware would set
    // them.
    unsafe {
        write_sysreg!("esr_el1", syndrome);
        if let Some(address) = address {
            write_sysreg!("far_el1", address);
        }
        write_sysreg!("elr_el1", pc);
        write_sysreg!("spsr_el1", pstate);
        write_sysreg!("elr_el2", vector);
        write_sysreg!("spsr_el2", SPSR_EL1H_MASKED | pan | ssbs | pstate & DIT);
    }
    true
}
