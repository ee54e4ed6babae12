//! One physical core: its parts, and the loop that asks them and carries out what they
//! answer. `impl Pcpu` stands in this folder only.
//!
//! | module | what it carries out |
//! | --- | --- |
//! | [`run_loop`](self) | the scheduler's decisions |
//! | `ready` | vCPUs wake and sleep, and take turns on the core |
//! | `budgets` | a vCPU idles its budget away, or waits for the next |
//! | `sections` | vCPUs are raised to their ceilings; mutexes |
//! | `switch` | unloading one vCPU, loading another |
//! | `timers` | EL2's timer, and what happens when it fires |
//! | `interrupts` | physical interrupts, by number |
//! | `mail` | messages between cores |
//! | `displacement`, `coscheduling` | what policies say when a vCPU takes another's core |
//! | `views`, `preemption` | what a guest may execute; what it says of its locks; delayed preemption |
//! | `handover` | vCPUs leave for other cores, and arrive |
//! | `visitors` | vCPUs that are away from their bases move on, or back |
//! | [`requests`] | what guests and an operator ask for: where vCPUs are, what policy a VM has |
//! | `timer_advance` | a real-time vCPU gets its core before its timer fires |
//! | `consolidation` | cores with little to do are powered down |
//! | `lifecycle`, `jobs` | VMs start, stop and fail |
//! | `links`, `virtio` | doorbells of links; what one VM does for another one's devices |
//! | `watchdog` | a core that takes no interrupts is reported |
//! | `notes` | what the trace has of some of that |
//! | `console` | all consoles over one UART |

#[cfg(test)]
mod at_rest;
mod boosts;
mod budgets;
#[cfg(any(test, feature = "checked"))]
mod check;
pub mod console;
mod consolidation;
mod coscheduling;
mod displacement;
mod handover;
mod interrupts;
mod jobs;
mod lifecycle;
mod links;
mod mail;
mod notes;
mod preemption;
mod ready;
pub mod requests;
mod run_loop;
pub mod sections;
mod switch;
mod timer_advance;
mod timers;
mod views;
pub mod virtio;
mod visitors;
mod watchdog;

pub use consolidation::returning;

use crate::arch::gic::virtual_interface::Interface;
use crate::arch::gic::{self, Redistributor};
use crate::arch::{cpu, timer};
use crate::parts::{
    Consolidation, Coordination, Deadlines, Displacement, IdleNews, Jobs, KernelWait, Ledger,
    Precedence, PriorityMask, Standing, TimerAdvance, Visitors, Watchdog,
};
use crate::shared::EPOCH;
use crate::status::trace::{Kind, Trace};
use crate::vcpu::{Loaded, Parked, Roster, Vcpu, boost, budget, params, yields};
use abi::status::{Exit, PcpuStatus, VmStatus};
use abi::system::{System, vm_flags};
use abi::{MAX_PCPUS, MAX_VMS};
use console::Console;
use core::sync::atomic::Ordering;
use sched::policy::Patience;
use sched::topology::Topology;
use sched::{CoreSet, Duration, Instant, Member, Scheduler, Unread, VcpuId, VcpuSet};

/// See the module. In this order: what every visit reads comes first, within reach of one
/// load.
#[repr(C)]
pub struct Pcpu {
    /// The scheduler has to be asked before a guest runs again.
    need_resched: bool,
    /// vCPUs of one VM may share this core, and are yielded to: a guest's WFE traps.
    siblings_meet: bool,
    /// vCPUs come here from other cores, or leave for them: guests' maintenance of caches and
    /// TLBs reaches all cores.
    vcpus_change: bool,
    mask: PriorityMask,
    /// When the current stay at EL2 began.
    entered: Instant,
    /// The virtual CPU interface.
    interface: Interface,
    redistributor: Redistributor,
    /// What the host decided.
    system: &'static System,
    /// The index in the system's table.
    index: usize,
    /// The vCPUs that it may ever own: its scheduler has them all.
    known: VcpuSet,
    /// Records what is booked and decided.
    trace: Trace,
    ledger: Ledger,
    deadlines: Deadlines,
    timer_advance: TimerAdvance,
    visitors: Visitors,
    kernel_wait: KernelWait,
    idle_news: IdleNews,
    consolidation: Consolidation,
    roster: Roster,
    displacement: Displacement,
    scheduler: Scheduler,
    jobs: Jobs,
    precedence: Precedence,
    watchdog: Watchdog,
    coordination: Coordination,
    /// How to ring each core.
    bells: [u64; MAX_PCPUS],
    /// Where vCPUs of each VM may be.
    places: [CoreSet; MAX_VMS],
    /// Messages that it has taken and not read.
    unread: Unread,
    /// The core that drives the UART.
    uart_core: usize,
    /// The physical UART, if this core drives it.
    console: Option<&'static mut Console>,
}

/// Returns what says whether a vCPU's pieces come before others' guests.
fn standing(system: &System, id: VcpuId) -> Standing {
    let table = system.vcpu(id.number());
    let vm = usize::from(table.vm);
    Standing {
        vm,
        is_realtime: system.vm(vm).is(vm_flags::REALTIME),
        is_urgent: table.is_urgent(),
        is_lower: table.is_lower(),
        priority: table.priority,
    }
}

