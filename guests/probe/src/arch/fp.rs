//! Floating-point and SIMD registers. The compiler uses none (soft-float
//! target), so what a test puts there stays until the hypervisor loses it.

use core::arch::asm;

/// V0 to V31, FPCR, FPSR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(16))]
pub struct Registers {
    /// V0 to V31, low half first.
    pub v: [[u64; 2]; 32],
    /// FPCR.
    pub fpcr: u64,
    /// FPSR.
    pub fpsr: u64,
}

/// Rounding mode, flush-to-zero and default NaN of FPCR.
const FPCR_BITS: u64 = 0b1111 << 22;
/// Cumulative exception bits and saturation of FPSR.
const FPSR_BITS: u64 = 1 << 27 | 0b1_1111;

impl Registers {
    /// A pattern that differs in every register and for every `seed`.
    pub fn pattern(seed: u64) -> Self {
        // Weyl sequence: every step differs from every other.
        let word = |n: u64| (seed << 8 | n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self {
            v: core::array::from_fn(|n| [word(2 * n as u64), word(2 * n as u64 + 1)]),
            fpcr: word(64) & FPCR_BITS,
            fpsr: word(65) & FPSR_BITS,
        }
    }

    /// Puts the values into the registers.
    pub fn load(&self) {
        // SAFETY: Reads `self`; nothing else uses the registers.
        unsafe {
            asm!(
                ".arch_extension fp",
                ".arch_extension simd",
                "ldp q0, q1, [{v}, #0]", "ldp q2, q3, [{v}, #32]",
                "ldp q4, q5, [{v}, #64]", "ldp q6, q7, [{v}, #96]",
                "ldp q8, q9, [{v}, #128]", "ldp q10, q11, [{v}, #160]",
                "ldp q12, q13, [{v}, #192]", "ldp q14, q15, [{v}, #224]",
                "ldp q16, q17, [{v}, #256]", "ldp q18, q19, [{v}, #288]",
                "ldp q20, q21, [{v}, #320]", "ldp q22, q23, [{v}, #352]",
                "ldp q24, q25, [{v}, #384]", "ldp q26, q27, [{v}, #416]",
                "ldp q28, q29, [{v}, #448]", "ldp q30, q31, [{v}, #480]",
                "msr fpcr, {fpcr}", "msr fpsr, {fpsr}",
                v = in(reg) &raw const self.v, fpcr = in(reg) self.fpcr, fpsr = in(reg) self.fpsr,
                options(nostack, preserves_flags)
            );
        }
    }

    /// What is in the registers.
    pub fn store() -> Self {
        let mut now = Self { v: [[0; 2]; 32], fpcr: 0, fpsr: 0 };
        // SAFETY: Writes `now.v`, 512 bytes.
        unsafe {
            asm!(
                ".arch_extension fp",
                ".arch_extension simd",
                "stp q0, q1, [{v}, #0]", "stp q2, q3, [{v}, #32]",
                "stp q4, q5, [{v}, #64]", "stp q6, q7, [{v}, #96]",
                "stp q8, q9, [{v}, #128]", "stp q10, q11, [{v}, #160]",
                "stp q12, q13, [{v}, #192]", "stp q14, q15, [{v}, #224]",
                "stp q16, q17, [{v}, #256]", "stp q18, q19, [{v}, #288]",
                "stp q20, q21, [{v}, #320]", "stp q22, q23, [{v}, #352]",
                "stp q24, q25, [{v}, #384]", "stp q26, q27, [{v}, #416]",
                "stp q28, q29, [{v}, #448]", "stp q30, q31, [{v}, #480]",
                "mrs {fpcr}, fpcr", "mrs {fpsr}, fpsr",
                v = in(reg) &raw mut now.v, fpcr = out(reg) now.fpcr, fpsr = out(reg) now.fpsr,
                options(nostack, preserves_flags)
            );
        }
        now
    }

    /// The first register that differs from `other`, by name.
    pub fn difference(&self, other: &Self) -> Option<(&'static str, usize)> {
        if let Some(n) = (0..32).find(|&n| self.v[n] != other.v[n]) {
            return Some(("v", n));
        }
        if self.fpcr != other.fpcr {
            return Some(("FPCR", 0));
        }
        (self.fpsr != other.fpsr).then_some(("FPSR", 0))
    }
}
