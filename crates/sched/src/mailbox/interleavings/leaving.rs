//! A core that leaves, is wanted again, and comes back
//! ([`crate::consolidation::Presence`]).

use super::*;
use crate::consolidation::Presence;

const CORE: usize = 0;
const SHELTER: usize = 1;

struct World {
    moving: Moving,
    presence: Presence<AtomicU8>,
    /// PSCI CPU_ON.
    power: Notify,
}

impl World {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            moving: Moving {
                cores: [Core::new(), Core::new()],
                place: Place::within(AtomicU8::new(CORE as u8)),
                posted: AtomicU64::new(0),
                registers: AtomicU64::new(0),
                users: AtomicU64::new(0),
            },
            presence: Presence::within(AtomicU8::new(0)),
            power: Notify::new(),
        })
    }

    /// The core asks its shelter for its vCPU.
    fn recall(&self) {
        let shelter = &self.moving.cores[SHELTER];
        if shelter.mailbox.send(Message::Recalls, usize::from(MOVER.0)) {
            shelter.doorbell.notify();
        }
    }

    /// Takes the vCPU in if it has come. Answers whether.
    fn take_in(&self, at: usize, scheduler: &mut Scheduler, expected: u64) -> bool {
        let arrivals = self.moving.cores[at].mailbox.take(Message::Arrivals);
        let came = arrivals.count() == 1;
        if came {
            self.moving.use_it(expected);
            self.moving.place.arrived();
            scheduler.arrive(MOVER, PARAMS, true).unwrap();
        }
        came
    }

    /// Runs the vCPU if it is here and may have something.
    fn run(&self, scheduler: &mut Scheduler) -> u64 {
        if scheduler.decide(Instant(0)).run.is_none() {
            return 0;
        }
        scheduler.sleep(MOVER);
        self.moving.posted.swap(0, Ordering::Relaxed)
    }

    /// What the shelter does until it has sent the vCPU back: as
    /// `Pcpu::read_mail`, it takes recalls before arrivals, and heeds them only if
    /// the core is there. Once it has the vCPU it wants the core back. Answers
    /// what its guest took.
    fn shelter(&self) -> u64 {
        let (mut scheduler, mut taken, mut called) = (Scheduler::new(), 0, false);
        loop {
            let core = &self.moving.cores[SHELTER];
            let recalled = core.mailbox.take(Message::Recalls).count() == 1;
            self.take_in(SHELTER, &mut scheduler, 1);
            if recalled && scheduler.has(MOVER) && !self.presence.is_away() {
                self.moving.give(&mut scheduler, CORE);
                return taken;
            }
            for vcpu in core.mail() {
                scheduler.wake(vcpu);
            }
            taken += self.run(&mut scheduler);
            if scheduler.has(MOVER) && !called {
                called = true;
                self.power.notify();
            }
            core.doorbell.wait();
        }
    }

    /// The core has its vCPU back; its guest waits for an interrupt, unless it
    /// has had it.
    fn back(&self, taken_elsewhere: impl FnOnce() -> u64) {
        let mut scheduler = Scheduler::new();
        let core = &self.moving.cores[CORE];
        while !self.take_in(CORE, &mut scheduler, 2) {
            core.doorbell.wait();
        }
        let mut taken = taken_elsewhere();
        loop {
            for vcpu in core.mail() {
                scheduler.wake(vcpu);
            }
            taken += self.run(&mut scheduler);
            if taken == 1 {
                return;
            }
            core.doorbell.wait();
        }
    }
}

/// A core gives its vCPU away and is off; the shelter wants it back. Meanwhile
/// another core posts an interrupt, and may tell the one that is off; or a recall
/// of a former time is still under way. The vCPU has one owner at a time and is
/// back in the end, its interrupt is seen, and nobody waits for ever.
fn leaves_and_returns(stale_recall: bool) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(move || {
        let world = World::new();
        let poster = (!stale_recall).then(|| {
            let poster = world.clone();
            thread::spawn(move || {
                poster.moving.posted.fetch_or(1, Ordering::Relaxed);
                let owner = poster.moving.place.find();
                poster.moving.cores[owner].tell(MOVER);
            })
        });
        let shelter = world.clone();
        let shelter = thread::spawn(move || shelter.shelter());
        if stale_recall {
            world.moving.posted.fetch_or(1, Ordering::Relaxed);
            world.recall();
        }
        let mut scheduler = Scheduler::new();
        scheduler.arrive(MOVER, PARAMS, true).unwrap();
        world.moving.use_it(0);
        world.presence.leaves();
        world.moving.give(&mut scheduler, SHELTER);
        world.power.wait();
        // Whatever came is for vCPUs that are elsewhere.
        let _ = world.moving.cores[CORE].mail();
        world.presence.returns();
        world.recall();
        world.back(|| shelter.join().unwrap());
        if let Some(poster) = poster {
            poster.join().unwrap();
        }
    });
}

#[test]
fn a_core_that_leaves_has_its_vcpu_back_when_it_returns() {
    leaves_and_returns(false);
}

#[test]
fn a_stale_recall_sends_nothing_to_a_core_that_is_off() {
    leaves_and_returns(true);
}
