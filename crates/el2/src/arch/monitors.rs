//! Performance monitors, of which a guest has one: the cycle counter (DDI 0487, D13).
//!
//! All accesses of guests trap (MDCR_EL2.TPM and TPMCR). The hardware's counter counts at EL1 and EL0,
//! less what the filter of the last vCPU that counted leaves out, and a vCPU's own is what that has gained
//! while the vCPU was loaded: a guest counts neither what EL2 does nor what other guests do, nor what the
//! secure world does. It has no interrupt when it overflows, and programs do not read it by themselves:
//! PMUSERENR_EL0 stays 0.

use super::sysreg::{read_sysreg, write_sysreg};

/// The cycle counter's bit where each counter has one, such as in PMCNTENSET_EL0.
const CYCLES: u64 = 1 << 31;
/// PMCR_EL0: E; C, which is read as zero; DP, no cycles where counting is prohibited, as it is in the
/// secure world; LC, the counter has 64 bits.
const ENABLE: u64 = 1 << 0;
const CLEAR: u64 = 1 << 2;
const NOT_WHERE_PROHIBITED: u64 = 1 << 5;
const LONG: u64 = 1 << 6;
/// PMSELR_EL0.SEL: PMXEVTYPER_EL0 is PMCCFILTR_EL0.
const FILTER_SELECTED: u64 = 31;

/// Where what is kept: PMCR_EL0, PMCNTENSET_EL0, PMINTENSET_EL1, PMOVSSET_EL0, PMSELR_EL0,
/// PMCCFILTR_EL0, PMCCNTR_EL0; PMCEID0_EL0, which does not change.
const CONTROL: usize = 0;
const ENABLED: usize = 1;
const INTERRUPTS: usize = 2;
const OVERFLOWS: usize = 3;
const SELECTED: usize = 4;
const FILTER: usize = 5;
const COUNT: usize = 6;
const EVENTS: usize = 7;

/// What of each of these a guest sets. Of the filter P and U, which leave EL1 and EL0 out.
const SETTABLE: [u64; 8] = [ENABLE, CYCLES, CYCLES, CYCLES, 31, 3 << 30, u64::MAX, 0];

/// How a register of this name accesses what is kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It is what is kept.
    Plain,
    /// It sets bits.
    Set,
    /// It clears bits.
    Clear,
    /// It is what is kept if PMSELR_EL0 says so.
    Selected,
}

/// A register that concerns the cycle counter.
#[derive(Clone, Copy)]
pub struct Monitor {
    at: u8,
    kind: Kind,
    /// The field op1 of its name.
    op1: u8,
}

/// By the fields CRm, from 12 on, and op2 of the name, of which op0 is 3 and CRn 9.
static MONITORS: [[Option<Monitor>; 8]; 3] = {
    const fn one(at: usize, kind: Kind, op1: u8) -> Option<Monitor> {
        Some(Monitor { at: at as u8, kind, op1 })
    }
    let mut all = [[None; 8]; 3];
    all[0][0] = one(CONTROL, Kind::Plain, 3);
    all[0][1] = one(ENABLED, Kind::Set, 3);
    all[0][2] = one(ENABLED, Kind::Clear, 3);
    all[0][3] = one(OVERFLOWS, Kind::Clear, 3);
    all[0][5] = one(SELECTED, Kind::Plain, 3);
    all[0][6] = one(EVENTS, Kind::Plain, 3);
    all[1][0] = one(COUNT, Kind::Plain, 3);
    all[1][1] = one(FILTER, Kind::Selected, 3);
    all[2][1] = one(INTERRUPTS, Kind::Set, 0);
    all[2][2] = one(INTERRUPTS, Kind::Clear, 0);
    all[2][3] = one(OVERFLOWS, Kind::Set, 3);
    all
};

impl Monitor {
    /// Finds it by the fields op1, CRn, CRm and op2 of its name; op0 is 3.
    pub fn named(op1: u64, crn: u64, crm: u64, op2: u64) -> Option<Self> {
        if (op1, crn, crm, op2) == (3, 14, 15, 7) {
            return Some(Self { at: FILTER as u8, kind: Kind::Plain, op1: 3 });
        }
        let row = MONITORS.get(crm.wrapping_sub(12) as usize).filter(|_| crn == 9);
        row?[op2 as usize & 7].filter(|found| u64::from(found.op1) == op1)
    }
}

