//! Starting and stopping a VM, without effect on other VMs.
//!
//! Each VM has a *coordinator*: the base of its first vCPU. A core on which a guest asks for
//! its VM to be stopped sends a message to the coordinator. That changes the VM's epoch, so
//! that no earlier request can switch a vCPU on, and tells every core to halt the VM's vCPUs.
//! When all are halted, it switches the VM off or fills its memory again.

use super::Pcpu;
use super::console::{Piece, write_line};
use super::{links, sections};
use crate::arch::gic::Doorbell;
use crate::arch::{cpu, timer};
use crate::bug::bug;
use crate::parts::{Cause, Job, Step};
use crate::shared::{
    ALIVE, BOARD, POWER, REQUESTED, Sibling, SiblingSet, VMS, VmIndex, VmSet, siblings,
};
use crate::status::trace::Kind;
use abi::MAX_VCPUS_PER_VM;
use abi::status::vcpu_state;
use abi::system::{Vm, vm_flags};
use core::sync::atomic::Ordering;
use notes::{Bounded, each};
use sched::{Member, Message, VcpuId};

impl Pcpu {
    pub(super) fn table(&self, vm: usize) -> &'static Vm {
        self.system.vm(vm)
    }

    /// Returns the core that coordinates a VM.
    pub(super) fn coordinator_of(&self, vm: usize) -> usize {
        self.base_of(VcpuId::numbered(self.table(vm).vcpu_first.into()))
    }

    /// Returns the vCPUs of a VM.
    pub(super) fn vcpus_of(&self, vm: usize) -> impl Iterator<Item = VcpuId> + use<> {
        let table = self.table(vm);
        let first = usize::from(table.vcpu_first);
        let vcpus = first..first + usize::from(table.vcpu_count);
        vcpus.one_for::<{ each::SIBLING }, MAX_VCPUS_PER_VM>().map(VcpuId::numbered)
    }

    /// Begins to fill a VM's memory; the VM runs when that is done. Coordinator only.
    pub(super) fn start(&mut self, vm: usize) {
        let first = VcpuId::numbered(self.table(vm).vcpu_first.into());
        let Some(coordinated) = self.coordination.of(vm) else {
            return bug!("a VM starts on a core that does not coordinate it");
        };
        coordinated.starts();
        let job = coordinated.first_job();
        #[cfg(any(test, feature = "smmu"))]
        let job = match self.system.smmu.registers_pa {
            0 => job,
            _ => Job::Silence { device: 0, function: 0 },
        };
        self.trace.note_now(Kind::Start, first, vm as u32);
        self.jobs.set(first, job);
        self.wake(first);
    }

    /// Asks a VM's coordinator to stop it.
    pub fn ask_coordinator(&self, vm: usize, message: Message) {
        // This core tells itself, too: its guest's interrupts come first.
        self.tell_of(vm, self.coordinator_of(vm), message);
    }

    /// Sends a core a message about a VM.
    #[inline(never)]
    fn tell_of(&self, vm: usize, core: usize, message: Message) {
        self.tell(core, message, vm, self.doorbell_for_vm(vm));
    }

    /// Returns the doorbell for what concerns all of a VM: urgent if it is a real-time one.
    fn doorbell_for_vm(&self, vm: usize) -> Doorbell {
        Doorbell::urgent(self.table(vm).is(vm_flags::REALTIME))
    }

    /// Begins to stop a VM, unless that has begun. Coordinator only.
    #[inline(never)]
    pub(super) fn stop(&mut self, vm: usize, message: Message) {
        let Some(coordinated) = self.coordination.of(vm) else {
            return bug!("a VM is stopped by a core that does not coordinate it");
        };
        if !coordinated.stop(message) {
            return;
        }
        VMS[vm].epoch.fetch_add(1, Ordering::AcqRel);
        VMS[vm].halted.store(SiblingSet::EMPTY, Ordering::Release);
        // Wherever its vCPUs may be, or be on their way to.
        self.tell_places(Message::HaltVms, vm, self.doorbell_for_vm(vm));
        if cpu::interrupt_pending() {
            self.halt_later(vm);
        } else {
            self.halt(vm);
        }
    }

    /// Switches this core's vCPUs of a VM off. Those that are based here are halted then.
    ///
    /// If interrupts come meanwhile, the rest follows after them: this core sends the message to
    /// itself. vCPUs that are recorded as halted already are not halted again then.
    ///
    /// Skips vCPUs of the current epoch. The message may be old: a core that is powered down
    /// reads no mail, and the VM may have been restarted since.
    #[inline(never)]
    pub(super) fn halt(&mut self, vm: usize) {
        let epoch = VMS[vm].epoch.load(Ordering::Acquire);
        for id in self.vcpus_of(vm) {
            // The core that has it gets the message, too.
            let Some(vcpu) = self.roster.get(id) else { continue };
            let (index, is_new) = (vcpu.index(), vcpu.is_on() && vcpu.epoch() == epoch);
            let is_halted = VMS[vm].halted.load(Ordering::Acquire).has(Sibling(index));
            // One that has arrived since with an older life may not be off whole.
            if is_new || is_halted && !self.is_going_off(id) {
                continue;
            }
            let is_off = self.offline(id);
            if is_off {
                self.halt_at_base(id);
            }
            if !is_off || cpu::interrupt_pending() {
                self.halt_later(vm);
                return;
            }
        }
    }

    /// Goes on to halt a VM's vCPUs, after the interrupts that pend.
    pub(super) fn halt_later(&self, vm: usize) {
        self.tell_of(vm, self.index, Message::HaltVms);
    }

    /// Tells a VM's coordinator that a vCPU is halted.
    pub(super) fn tell_coordinator_of_halted(&self, vm: usize) {
        self.tell_of(vm, self.coordinator_of(vm), Message::HaltedVms);
    }

    /// Switches the loaded vCPU off, as its guest has asked.
    pub fn offline_loaded(&mut self) {
        let Some(id) = self.roster.loaded_id() else {
            return bug!("a CPU_OFF without a loaded vCPU");
        };
        if !self.offline(id) {
            self.offline_later(id);
        }
    }

    /// Goes on to switch a vCPU off, after the interrupts that pend.
    pub(super) fn offline_later(&self, id: VcpuId) {
        let doorbell = self.doorbell_for_vm(self.vm_of(id));
        self.go_on_later(Message::Vcpus, id.number(), doorbell);
    }

    /// Returns true if switching a vCPU of this core off has stopped in its middle.
    pub fn is_going_off(&self, id: VcpuId) -> bool {
        self.roster.parked(id).is_some_and(|vcpu| vcpu.is_releasing())
    }

    /// Switches a vCPU of this core off and forgets its state. Only a request to switch it on
    /// wakes it. Returns false if an interrupt has come before all of that was done: then this has to
    /// be called again. The vCPU does not run meanwhile.
    pub(super) fn offline(&mut self, id: VcpuId) -> bool {
        if !self.is_going_off(id) {
            self.stop_running(id);
            if cpu::interrupt_pending() {
                return false;
            }
        }
        if !self.end_sections(id) || !self.release_interrupts(id) {
            return false;
        }
        // The line of its timer goes low. What that changes it finds when it is switched on.
        let _ = self.physical_timer_effects(id, timer::now());
        // Last: from here on a sibling may switch it on again.
        POWER[id.number()].switch_off();
        true
    }

    /// Takes a vCPU that is switched off from the scheduler and the hardware.
    fn stop_running(&mut self, id: VcpuId) {
        self.sleep(id, vcpu_state::OFF);
        self.scheduler.release(id);
        self.begin_to_end_sections(id);
        if self.roster.owns_float(id) {
            self.roster.forget_float();
        }
        if self.roster.is_loaded(id) {
            self.unload();
        }
        self.jobs.end(id);
        self.timer_advance.end(id);
        if let Some(vcpu) = self.roster.parked_mut(id) {
            vcpu.switch_off();
            vcpu.begin_to_release();
        }
    }

    /// Ends what a vCPU that is not loaded deals with. Returns false if an interrupt has come before
    /// all is ended.
    fn release_interrupts(&mut self, id: VcpuId) -> bool {
        let Some(vcpu) = self.roster.parked_mut(id) else {
            bug!("a vCPU is switched off that another core owns");
            return true;
        };
        let (done, notify) = vcpu.release_interrupts(self.interface);
        let vm = vcpu.vm();
        self.notify_siblings(vm, siblings(notify));
        done
    }

    /// Ends or restarts a VM, if all its vCPUs are halted: a step for each message, with which the
    /// core tells itself to go on. Coordinator only.
    ///
    /// A vCPU may have sent a request to stop the VM before it was halted, and that must not stop the
    /// next life. It is in the mailbox before the first step. This core takes what is in its mailbox
    /// when it has read all that it took before, so it reads the request before the third step, while
    /// requests to stop the VM are ignored.
    pub(super) fn halted(&mut self, vm: usize) {
        let halted = VMS[vm].halted.load(Ordering::Acquire);
        let all = SiblingSet::of_first(self.table(vm).vcpu_count.into());
        if !all.is_within(halted) {
            return;
        }
        let Some(coordinated) = self.coordination.of(vm) else {
            return bug!("a VM is halted on a core that does not coordinate it");
        };
        // A vCPU may be halted twice for one stop: the first time all are, the VM ends.
        let Some(step) = coordinated.next_step() else { return };
        match step {
            Step::Interrupts => self.reset_interrupts(vm),
            Step::Rest => self.reset_rest(vm),
            Step::Conclude(reason) => return self.conclude(vm, reason),
        }
        self.tell_of(vm, self.index, Message::HaltedVms);
    }

    /// Resets the interrupt controller of a VM that is halted.
    fn reset_interrupts(&mut self, vm: usize) {
        VMS[vm].gic.reset();
        self.clear_interrupts(vm);
    }

    /// Resets what else the vCPUs of a VM share that is halted.
    fn reset_rest(&mut self, vm: usize) {
        VMS[vm].uart.reset();
        VMS[vm].stalled.store(SiblingSet::EMPTY, Ordering::Release);
        links::disarm(self.system, vm);
        self.reset_virtio(vm);
        // A sibling may have raised one that was off already.
        self.vcpus_of(vm).for_each(|id| {
            sections::reset(id);
            REQUESTED[id.number()].store(self.base_of(id) as u8, Ordering::Relaxed);
        });
    }

    // Out of line: without it in their midst, messages that come often are read faster.
    #[inline(never)]
    fn conclude(&mut self, vm: usize, reason: Message) {
        let table = self.table(vm);
        let Some(coordinated) = self.coordination.of(vm) else {
            return bug!("a VM ends on a core that does not coordinate it");
        };
        let conclusion = coordinated.concludes(reason, table.is(vm_flags::RESTART_ON_FAULT));
        let alive = ALIVE.load(Ordering::Acquire);
        let is_last = !conclusion.restart && alive == VmSet::of(VmIndex(vm));
        let tail = if is_last { ": none is left" } else { "" };
        let erred = VMS[vm].erred.load(Ordering::Relaxed);
        VMS[vm].erred.store(false, Ordering::Relaxed);
        let begin = if erred { "system error: VM " } else { "VM " };
        let [begin, words, tail] = [begin, conclusion.words(), tail].map(Piece::Label);
        write_line!(begin, &table.name, words, tail);
        let how = u32::from(conclusion.restart) << 8 | u32::from(conclusion.failed) << 9;
        let first = VcpuId::numbered(table.vcpu_first.into());
        self.trace.note_now(Kind::End, first, vm as u32 | how);
        if conclusion.restart {
            self.start(vm);
        } else {
            // Behind the line: the machine may be switched off when no VM is left and nothing waits
            // to be written.
            ALIVE.remove(VmIndex(vm), Ordering::AcqRel);
        }
        // Not before that: the core that writes would find a VM left, and no core would tell it again.
        self.log_has_output();
    }

    /// Lets the owner of a vCPU accept a request of CPU_ON, which was left for it.
    pub fn power_requested(&mut self, id: VcpuId) {
        let owner = BOARD.find(id);
        if owner == self.index {
            self.accept_power_on(id);
        } else {
            // What was sent while it was off was not urgent, and may be unread.
            let _ = BOARD.send(owner, Message::Vcpus, id.number());
            self.ring(owner, self.doorbell_for(id));
        }
    }

    /// Switches a vCPU of this core on if that was asked for.
    #[inline(never)]
    pub(super) fn accept_power_on(&mut self, id: VcpuId) {
        if !self.roster.owns(id) {
            // It has left; its new owner looks when it arrives.
            return;
        }
        let epoch = VMS[self.vm_of(id)].epoch.load(Ordering::Acquire);
        if let Some(entry) = POWER[id.number()].accept(epoch) {
            if let Some(vcpu) = self.roster.parked_mut(id) {
                vcpu.switch_on(entry, epoch);
            }
            self.wake(id);
            self.follow_what_was_asked(id);
        }
    }

    /// Does what was asked of a vCPU while it was off, now that it is on.
    pub(super) fn follow_what_was_asked(&mut self, id: VcpuId) {
        self.follow_if_raised(id);
        self.follow_request(id);
    }

    /// Switches the loaded vCPU off, which has asked for its VM to be stopped, and asks the
    /// VM's coordinator for that.
    pub fn stop_vm_of_loaded(&mut self, vm: usize, message: Message) {
        let Some(id) = self.roster.loaded_id() else {
            return bug!("a VM is stopped by a guest without a loaded vCPU");
        };
        self.sleep(id, vcpu_state::SLEEPING);
        // Nothing may wake it while its VM is being stopped.
        self.unload();
        // Others must not wait for its mutexes until all cores have read their mail.
        self.end_sections_soon(id);
        POWER[id.number()].deafen();
        if let Some(vcpu) = self.roster.parked_mut(id) {
            vcpu.switch_off();
        }
        self.ask_coordinator(vm, message);
    }

    /// Unloads a vCPU whose guest cannot go on, and gives it the job to report why. Its VM is
    /// stopped after the report.
    pub fn fail_loaded(&mut self, cause: Cause) {
        self.need_resched = true;
        let Some(id) = self.roster.loaded_id() else {
            return bug!("a guest fails without a loaded vCPU");
        };
        self.trace.note(Kind::Crash, id, cause.syndrome as u32, self.entered);
        self.unload();
        // Nor while its report is written.
        self.end_sections_soon(id);
        POWER[id.number()].deafen();
        if let Some(vcpu) = self.roster.parked_mut(id) {
            vcpu.fails(cause);
        }
        self.jobs.set(id, Job::Report { line: 0 });
    }
}
