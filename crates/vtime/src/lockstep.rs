//! The lockstep for threads: one per emulated core, and QEMU's main loop.
//!
//! Every method is called by the thread it concerns. Three of them wait:
//! [`Lockstep::check_in`], which is called only between blocks of translated code,
//! where a thread holds no lock of QEMU's, and [`Lockstep::wait_for_kick`] and
//! [`Lockstep::wait_to_go_on`], before which a thread gives its lock back.

mod event;
mod slot;

use crate::machine::{
    Counts, Effects, LeaveReason, MAX_VCPUS, Machine, MainLoop, State, Verdict, Woken,
};
use crate::rate::ClockRate;
use crate::stall::{self, Stall};
use event::Event;
use slot::Slot;
pub use slot::TRIP;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Release},
};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long nothing may go on before a core that waits leaves for one block
/// without being asked to. Nothing is known that needs it; see
/// [`LeaveReason::Timeout`]. Long, for a block that is run out of turn makes it
/// another run, and a host with much else to do has been seen to leave the one
/// thread that could go on without a processor for 0.6 s.
const SAFEGUARD: Duration = Duration::from_secs(10);

/// What the lockstep needs of its surroundings.
pub trait Host: Send + Sync {
    /// The instruction counter of a core, which translated code advances.
    fn counter(&self, vcpu: usize) -> u64;
    /// Sets it. Called only by the core's own thread.
    fn set_counter(&self, vcpu: usize, value: u64);
    /// Wakes the main loop from its poll.
    fn poke_main_loop(&self);
}

/// What may be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How far a core may run ahead of the others, in ns of virtual time.
    pub quantum_ns: u64,
    /// The cores' clock rate.
    pub rate: ClockRate,
    /// True if cores take turns instead of running at the same time.
    pub serial: bool,
    /// How many rounds a core spins before its thread sleeps. Sleeping and
    /// being woken costs more than a quantum, so that two busy cores which take
    /// turns spend nine tenths of their time on it.
    pub spins: u32,
    /// The host's processors. No thread spins while more cores than that are
    /// awake: the core it waits for may be the one without a processor.
    pub processors: usize,
}

/// A view of one core, for statistics and reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VcpuView {
    /// What it does.
    pub state: State,
    /// The thread waits for something else than an interrupt.
    pub blocked: bool,
    /// The wait is over, and its thread has yet to go on.
    pub called: bool,
    /// The own time in ns.
    pub time_ns: u64,
    /// Instructions it has retired.
    pub instructions: u64,
    /// Time it has slept, in ns.
    pub idle_ns: u64,
    /// How often it left the lockstep for one block, in the order of
    /// [`LeaveReason`].
    pub leaves: [u64; 3],
}

/// A view of the whole, for statistics and reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Global time in ns.
    pub now_ns: u64,
    /// What the main loop does.
    pub main_loop: MainLoop,
    /// How often things happened.
    pub counts: Counts,
    /// Every core.
    pub vcpus: Vec<VcpuView>,
}

/// The lockstep of a running QEMU.
pub struct Lockstep<H> {
    config: Config,
    host: H,
    machine: Mutex<Machine>,
    /// Global time, for threads that only read it.
    now_ns: AtomicU64,
    slots: Vec<Slot>,
    events: Vec<Event>,
    /// When cores execute nothing.
    stalls: Vec<Stall>,
}

impl<H: Host> Lockstep<H> {
    /// A lockstep at time zero without cores.
    pub fn new(config: Config, host: H) -> Self {
        Self {
            config,
            host,
            machine: Mutex::new(Machine::new(config.quantum_ns, config.serial)),
            now_ns: AtomicU64::new(0),
            slots: (0..MAX_VCPUS).map(|_| Slot::default()).collect(),
            events: (0..MAX_VCPUS).map(|_| Event::default()).collect(),
            stalls: Vec::new(),
        }
    }

    /// Lets cores execute nothing at some times.
    #[must_use]
    pub fn with_stalls(self, stalls: Vec<Stall>) -> Self {
        Self { stalls, ..self }
    }

    /// The surroundings given to [`Lockstep::new`].
    pub fn host(&self) -> &H {
        &self.host
    }

    /// Global time in ns: the time of every thread that is not a core.
    pub fn now_ns(&self) -> u64 {
        self.now_ns.load(Acquire)
    }

    /// A core's own time in ns. Called by its own thread.
    pub fn vcpu_time_ns(&self, vcpu: usize) -> u64 {
        self.slots[vcpu].time_ns(self.host.counter(vcpu), self.config.rate)
    }

    /// A core's own time in ns before the latest `instructions` that its counter has. Called by its own
    /// thread.
    pub fn vcpu_time_before_ns(&self, vcpu: usize, instructions: u64) -> u64 {
        let counter = self.host.counter(vcpu).wrapping_sub(instructions);
        self.slots[vcpu].time_ns(counter, self.config.rate)
    }

