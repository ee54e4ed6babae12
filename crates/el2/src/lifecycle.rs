//! Starting and stopping VMs, one without the others noticing.
//!
//! Each VM has a *home*: the core that owns its first vCPU. Whoever wants the VM
//! stopped tells its home; the home changes the VM's epoch (so that no request
//! from before can start anything), tells every core that has vCPUs of it to
//! halt them, and when all have said that they did, switches the VM off or fills
//! its memory again. Filling memory and reporting a failure take long, so they
//! are [`Work`]: done in small pieces in the time of one of the VM's own vCPUs,
//! with a look at the interrupts after each.

use crate::arch::ich::Unloaded;
use crate::arch::{cache, timer};
use crate::console::log;
use crate::pcpu::Pcpu;
use crate::shared::{ALIVE, MAILBOXES, PLACES, POWER, VMS};
use crate::vcpu::{Cause, Work};
use abi::status::{VmStatus, vcpu_state, vm_state};
use abi::system::{Load, Vm, vm_flags};
use core::sync::atomic::Ordering;
use el2::power::Entry;
use el2::vgic::Effects;
use sched::{Message, VcpuId};

/// Bytes filled between two looks at the interrupts.
const CHUNK: u64 = 16 * 1024;

/// What a VM may be stopped for; in the order in which they count when several come
/// at once.
pub const STOPS: [Message; 3] = [Message::VmsFailed, Message::VmsReset, Message::VmsOff];

/// What a VM's home knows of it.
pub struct Home {
    state: State,
    status: &'static mut VmStatus,
}

enum State {
    Off,
    Running,
    /// Its vCPUs are being halted, and this comes then.
    Halting(Message),
}

impl Home {
    /// Of a VM that was never started.
    pub fn new(status: &'static mut VmStatus) -> Self {
        Self { state: State::Off, status }
    }
}

