//! The registers of a vCPU's guest, on the hardware and in memory.

use super::{Extras, PhysicalTimer, Vcpu};
use crate::arch::context::{self, Float, General, System};
use crate::arch::debug::{self, Debug};
use crate::arch::gic::virtual_interface::{self, After, Interface, Saved, Unloaded};
use crate::arch::monitors::{Monitor, Monitors};
use crate::arch::timer::{self, Timer};
use crate::parts::{Advance, Cause};
use crate::shared::power::Entry;
use core::ops::{Deref, DerefMut};
use sched::Instant;
use sched::policy::Mode;
use vgic::Gic;
use vgic::interface::CpuInterface;

/// Valid while the vCPU is not on the hardware.
#[repr(C)]
pub struct Context {
    /// EL1's registers.
    system: System,
    /// The virtual timer.
    timer: Timer,
    /// The virtual CPU interface's registers.
    interface: Saved,
    /// The guest has not yet ended the virtual timer's interrupt.
    timer_held: bool,
    /// When it has to be woken for its virtual timer.
    wakes_at: Instant,
}

/// What is left to do when a vCPU's registers are off the hardware.
#[derive(Clone, Copy)]
#[must_use]
pub struct Unloading {
    /// What is to be done about interrupts.
    pub after: After,
    /// The guest has not yet ended the virtual timer's interrupt.
    pub timer_held: bool,
}

/// What a change of list registers brought.
#[derive(Clone, Copy)]
#[must_use]
pub struct Listing {
    /// What is to be done about interrupts.
    pub after: After,
    /// How many interrupts were listed.
    pub listed: usize,
}

impl Context {
    /// Returns it as after reset.
    pub fn reset() -> Self {
        Self {
            system: System::reset(),
            timer: Timer::default(),
            interface: Saved::reset(),
            timer_held: false,
            wakes_at: timer::NEVER,
        }
    }
}

