//! Lock holder preemption: an SMP guest with one lock, beside a real-time vCPU on its first core.
//!
//! Each of the guest's vCPUs computes for a while, takes the lock, and releases it; one that finds it
//! held spins. The real-time vCPU takes core 0 once in each period. What becomes of the guest's first
//! vCPU then is what [`sched::policy`] says, with the very [`Activations`] that EL2 keeps. All vCPUs that are
//! on one core take turns, and none of them loses its turn in its kernel, as at EL2.
//!
//! Time goes in steps of [`STEP_NS`]. What a switch and a migration take is what `cassata bench el2`
//! has counted. There are no caches and no sleeping vCPUs, so no core ever idles; the lock is the
//! only thing by which vCPUs depend on each other, where a Linux also has cross-calls, wake-ups and
//! a scheduler that notices slow CPUs.

use sched::policy::{Activations, Choice, Displaced, MigrationPolicy, Mode, Patience, Then};
use sched::{Duration, Instant};

/// A step, nanoseconds.
pub const STEP_NS: u64 = 100;
/// Cores, and vCPUs of the guest: each has one.
pub const CORES: usize = 4;
/// How long vCPUs of a core run in turn, nanoseconds.
const QUANTUM_NS: u64 = 100_000;
/// How long a vCPU holds the lock, nanoseconds: by chance, evenly.
const SECTION_NS: (u64, u64) = (400, 1_600);

/// What the guest does: two extremes, between which a Linux lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// The vCPUs compute, for long and mostly in programs, and do not depend on each other but by the
    /// lock.
    Apart,
    /// They pass messages, and are mostly in their kernels: one that is some sections ahead of another
    /// sleeps until that has caught up.
    Together,
}

impl Work {
    /// Returns how long a vCPU is outside of the lock, nanoseconds.
    const fn between_ns(self) -> (u64, u64) {
        match self {
            Self::Apart => (20_000, 140_000),
            Self::Together => (3_000, 13_000),
        }
    }

    /// Returns how many sections a vCPU may be ahead of another one.
    const fn lead(self) -> u64 {
        match self {
            Self::Apart => u64::MAX,
            Self::Together => 16,
        }
    }
}

/// What EL2 takes, nanoseconds: the medians of `docs/src/measuring.md`.
mod el2 {
    /// A switch to the real-time vCPU.
    pub const WAKE: u64 = 714;
    /// A switch from it.
    pub const SLEEP: u64 = 596;
    /// A departure beyond the wake, on the core that is left and on the other.
    pub const DEPARTURE: [u64; 2] = [160, 769];
    /// A return beyond the sleep, likewise.
    pub const RETURN: [u64; 2] = [592, 870];
    /// How long the vCPU is under way: there, and back.
    pub const UNDER_WAY: [u64; 2] = [1_770, 1_190];
    /// A visit by which the vCPU is asked again.
    pub const ASKED_AGAIN: u64 = 882;
    /// A decision of [`super::Activations`].
    pub const CHOICE: u64 = 60;
}

/// What the real-time vCPU does.
#[derive(Clone, Debug)]
pub struct Rtos {
    /// From one release to the next, nanoseconds.
    pub period_ns: u64,
    /// How long it runs each time, one after the other, from the first again.
    pub activations_ns: Vec<u64>,
    /// How long before its release it has its core; 0: nothing foretells it.
    pub advance_ns: u64,
}

impl Rtos {
    /// Returns one that runs for so many thousandths of each period, and 500 ns at least.
    #[must_use]
    pub fn steady(period_ns: u64, load_permille: u64, advance_ns: u64) -> Self {
        let activation = (period_ns * load_permille / 1_000).max(500);
        Self { period_ns, activations_ns: vec![activation], advance_ns }
    }
}

/// What became of both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Critical sections of the guest.
    pub sections: u64,
    /// How often its first vCPU left.
    pub departures: u64,
    /// Activations of the real-time vCPU.
    pub activations: u64,
    /// From its release until it ran, nanoseconds: the sum.
    pub latency_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    Computes { left: u64 },
    Sleeps,
    Spins,
    Holds { left: u64 },
}

#[derive(Clone, Copy, Debug)]
struct Vcpu {
    core: usize,
    does: Does,
    sections: u64,
    /// It is under way until then.
    arrives: u64,
}

