//! The Cassata hypervisor service: SMCCC vendor-specific hypervisor calls.
//!
//! A guest discovers it by [`CALL_UID`]; everything here is optional, and a
//! guest that knows nothing of it misses nothing (docs/src/design/decisions.md, 5).
//! Conduit HVC or SMC. Unknown functions answer [`NOT_SUPPORTED`].
//! Source: Arm DEN0028 (SMCCC 1.2), section 6; Arm DEN0057A for stolen time.

/// Answer to every call that is not known (SMCCC 1.2, section 5.2).
pub const NOT_SUPPORTED: i64 = -1;
/// Answer to a call whose arguments are out of range.
pub const INVALID_PARAMETER: i64 = -3;

/// Vendor-specific hypervisor service: call count, UID and revision.
pub const CALL_UID: u32 = 0x8600_ff01;
/// See [`CALL_UID`]; answers major in W0 and minor in W1.
pub const CALL_REVISION: u32 = 0x8600_ff03;
/// What [`CALL_UID`] answers in W0 to W3: 1e4d7cd2-0f2b-4c53-9a50-736373617461.
pub const UID: [u32; 4] = [0xd27c_4d1e, 0x534c_2b0f, 0x6373_509a, 0x6174_6173];
/// Revision of the service described here: (major, minor).
pub const REVISION: (u32, u32) = (1, 6);

/// Does nothing and answers 0: the cost of a call.
pub const NULL: u32 = 0xc600_0001;
/// X1 = vCPU index within the caller's VM, X2 = index of a 64-bit word in that
/// vCPU's [`crate::status::VcpuStatus`]. Answers the word in X1, 0 in X0; the run
/// time includes the turn that has not ended.
pub const COUNTER: u32 = 0xc600_0002;
/// Answers the report area's guest-physical address in X1 and its size in X2,
/// or [`NOT_SUPPORTED`] when the VM has none.
pub const REPORT_AREA: u32 = 0xc600_0003;

/// Raises a vCPU of the caller's VM to its ceiling, above every vCPU of its pCPU that is not at
/// its own: one of its tasks holds a global resource (`vmpcp_start_gcs`, RTSS 2014, Section
/// III-C). X1 = its index within the VM. Nests, 255 deep at most. Answers 0;
/// [`NOT_SUPPORTED`] if the description gives the vCPU no global critical sections, or the index is
/// none and it gives the caller none; [`INVALID_PARAMETER`] for an index that is none otherwise, and
/// beyond what nests; [`BUSY`] if vCPUs of other pCPUs have raised it too often in this period.
pub const START_GCS: u32 = 0xc600_0010;
/// Ends what one [`START_GCS`] began. X1 as there. Answers 0, [`INVALID_PARAMETER`] if none
/// did, or [`NOT_SUPPORTED`] as there.
pub const FINISH_GCS: u32 = 0xc600_0011;
/// Makes a mutex usable for a task of the calling vCPU. X1 = [`hash`] of the mutex's name, X2 =
/// [`hash`] of the task's. Answers 0 in X0 if no other task uses the mutex yet, else 1; in X1 a
/// handle for the other calls; in X2 the guest-physical address of the byte that says whether the
/// calling vCPU holds the mutex: 0 if not, else the holder's rank (the handle's bits 15:8) and
/// one, with bit 7 set if the holder before died. [`NOT_SUPPORTED`] if the description
/// names no such mutex and task for this vCPU.
pub const MUTEX_OPEN: u32 = 0xc600_0012;
/// Ends the use of a mutex by a task. X1 = handle. Answers 0, or [`INVALID_PARAMETER`] if the task
/// holds it, waits for it, or does not use it. This and the calls below answer [`NOT_SUPPORTED`] if
/// the description gives the calling vCPU no global critical sections.
pub const MUTEX_CLOSE: u32 = 0xc600_0013;
/// Locks a mutex. X1 = handle. Answers [`HELD`] or [`OWNER_DIED`]: the task holds it, and its
/// vCPU is raised as by [`START_GCS`]. Answers [`QUEUED`]: the task has to wait until the
/// byte of [`MUTEX_OPEN`] names it; the interrupt [`crate::platform::ppi::GRANT`] says that it
/// has changed. [`INVALID_PARAMETER`] if the task holds it or waits already.
pub const MUTEX_LOCK: u32 = 0xc600_0014;
/// As [`MUTEX_LOCK`], but answers [`BUSY`] where the task would have to wait.
pub const MUTEX_TRYLOCK: u32 = 0xc600_0015;
/// Gives a mutex back to the first that waits. X1 = handle. Answers 0, or
/// [`INVALID_PARAMETER`] if the task does not hold it.
pub const MUTEX_UNLOCK: u32 = 0xc600_0016;
/// As [`MUTEX_UNLOCK`], but for a task that dies with the mutex while its vCPU goes on: the next one
/// to hold it, in whichever VM, is told as when a vCPU died. Since revision 1.2.
pub const MUTEX_ABANDON: u32 = 0xc600_0017;

