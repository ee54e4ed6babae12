//! A vCPU as its owner sees it.

use crate::arch::context::{Float, General, Space, System};
use crate::arch::cpu;
use crate::arch::ich::Saved;
use crate::arch::timer::{self, Timer};
use crate::consolidation;
use crate::policies;
use crate::shared;
use abi::status::{VcpuStatus, vcpu_state};
use abi::system::vm_flags;
use el2::power::Entry;
use el2::vgic::interface::CpuInterface;
use sched::policy::{Displaced, Habit, Policy, Stay, Then, View};
use sched::{Instant, VcpuId};

/// Exactly one core has the exclusive reference to each.
#[repr(C)]
pub struct Vcpu {
    /// First: the exception vectors store into it.
    pub general: General,
    /// EL1's registers.
    pub system: System,
    /// The virtual timer.
    pub timer: Timer,
    /// The physical timer, which is emulated.
    pub physical_timer: Timer,
    /// It asserts its interrupt, as of when it was last looked at.
    pub physical_timer_asserted: bool,
    /// The virtual CPU interface's registers.
    pub saved_interface: Saved,
    /// Its guest has not yet ended the virtual timer's interrupt; valid while
    /// not loaded.
    pub timer_held: bool,
    /// How long before its virtual timer fires it gets its core, ticks; 0: not
    /// before.
    pub lead: u64,
    /// When it has to be woken for its virtual timer; valid while not loaded.
    pub wakes_at: Instant,
    /// What is in the list registers and why.
    pub interface: CpuInterface,
    /// Floating point; current while no core says it has it loaded.
    pub float: Float,
    /// Who it is.
    pub id: VcpuId,
    /// Index of its VM.
    pub vm: usize,
    /// What its VM's vCPUs share.
    pub shared: &'static shared::Vm,
    /// Its VM's memory as it may use it now, and who it is in there.
    pub space: Space,
    /// Which view of it that is.
    pub view: View,
    /// Its VM has several, and this machine can tell them apart.
    pub has_views: bool,
    /// What its policy lets it execute, elsewhere and at its base.
    usual_views: [View; 2],
    /// The interrupts of its VM's devices come to the core where it is: it is the first
    /// one, and there are devices.
    pub has_devices: bool,
    /// What becomes of it when others take its core.
    pub policy: &'static dyn Policy,
    /// What that says when it is displaced: asked beforehand, as this is on the
    /// way of a real-time guest.
    when_displaced: [Then; Displaced::ALL.len()],
    /// It may leave when it arrives at a base that is taken.
    pub leaves_when_displaced: bool,
    /// Its index in the VM.
    pub index: usize,
    /// It shares a core with other vCPUs of its VM, or may come to.
    pub may_meet_siblings: bool,
    /// Its VM is a real-time one.
    pub realtime: bool,
    /// Switched on.
    pub on: bool,
    /// Whether it could run when it left the core it comes from.
    pub ready_on_arrival: bool,
    /// Away from its base there may be better places.
    pub moves_on: bool,
    /// What it does away from its base.
    pub habit: Habit,
    /// What it has had of the core where it is a visitor.
    pub stay: Stay,
    /// Its VM's epoch when it was switched on.
    pub epoch: u32,
    /// Something the hypervisor does in this vCPU's time before it runs.
    pub work: Work,
    /// Since when it could run and did not.
    pub suspended_since: Option<Instant>,
    /// All ones if it was preempted in kernel mode then, else 0.
    pub preempted_in_kernel: u64,
    /// What it counts.
    pub status: &'static mut VcpuStatus,
    /// Stolen time in nanoseconds, as its guest reads it.
    pub stolen_ns: &'static mut u64,
}

/// Work that is done in pieces, between which interrupts are taken, in the time
/// and at the priority of a vCPU.
#[derive(Clone, Copy, Debug)]
pub enum Work {
    /// None: it runs its guest.
    None,
    /// Filling the VM's memory.
    Load {
        /// The next among the VM's loads.
        piece: usize,
        /// Bytes of it that are done.
        done: u64,
    },
    /// Telling why the VM cannot go on.
    Report {
        /// The next line.
        line: usize,
        /// What happened.
        cause: Cause,
    },
}

/// Why a guest cannot go on.
#[derive(Clone, Copy, Debug)]
pub struct Cause {
    /// In words.
    pub what: &'static str,
    /// ESR_EL2.
    pub syndrome: u64,
    /// FAR_EL2.
    pub address: u64,
}

