//! Which A64 instructions can see or set time.
//!
//! An emulated block of instructions is counted as a whole when it starts.
//! That would make the counter jump ahead inside a block, so an instruction
//! that reads or writes a clock splits its block's count. The encodings are
//! those of the Arm Architecture Reference Manual (DDI 0487), C6.2 "MRS" and
//! "MSR (register)".

/// `MRS`/`MSR (register)` with op0 = 3; L (bit 21) is left open.
const SYSTEM_REGISTER_MASK: u32 = 0xffd8_0000;
const SYSTEM_REGISTER: u32 = 0xd518_0000;
/// Set in `MRS`, clear in `MSR`.
const READ: u32 = 1 << 21;

/// What an instruction does to a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeAccess {
    /// It reads a counter, a timer, or the cycle counter.
    Read,
    /// It writes one, and may arm a timer.
    Write,
}

/// Returns true if `word` is an A64 access to a timer register (CRn = 14) or to the
/// performance monitors (CRn = 9), whose cycle counter follows the same clock.
#[must_use]
pub fn time_access(word: u32) -> Option<TimeAccess> {
    let crn = (word >> 12) & 0xf;
    if word & SYSTEM_REGISTER_MASK != SYSTEM_REGISTER || !matches!(crn, 9 | 14) {
        return None;
    }
    Some(if word & READ != 0 { TimeAccess::Read } else { TimeAccess::Write })
}

/// Returns true if `word` reads ISR_EL1 (DDI 0487, D19.2.74), which shows whether an interrupt is
/// pending.
#[must_use]
pub fn is_look(word: u32) -> bool {
    const MRS_ISR_EL1: u32 = 0xd538_c100;
    word & !0x1f == MRS_ISR_EL1
}

/// Returns true if `word` returns from an exception: ERET, ERETAA or ERETAB (DDI 0487, C6.2.119).
#[must_use]
pub fn is_exception_return(word: u32) -> bool {
    matches!(word, 0xd69f_03e0 | 0xd69f_0bff | 0xd69f_0fff)
}

/// WFE and SEVL (DDI 0487, C6.2).
const WFE: u32 = 0xd503_205f;
const SEVL: u32 = 0xd503_20bf;

/// Returns true if `word` is a WFE that finds no event: `before`, the instruction before, is none that
/// registers one.
#[must_use]
pub fn waits_for_event(before: Option<u32>, word: u32) -> bool {
    word == WFE && before != Some(SEVL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_every_way_to_see_time() {
        // Assembled with aarch64-linux-gnu-as.
        for (word, expected) in [
            (0xd53b_e040, Some(TimeAccess::Read)),  // mrs x0, cntvct_el0
            (0xd53b_e020, Some(TimeAccess::Read)),  // mrs x0, cntpct_el0
            (0xd53b_9d00, Some(TimeAccess::Read)),  // mrs x0, pmccntr_el0
            (0xd51b_e340, Some(TimeAccess::Write)), // msr cntv_cval_el0, x0
            (0xd51b_e300, Some(TimeAccess::Write)), // msr cntv_tval_el0, x0
            (0xd51c_e220, Some(TimeAccess::Write)), // msr cnthp_ctl_el2, x0
            (0xd53b_4200, None),                    // mrs x0, nzcv
            (0xd518_1000, None),                    // msr sctlr_el1, x0
            (0xd503_201f, None),                    // nop
            (0xd503_207f, None),                    // wfi
        ] {
            assert_eq!(time_access(word), expected, "{word:#010x}");
        }
    }

    #[test]
    fn finds_looks_into_any_register() {
        assert!(is_look(0xd538_c100) && is_look(0xd538_c113)); // mrs x0 and x19, isr_el1
        assert!(!is_look(0xd538_c000)); // mrs x0, vbar_el1
    }

    #[test]
    fn finds_waits_for_events_but_those_that_end_at_once() {
        assert!(
            waits_for_event(None, 0xd503_205f) && waits_for_event(Some(0xd503_205f), 0xd503_205f)
        );
        assert!(!waits_for_event(Some(0xd503_20bf), 0xd503_205f)); // sevl; wfe
        assert!(!waits_for_event(None, 0xd503_207f)); // wfi
    }

    #[test]
    fn finds_returns_from_exceptions_only() {
        assert!(is_exception_return(0xd69f_03e0)); // eret
        assert!(!is_exception_return(0xd65f_03c0)); // ret
        assert!(!is_exception_return(0xd6bf_03e0)); // drps
    }
}
