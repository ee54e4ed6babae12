//! One physical core: the vCPUs it owns, which of them is loaded, and the loop
//! that carries the scheduler's decisions out.

use crate::arch::context::General;
use crate::arch::cpu;
use crate::arch::gic::{self, Redistributor};
use crate::arch::ich::{Interface, Loaded};
use crate::arch::timer;
use crate::console::Console;
use crate::consolidation::Consolidation;
use crate::lead::Before;
use crate::lifecycle::Home;
use crate::shared::{MAILBOXES, PLACES, POWER, TAKEN};
use crate::vcpu::{Vcpu, Work};
use abi::status::{PcpuStatus, vcpu_state};
use abi::system::{System, flags, vcpu_flags};
use abi::{MAX_PCPUS, MAX_VCPUS, MAX_VMS};
use core::sync::atomic::Ordering;
use el2::vgic::Effects;
use el2::vgic::interface::CpuInterface;
use sched::{Instant, Members, Message, Scheduler, State, VcpuId};

/// Nobody's index.
pub const NOBODY: u64 = u64::MAX;

/// See the module.
pub struct Pcpu {
    /// Its index in the system's table.
    pub index: usize,
    /// What the host decided.
    pub system: &'static System,
    /// How to ring each core.
    bells: [u64; MAX_PCPUS],
    /// Who runs next.
    pub scheduler: Scheduler,
    /// The vCPUs it owns but for the one that is loaded, by identifier.
    pub vcpus: [Option<&'static mut Vcpu>; MAX_VCPUS],
    /// The vCPU whose registers are on the hardware; it need not be running.
    pub loaded: Option<&'static mut Vcpu>,
    /// The vCPUs (bit set by identifier) that have [`Work`] to do first.
    pub working: u64,
    /// The vCPUs (bit set by identifier) that were woken before their timers, and
    /// sleep as far as their guests know ([`crate::lead`]).
    pub ahead: u64,
    /// By vCPU: those that belong here (bit set by identifier) and are displaced
    /// while it has the core.
    pub displaced_by: [u64; MAX_VCPUS],
    /// Those of them whose policies have a say, and all visitors.
    pub concerned: u64,
    /// The loaded vCPU gives way to a sibling at once, whatever it executes.
    pub yields: bool,
    /// Some vCPU here may be waited for until it has left its kernel.
    pub may_wait: bool,
    /// Those that left, or for which others stopped, until the core is free.
    pub displaced: u64,
    /// The vCPUs of this core that may not run as a sibling cannot; its scheduler
    /// does not know them meanwhile.
    pub stopped: u64,
    /// Whose view keeps it from returning to a program while another vCPU waits
    /// for it, and until when that waits.
    pub delaying: Option<(VcpuId, Instant)>,
    /// The vCPUs (bit set by identifier) that belong here, and may go on from where
    /// they have gone.
    pub wanderers: u64,
    /// The vCPUs (bit set by identifier) that are here, belong elsewhere, and may go
    /// on.
    pub visitors: u64,
    /// Somebody wants to know whether this core is idle.
    pub tell_idle: bool,
    /// Since when it was idle when it last said so.
    pub told_idle: Instant,
    /// Somebody wants to know whether vCPUs have lost this core.
    pub tell_taken: bool,
    /// The scheduler has to be asked before a guest runs again.
    pub reschedule: bool,
    /// When the current stay at EL2 began.
    pub entered: Instant,
    /// Whose floating-point registers are on the hardware.
    pub float_owner: Option<VcpuId>,
    /// The vCPU of each VM that ran here last.
    pub last_of_vm: [Option<VcpuId>; MAX_VMS],
    /// Its redistributor.
    pub redistributor: Redistributor,
    /// Its virtual CPU interface.
    pub interface: Interface,
    /// The physical priority mask in force.
    pub mask: u64,
    /// What EL2's timer is set to.
    pub armed: Instant,
    /// What this core does about being powered down, or others' being so.
    pub consolidation: Consolidation,
    /// Stopping and starting of the VMs whose home this core is.
    pub homes: [Option<Home>; MAX_VMS],
    /// The physical UART, if this core drives it.
    pub console: Option<Console>,
    /// What it counts.
    pub status: &'static mut PcpuStatus,
    /// Since when `status.current` is what it is.
    pub since: Instant,
}

impl Pcpu {
    /// A core that owns no vCPU yet.
    pub fn new(
        index: usize,
        system: &'static System,
        redistributor: Redistributor,
        interface: Interface,
        console: Option<Console>,
        status: &'static mut PcpuStatus,
    ) -> Self {
        let now = timer::now();
        status.current = NOBODY;
        status.since = now.0;
        Self {
            index,
            system,
            bells: system.board.pcpu_mpidr.map(gic::bell),
            scheduler: Scheduler::new(),
            vcpus: [const { None }; MAX_VCPUS],
            loaded: None,
            working: 0,
            ahead: 0,
            displaced_by: [0; MAX_VCPUS],
            concerned: 0,
            yields: false,
            may_wait: false,
            displaced: 0,
            stopped: 0,
            delaying: None,
            wanderers: 0,
            visitors: 0,
            tell_idle: false,
            told_idle: timer::NEVER,
            tell_taken: false,
            reschedule: true,
            entered: now,
            float_owner: None,
            last_of_vm: [None; MAX_VMS],
            redistributor,
            interface,
            mask: gic::MASK_NOTHING,
            armed: timer::NEVER,
            consolidation: Consolidation::new(),
            homes: [const { None }; MAX_VMS],
            console,
            status,
            since: now,
        }
    }

