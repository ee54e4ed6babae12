//! Words that cross a boundary.
//!
//! Whatever two sides must agree on to the byte stands here and nowhere else:
//!
//! | module | from | to |
//! | --- | --- | --- |
//! | [`system`] | the host's packer | EL2, which uses the tables in place |
//! | [`platform`] | the host's device trees | guests, and the emulation at EL2 |
//! | [`service`] | guests | EL2 (SMCCC calls) |
//! | [`status`] | EL2 | the host, and guests that ask |
//! | [`trace`] | EL2 | the host |
//! | [`dma`] | an SMMU | the host |
//! | [`report`] | a guest | the host |
//! | [`link`] | a guest | EL2, by registers that trap |
//! | [`virtio`] | a guest and the VM that gives it devices | EL2, by registers that trap |
//! | [`preemption`] | a guest | EL2, and back, in a line of memory for each vCPU |
//! | [`digest`] | the host, by the crate `sha2` | EL2, which computes the same from what was loaded |
//! | [`console`] | EL2 | the host, over one UART |
//!
//! All integers are little-endian, as AArch64 and every supported host are.

#![no_std]
#![forbid(unsafe_code)]

pub mod console;
pub mod digest;
pub mod dma;
pub mod link;
pub mod platform;
pub mod preemption;
pub mod report;
pub mod service;
pub mod status;
pub mod system;
pub mod trace;
pub mod virtio;

/// Most physical cores one system can have.
pub const MAX_PCPUS: usize = 8;
/// Most virtual machines one system can have.
pub const MAX_VMS: usize = 8;
/// Most vCPUs one virtual machine can have.
pub const MAX_VCPUS_PER_VM: usize = 8;
/// Most vCPUs in a whole system.
pub const MAX_VCPUS: usize = MAX_VMS * MAX_VCPUS_PER_VM;

// Sets of them are words with a bit for each: of all vCPUs 64 bits, of the vCPUs of a VM
// 8, of cores in the tables 16.
const _: () = assert!(MAX_VCPUS <= 64 && MAX_VCPUS_PER_VM <= 8 && MAX_PCPUS <= 16);

#[cfg(target_endian = "big")]
compile_error!("the packed tables are little-endian and used in place");
