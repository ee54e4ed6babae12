//! The protocol between cores, checked exhaustively for small sizes.
//!
//! Loom runs each model under every interleaving that the memory model of C11
//! allows, stale reads included, and objects to a thread that waits for ever.
//! The switchboard is the one that EL2 uses, on loom's atomics, and the schedulers are
//! those of EL2, too. What a model adds is when a core takes which step, and a doorbell
//! to wait for when there is nothing to run.
//!
//! Posted interrupts and what a vCPU remembers are words that are read and
//! written without any order of their own: what orders them must be the switchboard.

extern crate std;
use super::{Recall, Received, Switchboard};
use crate::consolidation::Presence;
use crate::{
    AtomicCell, Duration, Instant, Location, Mailbox, Members, Message, Params, Priority, Recalls,
    Scheduler, Unread, VcpuId, Word,
};
use loom::sync::atomic::{AtomicU8, AtomicU64, Ordering, fence};
use loom::sync::{Arc, Notify};
use loom::thread;
use std::vec::Vec;

impl Word for AtomicU64 {
    fn load(&self, order: Ordering) -> u64 {
        self.load(order)
    }

    fn swap(&self, value: u64, order: Ordering) -> u64 {
        self.swap(value, order)
    }

    fn fetch_or(&self, bits: u64, order: Ordering) -> u64 {
        self.fetch_or(bits, order)
    }

    fn fetch_and(&self, bits: u64, order: Ordering) -> u64 {
        self.fetch_and(bits, order)
    }
}

impl AtomicCell for AtomicU8 {
    fn store(&self, value: u8, order: Ordering) {
        self.store(value, order);
    }

    fn load(&self, order: Ordering) -> u8 {
        self.load(order)
    }

    fn fence(order: Ordering) {
        fence(order);
    }
}

/// What a core does about a vCPU that moves.
#[derive(Debug, PartialEq, Eq)]
enum Move {
    /// It was handed over to this core.
    Receive(VcpuId),
    /// The base recalls it.
    SendBack(VcpuId),
}

/// The moves that a core makes, in their order.
fn moves([arrived, recalled]: [Members; 2]) -> impl Iterator<Item = Move> {
    let id = |member| VcpuId(member as u8);
    let received = arrived.map(move |member| Move::Receive(id(member)));
    received.chain(recalled.map(move |member| Move::SendBack(id(member))))
}

/// What cores share: the switchboard, and the doorbells that it does not ring.
struct Machine<const CORES: usize> {
    board: Switchboard<CORES, 2, AtomicU64, AtomicU8>,
    doorbells: [Notify; CORES],
}

impl<const CORES: usize> Machine<CORES> {
    /// No mail, both vCPUs on this core.
    fn new(core: usize) -> Self {
        let word = |()| AtomicU64::new(0);
        let mailbox = |()| Mailbox::within(word(()), [(); Message::KINDS].map(word));
        let board = Switchboard::within(
            [(); CORES].map(mailbox),
            [(); 2].map(|()| Location::within(AtomicU8::new(core as u8))),
            Recalls::within(AtomicU64::new(0)),
            [(); CORES].map(|()| Presence::within(AtomicU8::new(0))),
        );
        Self { board, doorbells: [(); CORES].map(|()| Notify::new()) }
    }

    fn wake(&self, core: usize, wake: bool) {
        if wake {
            self.doorbells[core].notify();
        }
    }

    fn send(&self, core: usize, message: Message, vcpu: VcpuId) {
        self.wake(core, self.board.send(core, message, vcpu.0.into()));
    }

    fn hand_over(&self, vcpu: VcpuId, to: usize) {
        self.wake(to, self.board.hand_over(vcpu, to));
    }

    /// Posts an interrupt, then says so to the core that has the vCPU.
    fn post(&self, posted: &AtomicU64, interrupt: u64, vcpu: VcpuId) {
        posted.fetch_or(interrupt, Ordering::Relaxed);
        self.send(self.board.find(vcpu), Message::Vcpus, vcpu);
    }

    fn wait(&self, core: usize) {
        self.doorbells[core].wait();
    }

    /// Wakes the vCPUs for which something was left.
    fn wake_vcpus(&self, core: usize, scheduler: &mut Scheduler) {
        for vcpu in self.board.mailbox(core).take(Message::Vcpus) {
            scheduler.wake(VcpuId(vcpu as u8));
        }
    }
}

