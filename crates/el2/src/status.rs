//! The status area: handed out word by word to the cores that write it.

pub mod trace;

use crate::arch::memory;
use abi::platform::{HOLDS_OFFSET, LINE_STRIDE, STOLEN_STRIDE};
use abi::preemption::Line;
use abi::status::{MAGIC, PcpuStatus, Status, VcpuStatus, VmStatus};
use abi::system::{MAX_MUTEXES, System};
use abi::{MAX_PCPUS, MAX_VMS};
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};

fn area(system: &System) -> *mut Status {
    memory::at(system.board.status_pa)
}

/// Clears the area. Boot core only, before the others run.
pub fn prepare(system: &System, counter_hz: u64, boot: u64) {
    let area = area(system);
    // SAFETY: `System::validate` has shown that the area lies in RAM that is
    // EL2's alone; it is mapped, and no other core runs yet.
    unsafe {
        area.write_bytes(0, 1);
        (*area).counter_hz = counter_hz;
        (*area).boot = boot;
        (&raw mut (*area).magic).write_volatile(MAGIC);
    }
}

/// Counts a case of what cannot happen, on any core.
pub fn count_bug(system: &System) {
    // SAFETY: in bounds of a mapped area, naturally aligned; every core accesses
    // the word by atomic operations only.
    let bugs = unsafe { AtomicU64::from_ptr(&raw mut (*area(system)).bugs) };
    bugs.fetch_add(1, Ordering::Relaxed);
}

/// Records that a core takes no interrupts since an instant, on any core.
pub fn note_hang(system: &System, core: usize, since: u64) {
    let area = area(system);
    // SAFETY: in bounds of a mapped area, naturally aligned; every core accesses
    // these words by atomic operations only.
    let (hung, hung_since) = unsafe {
        (
            AtomicU64::from_ptr(&raw mut (*area).hung),
            AtomicU64::from_ptr(&raw mut (*area).hung_since),
        )
    };
    hung_since.store(since, Ordering::Relaxed);
    hung.fetch_or(1 << core, Ordering::Release);
}

/// Records where refused DMA is noted. Boot core only, before the others run.
#[cfg(any(test, feature = "smmu"))]
pub fn note_dma_faults(system: &System, pa: u64) {
    // SAFETY: in bounds of a mapped area, and no other core runs yet.
    unsafe { (&raw mut (*area(system)).dma_faults_pa).write_volatile(pa) };
}

/// Records which migration policy a VM has, on any core.
pub fn note_policy(system: &System, vm: usize, number: u8) {
    // SAFETY: in bounds of a mapped area; every core accesses these bytes by atomic operations only.
    let policy = unsafe { AtomicU8::from_ptr(&raw mut (*area(system)).policies[vm % MAX_VMS]) };
    policy.store(number, Ordering::Relaxed);
}

/// Returns the vCPU that has any core, as the core's part has it.
pub fn current(system: &System, core: usize) -> u64 {
    // SAFETY: in bounds of a mapped area, whatever core writes it: a naturally
    // aligned 64-bit word is read whole.
    unsafe { (&raw const (*area(system)).pcpus[core % MAX_PCPUS].current).read_volatile() }
}

/// Hands out the part of one pCPU.
///
/// # Safety
/// Each part must be asked for once, by the core that writes it.
pub unsafe fn pcpu(system: &System, index: usize) -> &'static mut PcpuStatus {
    // SAFETY: in bounds of a mapped area; exclusive by contract.
    unsafe { &mut (*area(system)).pcpus[index] }
}

/// Hands out the part of one VM.
///
/// # Safety
/// As [`pcpu`]; the VM's coordinator asks.
pub unsafe fn vm(system: &System, index: usize) -> &'static mut VmStatus {
    // SAFETY: as above.
    unsafe { &mut (*area(system)).vms[index] }
}