impl Vcpu {
    /// Returns true if it may lose its turn.
    fn may_wait(&self) -> bool {
        matches!(self.does, Does::Computes { .. } | Does::Sleeps)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Core {
    /// EL2 has it for so long, nanoseconds.
    el2: u64,
    /// The vCPU that has its turn, and since when.
    turn: (usize, u64),
}

/// The real-time vCPU while it has its core.
#[derive(Clone, Copy, Debug)]
struct Active {
    begun: u64,
    release: u64,
    left: u64,
    started: bool,
    /// When it is asked again what becomes of the other.
    again: Option<u64>,
}

struct World<'a> {
    rtos: &'a Rtos,
    work: Work,
    policy: MigrationPolicy,
    patience: Patience,
    activations: Activations,
    ran: u64,
    active: Option<Active>,
    next: u64,
    vcpus: [Vcpu; CORES],
    cores: [Core; CORES],
    /// vCPUs that spin, the first one first.
    queue: Vec<usize>,
    goes_next: usize,
    random: u64,
    seen: Outcome,
}

/// Simulates so long, nanoseconds. `policy` is one that answers when a vCPU is displaced.
#[must_use]
pub fn simulate(
    rtos: &Rtos,
    work: Work,
    policy: MigrationPolicy,
    length_ns: u64,
    seed: u64,
) -> Outcome {
    let vcpu = |core| Vcpu { core, does: Does::Computes { left: 1 }, sections: 0, arrives: 0 };
    let mut world = World {
        rtos,
        work,
        policy,
        patience: Patience::new(|ns| ns),
        activations: Activations::new(),
        ran: 0,
        active: None,
        next: rtos.period_ns,
        vcpus: [0, 1, 2, 3].map(vcpu),
        cores: [0, 1, 2, 3].map(|turn| Core { el2: 0, turn: (turn, 0) }),
        queue: Vec::new(),
        goes_next: 1,
        random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
        seen: Outcome::default(),
    };
    for now in (0..length_ns).step_by(STEP_NS as usize) {
        world.step(now);
    }
    world.seen
}

impl World<'_> {
    fn step(&mut self, now: u64) {
        if self.active.is_none() && now + self.rtos.advance_ns >= self.next {
            self.wake(now);
        }
        let is_due = |active: Active| active.again.is_some_and(|again| now >= again);
        if self.active.is_some_and(is_due) {
            self.cores[0].el2 += el2::ASKED_AGAIN;
            self.ask(now);
        }
        for core in 0..CORES {
            if self.cores[core].el2 > 0 {
                self.cores[core].el2 = self.cores[core].el2.saturating_sub(STEP_NS);
            } else if core == 0 && self.active.is_some() {
                self.run_rtos(now);
            } else if let Some(vcpu) = self.whose_turn(core, now) {
                self.run(vcpu);
            }
        }
    }

    fn wake(&mut self, now: u64) {
        let count = self.rtos.activations_ns.len() as u64;
        let left = self.rtos.activations_ns[(self.seen.activations % count) as usize];
        let (release, begun) = (self.next, now);
        self.active = Some(Active { begun, release, left, started: false, again: None });
        self.next = release + self.rtos.period_ns;
        self.seen.activations += 1;
        self.cores[0].el2 += el2::WAKE;
        self.ask(now);
    }

    /// Asks what becomes of the first vCPU.
    fn ask(&mut self, now: u64) {
        let (vcpu, mode) = (self.vcpus[0], self.mode(self.vcpus[0]));
        let Some(active) = &mut self.active else { return };
        active.again = None;
        let ready = vcpu.does != Does::Sleeps;
        let seen = Displaced { ready, idle_core: false };
        let says = self.policy.policy().displaced(seen);
        if says == Then::LeaveIfItPays {
            self.cores[0].el2 += el2::CHOICE;
        }
        if vcpu.core != 0 {
            return;
        }
        let foreseen = now < active.release;
        let choice = match says {
            Then::LeaveUntilFree => Choice::LeaveAfter(Instant(now)),
            Then::LeaveIfItPays => self.activations.choose(Instant(active.begun), foreseen),
            _ => return,
        };
        match choice {
            Choice::WaitUntil(Instant(again)) => active.again = Some(again),
            Choice::LeaveAfter(_) => {
                self.activations.meets(mode);
                let to = self.goes_next;
                self.goes_next = to % (CORES - 1) + 1;
                self.cores[0].el2 += el2::DEPARTURE[0];
                self.send(to, now + el2::UNDER_WAY[0], el2::DEPARTURE[1]);
                self.seen.departures += 1;
            }
        }
    }