mod leaving;
mod visiting;

const PARAMS: Params = Params { priority: Priority(1), quantum: Duration(1) };

/// Two cores post interrupts, for one vCPU or for two, in any of the ways the
/// numbers say. The owner sees every one, and never sleeps while one is posted.
/// With a bound, only schedules with so many preemptions are tried.
fn nothing_is_lost(targets: &'static [&'static [usize]], preemptions: Option<usize>) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = preemptions;
    model.check(move || {
        let machine = Arc::new(Machine::<1>::new(0));
        let posted = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
        let senders: Vec<_> = targets
            .iter()
            .enumerate()
            .map(|(sender, vcpus)| {
                let (machine, posted) = (machine.clone(), posted.clone());
                thread::spawn(move || {
                    for (number, &vcpu) in vcpus.iter().enumerate() {
                        let interrupt = 1 << (4 * sender + number);
                        posted[vcpu].fetch_or(interrupt, Ordering::Relaxed);
                        machine.send(0, Message::Vcpus, VcpuId(vcpu as u8));
                    }
                })
            })
            .collect();
        let mut scheduler = Scheduler::new();
        for vcpu in 0..2 {
            scheduler.arrive(VcpuId(vcpu), PARAMS, false).unwrap();
        }
        let mut missing: usize = targets.iter().map(|vcpus| vcpus.len()).sum();
        let mut unread = Unread::new(0);
        while missing > 0 {
            // As a core reads: it looks at the kinds that are said to be there.
            unread.take_from(machine.board.mailbox(0), 0, 0);
            while let Some((message, vcpu)) = unread.pop() {
                assert_eq!(message, Message::Vcpus);
                scheduler.wake(VcpuId(vcpu as u8));
            }
            match scheduler.decide(Instant(0)).run {
                // The guest takes its interrupts, then waits for the next.
                Some(vcpu) => {
                    let taken = posted[usize::from(vcpu.0)].swap(0, Ordering::Relaxed);
                    missing -= taken.count_ones() as usize;
                    scheduler.sleep(vcpu);
                }
                None => machine.wait(0),
            }
        }
        for sender in senders {
            sender.join().unwrap();
        }
    });
}

#[test]
fn interrupts_for_one_vcpu_from_two_cores_arrive() {
    nothing_is_lost(&[&[0], &[0]], Some(3));
}

#[test]
#[ignore = "it takes minutes"]
fn interrupts_for_one_vcpu_from_two_cores_arrive_in_any_schedule() {
    nothing_is_lost(&[&[0], &[0]], None);
}

#[test]
fn interrupts_for_two_vcpus_from_two_cores_arrive() {
    nothing_is_lost(&[&[0], &[1]], Some(2));
}

#[test]
fn interrupts_one_after_another_arrive() {
    nothing_is_lost(&[&[0, 0, 1]], None);
}

/// A vCPU that moves between two cores.
struct Moving {
    machine: Machine<2>,
    posted: AtomicU64,
    /// What only the vCPU's owner reads or writes.
    registers: AtomicU64,
    /// How many cores use the vCPU right now.
    users: AtomicU64,
}

const MOVER: VcpuId = VcpuId(0);
/// The core that the vCPU belongs to, and the one that it goes to.
const CORE: usize = 0;
const TARGET: usize = 1;

impl Moving {
    fn new() -> Self {
        Self {
            machine: Machine::new(CORE),
            posted: AtomicU64::new(0),
            registers: AtomicU64::new(0),
            users: AtomicU64::new(0),
        }
    }

    /// Uses the vCPU as its owner does: no other core is at it, and everything that former
    /// owners did is there.
    fn use_it(&self, expected: u64) {
        assert_eq!(self.users.fetch_add(1, Ordering::Relaxed), 0, "two cores use one vCPU");
        assert_eq!(self.registers.load(Ordering::Relaxed), expected, "a former state");
        self.registers.store(expected + 1, Ordering::Relaxed);
        self.users.fetch_sub(1, Ordering::Relaxed);
    }

    /// Takes the vCPU off this core and sends it on its way.
    fn give(&self, scheduler: &mut Scheduler, to: usize) {
        scheduler.remove(MOVER).unwrap();
        self.machine.hand_over(MOVER, to);
    }

    /// Takes the vCPU, which has come.
    fn receive(&self, at: usize, scheduler: &mut Scheduler, expected: u64) {
        self.use_it(expected);
        let received = self.machine.board.received(MOVER, at, CORE, false);
        assert_eq!(received == Received::AtBase, at == CORE);
        scheduler.arrive(MOVER, PARAMS, true).unwrap();
    }

