//! System registers by name, as `aarch64` has them.

use super::machine::{self, Pause};
use crate::arch::gic::SPECIAL;

/// Every register that EL2 names, in no particular order; behind them the
/// identification registers, by CRm and op2.
const NAMES: [&str; 151] = [
    "cntpct_el0",
    "cntfrq_el0",
    "isr_el1",
    "icc_iar1_el1",
    "icc_eoir1_el1",
    "icc_dir_el1",
    "icc_sgi1r_el1",
    "icc_pmr_el1",
    "ich_elrsr_el2",
    "cntv_ctl_el0",
    "cntv_cval_el0",
    "cnthp_ctl_el2",
    "cnthp_cval_el2",
    "cntp_ctl_el0",
    "cntp_cval_el0",
    "ich_hcr_el2",
    "ich_vmcr_el2",
    "ich_vtr_el2",
    "ich_ap0r0_el2",
    "ich_ap0r1_el2",
    "ich_ap0r2_el2",
    "ich_ap0r3_el2",
    "ich_ap1r0_el2",
    "ich_ap1r1_el2",
    "ich_ap1r2_el2",
    "ich_ap1r3_el2",
    "ich_lr0_el2",
    "ich_lr1_el2",
    "ich_lr2_el2",
    "ich_lr3_el2",
    "ich_lr4_el2",
    "ich_lr5_el2",
    "ich_lr6_el2",
    "ich_lr7_el2",
    "ich_lr8_el2",
    "ich_lr9_el2",
    "ich_lr10_el2",
    "ich_lr11_el2",
    "ich_lr12_el2",
    "ich_lr13_el2",
    "ich_lr14_el2",
    "ich_lr15_el2",
    "icc_sre_el2",
    "icc_sre_el1",
    "icc_bpr1_el1",
    "icc_ctlr_el1",
    "icc_igrpen1_el1",
    "elr_el2",
    "spsr_el2",
    "tpidr_el2",
    "esr_el2",
    "far_el2",
    "hpfar_el2",
    "vttbr_el2",
    "vmpidr_el2",
    "vpidr_el2",
    "vtcr_el2",
    "cptr_el2",
    "hcr_el2",
    "mdcr_el2",
    "hstr_el2",
    "cnthctl_el2",
    "cntvoff_el2",
    "mair_el2",
    "tcr_el2",
    "ttbr0_el2",
    "sctlr_el2",
    "midr_el1",
    "id_aa64isar0_el1",
    "id_aa64mmfr0_el1",
    "id_aa64mmfr1_el1",
    "ctr_el0",
    "dczid_el0",
    "sctlr_el1",
    "cpacr_el1",
    "ttbr0_el1",
    "ttbr1_el1",
    "tcr_el1",
    "mair_el1",
    "amair_el1",
    "vbar_el1",
    "contextidr_el1",
    "esr_el1",
    "far_el1",
    "afsr0_el1",
    "afsr1_el1",
    "par_el1",
    "elr_el1",
    "spsr_el1",
    "sp_el1",
    "sp_el0",
    "tpidr_el0",
    "tpidrro_el0",
    "tpidr_el1",
    "csselr_el1",
    "cntkctl_el1",
    "mdscr_el1",
    "pmccntr_el0",
    "pmccfiltr_el0",
    "pmcntenset_el0",
    "pmcr_el0",
    "pmintenclr_el1",
    "pmuserenr_el0",
    "mpidr_el1",
    "fpcr",
    "fpsr",
    "pan",
    "currentel",
    "icc_ap1r0_el1",
    "icc_ap1r1_el1",
    "icc_ap1r2_el1",
    "icc_ap1r3_el1",
    "oslar_el1",
    "id_aa64pfr0_el1",
    "id_aa64pfr1_el1",
    // DISR_EL1, VDISR_EL2.
    "s3_0_c12_c1_1",
    "s3_4_c12_c1_1",
    // HCRX_EL2; HFGRTR, HFGWTR, HFGITR, HDFGRTR, HDFGWTR; the same with a 2.
    "s3_4_c1_c2_2",
    "s3_4_c1_c1_4",
    "s3_4_c1_c1_5",
    "s3_4_c1_c1_6",
    "s3_4_c3_c1_4",
    "s3_4_c3_c1_5",
    "s3_4_c3_c1_2",
    "s3_4_c3_c1_3",
    "s3_4_c3_c1_7",
    "s3_4_c3_c1_0",
    "s3_4_c3_c1_1",
    // MPAM2_EL2, MPAMIDR_EL1, MPAMHCR_EL2.
    "s3_4_c10_c5_0",
    "s3_0_c10_c4_4",
    "s3_4_c10_c4_0",
    "dbgbvr0_el1",
    "dbgbcr0_el1",
    "dbgwvr0_el1",
    "dbgwcr0_el1",
    "dbgbvr1_el1",
    "dbgbcr1_el1",
    "dbgwvr1_el1",
    "dbgwcr1_el1",
    "dbgbvr2_el1",
    "dbgbcr2_el1",
    "dbgwvr2_el1",
    "dbgwcr2_el1",
    "dbgbvr3_el1",
    "dbgbcr3_el1",
    "dbgwvr3_el1",
    "dbgwcr3_el1",
    "dbgbvr4_el1",
    "dbgbcr4_el1",
    "dbgbvr5_el1",
    "dbgbcr5_el1",
];
/// Identification registers: s3_0_c0_c0_0 to s3_0_c0_c7_7.
const IDENTIFICATION: usize = NAMES.len();
/// How many registers a core has.
pub const COUNT: usize = IDENTIFICATION + 64;