    /// Takes a vCPU into possession.
    pub fn own(&mut self, vcpu: &'static mut Vcpu) {
        let slot = usize::from(vcpu.id.0);
        self.vcpus[slot] = Some(vcpu);
    }

    /// A vCPU this core owns, loaded or not.
    pub fn vcpu(&mut self, id: VcpuId) -> Option<&mut Vcpu> {
        match &mut self.loaded {
            Some(loaded) if loaded.id == id => self.loaded.as_deref_mut(),
            _ => self.vcpus.get_mut(usize::from(id.0))?.as_deref_mut(),
        }
    }

    /// Whether a vCPU is this core's now.
    pub fn owns(&self, id: VcpuId) -> bool {
        self.is_loaded(id) || self.vcpus.get(usize::from(id.0)).is_some_and(Option::is_some)
    }

    /// Gives a vCPU of this core something to do before its guest.
    pub fn set_work(&mut self, id: VcpuId, work: Work) {
        let bit = 1 << id.0;
        match work {
            Work::None => self.working &= !bit,
            _ => self.working |= bit,
        }
        if let Some(vcpu) = self.vcpu(id) {
            vcpu.work = work;
        }
    }

    /// Whether the vCPU on the hardware is the one that has the core; else it
    /// sleeps, and left its registers there.
    pub fn loaded_is_current(&self) -> bool {
        self.loaded.as_ref().is_some_and(|vcpu| u64::from(vcpu.id.0) == self.status.current)
    }

    /// Whether this vCPU's registers are on the hardware.
    pub fn is_loaded(&self, id: VcpuId) -> bool {
        self.loaded.as_ref().is_some_and(|vcpu| vcpu.id == id)
    }

    /// Whether priorities are separated (docs/src/design/decisions.md, 7).
    fn separates(&self) -> bool {
        self.system.header.flags & flags::PRIORITY_SEPARATION != 0
    }

    /// Does what the scheduler says until a guest is ready to run.
    pub fn settle(&mut self) {
        loop {
            self.reschedule = false;
            let now = timer::now();
            let decision = self.scheduler.decide(now);
            if self.may_wait && self.waits(decision.run, now) {
                return;
            }
            let Some(id) = decision.run else {
                if self.displaced != 0 {
                    self.release(self.displaced);
                    if self.reschedule {
                        continue;
                    }
                }
                self.idle(now);
                continue;
            };
            self.account(Some(id), now);
            if self.working | self.ahead != 0 {
                match self.before_guest(id, decision.until) {
                    Before::Nothing => {}
                    Before::Decision => continue,
                    Before::Guest => return,
                }
            }
            if !self.is_loaded(id) {
                self.switch_to(id);
            }
            self.set_mask(self.mask_of_loaded());
            self.arm(decision.until);
            if self.concerned != 0 {
                self.migrate(id, decision.until.is_some());
                // Siblings that go on are ready now, and share in quanta.
                if self.reschedule {
                    continue;
                }
            }
            return;
        }
    }

    /// Does a piece of a vCPU's work, and takes what interrupts came meanwhile.
    #[inline(never)]
    pub fn work(&mut self, id: VcpuId, until: Option<Instant>) {
        self.arm(until);
        self.set_mask(gic::MASK_NOTHING);
        self.work_on(id);
        self.take_pending_interrupts();
        // What was done here is on no guest's account.
        self.entered = timer::now();
    }