    /// Runs the vCPU if it is here and may have something. Returns the interrupts that its
    /// guest takes.
    fn run(&self, at: usize, scheduler: &mut Scheduler) -> u64 {
        self.machine.wake_vcpus(at, scheduler);
        if scheduler.decide(Instant(0)).run.is_none() {
            return 0;
        }
        scheduler.sleep(MOVER);
        self.posted.swap(0, Ordering::Relaxed)
    }
}

/// Two cores send the same message of a kind that the mailbox tells of, and one sends another kind.
/// What each wrote before is seen: a sender that adds to a set says nothing if it was sent already.
#[test]
fn messages_of_rare_kinds_arrive() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let machine = Arc::new(Machine::<1>::new(0));
        let posted = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
        let kinds = [Message::HaltVms, Message::Consoles];
        let sent: [&'static [usize]; 2] = [&[0], &[0, 1]];
        let senders = sent.map(|numbers| {
            let (machine, posted) = (machine.clone(), posted.clone());
            thread::spawn(move || {
                for &number in numbers {
                    posted[number].fetch_add(1, Ordering::Relaxed);
                    machine.send(0, kinds[number], VcpuId(0));
                }
            })
        });
        let (mut unread, mut seen) = (Unread::new(0), 0);
        while seen < 3 {
            unread.take_from(machine.board.mailbox(0), 0, 0);
            if unread.is_empty() {
                machine.wait(0);
            }
            while let Some((message, _)) = unread.pop() {
                let number = usize::from(message == kinds[1]);
                seen += posted[number].swap(0, Ordering::Relaxed);
            }
        }
        for sender in senders {
            sender.join().unwrap();
        }
    });
}

/// Two vCPUs are handed over, and each is recalled by the core that did. As the receiver reads,
/// each arrival comes before its recall: a recall of a vCPU that is not there would be for nothing.
#[test]
fn an_arrival_is_read_before_its_recall() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let machine = Arc::new(Machine::<2>::new(CORE));
        let giver = machine.clone();
        let giver = thread::spawn(move || {
            for vcpu in [VcpuId(0), VcpuId(1)] {
                giver.hand_over(vcpu, TARGET);
                let Recall::Asked { core, wake } = giver.board.recall(vcpu, CORE) else {
                    panic!("it is on its way to the other core");
                };
                assert_eq!(core, TARGET);
                giver.wake(core, wake);
            }
        });
        let (mut unread, mut here, mut recalled) = (Unread::new(0), [false; 2], 0);
        while recalled < 2 {
            unread.take_from(machine.board.mailbox(TARGET), 0, 0);
            if unread.is_empty() {
                machine.wait(TARGET);
            }
            while let Some((message, vcpu)) = unread.pop() {
                if message == Message::Arrivals {
                    here[vcpu] = true;
                } else {
                    assert_eq!(message, Message::Recalls);
                    assert!(here[vcpu], "vCPU {vcpu} is recalled before it has come");
                    recalled += 1;
                }
            }
        }
        giver.join().unwrap();
    });
}

/// A vCPU goes from core 0 to core 1 while another core posts an interrupt for
/// it, and may tell the former owner, which forwards nothing. The vCPU has one
/// owner at a time, which finds what the other wrote; and the interrupt is seen.
#[test]
fn a_vcpu_on_its_way_has_one_owner_and_is_found() {
    loom::model(|| {
        let world = Arc::new(Moving::new());
        let poster = world.clone();
        let poster = thread::spawn(move || poster.machine.post(&poster.posted, 1, MOVER));
        let receiver = world.clone();
        let receiver = thread::spawn(move || {
            let mut scheduler = Scheduler::new();
            loop {
                for _ in moves(receiver.machine.board.mailbox(TARGET).take_moves()) {
                    receiver.receive(TARGET, &mut scheduler, 1);
                }
                if receiver.run(TARGET, &mut scheduler) == 1 {
                    return;
                }
                receiver.machine.wait(TARGET);
            }
        });
        let mut scheduler = Scheduler::new();
        scheduler.arrive(MOVER, PARAMS, true).unwrap();
        world.use_it(0);
        world.give(&mut scheduler, TARGET);
        poster.join().unwrap();
        receiver.join().unwrap();
    });
}
