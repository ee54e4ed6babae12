//! A vCPU, as the core that owns it sees it.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`config`] | what never changes about it |
//! | [`context`], [`physical_timer`] | its guest's registers, on the hardware and in memory; the emulated timer |
//! | [`holds`], [`peek`] | why it is at its ceiling; what its guest's Linux counts of its locks |
//! | [`account`] | how long it ran, and how long it waited |
//! | [`roster`] | which vCPUs a core owns, and which of them is on the hardware |

mod account;
mod config;
mod context;
mod holds;
mod peek;
mod physical_timer;
mod roster;

pub use account::Account;
pub use config::{VcpuConfig, boost, budget, params, yields};
pub use context::{Listing, Loaded, Parked};
pub use holds::{Change, Ending, Holds, byte as hold_byte};
pub use roster::Roster;

use crate::arch::context::{self as hardware, Float, General, Space};
use crate::arch::debug::Debug;
use crate::arch::monitors::Monitors;
use crate::parts::{Advance, Cause};
use abi::system::System;
use context::Context;
use physical_timer::PhysicalTimer;
use sched::policy::{Activations, Mode, ModeBias, Request, Stay, View};
use sched::server::Account as Budget;
use sched::{Members, VcpuId};
use vgic::interface::CpuInterface;

/// A vCPU. Exactly one core has the exclusive reference to it: as [`Parked`], or as
/// [`Loaded`].
#[repr(C)]
pub struct Vcpu {
    /// General registers; first, because the exception vectors store into it. Its return
    /// state is valid while the vCPU is [`Parked`].
    general: General,
    context: Context,
    /// What is in the list registers, and why.
    interface: CpuInterface,
    physical_timer: PhysicalTimer,
    account: Account,
    /// Why it is at its ceiling.
    holds: Holds,
    config: VcpuConfig,
    /// How long before its virtual timer fires it gets its core now, ticks.
    timer_advance: Advance,
    /// The stage-2 tables that it uses now, and which of the VM's vCPUs it is.
    space: Space,
    /// The view that these tables are.
    view: View,
    on: bool,
    /// The guest has asked by a call that the vCPU not be preempted.
    is_held: bool,
    /// What its line said when it was read last: what it runs.
    said: u64,
    extras: Extras,
    /// The VM's epoch when it was switched on.
    epoch: u32,
    /// Why its guest cannot go on, while that is reported.
    failure: Option<Cause>,
    /// It could run when it left the core it comes from.
    left_ready: bool,
    /// True if it was mostly in programs or in its kernel, away from its base.
    mode_bias: ModeBias,
    /// What it usually does where it displaces others, if that is observed.
    activations: Activations,
    /// How much of its turn it has had where it is a visitor.
    stay: Stay,
    /// The budget while it is between two cores; else the scheduler of its core has that.
    budget: Option<Budget>,
    /// Floating point; valid while no core has it on its hardware, where it stays until
    /// another vCPU uses it.
    float: Float,
    /// What its guest has set, on the hardware or not.
    debug: Debug,
    monitors: Monitors,
    /// Something is to be done when it has left the hardware: its cycle counter counts, or what it
    /// wrote may cause a system error.
    leaves_work: bool,
}

/// What it takes to load a vCPU besides putting its registers on the hardware, in bits: most take
/// nothing, which a switch sees by one look.
#[derive(Clone, Copy)]
struct Extras(u8);

impl Extras {
    /// It may share a core with other vCPUs of its VM.
    const SIBLINGS: u8 = 1 << 0;
    /// Those may have another view.
    const VIEWS: u8 = 1 << 1;
    /// The breakpoints and watchpoints act.
    const DEBUG: u8 = 1 << 2;
    /// The cycle counter counts.
    const MONITORS: u8 = 1 << 3;

    fn new(config: &VcpuConfig) -> Self {
        match (config.may_meet_siblings(), config.has_views()) {
            (false, _) => Self(0),
            (true, false) => Self(Self::SIBLINGS),
            (true, true) => Self(Self::SIBLINGS | Self::VIEWS),
        }
    }

    fn set(&mut self, extra: u8, to: bool) {
        self.0 = self.0 & !extra | if to { extra } else { 0 };
    }
}

// The exception vectors store a guest's registers where TPIDR_EL2 points: at the vCPU.
const _: () = assert!(core::mem::offset_of!(Vcpu, general) == 0);

impl Vcpu {
    /// Makes a vCPU that is off, as after reset.
    pub fn new(config: VcpuConfig, account: Account, holds: Holds) -> Self {
        let view = config.usual_view(true);
        Self {
            general: General::default(),
            context: Context::reset(),
            interface: CpuInterface::new(config.index()),
            physical_timer: PhysicalTimer::default(),
            space: space(&config, view),
            view,
            on: false,
            is_held: false,
            said: 0,
            extras: Extras::new(&config),
            epoch: 0,
            failure: None,
            left_ready: false,
            mode_bias: ModeBias::default(),
            activations: Activations::default(),
            stay: Stay::default(),
            budget: None,
            float: Float::new(),
            debug: Debug::default(),
            monitors: Monitors::RESET,
            leaves_work: config.may_cause_errors(),
            timer_advance: Advance::of(config.timer_advance()),
            config,
            account,
            holds,
        }
    }