impl Vcpu {
    /// Off, as after reset.
    pub fn new(
        id: VcpuId,
        system: &abi::system::System,
        status: &'static mut VcpuStatus,
        stolen_ns: &'static mut u64,
    ) -> Self {
        let table = &system.vcpus[usize::from(id.0)];
        let (vm, index) = (usize::from(table.vm), usize::from(table.index));
        let realtime = system.vms[vm].is(vm_flags::REALTIME);
        let on_its_core =
            |other: &&abi::system::Vcpu| other.vm == table.vm && other.pcpu == table.pcpu;
        let siblings =
            system.vcpus.iter().take(system.header.vcpu_count as usize).filter(on_its_core).count();
        let policy = policies::of(system, usize::from(id.0));
        let leaves =
            |other: &abi::system::Vcpu| consolidation::places(system, other) != 1 << other.pcpu;
        let vm_moves = system
            .vcpus
            .iter()
            .take(system.header.vcpu_count as usize)
            .any(|other| other.vm == table.vm && leaves(other));
        // One that shares its core with nobody it should give way to stays.
        let moves = table.havens != 0;
        let view = usual_view(policy, moves, true);
        let roots = &system.vms[vm].stage2_pa;
        Self {
            general: General::default(),
            system: System::reset(),
            timer: Timer::default(),
            physical_timer: Timer::default(),
            physical_timer_asserted: false,
            saved_interface: Saved::reset(),
            timer_held: false,
            lead: timer::ns_to_ticks(table.timer_lead_ns.into()),
            wakes_at: timer::NEVER,
            interface: CpuInterface::new(index),
            float: Float::new(),
            id,
            vm,
            shared: &shared::VMS[vm],
            space: Space::new(system.vms[vm].stage2_pa[view as usize], vm as u64 + 1, index as u64),
            view,
            has_views: roots[0] != roots[1] && cpu::has_xnx(),
            usual_views: [false, true].map(|at_base| usual_view(policy, moves, at_base)),
            has_devices: index == 0
                && system.spis[..system.header.spi_count as usize]
                    .iter()
                    .any(|spi| spi.vm as usize == vm),
            when_displaced: Displaced::ALL.map(|seen| policy.displaced(seen)),
            leaves_when_displaced: policy.needs().leaves_when_displaced,
            policy,
            index,
            may_meet_siblings: siblings > 1 || vm_moves,
            ready_on_arrival: false,
            moves_on: policies::moves_on(system, usize::from(id.0)),
            habit: Habit::default(),
            stay: Stay::default(),
            epoch: 0,
            realtime,
            on: false,
            work: Work::None,
            suspended_since: None,
            preempted_in_kernel: 0,
            status,
            stolen_ns,
        }
    }

    /// On, about to execute its first instruction.
    pub fn switch_on(&mut self, entry: Entry, epoch: u32) {
        self.epoch = epoch;
        self.general = General::starting_at(entry.pc, entry.x0);
        self.system = System::reset();
        self.timer = Timer::default();
        self.physical_timer = Timer::default();
        self.physical_timer_asserted = false;
        self.saved_interface = Saved::reset();
        self.timer_held = false;
        self.wakes_at = timer::NEVER;
        self.interface = CpuInterface::starting(self.index);
        self.float = Float::new();
        self.on = true;
    }

    /// Lets it execute what `view` does, from when it is loaded next.
    pub fn set_view(&mut self, system: &abi::system::System, view: View) {
        if self.view != view {
            let root = system.vms[self.vm].stage2_pa[view as usize];
            self.space = Space::new(root, self.vm as u64 + 1, self.index as u64);
            self.view = view;
        }
    }

    /// What its policy says when it is displaced.
    pub fn when_displaced(&self, seen: Displaced) -> Then {
        self.when_displaced[seen.index()]
    }

    /// What its policy lets it execute at its base, or elsewhere.
    pub fn usual_view(&self, at_base: bool) -> View {
        self.usual_views[usize::from(at_base)]
    }

    /// Off: nothing wakes it but a request to switch it on.
    pub fn switch_off(&mut self) {
        self.on = false;
        self.wakes_at = timer::NEVER;
    }

    /// It leaves the hardware, switched on: notes when its virtual timer has to wake it. A
    /// timer whose interrupt the guest still has tells it nothing new: it comes
    /// again when the guest has ended that.
    pub fn note_wake(&mut self) {
        let deadline = if self.timer_held { timer::NEVER } else { self.timer.deadline() };
        self.wakes_at = Instant(deadline.0.saturating_sub(self.lead));
    }

    /// Whether interrupts were posted since its list registers were filled.
    pub fn has_news(&self) -> bool {
        self.interface.has_news(&self.shared.gic)
    }

    /// Whether there may be interrupts that its list registers do not show, for lack of
    /// room too.
    pub fn has_unlisted(&self) -> bool {
        self.interface.has_unlisted(&self.shared.gic)
    }

    /// It can run now but does not.
    pub fn begin_waiting(&mut self, now: Instant) {
        self.status.state = vcpu_state::SUSPENDED;
        self.suspended_since = Some(now);
        self.preempted_in_kernel = 0;
    }

    /// It could run on but does not; `in_kernel` is all ones if its guest was in
    /// kernel mode, else 0.
    pub fn preempt(&mut self, in_kernel: u64, now: Instant) {
        self.begin_waiting(now);
        self.preempted_in_kernel = in_kernel;
        self.status.kernel_preemptions += in_kernel & 1;
    }

    /// It runs, or sleeps: the time it waited for the core is stolen time
    /// (Arm DEN0057A, section 3.2.2).
    pub fn end_waiting(&mut self, now: Instant) {
        if let Some(since) = self.suspended_since.take() {
            let waited = now.since(since).0;
            self.status.stolen += waited;
            self.status.kernel_preempted += waited & self.preempted_in_kernel;
            *self.stolen_ns = timer::ticks_to_ns(self.status.stolen);
        }
    }
}

/// One that shares its core with nobody it should give way to executes anything.
fn usual_view(policy: &dyn Policy, moves: bool, at_base: bool) -> View {
    if moves { policy.view(at_base) } else { View::Full }
}
