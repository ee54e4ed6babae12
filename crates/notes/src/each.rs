//! What loops go round for. There may be so many of each as the constants of `abi` and `vgic` say; a
//! system has fewer, and then its loops are shorter.

/// Something of which every system has as much.
pub const ANYTHING: u32 = 0;
/// The vCPUs of a system.
pub const VCPU: u32 = 1;
/// The cores of a machine that a system uses.
pub const CORE: u32 = 2;
/// The VMs of a system.
pub const VM: u32 = 3;
/// The vCPUs of a VM.
pub const SIBLING: u32 = 4;
/// The list registers of a core.
pub const LIST_REGISTER: u32 = 5;
/// The mutexes of a system.
pub const MUTEX: u32 = 6;
/// The tasks that may lock a mutex.
pub const CLAIMANT: u32 = 7;
/// The interrupts of devices that are passed through to VMs.
pub const DEVICE_INTERRUPT: u32 = 8;
/// The vCPUs that may be handed over to another core: their policy moves them, or has views, or
/// their base may be powered down.
pub const MIGRANT: u32 = 9;
/// Those, and the vCPUs whose policy decides something when they are displaced.
pub const CANDIDATE: u32 = 10;
/// The vCPUs that may have an extra, as the scheduler calls it: a server, or a policy by which
/// siblings are held back.
pub const EXTRA: u32 = 11;
/// The vCPUs that may have global critical sections.
pub const SECTION: u32 = 12;
/// The vCPUs that get their core before their timers fire.
pub const ADVANCE: u32 = 13;
/// The cores that may be powered down.
pub const LEAVER: u32 = 14;
/// The cores that a watchdog watches.
pub const WATCHED: u32 = 15;
/// The vCPUs that have a line of preemption.
pub const LINE: u32 = 16;
/// The VMs whose preemption count is read.
pub const PEEK: u32 = 17;
/// The vCPUs whose guest may mark them as real-time.
pub const MARK: u32 = 18;
/// The vCPUs that may be boosted.
pub const BOOST: u32 = 19;
/// How many constants there are.
pub const COUNT: usize = 20;

/// Returns what says that a loop goes round so many times more often than once for each of `of`.
#[must_use]
pub const fn and(of: u32, more: u32) -> u32 {
    of | more << 8
}
