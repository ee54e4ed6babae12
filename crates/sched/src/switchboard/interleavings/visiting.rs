//! A vCPU that goes from core to core while its base wants it back
//! ([`crate::Recalls`]).

use super::*;
use crate::VcpuSet;

const BASE: usize = 0;
const HOSTS: [usize; 2] = [1, 2];

struct World {
    machine: Machine<3>,
    /// How many cores use the vCPU right now.
    users: AtomicU64,
    over: AtomicU64,
}

impl World {
    /// The vCPU is on the first host.
    fn new() -> Arc<Self> {
        Arc::new(Self {
            machine: Machine::new(HOSTS[0]),
            users: AtomicU64::new(1),
            over: AtomicU64::new(0),
        })
    }

    fn give(&self, to: usize) {
        assert_eq!(self.users.fetch_sub(1, Ordering::Relaxed), 1);
        self.machine.hand_over(MOVER, to);
    }

    /// Takes the vCPU, which has come.
    fn receive(&self, at: usize) -> Received {
        assert_eq!(self.users.fetch_add(1, Ordering::Relaxed), 0, "two cores have one vCPU");
        self.machine.board.received(MOVER, at, BASE, true)
    }

    /// A core that sends a visitor on `leaves` times, then keeps it until it is
    /// called back.
    fn host(&self, at: usize, mut owns: bool, mut leaves: usize) {
        let other = HOSTS[0] + HOSTS[1] - at;
        let board = &self.machine.board;
        while self.over.load(Ordering::Relaxed) == 0 {
            for step in moves(board.mailbox(at).take_moves()) {
                let back = match step {
                    Move::Receive(_) => {
                        owns = true;
                        self.receive(at) == Received::Visitor { wanted: true }
                    }
                    Move::SendBack(_) => owns,
                };
                if back && board.may_return(at, BASE) {
                    owns = false;
                    self.give(BASE);
                }
            }
            if owns && leaves > 0 {
                (owns, leaves) = (false, leaves - 1);
                self.give(other);
                continue;
            }
            self.machine.wait(at);
        }
    }

    /// The base wants its vCPU back, and gets it.
    fn base(&self) {
        let board = &self.machine.board;
        board.want(VcpuSet::of(MOVER));
        if let Recall::Asked { core, wake } = board.recall(MOVER, BASE) {
            self.machine.wake(core, wake);
        }
        let mut is_back = false;
        while !is_back {
            for step in moves(board.mailbox(BASE).take_moves()) {
                assert_eq!(step, Move::Receive(MOVER));
                assert_eq!(self.receive(BASE), Received::AtBase);
                is_back = true;
            }
            if !is_back {
                self.machine.wait(BASE);
            }
        }
        self.over.store(1, Ordering::Relaxed);
        HOSTS.into_iter().for_each(|host| self.machine.wake(host, true));
    }
}

/// The first host sends its visitor on, and the second one back to it as often as
/// said, while the base wants it. It comes back whatever the messages meet, once,
/// and no core waits for ever.
fn returns(leaves: [usize; 2]) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(move || {
        let world = World::new();
        let hosts: Vec<_> = HOSTS
            .into_iter()
            .zip(leaves)
            .map(|(at, leaves)| {
                let world = world.clone();
                thread::spawn(move || world.host(at, at == HOSTS[0], leaves))
            })
            .collect();
        world.base();
        for host in hosts {
            host.join().unwrap();
        }
    });
}

#[test]
fn a_visitor_that_stays_returns() {
    returns([0, 0]);
}

#[test]
fn a_visitor_that_goes_on_returns() {
    returns([1, 0]);
}

#[test]
fn a_visitor_that_goes_to_and_fro_returns() {
    returns([1, 1]);
}