/// A vCPU that is not on the hardware: its registers are in memory, where they can be read
/// and changed.
pub struct Parked(&'static mut Vcpu);

/// The vCPU whose registers are on its core's hardware. It need not be running.
pub struct Loaded(&'static mut Vcpu);

impl Vcpu {
    /// Takes its floating-point registers off the hardware; the trap must be open.
    pub fn save_float(&mut self) {
        self.float.save();
    }

    /// Records when the way to its guest began.
    pub fn sets_out(&mut self, begin: Instant) {
        self.context.wakes_at = begin;
    }

    /// Adapts its timer advance, if that is to be adapted: the way to its guest, which began when it was to be
    /// woken, ends now, or does not.
    #[inline(never)]
    pub fn adapt_timer_advance(&mut self, now: Instant) {
        if self.config.adapts_timer_advance() {
            let way = now.since(self.context.wakes_at);
            self.timer_advance = self.timer_advance.after(way.0, self.config.timer_advance());
        }
    }

    /// Records whether its cycle counter counts.
    fn note_monitors(&mut self) {
        let counts = self.monitors.counts();
        self.extras.set(Extras::MONITORS, counts);
        self.leaves_work = counts || self.config.may_cause_errors();
    }
}

impl Parked {
    /// Takes charge of a vCPU that is on no core's hardware.
    #[inline(always)]
    pub fn new(vcpu: &'static mut Vcpu) -> Self {
        Self(vcpu)
    }

    /// Gives the vCPU away, for another core to take charge of it.
    #[inline(always)]
    pub fn give_away(self) -> &'static mut Vcpu {
        self.0
    }

    /// Puts its registers on the hardware, all but floating point and timer.
    #[inline(always)]
    pub fn load(mut self, hardware: Interface) -> Loaded {
        self.context.system.load();
        hardware.load(&self.context.interface);
        self.general.load_return();
        Loaded(self.0)
    }

    /// Switches it on: its guest executes its first instruction next.
    #[inline(never)]
    pub fn switch_on(&mut self, entry: Entry, epoch: u32) {
        // From here on its core is told, and it finds when it is loaded what was posted before.
        self.end_wait();
        self.epoch = epoch;
        self.is_held = false;
        self.said = 0;
        if let Some(line) = self.config.line() {
            line.begin(self.config.line_grace_ns());
        }
        self.general = General::starting_at(entry.pc, entry.x0);
        self.context = Context::reset();
        self.float = Float::new();
        self.debug = Debug::default();
        self.extras.set(Extras::DEBUG, false);
        self.monitors = Monitors::RESET;
        self.note_monitors();
        self.physical_timer = PhysicalTimer::default();
        self.interface = CpuInterface::starting(self.config.index());
        self.timer_advance = Advance::of(self.config.timer_advance());
        self.on = true;
    }

    /// Switches it off: only a request to switch it on wakes it.
    pub fn switch_off(&mut self) {
        self.on = false;
        self.config.shared().gic.begin_wait(self.config.index());
        self.context.wakes_at = timer::NEVER;
    }

    /// Records why its guest cannot go on.
    pub fn fails(&mut self, cause: Cause) {
        self.failure = Some(cause);
    }

    /// Begins to release the interrupts that it deals with: it is off.
    pub fn begin_to_release(&mut self) {
        self.0.interface.begin_to_abandon();
    }

    /// Ends the interrupts that it deals with. Returns true if that is done, false if it stops
    /// because an interrupt came; and the vCPUs of its VM (bit set by index) to be notified.
    #[must_use]
    pub fn release_interrupts(&mut self, hardware: Interface) -> (bool, u8) {
        let vcpu = &mut *self.0;
        let mut hw = Unloaded::new(&mut vcpu.context.interface, hardware);
        let done = vcpu.interface.abandon(&vcpu.config.shared().gic, &mut hw);
        (done, hw.notify)
    }

    /// Returns true if its interrupts are being released, and that is not done.
    pub fn is_releasing(&self) -> bool {
        self.interface.is_abandoned()
    }

    /// Returns when it has to be woken for its virtual timer: earlier than that fires, by its
    /// timer advance.
    #[inline(always)]
    pub fn wakes_at(&self) -> Instant {
        self.context.wakes_at
    }

    /// Returns when its virtual timer fires.
    pub fn timer_deadline(&self) -> Instant {
        self.context.timer.deadline()
    }

    /// Returns what its guest executes next.
    #[inline(always)]
    pub fn mode(&self) -> Mode {
        context::mode_of(self.general.pstate)
    }

    /// Returns what a report of its failure shows.
    pub fn registers(&self) -> (&General, &System, Option<Cause>) {
        (&self.general, &self.context.system, self.failure)
    }
}

impl Loaded {
    /// Takes its registers off the hardware, all but floating point.
    #[inline(always)]
    pub fn save(self, hardware: Interface) -> (Parked, Unloading) {
        let vcpu = self.0;
        vcpu.general.save_return();
        vcpu.context.system.save();
        vcpu.context.timer.save();
        let mut hw = virtual_interface::Loaded::new(hardware, false);
        let timer_held =
            vcpu.interface.park(&vcpu.config.shared().gic, &mut hw, timer::VIRTUAL_INTID);
        vcpu.context.timer_held = timer_held;
        // A timer whose interrupt the guest still has does not wake it: the interrupt comes
        // again when the guest has ended it.
        let deadline = if timer_held { timer::NEVER } else { vcpu.context.timer.deadline() };
        let advance = vcpu.timer_advance.ticks();
        vcpu.context.wakes_at = Instant(deadline.0.saturating_sub(advance));
        hardware.save(vcpu.interface.used(), &mut vcpu.context.interface);
        (Parked(vcpu), Unloading { after: hw.after, timer_held })
    }

    /// Puts its timer on the hardware.
    #[inline(always)]
    pub fn load_timer(&self) {
        self.context.timer.load();
    }

    /// Returns true if its guest had not yet ended the virtual timer's interrupt when it was
    /// loaded.
    #[inline(always)]
    pub fn timer_is_held(&self) -> bool {
        self.context.timer_held
    }

    /// Puts its floating-point registers on the hardware; the trap must be open.
    pub fn load_float(&self) {
        self.float.load();
    }

    /// Returns a breakpoint's or watchpoint's register, by the fields CRm and op2 of its name.
    pub fn debug_register(&self, number: u64, kind: u64) -> u64 {
        self.debug.get(number, kind)
    }

    /// Sets a breakpoint's or watchpoint's register.
    pub fn set_debug_register(&mut self, number: u64, kind: u64, value: u64) {
        self.debug.set(number, kind, value);
        if self.debugs() {
            self.load_debug();
        }
    }

    /// Sets MDSCR_EL1. The hardware may have held another vCPU's breakpoints until now.
    pub fn set_debug_control(&mut self, value: u64) {
        let acts = debug::set_control(value);
        self.extras.set(Extras::DEBUG, acts);
        if acts {
            self.load_debug();
        }
    }

    /// Sets a register of its performance monitors, if there is a value for it, and returns what it is.
    pub fn access_monitor(&mut self, register: Monitor, value: Option<u64>) -> u64 {
        let found = self.monitors.access(register, value);
        self.note_monitors();
        found
    }

    /// Calls `act`, which may change its list registers and returns how many interrupts it
    /// has listed. `awaited`: see [`virtual_interface::Loaded::new`].
    #[inline(always)]
    pub fn with_interface(
        &mut self,
        hardware: Interface,
        awaited: bool,
        act: impl FnOnce(&mut CpuInterface, &Gic, &mut virtual_interface::Loaded) -> usize,
    ) -> Listing {
        let vcpu = &mut *self.0;
        let mut hw = virtual_interface::Loaded::new(hardware, awaited);
        let listed = act(&mut vcpu.interface, &vcpu.config.shared().gic, &mut hw);
        vcpu.account.count_injected(listed);
        Listing { after: hw.after, listed }
    }

    /// Returns the list registers that are in use (bit set by number).
    #[inline(always)]
    pub fn list_registers(&self) -> u32 {
        self.interface.used()
    }

    /// Returns the general register that an instruction names.
    #[inline]
    pub fn register(&self, number: usize) -> u64 {
        self.general.get(number)
    }

    /// Sets the general register that an instruction names.
    #[inline]
    pub fn set_register(&mut self, number: usize, value: u64) {
        self.general.set(number, value);
    }

    /// Returns its guest's general registers, for a test that acts as the guest.
    #[cfg(test)]
    pub fn general(&mut self) -> &mut General {
        &mut self.general
    }
}

#[cfg(test)]
impl Vcpu {
    /// Returns its guest's general registers as of its latest exit.
    pub fn general_at_exit(&self) -> &General {
        &self.general
    }
}

macro_rules! is_vcpu {
    ($($state:ident)*) => {$(
        impl Deref for $state {
            type Target = Vcpu;

            #[inline(always)]
            fn deref(&self) -> &Vcpu {
                self.0
            }
        }

        impl DerefMut for $state {
            #[inline(always)]
            fn deref_mut(&mut self) -> &mut Vcpu {
                self.0
            }
        }
    )*};
}
is_vcpu!(Parked Loaded);