    /// Returns what never changes of it.
    #[inline]
    pub fn config(&self) -> &VcpuConfig {
        &self.config
    }

    /// Returns its number in the system.
    #[inline]
    pub fn id(&self) -> VcpuId {
        self.config.id()
    }

    /// Returns the index of its VM.
    #[inline]
    pub fn vm(&self) -> usize {
        self.config.vm()
    }

    /// Returns its index in the VM.
    #[inline]
    pub fn index(&self) -> usize {
        self.config.index()
    }

    /// Returns its account, to be written.
    #[inline]
    pub fn account(&mut self) -> &mut Account {
        &mut self.account
    }

    /// Returns how long before its virtual timer fires it gets its core now, ticks; 0: not before.
    #[inline]
    pub fn timer_advance(&self) -> u64 {
        self.timer_advance.ticks()
    }

    /// Records what its line says that it runs. Returns what that said before.
    pub fn says(&mut self, task: u64) -> u64 {
        core::mem::replace(&mut self.said, task)
    }

    /// Returns true if it has this index in its VM, and may have sections.
    #[inline(always)]
    pub fn is_for_itself(&self, index: u64) -> bool {
        self.config.index() as u64 == index && self.config.sections().is_some()
    }

    /// Begins a section by its own call. Returns true if it has no other; none if it has too
    /// many.
    #[inline(always)]
    pub fn begin_own_section(&mut self) -> Option<bool> {
        let first = self.holds.begin()?;
        if first {
            self.account.count_raise();
        }
        Some(first)
    }

    /// Ends a section by its own call. Returns true if it was its last one; none if it has none.
    #[inline(always)]
    pub fn end_own_section(&mut self) -> Option<bool> {
        self.holds.end()
    }

    /// Begins to end all of its sections, and to give up these mutexes.
    pub fn begin_to_end_sections(&mut self, mutexes: Members) {
        self.holds.begin_to_end(mutexes);
    }

    /// Returns true if they are being ended, and that is not done.
    pub fn is_ending_sections(&self) -> bool {
        self.holds.is_ending()
    }

    /// Returns the next piece of that, once; none if all is done.
    pub fn next_section_to_end(&mut self) -> Option<Ending> {
        self.holds.next_to_end()
    }

    /// Ends all sections that calls of its siblings have begun.
    pub fn forget_calls(&mut self) -> Change {
        self.holds.set_called(false)
    }

    /// Ends all sections that it has begun itself.
    pub fn forget_own_sections(&mut self) -> Change {
        self.holds.forget_own()
    }

    /// Looks whether calls of its siblings raise it.
    #[inline(always)]
    pub fn follow_calls(&mut self) -> Change {
        // The description gives it none.
        let Some(sections) = self.config.sections() else { return Change::None };
        let change = self.holds.set_called(sections.is_raised());
        self.count_raise(change)
    }

    /// Records what its guest is to read of a mutex, see [`Holds::set`].
    #[inline(always)]
    pub fn set_hold(&mut self, mutex: usize, byte: u8) -> Change {
        let change = self.holds.set(mutex, byte);
        let raises = self.config.sections().is_some();
        self.count_raise(if raises { change } else { change.without_ceiling() })
    }

    #[inline(always)]
    fn count_raise(&mut self, change: Change) -> Change {
        if change == Change::More {
            self.account.count_raise();
        }
        change
    }

    /// Returns what its core knows of a mutex that it may hold, as its guest reads it.
    #[cfg(test)]
    pub fn holds_of(&self, mutex: usize) -> u8 {
        self.holds.of(mutex)
    }

    /// Returns true if its core knows that calls raise it.
    #[cfg(test)]
    pub fn is_called(&self) -> bool {
        self.holds.is_called()
    }

    /// Returns how many reasons there are for it to be at its ceiling.
    #[cfg(any(test, feature = "checked"))]
    pub fn reasons_to_be_raised(&self) -> usize {
        self.config.sections().map_or(0, |_| self.holds.reasons())
    }

    /// Returns true if it is switched on.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// Records whether its guest asks by a call that it not be preempted.
    pub fn hold(&mut self, asks: bool) {
        self.is_held = asks;
    }

    /// Returns true if its guest asks that it not be preempted. It is loaded.
    pub fn asks(&self, system: &System) -> bool {
        match (self.config.request(), self.config.line()) {
            (Request::Call, _) => self.is_held,
            (Request::Page, Some(line)) => line.asks(),
            (Request::Peek, _) => {
                hardware::guest_mode() == Mode::Kernel && peek::counts(system, self.config.vm())
            }
            (Request::Mask, _) => hardware::guest_masks_interrupts(),
            _ => false,
        }
    }

    /// Returns its VM's epoch when it was switched on.
    #[inline]
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Returns what its guest may execute.
    pub fn view(&self) -> View {
        self.view
    }

