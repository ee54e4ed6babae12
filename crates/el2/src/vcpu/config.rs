//! What never changes about a vCPU.

use crate::arch::{cpu, timer};
use crate::bug::bug;
use crate::parts::Mask;
use crate::shared;
use crate::status;
use abi::preemption::Line;
use abi::system::{System, flags, server, vm_flags};
use core::sync::atomic::Ordering;
use sched::policy::{Answers, Displaced, Policy, Request, Then, View, next_in_rotation};
use sched::server::{Account, Server, ServerKind};
use sched::topology::Topology;
use sched::{Boost, CoreSet, Duration, Instant, Member, Params, Priority, VcpuId};

/// The number of none.
const NO_VCPU: VcpuId = VcpuId(u8::MAX);

/// Declares facts: each is a field that never changes, and the method that returns it.
macro_rules! facts {
    (
        $(#[$about:meta])*
        pub struct $name:ident {
            $($(#[$doc:meta])* $fact:ident: $type:ty,)*
            ; $($(#[$hidden_doc:meta])* $hidden:ident: $hidden_type:ty,)*
        }
    ) => {
        $(#[$about])*
        pub struct $name {
            $($fact: $type,)*
            $($(#[$hidden_doc])* $hidden: $hidden_type,)*
        }

        impl $name {
            $(
                $(#[$doc])*
                #[inline]
                pub fn $fact(&self) -> $type {
                    self.$fact
                }
            )*
        }
    };
}

facts! {
    /// What never changes about a vCPU, computed when its core starts so that no path to a
    /// guest has to compute it.
    pub struct VcpuConfig {
        /// Returns its number in the system.
        id: VcpuId,
        /// Returns its number, or that of none if interrupts boost it: to one that runs, an interrupt may
        /// matter then.
        unboosted: VcpuId,
        /// Returns the index of its VM.
        vm: usize,
        /// Returns its index in the VM.
        index: usize,
        /// Returns what its VM's vCPUs share.
        shared: &'static shared::Vm,
        /// Returns how often calls of its VM have raised it, if it may be raised.
        sections: Option<&'static shared::Sections>,
        /// Returns its line of preemption, which its guest writes too; none if its VM has none.
        line: Option<&'static Line>,
        /// Returns how its guest asks that it not be preempted.
        request: Request,
        /// Returns how long others wait for it at most, nanoseconds, or `NO_DELAY_LIMIT`.
        delay_limit_ns: u64,
        /// Returns true if it may give up its turn.
        may_yield: bool,
        /// Returns which interrupts stay pending while it runs.
        keeps: Mask,
        /// Returns its base.
        base: usize,
        /// Returns its fallback.
        fallback: usize,
        /// Returns the cores besides its base to which its policy may send it.
        elsewhere: CoreSet,
        /// Returns how long before its virtual timer fires it gets its core, ticks, at most that if
        /// it adapts; 0: not before.
        timer_advance: u64,
        /// Returns true if that is adapted to what the way to its guest takes.
        adapts_timer_advance: bool,
        /// Returns its migration policy.
        policy: &'static Policy,
        /// Returns true if its policy may make it leave when it is displaced.
        leaves_when_displaced: bool,
        /// Returns true if it may move on to another core while it is away from its base.
        is_relocatable: bool,
        /// Returns true if it goes back to its base without a recall.
        returns_by_itself: bool,
        /// Returns true if it goes where it is asked to go.
        moves_on_request: bool,
        /// Returns true if it may share a core with other vCPUs of its VM.
        may_meet_siblings: bool,
        /// Returns true if it runs before its turn where a sibling waits for it.
        is_yielded_to: bool,
        /// Returns true if an interrupt for it changes nothing while it waits for its core: it
        /// neither leaves for that, nor lets a sibling run later.
        may_be_left_waiting: bool,
        /// Returns true if the interrupts of its VM's devices come to the core where it is,
        /// because it is the VM's first vCPU, and there are devices whose interrupts do not stay.
        has_devices: bool,
        /// Returns true if it reaches registers of devices, so that what it wrote may cause a
        /// system error after it has left the hardware.
        may_cause_errors: bool,
        /// Returns true if more than the vCPU itself migrates: the interrupts of devices, an
        /// account, or what its line of preemption says of where it is.
        takes_along: bool,
        /// Returns true if its VM has several views, and this machine has FEAT_XNX.
        has_views: bool,
        ;
        /// How long it runs while equals wait.
        quantum: Duration,
        /// The pCPUs of its rotation, a bit each.
        rotation: u16,
        /// The roots of its views' tables.
        roots: [u64; abi::system::STAGE2_VIEWS],
        /// The views that its policy demands, elsewhere and at its base.
        usual_views: [View; 2],
    }
}

impl VcpuConfig {
    /// Reads it from the tables and from what follows from them.
    pub fn new(id: VcpuId, system: &System, topology: &Topology<'_>) -> Self {
        let (table, placed) = (system.vcpu(id.number()), topology.vcpu(id));
        let (vm, index) = (placed.vm, usize::from(table.index));
        let (roots, policy) = (system.vm(vm).stage2_pa, placed.policy.policy());
        let spis = &system.spis[..system.header.spi_count as usize];
        let has_devices = index == 0
            && !system.vm(vm).is(vm_flags::INTERRUPTS_STAY)
            && spis.iter().any(|spi| usize::from(spi.vm) == vm);
        Self {
            id,
            unboosted: if table.boost_window_ns > 0 { NO_VCPU } else { id },
            vm,
            index,
            shared: &shared::VMS[vm],
            sections: table.has_ceiling().then(|| &*shared::SECTIONS[id.number()]),
            line: status::line(system, vm, index),
            request: policy.request(),
            delay_limit_ns: system.vm(vm).delay_limit_ns,
            may_yield: system.vm(vm).is(vm_flags::YIELD),
            keeps: if system.header.flags & flags::PRIORITY_SEPARATION == 0 {
                Mask::Nothing
            } else {
                Mask::beside(placed.realtime, table.is_lower())
            },
            base: placed.base,
            fallback: placed.fallback,
            elsewhere: placed.elsewhere(),
            rotation: table.rotation,
            quantum: params(system, id).quantum,
            timer_advance: timer::ns_to_ticks(table.timer_advance_ns.into()),
            adapts_timer_advance: table.adapts(),
            policy,
            leaves_when_displaced: placed.needs().leaves_when_displaced,
            is_relocatable: placed.is_relocatable(),
            returns_by_itself: placed.needs().returns_by_itself,
            moves_on_request: placed.needs().moves_on_request,
            may_meet_siblings: !topology.siblings_met(id).is_empty(),
            is_yielded_to: yields(system) && !topology.siblings_met(id).is_empty(),
            may_be_left_waiting: !placed.needs().a_say
                && placed.places().len() == 1
                && topology.siblings_met(id).is_empty(),
            has_devices,
            may_cause_errors: system.vm(vm).is(vm_flags::DEVICES),
            takes_along: has_devices || table.server != server::NONE || system.vm(vm).lines_pa != 0,
            has_views: roots[0] != roots[1] && cpu::has_xnx(),
            roots,
            usual_views: [false, true].map(|at_base| placed.usual_view(at_base)),
        }
    }

    /// Returns what its policy says when it is displaced.
    #[inline]
    pub fn when_displaced(&self, seen: Displaced) -> Then {
        Answers::from_bits(self.shared.answers.load(Ordering::Relaxed)).when(seen)
    }

    /// Returns the view that its policy demands at its base, or elsewhere.
    pub fn usual_view(&self, at_base: bool) -> View {
        self.usual_views[usize::from(at_base)]
    }

    /// Returns the core that follows `here` in its rotation; none if there is no other.
    pub fn next_in_rotation(&self, here: usize) -> Option<usize> {
        next_in_rotation(self.rotation, here)
    }

    /// Returns how long its line says that others wait for it at most, nanoseconds, `u32::MAX`: as long
    /// as it takes. 0 unless its guest asks by the line: what it writes there has no effect then.
    pub fn line_grace_ns(&self) -> u32 {
        match self.request {
            Request::Page => self.delay_limit_ns.try_into().unwrap_or(u32::MAX),
            Request::None | Request::Call | Request::Peek | Request::Mask => 0,
        }
    }

    /// Returns how long it runs while equals wait.
    pub fn quantum(&self) -> Duration {
        self.quantum
    }

    /// Returns the root of the stage-2 tables of a view.
    pub fn root(&self, view: View) -> u64 {
        self.roots[view as usize]
    }
}

/// Returns true if vCPUs are yielded to at all.
pub fn yields(system: &System) -> bool {
    system.header.flags & flags::DIRECTED_YIELD != 0
}

/// Returns what the scheduler has to know of a vCPU.
pub fn params(system: &System, id: VcpuId) -> Params {
    let table = system.vcpu(id.number());
    let quantum = Duration(timer::ns_to_ticks(table.quantum_ns).max(1));
    Params { priority: Priority(table.priority), quantum }
}

/// Returns what boosts a vCPU.
pub fn boost(system: &System, id: VcpuId) -> Option<Boost> {
    let table = system.vcpu(id.number());
    if !table.may_be_boosted() {
        return None;
    }
    let ticks = |ns: u32| Duration(timer::ns_to_ticks(ns.into()).max(1));
    let is_limited = table.boost_budget_ns < table.boost_period_ns;
    Some(Boost {
        priority: Priority(table.boost_priority),
        budget: if is_limited { ticks(table.boost_budget_ns) } else { Duration::MAX },
        period: ticks(table.boost_period_ns),
        window: (table.boost_window_ns > 0).then(|| ticks(table.boost_window_ns)),
    })
}

/// Returns a vCPU's budget; `epoch` is the instant that all servers count from.
pub fn budget(system: &System, id: VcpuId, epoch: Instant) -> Option<Account> {
    let table = system.vcpu(id.number());
    let kind = match table.server {
        server::PERIODIC => ServerKind::Periodic,
        server::DEFERRABLE => ServerKind::Deferrable,
        _ => return None,
    };
    let ticks = |ns| Duration(timer::ns_to_ticks(ns));
    let (budget, period) = (ticks(table.budget_ns), ticks(table.period_ns));
    // Each is rounded up, so that their sum may be a tick above the period.
    let overrun = Duration(ticks(table.overrun_ns).0.min(period.0 - budget.0));
    let server = Server { kind, budget, period, overrun };
    match Account::open(server, epoch.after(ticks(table.offset_ns))) {
        Ok(account) => Some(account.raised_for_at_most(ticks(table.gcs_ns))),
        Err(_) => {
            bug!("a server was refused that the tables' check has passed");
            None
        }
    }
}
