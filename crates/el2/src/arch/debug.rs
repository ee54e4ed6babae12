//! Breakpoints and watchpoints, which a guest sets for itself.
//!
//! All accesses of guests trap (MDCR_EL2.TDA), so what a guest has set is in memory already when its
//! vCPU leaves the hardware, and the hardware needs it only while MDSCR_EL1.MDE, which is switched
//! with each vCPU, lets it act. At EL2 none acts whatever its fields say, as debug exceptions are
//! EL1's (MDCR_EL2.TDE and HCR_EL2.TGE are 0; DDI 0487, D2.2 and D2.3.1).

use super::sysreg::{read_sysreg, write_sysreg};

const BREAKPOINTS: u64 = 6;
const WATCHPOINTS: u64 = 4;

/// MDSCR_EL1.MDE: breakpoints and watchpoints act.
const MDE: u64 = 1 << 15;

/// What a guest may set in DBGBVR, DBGBCR, DBGWVR and DBGWCR. Not in the second and the last: the
/// fields for other exception levels and security states (HMC, SSC, SSCE), types of context that name
/// a VMID or EL2 (BT from 0b1000 on), and what came with later features.
const ALLOWED: [u64; 4] = [u64::MAX, 0x007f_01e7, !3, 0x1f1f_1fff];

/// A vCPU's breakpoints and watchpoints: by number, and by kind of register as in [`ALLOWED`].
#[derive(Clone, Default)]
pub struct Debug([[u64; 4]; BREAKPOINTS as usize]);

impl Debug {
    /// Returns a register's value, by the fields CRm and op2 of its name; those beyond the last
    /// read as zero.
    pub fn get(&self, number: u64, kind: u64) -> u64 {
        self.0.get(number as usize).map_or(0, |registers| registers[kind as usize & 3])
    }

    /// Sets a register, if it is not beyond the last.
    pub fn set(&mut self, number: u64, kind: u64, value: u64) {
        let kind = kind as usize & 3;
        let count = if kind < 2 { BREAKPOINTS } else { WATCHPOINTS };
        if number < count
            && let Some(registers) = self.0.get_mut(number as usize)
        {
            registers[kind] = value & ALLOWED[kind];
        }
    }
}

macro_rules! loads {
    ($($number:literal $kind:literal $value:literal $control:literal;)*) => {
        impl Debug {
            /// Puts them on the hardware.
            pub fn load(&self) {
                $(
                    // By twos, as memory is read by twos.
                    let [value, control] = [self.0[$number][$kind], self.0[$number][$kind + 1]];
                    // SAFETY: they act at EL1 and EL0 only.
                    unsafe {
                        write_sysreg!($value, value);
                        write_sysreg!($control, control);
                    }
                )*
            }
        }
    };
}

loads! {
    0 0 "dbgbvr0_el1" "dbgbcr0_el1";
    1 0 "dbgbvr1_el1" "dbgbcr1_el1";
    2 0 "dbgbvr2_el1" "dbgbcr2_el1";
    3 0 "dbgbvr3_el1" "dbgbcr3_el1";
    4 0 "dbgbvr4_el1" "dbgbcr4_el1";
    5 0 "dbgbvr5_el1" "dbgbcr5_el1";
    0 2 "dbgwvr0_el1" "dbgwcr0_el1";
    1 2 "dbgwvr1_el1" "dbgwcr1_el1";
    2 2 "dbgwvr2_el1" "dbgwcr2_el1";
    3 2 "dbgwvr3_el1" "dbgwcr3_el1";
}

/// Returns true on a Cortex-A76 before r4p0, whose erratum 1463225 lets a guest that debugs its own
/// kernel keep the core from recognizing interrupts.
fn may_lose_interrupts() -> bool {
    /// Implementer and part number of MIDR_EL1, and below them the variant.
    const CORTEX_A76: u64 = 0x41 << 24 | 0xf << 16 | 0xd0b << 4;
    const VARIANT: u64 = 0xf << 20;
    let midr = read_sysreg!("midr_el1");
    midr & !(VARIANT | 0xf) == CORTEX_A76 && midr & VARIANT < 4 << 20
}

/// Returns MDSCR_EL1.
pub fn control() -> u64 {
    read_sysreg!("mdscr_el1")
}

/// Sets MDSCR_EL1 as far as a guest may. Returns true if breakpoints and watchpoints act then, which
/// they do on cores that have as many of them as a [`struct@Debug`].
#[must_use]
pub fn set_control(value: u64) -> bool {
    /// Debugging of the guest's kernel.
    const KDE: u64 = 1 << 13;
    /// SS, the comms channel trap TDCC, KDE.
    const ALWAYS: u64 = 1 << 0 | 1 << 12 | KDE;
    /// ID_AA64DFR0_EL1.BRPs and WRPs: numbers less one.
    const COUNTS: u64 = 0xf << 12 | 0xf << 20;
    const OURS: u64 = (BREAKPOINTS - 1) << 12 | (WATCHPOINTS - 1) << 20;
    let fits = read_sysreg!("s3_0_c0_c5_0") & COUNTS == OURS;
    let mut allowed = if fits { ALWAYS | MDE } else { ALWAYS };
    if may_lose_interrupts() {
        allowed &= !KDE;
    }
    let value = value & allowed;
    // SAFETY: governs the guest's own debugging.
    unsafe { write_sysreg!("mdscr_el1", value) };
    value & MDE != 0
}