    /// Gives it a view, which takes effect when it is loaded next.
    #[inline(always)]
    pub fn set_view(&mut self, view: View) {
        if self.view != view {
            self.space = space(&self.config, view);
            self.view = view;
        }
    }

    /// Gives it the view that its policy demands at its base, or elsewhere. The view takes
    /// effect when it is loaded next.
    #[inline(always)]
    pub fn set_usual_view(&mut self, at_base: bool) {
        self.set_view(self.config.usual_view(at_base));
    }

    /// Records that it leaves its core for another one; `ready`: it could run here.
    #[inline]
    pub fn leaves(&mut self, ready: bool) {
        self.left_ready = ready;
    }

    /// Returns true if it could run when it left the core it comes from.
    pub fn left_ready(&self) -> bool {
        self.left_ready
    }

    /// Returns the budget that it takes along to the next core, to be changed: none if it is on a
    /// core.
    pub fn packed_budget(&mut self) -> &mut Option<Budget> {
        &mut self.budget
    }

    /// Returns true if it has its budget itself: it is between two cores.
    #[cfg(any(test, feature = "checked"))]
    pub fn has_budget_packed(&self) -> bool {
        self.budget.is_some()
    }

    /// Begins a visit on this core.
    pub fn begin_visit(&mut self) {
        self.stay = Stay::begin(self.account.ran());
    }

    /// Returns true if it has had its turn where it is a visitor.
    pub fn visit_is_over(&self) -> bool {
        self.stay.is_over(self.account.ran(), self.config.quantum())
    }

    /// Returns what it usually does where it displaces others, to be updated.
    #[inline(always)]
    pub fn activations(&mut self) -> &mut Activations {
        &mut self.activations
    }

    /// Returns its mode bias, to be updated.
    pub fn mode_bias(&mut self) -> &mut ModeBias {
        &mut self.mode_bias
    }

    /// Returns true if loading it takes more than putting its registers on the hardware.
    #[inline(always)]
    pub fn has_extras(&self) -> bool {
        self.extras.0 != 0
    }

    /// Returns true if its breakpoints and watchpoints act, so that the hardware needs them.
    #[inline(always)]
    pub fn debugs(&self) -> bool {
        self.extras.0 & Extras::DEBUG != 0
    }

    /// Returns true if its cycle counter counts while it is loaded.
    #[inline(always)]
    pub fn counts_cycles(&self) -> bool {
        self.extras.0 & Extras::MONITORS != 0
    }

    /// Returns true if something is to be done when it has left the hardware.
    #[inline(always)]
    pub fn leaves_work(&self) -> bool {
        self.leaves_work
    }

    /// Returns its performance monitors, which pause and go on as it leaves the hardware and returns.
    #[cold]
    pub fn monitors(&mut self) -> &mut Monitors {
        &mut self.monitors
    }

    /// Returns true if a sibling that was loaded before it may have had another view.
    #[inline(always)]
    pub fn differs_in_view(&self) -> bool {
        self.extras.0 & Extras::VIEWS != 0
    }

    /// Puts its breakpoints and watchpoints on the hardware.
    #[cold]
    pub fn load_debug(&self) {
        self.debug.load();
    }

    /// Makes the hardware use its stage-2 tables, and so its view.
    #[inline(always)]
    pub fn enter_space(&self) {
        self.space.enter();
    }

    /// Forgets what TLBs hold of its VM's stage-2 tables, and of its VM's own, on all cores.
    pub fn forget_space(&self) {
        self.space.forget();
    }

    /// Records that it can run and waits for its core: until it has that, other cores need not
    /// tell this one what they post.
    pub fn begin_wait(&self) {
        if self.config.may_be_left_waiting() {
            self.config.shared().gic.begin_wait(self.config.index());
        }
    }

    /// Records that it has its core, or sleeps: what is posted from now on is told. What was
    /// posted before has to be looked for next.
    #[inline(always)]
    pub fn end_wait(&self) {
        self.config.shared().gic.end_wait(self.config.index());
    }

    /// Returns true if interrupts were posted since its list registers were filled.
    #[inline(always)]
    pub fn has_news(&self) -> bool {
        self.interface.has_news(&self.config.shared().gic)
    }

    /// Returns true if there may be interrupts that are not in its list registers, because
    /// they are new or there was no room.
    #[inline(always)]
    pub fn has_unlisted(&self) -> bool {
        self.interface.has_unlisted(&self.config.shared().gic)
    }
}

#[cfg(any(test, feature = "checked"))]
impl Vcpu {
    /// Returns true if the work at its list registers has stopped in its middle.
    pub fn is_partly_listed(&self) -> bool {
        self.interface.is_unfinished()
    }

    /// Asserts what must always hold for it.
    pub fn check(&self) {
        self.interface.check(&self.config.shared().gic);
    }
}

/// Returns the stage-2 tables of a view, for a vCPU.
#[inline(always)]
fn space(config: &VcpuConfig, view: View) -> Space {
    Space::new(config.root(view), config.vm() as u64 + 1, config.index() as u64)
}