/// What a vCPU has of them.
#[derive(Clone)]
pub struct Monitors {
    /// The count is up to `begun`.
    kept: [u64; 8],
    /// What the hardware's counter showed when this one began to count; valid while it does.
    begun: u64,
}

impl Monitors {
    /// What a vCPU that starts has. EVENTS: the common event CPU_CYCLES.
    pub const RESET: Self = Self { kept: [0, 0, 0, 0, 0, 0, 0, 1 << 0x11], begun: 0 };

    /// Returns true if it counts while its vCPU is loaded.
    pub fn counts(&self) -> bool {
        self.kept[CONTROL] != 0 && self.kept[ENABLED] != 0
    }

    fn is_selected(&self, kind: Kind) -> bool {
        kind != Kind::Selected || self.kept[SELECTED] == FILTER_SELECTED
    }

    /// Sets a register of the loaded vCPU, if there is a value for it, and returns what it is. On a core
    /// without performance monitors none is set.
    pub fn access(&mut self, register: Monitor, value: Option<u64>) -> u64 {
        if !self.is_selected(register.kind) || !exist() {
            return 0;
        }
        // The count is up to date.
        self.pause();
        let at = usize::from(register.at) & 7;
        if let Some(value) = value {
            let (settable, kept) = (SETTABLE[at], &mut self.kept[at]);
            *kept = match register.kind {
                Kind::Set => *kept | value & settable,
                Kind::Clear => *kept & !value,
                Kind::Plain | Kind::Selected => *kept & !settable | value & settable,
            };
            if at == CONTROL && value & CLEAR != 0 {
                self.kept[COUNT] = 0;
            }
        }
        self.go_on();
        self.kept[at] | if at == CONTROL { LONG } else { 0 }
    }

    /// Begins to count, or goes on: the vCPU is loaded.
    #[inline(never)]
    pub fn go_on(&mut self) {
        if self.counts() {
            // SAFETY: governs what a counter counts.
            unsafe { write_sysreg!("pmccfiltr_el0", self.kept[FILTER]) };
            self.begun = cycles();
        }
    }

    /// Counts no more, as the vCPU leaves the hardware.
    #[inline(never)]
    pub fn pause(&mut self) {
        if self.counts() {
            let gained = cycles().wrapping_sub(self.begun);
            let (count, overflows) = self.kept[COUNT].overflowing_add(gained);
            self.kept[COUNT] = count;
            self.kept[OVERFLOWS] |= u64::from(overflows) << 31;
        }
    }
}

fn cycles() -> u64 {
    read_sysreg!("pmccntr_el0")
}

/// Returns true if this core has them, by ID_AA64DFR0_EL1.PMUVer.
fn exist() -> bool {
    version(read_sysreg!("s3_0_c0_c5_0")) != 0
}

/// Returns what guests see as ID_AA64DFR0_EL1.PMUVer: PMUv3 where the core has that, or a later version.
#[must_use]
pub fn version(id_aa64dfr0: u64) -> u64 {
    const IMPLEMENTATION_DEFINED: u64 = 0xf;
    u64::from(!matches!(id_aa64dfr0 >> 8 & 0xf, 0 | IMPLEMENTATION_DEFINED))
}

/// Has this core's cycle counter count at EL1 and EL0, not at EL2 (PMCCFILTR_EL0.NSH is 0).
pub fn configure() {
    if exist() {
        // SAFETY: these govern counters, and what programs may do with them.
        unsafe {
            write_sysreg!("pmuserenr_el0", 0);
            write_sysreg!("pmintenclr_el1", u64::from(u32::MAX));
            write_sysreg!("pmccfiltr_el0", 0);
            write_sysreg!("pmcntenset_el0", CYCLES);
            write_sysreg!("pmcr_el0", ENABLE | NOT_WHERE_PROHIBITED | LONG);
        }
    }
}