/// Asks that the calling vCPU not be preempted by a vCPU that displaces it, until
/// [`PREEMPT_ENABLE`] (delayed preemption; PECCS 2012, section 4.1). Does not nest. Answers 0, or
/// [`NOT_SUPPORTED`] unless the VM's migration policy is `delayed-call`. Since revision 1.3, as are
/// the calls below.
pub const PREEMPT_DISABLE: u32 = 0xc600_0020;
/// Ends what [`PREEMPT_DISABLE`] began; a vCPU that waits for that gets the core at once. Answers as
/// there.
pub const PREEMPT_ENABLE: u32 = 0xc600_0021;
/// Gives the rest of the calling vCPU's turn up: it spins for what another vCPU of its VM has
/// (Friebel's spin-then-yield). Answers 0 at once if no sibling of its priority is ready on its core,
/// else when it runs again; [`NOT_SUPPORTED`] if the description does not say `yield = true`, nor
/// `delayed-page`.
pub const YIELD: u32 = 0xc600_0022;
/// Answers 0 in X0, and in X1 the guest-physical address of the calling vCPU's
/// [`crate::preemption::Line`]; or [`NOT_SUPPORTED`], as [`YIELD`].
pub const PREEMPTION_LINE: u32 = 0xc600_0023;

/// Asks that a vCPU of the caller's VM go to a pCPU (migration on request; PECCS 2012, section 4.2.1).
/// X1 = its index within the VM, X2 = index of the pCPU. It goes when that has been read by the core
/// where it is (one that is off: when it is switched on), and stays there until the next request, or
/// until the VM starts anew. Answers 0;
/// [`ALREADY_THERE`]; [`NOT_ALLOWED`] if the description does not name the pCPU in its `may_run_on`;
/// [`INVALID_PARAMETER`] if there is no such vCPU; [`NOT_SUPPORTED`] unless the VM's migration policy
/// is `on-request`. Since revision 1.4, as is the call below.
pub const MIGRATE: u32 = 0xc600_0024;
/// Asks where a vCPU of the caller's VM is. X1 = its index within the VM. Answers 0 in X0 and in X1
/// the index of the pCPU that has it, or to which it is on its way; errors as [`MIGRATE`]'s.
pub const WHERE: u32 = 0xc600_0025;

/// Marks the calling vCPU as a real-time one, or no longer: it has its `rt_priority` while it is marked
/// (a hint of a guest that a real-time process runs there; vlk, section 4.3). X1 = 1 or 0. Answers 0;
/// [`INVALID_PARAMETER`] for another X1; [`NOT_SUPPORTED`] if the description gives the vCPU no
/// `rt_priority`. Since revision 1.5.
pub const MARK_RT: u32 = 0xc600_0026;

/// Boosts a vCPU of the caller's VM on the calling vCPU's pCPU, because what it is about to run is
/// urgent: it has its higher priority until [`DEBOOST`], or until it has run for as long as its
/// description allows (JISE 2013, section 4). X1 = its index within the VM, or all ones: the calling
/// vCPU. X2 = [`boost::NORMAL`], [`boost::FIFO`] or [`boost::RR`]; X3 = the priority of what it runs,
/// 1 to 99, which the status area shows, or 0 with [`boost::NORMAL`]: that is [`DEBOOST`]. Answers 0;
/// [`BUSY`] if nothing is left of its limit in this period; [`NOT_ALLOWED`] if it is on another pCPU;
/// [`INVALID_PARAMETER`]; [`NOT_SUPPORTED`] if the description gives it no `boost`. Since revision
/// 1.6, as is the call below.
pub const BOOST: u32 = 0xc600_0027;
/// Ends a vCPU's boost. X1 and answers as [`BOOST`]'s.
pub const DEBOOST: u32 = 0xc600_0028;

/// Values of X2 of [`BOOST`], those of Linux's `sched_setscheduler`.
pub mod boost {
    /// Nothing urgent runs.
    pub const NORMAL: u64 = 0;
    /// A process of `SCHED_FIFO`.
    pub const FIFO: u64 = 1;
    /// A process of `SCHED_RR`.
    pub const RR: u64 = 2;
}