    /// A core comes into being.
    pub fn add_vcpu(&self, vcpu: usize) {
        let mut machine = self.lock();
        machine.add(vcpu);
        self.stop(vcpu);
        self.anchor(vcpu, machine.now_ns());
    }

    /// A core is taken out of the machine.
    pub fn remove_vcpu(&self, vcpu: usize) {
        self.update(|machine| machine.remove(vcpu));
    }

    /// Called before a block that crosses the core's limit. Returns when the
    /// core may run that block.
    pub fn check_in(&self, vcpu: usize) {
        let slot = &self.slots[vcpu];
        let armed = slot.take_armed();
        let time_ns = self.vcpu_time_ns(vcpu);
        self.update(|machine| machine.check_in(vcpu, time_ns, armed).except(vcpu));
        // What had gone on when the last wait came to nothing.
        let mut stuck_at = None;
        loop {
            let (verdict, awake, changes, held) = {
                let machine = self.lock();
                (machine.verdict(vcpu), machine.awake(), machine.changes(), machine.is_held())
            };
            match verdict {
                Verdict::Run { limit_ns } => return self.allot(vcpu, limit_ns),
                Verdict::Leave(reason) => return self.leave(vcpu, reason),
                Verdict::Wait if stuck_at == Some(changes) => {
                    return self.leave(vcpu, LeaveReason::Timeout);
                }
                Verdict::Wait => {
                    let spins = if awake <= self.config.processors { self.config.spins } else { 0 };
                    let in_time = self.events[vcpu].wait(spins, SAFEGUARD);
                    stuck_at = (!in_time && !held).then_some(changes);
                }
            }
        }
    }

    /// Lets the core's time go on behind its stall, if it stalls now. Called before
    /// [`Lockstep::check_in`], which waits until the others have come as far; the counter has the `block`
    /// instructions of the next block already.
    pub fn pass_stall(&self, vcpu: usize, block: u64) {
        let now_ns = self.vcpu_time_before_ns(vcpu, block);
        if let Some(end_ns) = stall::end(&self.stalls, vcpu, now_ns) {
            let slot = &self.slots[vcpu];
            slot.change(|| slot.anchor(self.host.counter(vcpu).wrapping_sub(block), end_ns));
        }
    }

    /// The core may have armed a timer: its next block checks in.
    pub fn armed(&self, vcpu: usize) {
        let slot = &self.slots[vcpu];
        slot.arm();
        self.stop(vcpu);
    }

    /// The core has told the main loop of something.
    pub fn notified(&self, vcpu: usize) {
        self.update(Machine::notify_main_loop);
        self.armed(vcpu);
    }

    /// The core goes to sleep.
    pub fn sleep(&self, vcpu: usize) {
        let time_ns = self.vcpu_time_ns(vcpu);
        self.update(|machine| machine.sleep(vcpu, time_ns));
    }

    /// Returns when the core, which has gone to sleep, has been kicked: a kick since
    /// [`Lockstep::sleep`] counts. Called while its thread holds no lock that others need.
    ///
    /// A condition of the C library's will not do, as it forgets: not all that kick a core
    /// hold the lock it sleeps under, and on one processor the thread that runs next has
    /// mostly kicked it before it waits.
    pub fn wait_for_kick(&self, vcpu: usize) {
        while matches!(self.lock().state(vcpu), State::Idle { .. }) {
            self.events[vcpu].wait(0, SAFEGUARD);
        }
    }

    /// Wakes a core on behalf of core `by`, or of a thread that is not a core.
    pub fn kick(&self, vcpu: usize, by: Option<usize>) {
        let by_ns = by.map(|by| self.vcpu_time_ns(by));
        let woken = {
            let mut machine = self.lock();
            let at_ns = by_ns.unwrap_or_else(|| machine.now_ns());
            let woken = machine.kick(vcpu, at_ns);
            // It sleeps; one that waits to go on may be called upon now.
            let sleeper = woken.then_some(vcpu);
            sleeper.into_iter().chain(machine.called_on()).for_each(|next| self.events[next].set());
            woken
        };
        if let Some(by) = by.filter(|_| woken && self.config.serial) {
            // It waits until the other one is up: what both do next must not
            // depend on when the host gets to that.
            self.stop(by);
        }
    }

    /// The core's thread is up after a sleep.
    pub fn resume(&self, vcpu: usize) {
        let resumed = self.lock().resume(vcpu);
        if let Some((at_ns, limit_ns)) = resumed {
            self.anchor(vcpu, at_ns);
            if limit_ns <= at_ns {
                self.slots[vcpu].arm();
            }
            self.allot(vcpu, limit_ns);
        }
    }

    /// The core's thread begins or ends a wait for another core.
    pub fn set_blocked(&self, vcpu: usize, blocked: bool) {
        self.update(|machine| machine.set_blocked(vcpu, blocked));
        if self.config.serial && !blocked {
            // Cores that left for this core's sake come back before it runs on.
            self.stop(vcpu);
        }
    }

    /// Ends the wait of a core's thread, which is still to get going.
    pub fn release(&self, vcpu: usize) {
        self.update(|machine| machine.release(vcpu));
    }

