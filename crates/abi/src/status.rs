//! The status area: what EL2 counts, where the host can see it.
//!
//! Every word is written by one core only (the one that owns the vCPU, or the
//! core itself) and read by anyone at any time; words are read and written
//! whole, but two words need not belong to the same instant. Times are in
//! ticks of the generic counter, [`Status::counter_hz`] a second.

use crate::{MAX_PCPUS, MAX_VCPUS, MAX_VMS};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// First word of a status area that EL2 has initialised.
pub const MAGIC: u64 = u64::from_le_bytes(*b"CASSTAT\x05");

/// Why a vCPU left its guest: index into [`VcpuStatus::exits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Exit {
    /// A physical interrupt.
    Interrupt = 0,
    /// WFI.
    Wait = 1,
    /// HVC or SMC.
    Call = 2,
    /// A trapped system register other than SGI generation.
    SystemRegister = 3,
    /// A write to ICC_SGI1R_EL1 or its siblings.
    Sgi = 4,
    /// An emulated device.
    Mmio = 5,
    /// First use of floating point since the switch.
    Float = 6,
    /// An access to what the guest has not.
    Abort = 7,
    /// An execute fault on its view of memory: kernel code in a view for programs,
    /// or the reverse.
    ViewFault = 8,
}

/// How many [`Exit`] causes there are.
pub const EXIT_CAUSES: usize = 9;
/// Names of the causes, in order, as they appear in results.
pub const EXIT_NAMES: [&str; EXIT_CAUSES] =
    ["interrupt", "wait", "call", "system_register", "sgi", "mmio", "float", "abort", "view_fault"];

/// Where a vCPU stands: [`VcpuStatus::state`].
pub mod vcpu_state {
    /// Not started, or switched off by PSCI.
    pub const OFF: u64 = 0;
    /// On its core now.
    pub const RUNNING: u64 = 1;
    /// Could run, but another vCPU does.
    pub const SUSPENDED: u64 = 2;
    /// Waits for an interrupt.
    pub const SLEEPING: u64 = 3;
}

/// Where a VM stands: [`VmStatus::state`].
pub mod vm_state {
    /// Switched off, or never started.
    pub const OFF: u64 = 0;
    /// Started, and not switched off.
    pub const RUNNING: u64 = 1;
    /// The memory is being filled.
    pub const LOADING: u64 = 2;
    /// Stopped because it could not go on; the hypervisor's console says why.
    pub const FAILED: u64 = 3;
}

/// The whole area.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Debug)]
#[repr(C)]
pub struct Status {
    /// [`MAGIC`], written last.
    pub magic: u64,
    /// Frequency of the counter all times are in.
    pub counter_hz: u64,
    /// Counter when the first core entered EL2: shares and servers' periods count from here.
    pub boot: u64,
    /// Cases of what cannot happen that cores have met: bugs of EL2.
    pub bugs: u64,
    /// pCPUs that others have found to take no interrupt for too long, a bit each.
    pub hung: u64,
    /// Counter when the latest of them last took one.
    pub hung_since: u64,
    /// For each VM, the number of the migration policy that it has now.
    pub policies: [u8; MAX_VMS],
    /// Where the SMMU notes DMA that it refuses ([`crate::dma::Faults`]), a physical address; 0: there is none.
    pub dma_faults_pa: u64,
    /// For each pCPU.
    pub pcpus: [PcpuStatus; MAX_PCPUS],
    /// For each VM.
    pub vms: [VmStatus; MAX_VMS],
    /// For each vCPU, in the order of [`crate::system::System::vcpus`].
    pub vcpus: [VcpuStatus; MAX_VCPUS],
}

// The host, and guests that ask for a word by its number, read it so.
const _: () = {
    use core::mem::offset_of;
    assert!(size_of::<Status>() == 15_936);
    assert!(offset_of!(Status, bugs) == 24 && offset_of!(Status, hung) == 32);
    assert!(offset_of!(Status, pcpus) == 64 && size_of::<PcpuStatus>() == 64);
    assert!(offset_of!(Status, vms) == 576 && size_of::<VmStatus>() == 64);
    assert!(offset_of!(Status, vcpus) == 1088 && VcpuStatus::WORDS == 29);
    assert!(offset_of!(VcpuStatus, exits) == 48 && offset_of!(VcpuStatus, pcpu) == 120);
};

/// What one pCPU did.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, Debug)]
#[repr(C)]
pub struct PcpuStatus {
    /// 1 once the core has started, unless it is powered down.
    pub online: u64,
    /// Ticks spent with nothing to run.
    pub idle: u64,
    /// Index of the vCPU that runs, or `u64::MAX`.
    pub current: u64,
    /// Counter when `current` began to run (or to idle).
    pub since: u64,
    /// Doorbells received from other cores.
    pub doorbells: u64,
    /// Interrupts and system errors that no VM has caused.
    pub spurious: u64,
    /// Times it was powered down.
    pub power_downs: u64,
    /// Ticks it was powered down, finished times only (add `now - since` if it
    /// is): part of `idle`.
    pub powered_down: u64,
}

/// What one VM did.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, Debug)]
#[repr(C)]
pub struct VmStatus {
    /// See [`vm_state`].
    pub state: u64,
    /// Times it started, the first included.
    pub starts: u64,
    /// 0.
    pub reserved: [u64; 6],
}

/// What one vCPU did.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, Debug)]
#[repr(C)]
pub struct VcpuStatus {
    /// See [`vcpu_state`].
    pub state: u64,
    /// Ticks on its core, finished turns only (add `now - since` of its pCPU
    /// while it runs).
    pub run: u64,
    /// Ticks it could have run while another vCPU did (Arm DEN0057A).
    pub stolen: u64,
    /// Times it was switched to.
    pub switches: u64,
    /// Virtual interrupts placed in list registers.
    pub injected: u64,
    /// Longest single stay at EL2 on behalf of this vCPU, ticks.
    pub longest_el2: u64,
    /// Exits by cause, see [`Exit`].
    pub exits: [u64; EXIT_CAUSES],
    /// Index of the pCPU that owns it.
    pub pcpu: u64,
    /// Times it arrived on another pCPU.
    pub migrations: u64,
    /// Times it was taken off its core while its guest was at EL1 and did not
    /// sleep: siblings that wait for a lock of its kernel have to wait on.
    pub kernel_preemptions: u64,
    /// Ticks from those times to when it ran again.
    pub kernel_preempted: u64,
    /// Times it used its budget up while it had work.
    pub throttled: u64,
    /// Periods of its server that have begun, as of its latest charge.
    pub replenished: u64,
    /// Periods in which it overran its budget, in a global critical section.
    pub overruns: u64,
    /// Times it was stopped in a global critical section, without budget or overrun.
    pub overrun_stops: u64,
    /// Global critical sections that raised it.
    pub raised: u64,
    /// Times it was lowered in a global critical section that raised it for too long.
    pub lowered: u64,
    /// Calls of sections and mutexes that it made and that made no sense, or came too often.
    pub misuses: u64,
    /// What its guest has said last of what it runs: the policy, and from bit 8 on the priority
    /// ([`crate::service::BOOST`]); 0: nothing urgent.
    pub report: u64,
    /// Times its guest has said that it boosts it.
    pub boosts: u64,
    /// Boosts that were refused, as nothing was left of its limit.
    pub boosts_refused: u64,
}

impl VcpuStatus {
    /// How many 64-bit words there are, for [`crate::service::COUNTER`].
    pub const WORDS: usize = size_of::<Self>() / size_of::<u64>();
}
