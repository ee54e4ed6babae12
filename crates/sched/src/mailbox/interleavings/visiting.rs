//! A vCPU that goes from core to core while its base wants it back
//! ([`crate::Recalls`]).

use super::*;
use crate::Recalls;

const BASE: usize = 0;
const HOSTS: [usize; 2] = [1, 2];

struct World {
    cores: [Core; 3],
    place: Place<AtomicU8>,
    recalls: Recalls<AtomicU64>,
    /// Who uses the vCPU right now.
    users: AtomicU64,
    over: AtomicU64,
}

impl World {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            cores: [Core::new(), Core::new(), Core::new()],
            place: Place::within(AtomicU8::new(HOSTS[0] as u8)),
            recalls: Recalls::within(AtomicU64::new(0)),
            users: AtomicU64::new(0),
            over: AtomicU64::new(0),
        })
    }

    fn tell(&self, to: usize, what: Message) {
        if self.cores[to].mailbox.send(what, usize::from(MOVER.0)) {
            self.cores[to].doorbell.notify();
        }
    }

    fn give(&self, to: usize) {
        assert_eq!(self.users.fetch_sub(1, Ordering::Relaxed), 1);
        self.place.set(to);
        self.tell(to, Message::Arrivals);
    }

    /// Takes the vCPU in if it has come. Answers whether.
    fn take_in(&self, at: usize) -> bool {
        let came = self.cores[at].mailbox.take(Message::Arrivals).count() == 1;
        if came {
            assert_eq!(self.users.fetch_add(1, Ordering::Relaxed), 0, "two cores have one vCPU");
            self.place.arrived();
        }
        came
    }

    /// A core that sends a visitor on `leaves` times, then keeps it until it is
    /// called back: in the order of `Pcpu::read_mail` and `Pcpu::take_in`.
    fn host(&self, at: usize, mut owns: bool, mut leaves: usize) {
        let other = HOSTS[0] + HOSTS[1] - at;
        while self.over.load(Ordering::Relaxed) == 0 {
            let recalled = self.cores[at].mailbox.take(Message::Recalls).count() == 1;
            if self.take_in(at) {
                owns = !self.recalls.is_wanted(MOVER);
                if !owns {
                    self.give(BASE);
                }
            }
            if owns && recalled {
                owns = false;
                self.give(BASE);
            }
            if owns && leaves > 0 {
                (owns, leaves) = (false, leaves - 1);
                self.give(other);
                continue;
            }
            self.cores[at].doorbell.wait();
        }
    }

    /// The base wants its vCPU back, and gets it.
    fn base(&self) {
        self.recalls.want(1 << MOVER.0);
        self.tell(self.place.find(), Message::Recalls);
        while !self.take_in(BASE) {
            self.cores[BASE].doorbell.wait();
        }
        self.recalls.settle(MOVER);
        assert!(!self.recalls.is_wanted(MOVER));
        self.over.store(1, Ordering::Relaxed);
        HOSTS.into_iter().for_each(|host| self.cores[host].doorbell.notify());
    }
}

/// The first host sends its visitor on, and the second one back to it as often as
/// said, while the base wants it. It comes back whatever the messages meet, once,
/// and nobody waits for ever.
fn comes_home(leaves: [usize; 2]) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(move || {
        let world = World::new();
        world.users.store(1, Ordering::Relaxed);
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
fn a_visitor_that_stays_comes_home() {
    comes_home([0, 0]);
}

#[test]
fn a_visitor_that_goes_on_comes_home() {
    comes_home([1, 0]);
}

#[test]
fn a_visitor_that_goes_to_and_fro_comes_home() {
    comes_home([1, 1]);
}