    /// Waits for interrupts and takes them.
    #[inline(never)]
    fn idle(&mut self, now: Instant) {
        self.account(None, now);
        let lead = self.lead_of_loaded(now);
        if lead.is_some_and(|begin| begin <= now) {
            self.begin_lead_of_loaded();
            return;
        }
        self.arm(lead);
        self.set_mask(gic::MASK_NOTHING);
        if self.tell_taken {
            TAKEN[self.index].store(false, Ordering::Relaxed);
        }
        let more = self.carry_console();
        // Carrying may have woken a vCPU of this core.
        if !more && !self.reschedule {
            if self.consolidation.leaving {
                self.power_down();
            } else if self.tell_idle {
                // Whoever had the core last may have left it for another one.
                let tell = self.told_idle != self.since;
                self.told_idle = self.since;
                self.wait_known_as_idle(tell);
            } else {
                cpu::wait_for_interrupt();
            }
        }
        self.entered = timer::now();
        self.take_pending_interrupts();
        if more && self.reschedule {
            // Somebody has the core now: the rest comes between what it does.
            self.tell(self.index, Message::Consoles, 0, false);
        }
    }

    /// Takes what interrupts are pending, until one wakes somebody: who is to run
    /// next does not wait for the rest, which comes when a guest has the core.
    pub fn take_pending_interrupts(&mut self) {
        while cpu::interrupt_pending() {
            let intid = gic::acknowledge();
            if intid >= gic::SPECIAL {
                return;
            }
            self.take(intid);
            if self.reschedule {
                return;
            }
        }
    }

    /// Replaces the loaded vCPU. Inlined, as every switch comes by.
    #[inline(always)]
    pub fn switch_to(&mut self, id: VcpuId) {
        self.save_loaded();
        let Some(next) = self.vcpus[usize::from(id.0)].take() else { return };
        self.load(next);
    }

    /// Takes the loaded vCPU's registers off the hardware, if there is one;
    /// none takes its place for now.
    pub fn unload(&mut self) {
        self.save_loaded();
        self.interface.switch_off();
    }

    fn save_loaded(&mut self) {
        if let Some(previous) = self.loaded.take() {
            self.save(previous);
            self.own(previous);
        }
    }

    /// Which physical interrupts may interrupt the loaded vCPU
    /// (docs/src/design/decisions.md, 7).
    pub fn mask_of_loaded(&self) -> u64 {
        let realtime = self.loaded.as_ref().is_some_and(|vcpu| vcpu.realtime);
        if realtime && self.separates() { gic::MASK_LOWER_HALF } else { gic::MASK_NOTHING }
    }

    pub fn set_mask(&mut self, mask: u64) {
        if self.mask != mask {
            self.mask = mask;
            gic::set_mask(mask);
        }
    }

    /// Sets EL2's timer to what comes first: the end of the quantum, or a timer
    /// of a vCPU that is not on the hardware and would change the decision. A look
    /// at this core's load comes then, or at the end of the quantum.
    pub fn arm(&mut self, until: Option<Instant>) {
        let mut first = until.unwrap_or(self.consolidation.look_at);
        let mut consider = |deadline: Instant| first = first.min(deadline);
        if let Some(loaded) = self.loaded.as_deref() {
            consider(loaded.physical_timer_deadline());
        }
        for id in self.scheduler.sleepers_that_matter() {
            // The virtual timer of the loaded one is on the hardware.
            let Some(vcpu) = self.vcpus[usize::from(id.0)].as_deref() else { continue };
            consider(vcpu.wakes_at);
            consider(vcpu.physical_timer_deadline());
        }
        if first != self.armed {
            self.armed = first;
            timer::arm(first);
        }
    }

    /// EL2's timer fired: the quantum is over, or vCPUs' timers are due.
    pub fn timer_fired(&mut self) {
        self.armed = timer::NEVER;
        timer::arm(timer::NEVER);
        self.reschedule = true;
        let now = timer::now();
        let owned = self.scheduler.vcpus().fold(0, |set, id| set | 1 << id.0);
        for id in Members(owned) {
            self.assert_physical_timer(id, now);
            let Some(vcpu) = self.vcpus[id].as_deref() else { continue };
            if vcpu.wakes_at <= now {
                if vcpu.lead == 0 {
                    self.wake(vcpu.id);
                } else {
                    self.wake_before_timer(vcpu.id, now);
                }
            }
        }
        if now >= self.consolidation.look_at {
            self.look_at_load(now);
        }
    }

    /// The scheduler's view of a vCPU changes from sleeping to ready.
    pub fn wake(&mut self, id: VcpuId) {
        if self.scheduler.state(id) != Some(State::Sleeping) {
            return;
        }
        let now = timer::now();
        let Some(vcpu) = self.vcpu(id) else { return };
        vcpu.begin_waiting(now);
        self.scheduler.wake(id);
        self.reschedule |= self.scheduler.matters(id);
    }

    /// The scheduler's view of a vCPU changes to sleeping.
    pub fn sleep(&mut self, id: VcpuId, state: u64) {
        let now = timer::now();
        if let Some(vcpu) = self.vcpu(id) {
            vcpu.end_waiting(now);
            vcpu.status.state = state;
        }
        self.scheduler.sleep(id);
        self.reschedule = true;
    }

