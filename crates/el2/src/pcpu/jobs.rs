//! Jobs of a VM's start and end: filling its memory, reporting why it cannot go on.
//!
//! They take long, so they are done in small pieces in the time of one of the VM's own
//! vCPUs, with a look at the interrupts after each.

use super::Pcpu;
use super::console::{Piece, log};
#[cfg(any(test, feature = "smmu"))]
use crate::arch::smmu;
use crate::arch::{cpu, digest, memory};
use crate::bug::bug;
use crate::parts::{Cause, Job};
use crate::shared::power::Entry;
use crate::shared::{POWER, VMS};
use abi::digest::{BLOCK, Hasher};
use abi::status::vcpu_state;
use abi::system::{Load, MAX_PARTS, Part, stage1};
use core::sync::atomic::Ordering;
use notes::Bounded;
use sched::{Member, Message, VcpuId};

/// Bytes filled between two looks at the interrupts: some thousand instructions, which a vCPU may
/// have beyond its budget.
const CHUNK: u64 = 1024;
/// Such pieces in a turn, if no interrupt comes.
const CHUNKS: usize = 4;
/// Functions of a device that are silenced in a turn, if no interrupt comes.
#[cfg(any(test, feature = "smmu"))]
const FUNCTIONS: usize = 16;
/// Steps of a digest in a turn, if no interrupt comes. A block is one by the core's own instructions; else it is sixteen,
/// and its beginning one.
const STEPS: usize = 256;

impl Pcpu {
    /// Does the next piece of a vCPU's job.
    pub(super) fn work_on(&mut self, id: VcpuId) {
        match self.jobs.of(id) {
            None => bug!("a vCPU has its turn for a job, and has none"),
            #[cfg(any(test, feature = "smmu"))]
            Some(Job::Silence { device, function }) => self.silence(id, device.into(), function),
            Some(Job::Inspect { part, done }) => self.inspect(id, part.into(), done),
            Some(Job::Load { piece, done }) => self.fill(id, piece, done),
            Some(Job::Report { line }) => self.report(id, line),
        }
    }

    /// Goes on with switching the DMA of a VM's devices off.
    #[cfg(any(test, feature = "smmu"))]
    #[inline(never)]
    fn silence(&mut self, id: VcpuId, first: usize, begun: u16) {
        let vm = self.vm_of(id);
        let job = match smmu::confined(self.system, vm, first) {
            None => match self.coordination.of(vm) {
                Some(coordinated) => coordinated.first_job(),
                None => {
                    return bug!(
                        "a VM's devices are silenced on a core that does not coordinate it"
                    );
                }
            },
            Some((at, device)) => {
                let mut function = if at == first { begun } else { 0 };
                for _ in (0..FUNCTIONS).at_most::<FUNCTIONS>() {
                    if function == device.count || cpu::interrupt_pending() {
                        break;
                    }
                    smmu::silence(device, function.into());
                    function += 1;
                }
                match function == device.count {
                    true => Job::Silence { device: at as u8 + 1, function: 0 },
                    false => Job::Silence { device: at as u8, function },
                }
            }
        };
        self.jobs.set(id, job);
    }

    /// Goes on with the digest of a part of the image with which a VM is filled, and compares it when
    /// the part is read.
    #[inline(never)]
    fn inspect(&mut self, id: VcpuId, first: usize, done: u64) {
        let vm = self.vm_of(id);
        let parts = self.system.parts().iter().enumerate().skip(first);
        let mut parts = parts.at_most::<MAX_PARTS>();
        let next = parts.find(|(_, part)| part.fills_memory() && part.is_of(vm));
        let Some(coordinated) = self.coordination.of(vm) else {
            return bug!("a VM is inspected on a core that does not coordinate it");
        };
        let job = match (next, coordinated.inspection()) {
            (Some((at, part)), Some(hasher)) => {
                let done = if at == first { done } else { 0 };
                if done <= part.size || !hasher.is_at_end_of_block() {
                    Job::Inspect { part: at as u16, done: read_on(part, done, hasher) }
                } else if hasher.finish() == part.sha256 {
                    Job::Inspect { part: at as u16 + 1, done: 0 }
                } else {
                    if let Some(vcpu) = self.roster.parked_mut(id) {
                        vcpu.fails(Cause { what: part.damage(), syndrome: 0, address: 0 });
                    }
                    Job::Report { line: 0 }
                }
            }
            _ => {
                coordinated.is_sound();
                Job::Load { piece: 0, done: 0 }
            }
        };
        self.jobs.set(id, job);
    }