/// A register, found by its name when the program is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register(pub usize);

impl Register {
    /// Returns the register of this name; a name that is not in the list does not
    /// compile.
    pub const fn named(name: &str) -> Self {
        let mut at = 0;
        while at < NAMES.len() {
            if same(name.as_bytes(), NAMES[at].as_bytes()) {
                return Self(at);
            }
            at += 1;
        }
        let name = name.as_bytes();
        // s3_0_c0_cM_P
        assert!(name.len() == 12 && name[0] == b's', "the fake machine lacks this register");
        Self(IDENTIFICATION + 8 * (name[9] - b'0') as usize + (name[11] - b'0') as usize)
    }
}

const fn same(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

pub const CNTPCT: Register = Register::named("cntpct_el0");
pub const ISR: Register = Register::named("isr_el1");
pub const IAR1: Register = Register::named("icc_iar1_el1");
pub const EOIR1: Register = Register::named("icc_eoir1_el1");
pub const DIR: Register = Register::named("icc_dir_el1");
pub const SGI1R: Register = Register::named("icc_sgi1r_el1");
pub const PMR: Register = Register::named("icc_pmr_el1");
pub const ELRSR: Register = Register::named("ich_elrsr_el2");
pub const CNTV_CTL: Register = Register::named("cntv_ctl_el0");
pub const CNTV_CVAL: Register = Register::named("cntv_cval_el0");
pub const CNTHP_CTL: Register = Register::named("cnthp_ctl_el2");
pub const CNTHP_CVAL: Register = Register::named("cnthp_cval_el2");
pub const CNTP_CTL: Register = Register::named("cntp_ctl_el0");
pub const CNTP_CVAL: Register = Register::named("cntp_cval_el0");
pub const ICH_HCR: Register = Register::named("ich_hcr_el2");
pub const ICH_VMCR: Register = Register::named("ich_vmcr_el2");
pub const ICH_AP1R0: Register = Register::named("ich_ap1r0_el2");
pub const TTBR0_EL2: Register = Register::named("ttbr0_el2");
pub const ICH_LR0: Register = Register::named("ich_lr0_el2");

/// `read_sysreg!(NAME)`: the value of a system register.
macro_rules! read_sysreg {
    ($name:expr) => {{
        const REGISTER: $crate::arch::fake::registers::Register =
            $crate::arch::fake::registers::Register::named($name);
        $crate::arch::fake::registers::read(REGISTER)
    }};
}

/// `write_sysreg!(NAME, value)`: writes a system register; an unsafe operation,
/// as it is on hardware.
macro_rules! write_sysreg {
    ($name:literal, $value:expr) => {{
        const REGISTER: $crate::arch::fake::registers::Register =
            $crate::arch::fake::registers::Register::named($name);
        $crate::arch::fake::registers::write(REGISTER, $value)
    }};
}

pub(crate) use {read_sysreg, write_sysreg};

/// Reads a register of the core that executes.
pub fn read(register: Register) -> u64 {
    machine::pause(Pause::Access);
    machine::with(|machine| match register {
        CNTPCT => {
            machine.now += machine::TICKS_PER_LOOK;
            machine.now
        }
        ISR => {
            let pends = machine.signalled(machine.current).is_some() || (machine.withdraws)();
            let error = machine.core().error.is_some_and(|error| error.pends);
            u64::from(error) << 8 | u64::from(pends) << 7
        }
        IAR1 => {
            assert_eq!(machine.core().alias, None, "guest memory is left before anything happens");
            machine.acknowledge().map_or(u64::from(SPECIAL) + 3, u64::from)
        }
        ELRSR => u64::from(machine.read_empty_list_registers()),
        CNTV_CTL => machine.read_timer_control(),
        _ => machine.core().registers[register.0],
    })
}

/// Writes a register of the core that executes.
///
/// # Safety
/// As on hardware; here, none is needed.
pub unsafe fn write(register: Register, value: u64) {
    machine::pause(Pause::Access);
    machine::with(|machine| match register {
        EOIR1 => machine.drop_priority(value as u32),
        DIR => machine.deactivate(value as u32),
        SGI1R => machine.send_sgi(value),
        _ => {
            if [CNTV_CTL, CNTV_CVAL].contains(&register)
                || (ICH_LR0.0..ICH_LR0.0 + 16).contains(&register.0)
            {
                machine.grow_stale();
            }
            let fixed = machine.fixed.iter().filter(|(fixed, _)| *fixed == register);
            let ones = fixed.fold(0, |ones, (_, more)| ones | more);
            machine.core_mut().registers[register.0] = value | ones;
        }
    });
}
