//! System registers: how they are read and written, and the bits we set in them.

pub(crate) use super::machine::registers::{read_sysreg, write_sysreg};

/// HCR_EL2 (Arm DDI 0487, section D19.2.48).
pub mod hcr {
    const VM: u64 = 1 << 0;
    /// Invalidation of a data cache by set and way cleans, too: a guest discards nothing that is not
    /// its own. So it need not trap.
    const SWIO: u64 = 1 << 1;
    const PTW: u64 = 1 << 2;
    const FMO: u64 = 1 << 3;
    const IMO: u64 = 1 << 4;
    const AMO: u64 = 1 << 5;
    /// FB, and BSU = inner shareable: maintenance of caches and TLBs, and the barriers after it,
    /// reach every core, as a guest's cores are not ours.
    pub const BROADCAST: u64 = 1 << 9 | 1 << 10;
    const TWI: u64 = 1 << 13;
    /// WFE traps too.
    pub const TWE: u64 = 1 << 14;
    const TID3: u64 = 1 << 18;
    const TSC: u64 = 1 << 19;
    const TIDCP: u64 = 1 << 20;
    const TACR: u64 = 1 << 21;
    /// EL1 is AArch64.
    pub const RW: u64 = 1 << 31;
    const TLOR: u64 = 1 << 35;
    const TERR: u64 = 1 << 36;
    /// While a guest runs: physical interrupts come here, stage 2 is on, WFI,
    /// SMC, identification registers, LORegions, error records and implementation-defined registers
    /// trap.
    pub const GUEST: u64 =
        VM | SWIO | PTW | FMO | IMO | AMO | TWI | TID3 | TSC | TIDCP | TACR | RW | TLOR | TERR;
}

/// CPTR_EL2 (DDI 0487, D19.2.34), with HCR_EL2.E2H = 0.
pub mod cptr {
    /// SVE, SME, trace (TTA) and the activity monitors (TAM) trap. RES1 bits included.
    const BASE: u64 = 0x33ff | 1 << 20 | 1 << 30;
    const TFP: u64 = 1 << 10;
    /// The guest's floating-point registers are loaded.
    pub const FP_OPEN: u64 = BASE;
    /// First use of floating point traps.
    pub const FP_TRAPPED: u64 = BASE | TFP;
}

/// MDCR_EL2 (DDI 0487, D19.3.17): debug, trace, profiling and PMU registers
/// trap. TDE is 0: debug exceptions are EL1's, and none is taken from EL2.
pub const MDCR_TRAP_ALL: u64 = 1 << 5 | 1 << 6 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 14 | 1 << 19;

/// CNTHCTL_EL2 (DDI 0487, D19.12.2): guests read the physical counter and trap
/// on the physical timer.
pub const CNTHCTL_COUNTER_ONLY: u64 = 1 << 0;

/// SPSR for a guest that starts: EL1h, D, A, I and F masked.
pub const SPSR_EL1H_MASKED: u64 = 0x3c5;
/// SPSR.PAN.
pub const SPSR_PAN: u64 = 1 << 22;

/// Exception classes (ESR_ELx.EC; DDI 0487, D19.2.37).
pub mod ec {
    /// Unknown reason: also what an undefined instruction reports.
    pub const UNKNOWN: u64 = 0x00;
    /// WFI or WFE.
    pub const WFX: u64 = 0x01;
    /// Floating point or SIMD.
    pub const FP: u64 = 0x07;
    /// HVC from AArch64.
    pub const HVC64: u64 = 0x16;
    /// SMC from AArch64.
    pub const SMC64: u64 = 0x17;
    /// MSR, MRS or a system instruction.
    pub const SYSREG: u64 = 0x18;
    /// Instruction abort from a lower level.
    pub const INSTRUCTION_ABORT: u64 = 0x20;
    /// Data abort from a lower level.
    pub const DATA_ABORT: u64 = 0x24;
}