    fn fill(&mut self, id: VcpuId, piece: u16, done: u64) {
        let vm = self.vm_of(id);
        let table = self.table(vm);
        let first = usize::from(table.load_first);
        let loads = &self.system.loads[first..first + usize::from(table.load_count)];
        let Some(load) = loads.get(usize::from(piece)) else {
            self.begin(id, vm);
            return;
        };
        let (mut done, all) = (done, load.size + load.zero_size);
        let fill = || {
            for _ in (0..CHUNKS).at_most::<CHUNKS>() {
                done = fill_chunk(load, done);
                if done >= all || cpu::interrupt_pending() {
                    break;
                }
            }
        };
        // SAFETY: the core's root is the board's, as it is here only that it is another one; what
        // they map was verified (`System::check_stage1`). Each piece ends with a barrier.
        unsafe { cpu::with_root(table.stage1_pa, self.system.board.stage1_pa, fill) };
        let next = if done < all {
            Job::Load { piece, done }
        } else {
            Job::Load { piece: piece + 1, done: 0 }
        };
        self.jobs.set(id, next);
    }

    /// Switches a VM's first vCPU on, now that the memory is filled.
    fn begin(&mut self, id: VcpuId, vm: usize) {
        let table = self.table(vm);
        if table.load_count > 0 {
            // All cores take part in this, so a VM to which nothing was loaded goes without.
            cpu::forget_instructions();
        }
        // Its coordinator alone changes it, and that is this core.
        let epoch = VMS[vm].epoch.load(Ordering::Acquire);
        self.jobs.end(id);
        let Some(vcpu) = self.roster.parked_mut(id) else {
            return bug!("a VM is filled whose first vCPU is elsewhere");
        };
        // A new life does not find translations of the one before.
        vcpu.forget_space();
        vcpu.switch_on(Entry { pc: table.entry_ipa, x0: table.entry_x0 }, epoch);
        POWER[id.number()].switch_on();
        self.follow_what_was_asked(id);
        match self.coordination.of(vm) {
            Some(vm) => vm.runs(),
            None => bug!("a VM begins on a core that does not coordinate it"),
        }
    }

    /// Writes one line of the report why a guest cannot go on; after the last, has its VM
    /// stopped.
    fn report(&mut self, id: VcpuId, line: u16) {
        self.jobs.set(id, Job::Report { line: line + 1 });
        if self.report_line(id, line) {
            return;
        }
        self.jobs.end(id);
        if let Some(vcpu) = self.roster.parked_mut(id) {
            vcpu.switch_off();
        }
        self.sleep(id, vcpu_state::OFF);
        self.ask_coordinator(self.vm_of(id), Message::VmsFailed);
    }