    /// As [`Self::sleep`], for the guest that just asked for it: it ran, so it
    /// was not waiting.
    pub fn loaded_sleeps(&mut self) {
        if let Some(vcpu) = self.loaded.as_deref_mut() {
            vcpu.status.state = vcpu_state::SLEEPING;
            self.scheduler.sleep(vcpu.id);
            self.reschedule = true;
        }
    }

    /// Books the time since the last change, and who has the core now.
    pub fn account(&mut self, current: Option<VcpuId>, now: Instant) {
        let code = current.map_or(NOBODY, |id| u64::from(id.0));
        if self.status.current == code {
            return;
        }
        let taken = now.since(self.since).0;
        let previous = VcpuId(self.status.current as u8);
        if self.status.current == NOBODY {
            self.status.idle += taken;
        } else {
            let still_ready = self.scheduler.is_ready(previous);
            // One that is not loaded had its turn for work of ours.
            let in_kernel = if self.is_loaded(previous) { General::kernel_mode() } else { 0 };
            if let Some(vcpu) = self.vcpu(previous) {
                vcpu.status.run += taken;
                if still_ready {
                    vcpu.preempt(in_kernel, now);
                }
            }
        }
        self.since = now;
        self.status.since = now.0;
        self.status.current = code;
        if let Some(vcpu) = current.and_then(|id| self.vcpu(id)) {
            vcpu.end_waiting(now);
            vcpu.status.state = vcpu_state::RUNNING;
            vcpu.status.switches += 1;
        }
    }

    /// Something was posted for these vCPUs of a VM: looks after its own and
    /// tells the others' cores.
    pub fn notify(&mut self, vm: usize, effects: Effects) {
        if effects.notify == 0 {
            return;
        }
        let table = &self.system.vms[vm];
        let count = usize::from(table.vcpu_count);
        for index in sched::Members(u64::from(effects.notify)).take_while(|&index| index < count) {
            let id = usize::from(table.vcpu_first) + index;
            let owner = PLACES[id].find();
            if owner == self.index {
                self.attend(VcpuId(id as u8));
            } else {
                self.tell(owner, Message::Vcpus, id, self.is_urgent(id));
            }
        }
    }

    /// Whether a vCPU has to be reached while a real-time one runs. Not if it can do
    /// nothing: a sibling could take the core from that one for ever.
    pub fn is_urgent(&self, id: usize) -> bool {
        self.system.vcpus[id].flags & vcpu_flags::URGENT != 0 && POWER[id].hears()
    }

    /// A vCPU of this core may have new interrupts.
    pub fn attend(&mut self, id: VcpuId) {
        let Some(vcpu) = self.vcpu(id) else { return };
        if !vcpu.on {
            return;
        }
        if self.is_loaded(id) {
            self.with_interface(|interface, gic, hw| interface.sync(gic, hw));
        }
        self.wake(id);
        if self.concerned >> id.0 & 1 == 1 {
            self.interrupted(id);
        }
        self.hurry(id);
    }

    /// A sibling that runs here may wait for what this vCPU does about an
    /// interrupt, and would spin for the rest of its quantum.
    pub fn hurry(&mut self, id: VcpuId) {
        let Some(vcpu) = self.vcpus[usize::from(id.0)].as_deref() else { return };
        let vm = vcpu.vm;
        if vcpu.may_meet_siblings
            && self.loaded_is_current()
            && self.loaded.as_ref().is_some_and(|loaded| loaded.vm == vm)
        {
            self.reschedule |= self.scheduler.hurry(id);
        }
    }

    /// Sends a message to another core, and rings if that is needed; urgently, if
    /// a real-time vCPU that runs there must not keep it waiting.
    pub fn tell(&self, core: usize, message: Message, member: usize, urgent: bool) {
        if MAILBOXES[core].send(message, member) {
            self.ring(core, urgent);
        }
    }

    /// Rings though what was sent may not be new.
    pub fn ring(&self, core: usize, urgent: bool) {
        let doorbell = if urgent { gic::DOORBELL_REALTIME } else { gic::DOORBELL };
        gic::ring(self.bells[core], doorbell);
    }

    /// Does something with the loaded vCPU's list registers that answers how
    /// many interrupts it put there.
    pub fn with_interface(
        &mut self,
        act: impl FnOnce(&mut CpuInterface, &el2::vgic::Gic, &mut Loaded) -> usize,
    ) {
        let mut hw = Loaded::new(self.interface);
        let Some(vcpu) = self.loaded.as_deref_mut() else { return };
        let listed = act(&mut vcpu.interface, &vcpu.shared.gic, &mut hw);
        vcpu.status.injected += listed as u64;
        if hw.notify != 0 {
            let vm = vcpu.vm;
            self.notify(vm, Effects { notify: hw.notify, deactivate: None });
        }
    }
}