    /// The core's thread, whose sleep or wait is over, would like to go on. Returns
    /// whether it may; then it does.
    #[must_use]
    pub fn go_on(&self, vcpu: usize) -> bool {
        self.lock().go_on(vcpu)
    }

    /// Returns when the core's thread, whose sleep or wait is over, may go on. Called
    /// while it holds no lock that others need to come to a stop.
    pub fn wait_to_go_on(&self, vcpu: usize) {
        let mut stuck_at = None;
        loop {
            let (may, changes, held) = {
                let mut machine = self.lock();
                (machine.go_on(vcpu), machine.changes(), machine.is_held())
            };
            if may {
                return;
            }
            if stuck_at == Some(changes) {
                return self.lock().force_on(vcpu);
            }
            let in_time = self.events[vcpu].wait(0, SAFEGUARD);
            stuck_at = (!in_time && !held).then_some(changes);
        }
    }

    /// The main loop's thread begins or ends a wait for cores.
    pub fn set_main_loop_blocked(&self, blocked: bool) {
        self.update(|machine| machine.set_main_loop_blocked(blocked));
    }

    /// The main loop goes to sleep until `deadline_ns`. Returns whether it must
    /// not, because that is reached already or the machine is held.
    pub fn settle(&self, deadline_ns: Option<u64>) -> bool {
        self.update(|machine| machine.settle(deadline_ns));
        matches!(self.lock().main_loop(), MainLoop::Due | MainLoop::Held { .. })
    }

    /// The main loop is awake. Returns why.
    pub fn unsettle(&self) -> Woken {
        self.lock().unsettle()
    }

    /// Asks for a hold of the machine at `at_ns`, or for none, in place of the
    /// one before. Called by the main loop while it is awake.
    pub fn hold_at(&self, at_ns: Option<u64>) {
        self.lock().hold_at(at_ns);
    }

    /// What all of them do.
    pub fn view(&self) -> View {
        let machine = self.lock();
        let vcpus = (0..machine.vcpus()).map(|vcpu| {
            let (slot, counter) = self.slots[vcpu].observe(|| self.host.counter(vcpu));
            VcpuView {
                state: machine.state(vcpu),
                blocked: machine.is_blocked(vcpu),
                called: machine.is_called(vcpu),
                time_ns: slot.time_ns(counter, self.config.rate),
                instructions: slot.instructions(counter),
                idle_ns: machine.idle_ns(vcpu),
                leaves: [LeaveReason::Stall, LeaveReason::MainLoop, LeaveReason::Timeout]
                    .map(|reason| machine.leaves(vcpu, reason)),
            }
        });
        View {
            now_ns: machine.now_ns(),
            main_loop: machine.main_loop(),
            counts: machine.counts(),
            vcpus: vcpus.collect(),
        }
    }

    /// The core's next block checks in. Called by its own thread.
    fn stop(&self, vcpu: usize) {
        self.set_counter(vcpu, Slot::trip);
    }

    /// Lets the core's time go on from `at_ns`, after a sleep. Called by its own thread.
    fn anchor(&self, vcpu: usize, at_ns: u64) {
        let slot = &self.slots[vcpu];
        slot.change(|| slot.anchor(self.host.counter(vcpu), at_ns));
    }

    /// Lets the core run up to `limit_ns`, or to its next stall. Called by its own thread.
    fn allot(&self, vcpu: usize, limit_ns: u64) {
        let limit_ns = stall::limit(&self.stalls, vcpu, self.vcpu_time_ns(vcpu), limit_ns);
        self.set_counter(vcpu, |slot, counter| slot.allot(counter, limit_ns, self.config.rate));
    }

    fn set_counter(&self, vcpu: usize, next: impl FnOnce(&Slot, u64) -> u64) {
        let slot = &self.slots[vcpu];
        slot.change(|| self.host.set_counter(vcpu, next(slot, self.host.counter(vcpu))));
    }

    /// Lets the core run one block. Its counter stays where it is, so that the
    /// next block checks in again.
    fn leave(&self, vcpu: usize, reason: LeaveReason) {
        self.lock().leave(vcpu, reason);
    }

    fn update(&self, change: impl FnOnce(&mut Machine) -> Effects) {
        let mut machine = self.lock();
        let mut effects = change(&mut machine);
        effects.unpark |= machine.called_on().map_or(0, |vcpu| 1 << vcpu);
        self.now_ns.store(machine.now_ns(), Release);
        drop(machine);
        self.carry_out(effects);
    }

    fn carry_out(&self, effects: Effects) {
        let mut rest = effects.unpark;
        while rest != 0 {
            self.events[rest.trailing_zeros() as usize].set();
            rest &= rest - 1;
        }
        if effects.poke {
            self.host.poke_main_loop();
        }
    }

    /// A panic elsewhere must not hide behind a poisoned lock: the machine is
    /// consistent between its methods.
    fn lock(&self) -> MutexGuard<'_, Machine> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