/// Answer of [`MIGRATE`]: the vCPU may not run on that pCPU. Answer of [`BOOST`]: it is on another one.
pub const NOT_ALLOWED: i64 = -2;
/// Answer of [`MIGRATE`]: the vCPU is on that pCPU.
pub const ALREADY_THERE: i64 = -4;

/// Answer of [`MUTEX_LOCK`]: the task holds the mutex.
pub const HELD: i64 = 0;
/// Answer of [`MUTEX_LOCK`]: the task waits.
pub const QUEUED: i64 = 1;
/// Answer of [`MUTEX_LOCK`]: the task holds the mutex, and the one before it died with it.
pub const OWNER_DIED: i64 = 2;
/// Answer of [`MUTEX_TRYLOCK`]: another task holds the mutex. Answer of [`START_GCS`]: it was called
/// too often. Answer of [`BOOST`]: nothing is left of its limit.
pub const BUSY: i64 = 3;

/// The FNV-1a hash of a name, by which guests know mutexes and tasks.
#[must_use]
pub const fn hash(name: &[u8]) -> u64 {
    let (mut hash, mut at) = (0xcbf2_9ce4_8422_2325_u64, 0);
    while at < name.len() {
        hash = (hash ^ name[at] as u64).wrapping_mul(0x100_0000_01b3);
        at += 1;
    }
    hash
}

/// Stolen time, DEN0057A: which functions are there.
pub const PV_TIME_FEATURES: u32 = 0xc500_0020;
/// Stolen time, DEN0057A: address of the calling vCPU's structure.
pub const PV_TIME_ST: u32 = 0xc500_0021;

/// PSCI function identifiers (Arm DEN0022D, section 5).
pub mod psci {
    /// What PSCI_VERSION answers: 1.1.
    pub const VERSION_1_1: u32 = 0x0001_0001;
    /// PSCI_VERSION.
    pub const VERSION: u32 = 0x8400_0000;
    /// CPU_SUSPEND, SMC32.
    pub const CPU_SUSPEND_32: u32 = 0x8400_0001;
    /// CPU_SUSPEND, SMC64.
    pub const CPU_SUSPEND_64: u32 = 0xc400_0001;
    /// CPU_OFF.
    pub const CPU_OFF: u32 = 0x8400_0002;
    /// CPU_ON, SMC32.
    pub const CPU_ON_32: u32 = 0x8400_0003;
    /// CPU_ON, SMC64.
    pub const CPU_ON_64: u32 = 0xc400_0003;
    /// AFFINITY_INFO, SMC32.
    pub const AFFINITY_INFO_32: u32 = 0x8400_0004;
    /// AFFINITY_INFO, SMC64.
    pub const AFFINITY_INFO_64: u32 = 0xc400_0004;
    /// MIGRATE_INFO_TYPE.
    pub const MIGRATE_INFO_TYPE: u32 = 0x8400_0006;
    /// SYSTEM_OFF.
    pub const SYSTEM_OFF: u32 = 0x8400_0008;
    /// SYSTEM_RESET.
    pub const SYSTEM_RESET: u32 = 0x8400_0009;
    /// PSCI_FEATURES.
    pub const FEATURES: u32 = 0x8400_000a;

    /// SUCCESS.
    pub const SUCCESS: i64 = 0;
    /// NOT_SUPPORTED.
    pub const NOT_SUPPORTED: i64 = -1;
    /// INVALID_PARAMETERS.
    pub const INVALID_PARAMETERS: i64 = -2;
    /// DENIED.
    pub const DENIED: i64 = -3;
    /// ALREADY_ON.
    pub const ALREADY_ON: i64 = -4;
    /// ON_PENDING.
    pub const ON_PENDING: i64 = -5;
    /// INTERNAL_FAILURE.
    pub const INTERNAL_FAILURE: i64 = -6;
    /// INVALID_ADDRESS.
    pub const INVALID_ADDRESS: i64 = -9;
}

/// SMCCC's own functions (Arm DEN0028, section 7).
pub mod smccc {
    /// SMCCC_VERSION.
    pub const VERSION: u32 = 0x8000_0000;
    /// SMCCC_ARCH_FEATURES.
    pub const ARCH_FEATURES: u32 = 0x8000_0001;
    /// What SMCCC_VERSION answers: 1.1, the lowest with PV discovery.
    pub const VERSION_1_1: u32 = 0x0001_0001;
}