impl Pcpu {
    fn table(&self, vm: usize) -> &'static Vm {
        &self.system.vms[vm]
    }

    pub fn home_of(&self, vm: usize) -> usize {
        usize::from(self.system.vcpus[usize::from(self.table(vm).vcpu_first)].pcpu)
    }

    /// The vCPUs of a VM, by identifier.
    pub fn vcpus_of(&self, vm: usize) -> core::ops::Range<usize> {
        let table = self.table(vm);
        let first = usize::from(table.vcpu_first);
        first..first + usize::from(table.vcpu_count)
    }

    /// Begins to fill a VM's memory; it runs when that is done. Home only.
    pub fn start(&mut self, vm: usize) {
        let first = VcpuId(self.table(vm).vcpu_first as u8);
        if let Some(home) = self.homes[vm].as_mut() {
            home.state = State::Running;
            home.status.state = vm_state::LOADING;
            home.status.starts += 1;
        }
        self.set_work(first, Work::Load { piece: 0, done: 0 });
        self.wake(first);
    }

    /// Asks a VM's home to stop it.
    pub fn ask_home(&mut self, vm: usize, message: Message) {
        let home = self.home_of(vm);
        if home == self.index {
            self.stop(vm, message);
        } else {
            self.tell(home, message, vm, self.table(vm).is(vm_flags::REALTIME));
        }
    }

    /// Stops a VM, unless that is under way. Home only.
    pub fn stop(&mut self, vm: usize, message: Message) {
        let Some(home) = self.homes[vm].as_mut() else { return };
        if !matches!(home.state, State::Running) {
            return;
        }
        let realtime = self.table(vm).is(vm_flags::REALTIME);
        VMS[vm].epoch.fetch_add(1, Ordering::AcqRel);
        VMS[vm].halted.store(0, Ordering::Release);
        if let Some(home) = self.homes[vm].as_mut() {
            home.state = State::Halting(message);
        }
        // All of them: its vCPUs may be anywhere, or on their way.
        for core in (0..self.system.board.pcpu_count as usize).filter(|&core| core != self.index) {
            self.tell(core, Message::HaltVms, vm, realtime);
        }
        self.halt(vm);
    }

    /// Stops this core's vCPUs of a VM. Those that belong here are halted then.
    ///
    /// What was switched on since the VM was stopped lives on: the message may have
    /// lain here while this core was powered down.
    pub fn halt(&mut self, vm: usize) {
        let epoch = VMS[vm].epoch.load(Ordering::Acquire);
        for id in self.vcpus_of(vm).map(|id| VcpuId(id as u8)) {
            if self.vcpu(id).is_some_and(|vcpu| !(vcpu.on && vcpu.epoch == epoch)) {
                self.retire(id);
                self.go_home_halted(id);
            }
        }
    }

    /// Says that a vCPU is halted.
    pub fn tell_home_of_halted(&mut self, vm: usize) {
        let home = self.home_of(vm);
        if home == self.index {
            self.halted(vm);
        } else {
            self.tell(home, Message::HaltedVms, vm, self.table(vm).is(vm_flags::REALTIME));
        }
    }

    /// A vCPU of this core is switched off: nothing of it stays anywhere, and
    /// nothing wakes it but a request to switch it on.
    pub fn retire(&mut self, id: VcpuId) {
        self.sleep(id, vcpu_state::OFF);
        self.let_schedule(id);
        if self.float_owner == Some(id) {
            self.float_owner = None;
        }
        if self.is_loaded(id) {
            self.unload();
        }
        self.set_work(id, Work::None);
        self.abandon_interrupts(id);
        if let Some(vcpu) = self.vcpu(id) {
            vcpu.switch_off();
        }
        // The line of its timer goes low.
        self.assert_physical_timer(usize::from(id.0), timer::now());
        self.ahead &= !(1 << id.0);
        // Last: from here on a sibling may switch it on again.
        POWER[usize::from(id.0)].switch_off();
    }

    /// Gives back what a vCPU that is not loaded has in its list registers.
    fn abandon_interrupts(&mut self, id: VcpuId) {
        let interface = self.interface;
        let Some(vcpu) = self.vcpu(id) else { return };
        let mut hw = Unloaded::new(&mut vcpu.saved_interface, interface);
        vcpu.interface.abandon(&vcpu.shared.gic, &mut hw);
        let effects = Effects { notify: hw.notify, deactivate: None };
        let vm = vcpu.vm;
        self.notify(vm, effects);
    }

    /// Some vCPUs of a VM are halted. Home only.
    pub fn halted(&mut self, vm: usize) {
        let halted = VMS[vm].halted.load(Ordering::Acquire);
        let Some(home) = self.homes[vm].as_mut() else { return };
        let all = (1u32 << self.system.vms[vm].vcpu_count) - 1;
        if let State::Halting(then) = home.state
            && all & !halted == 0
        {
            home.state = State::Off;
            // Asked for by vCPUs of the life that ends here, before they were halted: it
            // must not end the next one.
            for request in STOPS {
                MAILBOXES[self.index].discard(request, vm);
            }
            VMS[vm].gic.reset();
            VMS[vm].uart.reset();
            VMS[vm].awaited.store(0, Ordering::Release);
            self.conclude(vm, then);
        }
    }

    fn conclude(&mut self, vm: usize, then: Message) {
        let table = self.table(vm);
        let restart = then == Message::VmsReset
            || then == Message::VmsFailed && table.is(vm_flags::RESTART_ON_FAULT);
        let failed = then == Message::VmsFailed;
        let what = match (restart, failed) {
            (true, true) => "failed and is restarted",
            (true, false) => "was reset",
            (false, true) => "failed and is stopped",
            (false, false) => "is off",
        };
        log!(self, "VM {} {what}", table.name());
        if restart {
            self.start(vm);
            return;
        }
        if let Some(home) = self.homes[vm].as_mut() {
            home.status.state = if failed { vm_state::FAILED } else { vm_state::OFF };
        }
        if ALIVE.fetch_and(!(1 << vm), Ordering::AcqRel) == 1 << vm {
            log!(self, "no VM is left");
        }
    }

    /// CPU_ON found this vCPU off and left a request.
    pub fn power_requested(&mut self, id: usize) {
        let owner = PLACES[id].find();
        if owner == self.index {
            self.accept_power_on(VcpuId(id as u8));
        } else {
            // What was sent while it was off was not urgent, and may be unread.
            let _ = MAILBOXES[owner].send(Message::Vcpus, id);
            self.ring(owner, self.is_urgent(id));
        }
    }

    /// Switches a vCPU of this core on if that was asked for.
    pub fn accept_power_on(&mut self, id: VcpuId) {
        if !self.owns(id) {
            // It has left; its new owner looks when it arrives.
            return;
        }
        let vm = usize::from(self.system.vcpus[usize::from(id.0)].vm);
        let epoch = VMS[vm].epoch.load(Ordering::Acquire);
        if let Some(entry) = POWER[usize::from(id.0)].accept(epoch) {
            self.switch_on(id, entry, epoch);
            self.wake(id);
        }
    }

    fn switch_on(&mut self, id: VcpuId, entry: Entry, epoch: u32) {
        if let Some(vcpu) = self.vcpu(id) {
            vcpu.switch_on(entry, epoch);
        }
    }

    /// The loaded vCPU's guest cannot go on: its VM will be stopped when the
    /// reason is told.
    pub fn fail_loaded(&mut self, cause: Cause) {
        self.reschedule = true;
        let Some(id) = self.loaded.as_ref().map(|vcpu| vcpu.id) else { return };
        self.unload();
        POWER[usize::from(id.0)].deafen();
        self.set_work(id, Work::Report { line: 0, cause });
    }

    /// Does the next piece of a vCPU's work.
    pub fn work_on(&mut self, id: VcpuId) {
        let Some(vcpu) = self.vcpu(id) else { return };
        match vcpu.work {
            Work::None => {}
            Work::Load { piece, done } => self.fill(id, piece, done),
            Work::Report { line, cause } => self.report(id, line, cause),
        }
    }

    fn fill(&mut self, id: VcpuId, piece: usize, done: u64) {
        let vm = usize::from(self.system.vcpus[usize::from(id.0)].vm);
        let table = self.table(vm);
        let first = usize::from(table.load_first);
        let loads = &self.system.loads[first..first + usize::from(table.load_count)];
        let Some(load) = loads.get(piece) else {
            self.begin(id, vm);
            return;
        };
        let done = fill_chunk(load, done);
        let next = if done < load.size + load.zero_size {
            Work::Load { piece, done }
        } else {
            Work::Load { piece: piece + 1, done: 0 }
        };
        self.set_work(id, next);
    }

    /// The memory is filled: the guest's first instruction is next.
    fn begin(&mut self, id: VcpuId, vm: usize) {
        cache::forget_instructions();
        let table = self.table(vm);
        // Its home alone changes it, and that is here.
        let epoch = VMS[vm].epoch.load(Ordering::Acquire);
        self.switch_on(id, Entry { pc: table.entry_ipa, x0: table.entry_x0 }, epoch);
        self.set_work(id, Work::None);
        POWER[usize::from(id.0)].switch_on();
        if let Some(home) = self.homes[vm].as_mut() {
            home.status.state = vm_state::RUNNING;
        }
    }

    /// One line of why a guest cannot go on.
    fn report(&mut self, id: VcpuId, line: usize, cause: Cause) {
        const GENERAL: core::ops::Range<usize> = 2..17;
        self.set_work(id, Work::Report { line: line + 1, cause });
        let Some(vcpu) = self.vcpu(id) else { return };
        let (vm, index) = (vcpu.vm, vcpu.index);
        let (general, system) = (vcpu.general.clone(), vcpu.system.clone());
        match line {
            0 => {
                log!(self, "VM {} vCPU {index} cannot go on: {}", self.table(vm).name(), cause.what)
            }
            1 => log!(
                self,
                "  pc {:#018x}  pstate {:#x}  esr_el2 {:#x}  far_el2 {:#x}",
                general.pc,
                general.pstate,
                cause.syndrome,
                cause.address
            ),
            line if GENERAL.contains(&line) => {
                let n = 2 * (line - GENERAL.start);
                log!(
                    self,
                    "  x{n:<2} {:#018x}  x{:<2} {:#018x}",
                    general.get(n),
                    n + 1,
                    general.get(n + 1)
                );
            }
            17 => log!(
                self,
                "  x30 {:#018x}  sp_el0 {:#x}  sp_el1 {:#x}",
                general.get(30),
                system.sp_el0,
                system.sp_el1
            ),
            18 => log!(
                self,
                "  sctlr_el1 {:#x}  vbar_el1 {:#x}  elr_el1 {:#x}  esr_el1 {:#x}  far_el1 {:#x}",
                system.sctlr,
                system.vbar,
                system.elr,
                system.esr,
                system.far
            ),
            _ => {
                self.set_work(id, Work::None);
                if let Some(vcpu) = self.vcpu(id) {
                    vcpu.switch_off();
                }
                self.sleep(id, vcpu_state::OFF);
                self.ask_home(vm, Message::VmsFailed);
            }
        }
    }
}

/// Fills the next bytes of a piece of guest memory, `done` of which are done.
/// Answers how many are then.
fn fill_chunk(load: &Load, done: u64) -> u64 {
    let dst = load.dst_pa + done;
    let length = if done < load.size {
        let length = CHUNK.min(load.size - done);
        // SAFETY: `System::validate` has shown that the source lies in the
        // bundle and the destination in the memory of a VM none of whose vCPUs
        // runs; both are mapped and aligned, and no reference to either exists.
        unsafe { cache::copy(load.src_pa + done, dst, length) };
        length
    } else {
        let length = CHUNK.min(load.size + load.zero_size - done);
        // SAFETY: as above.
        unsafe { core::ptr::write_bytes(dst as *mut u8, 0, length as usize) };
        length
    };
    cache::clean_to_memory(dst, length);
    done + length
}
