//! System registers, by name and as raw values.
//!
//! A typed register crate would hide what a test wants to see: every bit, and
//! exactly one access where one is written. Each write is followed by an ISB.

macro_rules! registers {
    (read { $($(#[$of:meta])* $read:ident)* } write { $($(#[$to:meta])* $write:ident)* }) => {
        /// `MRS` by register name.
        pub mod read {
            #[cfg(feature = "gic-v2")]
            pub use crate::gic::v2::read::*;
            $(
            $(#[$of])*
            #[doc = concat!("Reads ", stringify!($read), ".")]
            #[inline(always)]
            pub fn $read() -> u64 {
                let value: u64;
                // SAFETY: Reading this register changes no state that Rust
                // relies on; the asm is a compiler barrier besides.
                unsafe {
                    core::arch::asm!(
                        concat!("mrs {0}, ", stringify!($read)),
                        out(reg) value,
                        options(nostack, preserves_flags)
                    );
                }
                value
            }
        )*}
        /// `MSR` by register name.
        pub mod write {
            #[cfg(feature = "gic-v2")]
            pub use crate::gic::v2::write::*;
            $(
            $(#[$to])*
            #[doc = concat!("Writes ", stringify!($write), ".")]
            #[inline(always)]
            pub fn $write(value: u64) {
                // SAFETY: No value of this register changes how this program
                // sees its memory or runs its code.
                unsafe {
                    core::arch::asm!(
                        concat!("msr ", stringify!($write), ", {0}"),
                        "isb",
                        in(reg) value,
                        options(nostack, preserves_flags)
                    );
                }
            }
        )*}
    };
}

registers! {
    read {
        cntfrq_el0 cntkctl_el1 cntp_ctl_el0 cntp_cval_el0 cntp_tval_el0 cntpct_el0 cntv_ctl_el0
        cntv_cval_el0 cntv_tval_el0 cntvct_el0 contextidr_el1 cpacr_el1 csselr_el1 currentel daif
        esr_el1 far_el1 #[cfg(not(feature = "gic-v2"))] icc_ap1r0_el1 #[cfg(not(feature = "gic-v2"))] icc_bpr1_el1 #[cfg(not(feature = "gic-v2"))] icc_ctlr_el1 #[cfg(not(feature = "gic-v2"))] icc_hppir1_el1 #[cfg(not(feature = "gic-v2"))] icc_iar1_el1
        #[cfg(not(feature = "gic-v2"))] icc_igrpen1_el1 #[cfg(not(feature = "gic-v2"))] icc_pmr_el1 #[cfg(not(feature = "gic-v2"))] icc_rpr_el1 #[cfg(not(feature = "gic-v2"))] icc_sre_el1 id_aa64dfr0_el1 id_aa64pfr0_el1 isr_el1 mdscr_el1
        midr_el1 mpidr_el1 par_el1 sp_el0 tpidr_el0 tpidr_el1 tpidrro_el0 ttbr1_el1
    }
    write {
        cntkctl_el1 cntp_ctl_el0 cntp_cval_el0 cntp_tval_el0 cntv_ctl_el0 cntv_cval_el0
        cntv_tval_el0 contextidr_el1 cpacr_el1 csselr_el1 esr_el1 far_el1 #[cfg(not(feature = "gic-v2"))] icc_ap1r0_el1
        #[cfg(not(feature = "gic-v2"))] icc_asgi1r_el1 #[cfg(not(feature = "gic-v2"))] icc_bpr1_el1 #[cfg(not(feature = "gic-v2"))] icc_ctlr_el1 #[cfg(not(feature = "gic-v2"))] icc_dir_el1 #[cfg(not(feature = "gic-v2"))] icc_eoir1_el1 #[cfg(not(feature = "gic-v2"))] icc_igrpen1_el1
        #[cfg(not(feature = "gic-v2"))] icc_pmr_el1 #[cfg(not(feature = "gic-v2"))] icc_sgi0r_el1 #[cfg(not(feature = "gic-v2"))] icc_sgi1r_el1 #[cfg(not(feature = "gic-v2"))] icc_sre_el1 par_el1 sp_el0 tpidr_el0 tpidr_el1
        tpidrro_el0 ttbr1_el1
    }
}
