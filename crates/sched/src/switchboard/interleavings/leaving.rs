//! A core that leaves, is wanted again, and comes back
//! ([`crate::consolidation::Presence`]).

use super::*;

struct World {
    moving: Moving,
    /// PSCI CPU_ON.
    power: Notify,
}

impl World {
    fn new() -> Arc<Self> {
        Arc::new(Self { moving: Moving::new(), power: Notify::new() })
    }

    /// The core asks its target for its vCPU.
    fn recall(&self) {
        self.moving.machine.send(TARGET, Message::Recalls, MOVER);
    }

    /// Does what the target does until it has sent the vCPU back. Once it has the vCPU it
    /// wants the core back. Returns what the guest took here.
    fn target(&self) -> u64 {
        let (mut scheduler, mut taken, mut called) = (Scheduler::new(), 0, false);
        let machine = &self.moving.machine;
        loop {
            for step in moves(machine.board.mailbox(TARGET).take_moves()) {
                match step {
                    Move::Receive(_) => self.moving.receive(TARGET, &mut scheduler, 1),
                    Move::SendBack(_) => {
                        if scheduler.has(MOVER) && machine.board.may_return(TARGET, CORE) {
                            self.moving.give(&mut scheduler, CORE);
                            return taken;
                        }
                    }
                }
            }
            taken += self.moving.run(TARGET, &mut scheduler);
            if scheduler.has(MOVER) && !called {
                called = true;
                self.power.notify();
            }
            machine.wait(TARGET);
        }
    }

    /// The core has its vCPU back; its guest waits for an interrupt, unless it
    /// has had it.
    fn back(&self, taken_elsewhere: impl FnOnce() -> u64) {
        let mut scheduler = Scheduler::new();
        let machine = &self.moving.machine;
        while !scheduler.has(MOVER) {
            for step in moves(machine.board.mailbox(CORE).take_moves()) {
                assert_eq!(step, Move::Receive(MOVER));
                self.moving.receive(CORE, &mut scheduler, 2);
            }
            if !scheduler.has(MOVER) {
                machine.wait(CORE);
            }
        }
        let mut taken = taken_elsewhere();
        loop {
            taken += self.moving.run(CORE, &mut scheduler);
            if taken == 1 {
                return;
            }
            machine.wait(CORE);
        }
    }
}

/// A core gives its vCPU away and is off; the target wants it back. Meanwhile
/// another core posts an interrupt, and may tell the one that is off; or a recall
/// of a former time is still under way. The vCPU has one owner at a time and is
/// back in the end, its interrupt is seen, and no core waits for ever.
fn leaves_and_returns(stale_recall: bool) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(move || {
        let world = World::new();
        let poster = (!stale_recall).then(|| {
            let poster = world.clone();
            thread::spawn(move || poster.moving.machine.post(&poster.moving.posted, 1, MOVER))
        });
        let target = world.clone();
        let target = thread::spawn(move || target.target());
        if stale_recall {
            world.moving.posted.fetch_or(1, Ordering::Relaxed);
            world.recall();
        }
        let mut scheduler = Scheduler::new();
        scheduler.arrive(MOVER, PARAMS, true).unwrap();
        world.moving.use_it(0);
        world.moving.machine.board.depart(CORE);
        world.moving.give(&mut scheduler, TARGET);
        world.power.wait();
        // Whatever came is for vCPUs that are elsewhere.
        let _ = world.moving.machine.board.mailbox(CORE).take(Message::Vcpus);
        world.moving.machine.board.come_back(CORE);
        world.recall();
        world.back(|| target.join().unwrap());
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