    fn send(&mut self, to: usize, arrives: u64, costs: u64) {
        self.vcpus[0].core = to;
        self.vcpus[0].arrives = arrives;
        self.cores[to].el2 += costs;
        if to != 0 {
            // The core yields to it.
            self.cores[to].turn = (0, arrives);
        }
    }

    fn run_rtos(&mut self, now: u64) {
        let Some(active) = &mut self.active else { return };
        if now < active.release {
            return;
        }
        if !active.started {
            active.started = true;
            self.seen.latency_ns += now - active.release;
        }
        active.left = active.left.saturating_sub(STEP_NS);
        if active.left > 0 {
            return;
        }
        self.ran += now - active.begun;
        if self.vcpus[0].core == 0 {
            self.activations.meets(self.mode(self.vcpus[0]));
        }
        self.activations.learn(Duration(self.ran), &self.patience);
        self.active = None;
        self.cores[0].el2 += el2::SLEEP;
        let from = self.vcpus[0].core;
        if from != 0 {
            self.cores[from].el2 += el2::RETURN[1];
            self.cores[from].turn = (from, now);
            self.send(0, now + el2::UNDER_WAY[1], el2::RETURN[0]);
            self.cores[0].turn = (0, now);
        }
    }

    /// Returns the vCPU that runs on a core.
    fn whose_turn(&mut self, core: usize, now: u64) -> Option<usize> {
        let is_here = |id: &usize| {
            let vcpu = &self.vcpus[*id];
            vcpu.core == core && vcpu.arrives <= now && vcpu.does != Does::Sleeps
        };
        let (has, since) = self.cores[core].turn;
        let mut others = (0..CORES).filter(|id| *id != has).filter(is_here);
        if !is_here(&has) {
            let next = others.next()?;
            self.cores[core].turn = (next, now);
        } else if now.saturating_sub(since) >= QUANTUM_NS
            && self.vcpus[has].may_wait()
            && let Some(next) = others.next()
        {
            self.cores[core].turn = (next, now);
        }
        Some(self.cores[core].turn.0)
    }

    fn run(&mut self, id: usize) {
        let does = match self.vcpus[id].does {
            Does::Sleeps => Does::Sleeps,
            Does::Computes { left } if left > STEP_NS => Does::Computes { left: left - STEP_NS },
            Does::Computes { .. } => {
                self.queue.push(id);
                Does::Spins
            }
            Does::Spins if self.queue[0] == id => Does::Holds { left: self.pick(SECTION_NS) },
            Does::Spins => Does::Spins,
            Does::Holds { left } if left > STEP_NS => Does::Holds { left: left - STEP_NS },
            Does::Holds { .. } => {
                self.queue.remove(0);
                self.seen.sections += 1;
                self.vcpus[id].sections += 1;
                Does::Computes { left: self.pick(self.work.between_ns()) }
            }
        };
        self.vcpus[id].does = does;
        if matches!(does, Does::Computes { .. }) {
            self.wait_for_each_other();
        }
    }

    /// Lets those sleep that are too far ahead, and the others go on.
    fn wait_for_each_other(&mut self) {
        let Some(last) = self.vcpus.iter().map(|vcpu| vcpu.sections).min() else { return };
        for id in 0..CORES {
            let Vcpu { does, sections, .. } = self.vcpus[id];
            let is_ahead = sections - last > self.work.lead();
            self.vcpus[id].does = match does {
                Does::Computes { .. } if is_ahead => Does::Sleeps,
                Does::Sleeps if !is_ahead => {
                    Does::Computes { left: self.pick(self.work.between_ns()) }
                }
                does => does,
            };
        }
    }

    /// Returns the mode of a vCPU: one that passes messages is seldom in a program.
    fn mode(&self, vcpu: Vcpu) -> Mode {
        let computes = matches!(vcpu.does, Does::Computes { .. });
        if computes && self.work == Work::Apart { Mode::User } else { Mode::Kernel }
    }

    /// Returns a number between these (xorshift64).
    fn pick(&mut self, (least, most): (u64, u64)) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        least + self.random % (most - least)
    }
}
