//! Floating-point registers. The compiler uses none of them at EL2.

/// Floating-point and SIMD registers.
#[derive(Clone)]
#[repr(C, align(16))]
pub struct Float {
    v: [u128; 32],
    fpcr: u64,
    fpsr: u64,
}

impl Float {
    /// All zero.
    pub const fn new() -> Self {
        Self { v: [0; 32], fpcr: 0, fpsr: 0 }
    }

    /// Takes them off the hardware; the trap must be open.
    pub fn save(&mut self) {
        // SAFETY: writes 512 bytes to `v`; the compiler uses no such register.
        unsafe {
            core::arch::asm!(
                ".arch_extension fp", ".arch_extension simd",
                "stp q0, q1, [{0}, #0]", "stp q2, q3, [{0}, #32]",
                "stp q4, q5, [{0}, #64]", "stp q6, q7, [{0}, #96]",
                "stp q8, q9, [{0}, #128]", "stp q10, q11, [{0}, #160]",
                "stp q12, q13, [{0}, #192]", "stp q14, q15, [{0}, #224]",
                "stp q16, q17, [{0}, #256]", "stp q18, q19, [{0}, #288]",
                "stp q20, q21, [{0}, #320]", "stp q22, q23, [{0}, #352]",
                "stp q24, q25, [{0}, #384]", "stp q26, q27, [{0}, #416]",
                "stp q28, q29, [{0}, #448]", "stp q30, q31, [{0}, #480]",
                "mrs {1}, fpcr", "mrs {2}, fpsr",
                in(reg) self.v.as_mut_ptr(), out(reg) self.fpcr, out(reg) self.fpsr,
                options(nostack)
            );
        }
    }

    /// Puts them back; the trap must be open.
    pub fn load(&self) {
        // SAFETY: reads 512 bytes from `v`; the compiler uses no such register.
        unsafe {
            core::arch::asm!(
                ".arch_extension fp", ".arch_extension simd",
                "ldp q0, q1, [{0}, #0]", "ldp q2, q3, [{0}, #32]",
                "ldp q4, q5, [{0}, #64]", "ldp q6, q7, [{0}, #96]",
                "ldp q8, q9, [{0}, #128]", "ldp q10, q11, [{0}, #160]",
                "ldp q12, q13, [{0}, #192]", "ldp q14, q15, [{0}, #224]",
                "ldp q16, q17, [{0}, #256]", "ldp q18, q19, [{0}, #288]",
                "ldp q20, q21, [{0}, #320]", "ldp q22, q23, [{0}, #352]",
                "ldp q24, q25, [{0}, #384]", "ldp q26, q27, [{0}, #416]",
                "ldp q28, q29, [{0}, #448]", "ldp q30, q31, [{0}, #480]",
                "msr fpcr, {1}", "msr fpsr, {2}",
                in(reg) self.v.as_ptr(), in(reg) self.fpcr, in(reg) self.fpsr,
                options(nostack, readonly)
            );
        }
    }
}