/// Hands out the part of one vCPU.
///
/// # Safety
/// As [`pcpu`]; the vCPU's owner asks.
pub unsafe fn vcpu(system: &System, id: usize) -> &'static mut VcpuStatus {
    // SAFETY: as above.
    unsafe { &mut (*area(system)).vcpus[id] }
}

/// Reads a word of any vCPU's part, as it happens to be; its owner may be writing it.
pub fn word(system: &System, id: usize, word: usize) -> u64 {
    debug_assert!(word < VcpuStatus::WORDS);
    // SAFETY: in bounds of a mapped area, whatever core writes it: a naturally
    // aligned 64-bit word is read whole.
    unsafe { (&raw const (*area(system)).vcpus[id]).cast::<u64>().add(word).read_volatile() }
}

/// Reads a word as [`word`] does, but for the run time: that includes the turn that
/// has not ended.
pub fn current_word(system: &System, id: usize, word: usize, now: u64) -> u64 {
    const RUN: usize = core::mem::offset_of!(VcpuStatus, run) / size_of::<u64>();
    let value = self::word(system, id, word);
    if word != RUN {
        return value;
    }
    const PCPU: usize = core::mem::offset_of!(VcpuStatus, pcpu) / size_of::<u64>();
    // Where it was a moment ago: a turn that ends just now may be missed.
    let pcpu = self::word(system, id, PCPU) as usize % MAX_PCPUS;
    // SAFETY: in bounds of a mapped area, whatever core writes it: naturally
    // aligned 64-bit words are read whole.
    let (current, since) = unsafe {
        let pcpu = &raw const (*area(system)).pcpus[pcpu];
        ((&raw const (*pcpu).current).read_volatile(), (&raw const (*pcpu).since).read_volatile())
    };
    if current == id as u64 { value + now.saturating_sub(since) } else { value }
}

/// Hands out the bytes in which a vCPU's guest reads which mutexes it holds.
///
/// # Safety
/// It must be asked for once, by the vCPU's owner.
pub unsafe fn holds(system: &System, vm: usize, index: usize) -> &'static mut [u8; MAX_MUTEXES] {
    const { assert!(HOLDS_OFFSET as usize + MAX_MUTEXES <= STOLEN_STRIDE as usize) };
    let structure = system.vm(vm).stolen_pa + index as u64 * STOLEN_STRIDE;
    // SAFETY: as for `stolen_ns`; the bytes are behind those.
    unsafe {
        let bytes = memory::at::<[u8; MAX_MUTEXES]>(structure + HOLDS_OFFSET);
        bytes.write([0; MAX_MUTEXES]);
        &mut *bytes
    }
}

/// Hands out a vCPU's stolen time, in nanoseconds, as its guest reads it
/// (Arm DEN0057A, section 3.2.2: revision, attributes, then the time).
///
/// # Safety
/// It must be asked for once, by the vCPU's owner.
pub unsafe fn stolen_ns(system: &System, vm: usize, index: usize) -> &'static mut u64 {
    const TIME: u64 = 8;
    let structure = system.vm(vm).stolen_pa + index as u64 * STOLEN_STRIDE;
    // SAFETY: `System::validate` has shown that the VM's page lies in RAM that
    // is EL2's to write alone; it is mapped. Exclusive by contract.
    unsafe {
        memory::at::<[u64; 2]>(structure).write([0; 2]);
        &mut *memory::at::<u64>(structure + TIME)
    }
}

/// Returns a vCPU's line of preemption, which its guest writes too; none if its VM has none.
pub fn line(system: &System, vm: usize, index: usize) -> Option<&'static Line> {
    let lines = system.vm(vm).lines();
    if lines.size == 0 {
        return None;
    }
    // SAFETY: `System::validate` has shown that the page lies in RAM that is nothing else's; it is
    // mapped. What others write meanwhile is atomic on both sides: all words of a line are.
    Some(unsafe { &*memory::at::<Line>(lines.start + index as u64 * LINE_STRIDE) })
}