    /// Writes a line of the report. Returns false if `line` is after the last.
    fn report_line(&mut self, id: VcpuId, line: u16) -> bool {
        const GENERAL: core::ops::Range<u16> = 2..17;
        let Some(vcpu) = self.roster.parked(id) else {
            bug!("a vCPU has failed that is not parked here");
            return false;
        };
        if line > 0 && !vcpu.is_on() {
            // It never ran: its registers say nothing.
            return false;
        }
        let (vm, index) = (vcpu.vm(), vcpu.index());
        let (general, system, cause) = vcpu.registers();
        let Some(cause) = cause else {
            bug!("a vCPU has failed, and there is no cause");
            return false;
        };
        let (general, system) = (general.clone(), system.clone());
        match line {
            0 => {
                let name = &self.table(vm).name;
                log!(self, "VM ", name, " vCPU ", index, " cannot go on: ", cause.what);
            }
            1 => log!(
                self,
                Piece::Label("  pc "),
                Piece::Word(general.pc),
                Piece::Label("  pstate "),
                Piece::Hexadecimal(general.pstate),
                Piece::Label("  esr_el2 "),
                Piece::Hexadecimal(cause.syndrome),
                Piece::Label("  far_el2 "),
                Piece::Hexadecimal(cause.address),
            ),
            line if GENERAL.contains(&line) => {
                let n = 2 * (line - GENERAL.start) as u8;
                log!(
                    self,
                    Piece::Label("  x"),
                    Piece::Column(n),
                    Piece::Label(" "),
                    Piece::Word(general.get(n.into())),
                    Piece::Label("  x"),
                    Piece::Column(n + 1),
                    Piece::Label(" "),
                    Piece::Word(general.get((n + 1).into())),
                );
            }
            17 => log!(
                self,
                Piece::Label("  x30 "),
                Piece::Word(general.get(30)),
                Piece::Label("  sp_el0 "),
                Piece::Hexadecimal(system.sp_el0),
                Piece::Label("  sp_el1 "),
                Piece::Hexadecimal(system.sp_el1),
            ),
            18 => log!(
                self,
                Piece::Label("  sctlr_el1 "),
                Piece::Hexadecimal(system.sctlr),
                Piece::Label("  vbar_el1 "),
                Piece::Hexadecimal(system.vbar),
                Piece::Label("  elr_el1 "),
                Piece::Hexadecimal(system.elr),
                Piece::Label("  esr_el1 "),
                Piece::Hexadecimal(system.esr),
                Piece::Label("  far_el1 "),
                Piece::Hexadecimal(system.far),
            ),
            _ => return false,
        }
        true
    }
}

/// Goes on with the digest of a part. Returns how many bytes are begun then: the part's, and a block
/// of padding.
fn read_on(part: &Part, mut done: u64, hasher: &mut Hasher) -> u64 {
    let has_sha256 = cpu::has_sha256();
    for _ in (0..STEPS).at_most::<STEPS>() {
        if !hasher.is_at_end_of_block() {
            hasher.step();
        } else if done < part.size {
            // SAFETY: `System::validate` has shown that the part is whole blocks in the bundle,
            // which is mapped, and which no core writes.
            let block = unsafe { &*memory::at::<[u8; BLOCK]>(part.pa + done) };
            done += BLOCK as u64;
            if has_sha256 && !is_by_rounds(done) {
                digest::add_at_once(hasher, block);
            } else {
                hasher.begin(block);
            }
        } else {
            if done == part.size {
                hasher.begin_padding();
            }
            done = part.size + BLOCK as u64;
        }
        if cpu::interrupt_pending() {
            break;
        }
    }
    done
}

/// Returns true of one block in sixteen in the checked build, where rounds are done so that both ways are tested.
const fn is_by_rounds(done: u64) -> bool {
    cfg!(any(test, feature = "checked")) && (done / BLOCK as u64).is_multiple_of(16)
}

/// Fills the next bytes of a piece of guest memory, of which `done` are filled. Returns how
/// many are filled then. This core has the root of the VM.
fn fill_chunk(load: &Load, done: u64) -> u64 {
    let dst = stage1::ALIAS + load.dst_pa + done;
    let length = if done < load.size {
        let length = CHUNK.min(load.size - done);
        // SAFETY: `System::validate` has shown that the source lies in the
        // bundle and the destination in the memory of a VM none of whose vCPUs
        // runs; both are mapped, by its root, and aligned, and no reference to either exists.
        unsafe { memory::copy(load.src_pa + done, dst, length) };
        length
    } else {
        let length = CHUNK.min(load.size + load.zero_size - done);
        // SAFETY: as above.
        unsafe { memory::clear(dst, length) };
        length
    };
    memory::clean_to_memory::<{ CHUNK as usize / 16 }>(dst, length);
    done + length
}