impl Pcpu {
    /// Takes a core over that owns no vCPU yet, with its hardware.
    pub fn new(
        index: usize,
        system: &'static System,
        topology: &Topology<'_>,
        status: &'static mut PcpuStatus,
        trace: Trace,
        console: Option<&'static mut Console>,
    ) -> Self {
        let now = timer::now();
        let redistributor = interrupts::start_redistributor(index, system);
        let displacement = Displacement::new(topology, index, Patience::new(timer::ns_to_ticks));
        let siblings_meet = topology.siblings_meet_at(index) && yields(system);
        let residents = displacement.residents();
        let known = topology.known_at(index);
        let idle_news = IdleNews::new(topology.must_tell_idle(index));
        // The host has checked the other conditions; these two would be fatal, as would be one
        // more (`coordinate`).
        let may_leave = console.is_none() && !idle_news.is_wanted();
        let precedence = Precedence::new(known, |id| standing(system, id));
        let window = Duration(timer::ns_to_ticks(system.header.consolidation_window_ns));
        Self {
            index,
            system,
            bells: system.board.pcpu_mpidr.map(gic::bell),
            places: core::array::from_fn(|vm| topology.places_of_vm(vm)),
            unread: Unread::new((precedence.realtime() - precedence.lower()).bits()),
            uart_core: topology.uart_core(),
            known,
            scheduler: Scheduler::new(),
            roster: Roster::new(),
            ledger: Ledger::new(status, now),
            trace,
            deadlines: Deadlines::new(),
            mask: PriorityMask::new(),
            jobs: Jobs::new(),
            precedence,
            watchdog: Watchdog::new(Duration(timer::ns_to_ticks(system.header.watchdog_ns.into()))),
            kernel_wait: KernelWait::new(topology.delays_at(index)),
            visitors: Visitors::new(residents),
            displacement,
            idle_news,
            timer_advance: TimerAdvance::new(),
            consolidation: Consolidation::new(topology, index, window, may_leave),
            coordination: Coordination::new(),
            console,
            need_resched: true,
            entered: now,
            redistributor,
            interface: Interface::start(),
            siblings_meet,
            vcpus_change: topology.vcpus_change_at(index),
        }
    }

    /// Sets up what the core loses when it is powered down.
    pub fn configure(&self) {
        cpu::control_guests(self.siblings_meet, self.vcpus_change);
    }

    /// Adds all vCPUs that may come here to the scheduler, and the budgets of those that are based
    /// here: the others bring theirs. Returns one that it refused.
    pub fn introduce(&mut self) -> Result<(), VcpuId> {
        let epoch = Instant(EPOCH.load(Ordering::Relaxed));
        for id in self.known {
            let params = params(self.system, id);
            self.scheduler.arrive(id, params, false).map_err(|_| id)?;
            if self.base_of(id) == self.index
                && let Some(account) = budget(self.system, id, epoch)
            {
                self.scheduler.set_server(id, &account, timer::now());
            }
            if self.base_of(id) == self.index
                && let Some(boost) = boost(self.system, id)
            {
                self.scheduler.set_boost(id, boost).map_err(|_| id)?;
            }
        }
        Ok(())
    }

    /// Takes ownership of a vCPU that is based here.
    pub fn own(&mut self, vcpu: &'static mut Vcpu) {
        vcpu.account().is_at(self.index);
        if vcpu.config().line().is_some() {
            self.tell_crowd(vcpu, true);
        }
        self.roster.park(Parked::new(vcpu));
    }

    /// Becomes the coordinator of a VM, and starts it. This core stays on then: the VM begins, and
    /// begins again, with its first vCPU here.
    pub fn coordinate(&mut self, vm: usize, status: &'static mut VmStatus) {
        let _ = self.consolidation.stays_on();
        self.coordination.adopt(vm, status);
        self.start(vm);
    }

    /// Returns its index in the system's table.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Returns what the host decided.
    #[inline]
    pub fn system(&self) -> &'static System {
        self.system
    }

    /// Returns the vCPU whose registers are on the hardware.
    #[inline]
    pub fn loaded(&self) -> Option<&Loaded> {
        self.roster.loaded()
    }

    /// Returns the vCPU whose registers are on the hardware, to change.
    #[inline]
    pub fn loaded_mut(&mut self) -> Option<&mut Loaded> {
        self.roster.loaded_mut()
    }

    /// Counts a visit of the loaded vCPU, unless that has unloaded it.
    #[inline]
    pub fn count_exit(&mut self, cause: Exit) {
        if let Some(vcpu) = self.roster.loaded_mut() {
            vcpu.account().count_exit(cause);
            self.trace.note(Kind::Exit, vcpu.id(), cause as u32, self.entered);
        }
    }

    /// Returns true if the vCPU on the hardware has the core; else it sleeps, and left
    /// its registers there.
    #[inline]
    fn loaded_is_current(&self) -> bool {
        self.roster.loaded().is_some_and(|vcpu| self.ledger.is_current(vcpu.id()))
    }

    /// Returns the base of a vCPU.
    fn base_of(&self, id: VcpuId) -> usize {
        usize::from(self.system.vcpu(id.number()).pcpu)
    }

    /// Returns the VM of a vCPU.
    fn vm_of(&self, id: VcpuId) -> usize {
        usize::from(self.system.vcpu(id.number()).vm)
    }
}
