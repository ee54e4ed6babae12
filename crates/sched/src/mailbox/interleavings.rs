//! The protocol between cores, checked exhaustively for small sizes.
//!
//! Loom runs each model under every interleaving that the memory model of C11
//! allows, stale reads included, and objects to a thread that waits for ever.
//! Mailbox and place are the real ones on loom's atomics, the schedulers are the
//! real ones; the rest of a core is what EL2 does around them: take the mail, attend
//! to it, decide, and wait for a doorbell when there is nothing to run.
//!
//! Posted interrupts and what a vCPU remembers are words that are read and
//! written without any order of their own: what orders them must be the mailbox.

extern crate std;
use super::{KINDS, Mailbox, Message, Word};
use crate::{Duration, Instant, Params, Place, Priority, Scheduler, Slot, VcpuId};
use loom::sync::atomic::{AtomicU8, AtomicU64, Ordering, fence};
use loom::sync::{Arc, Notify};
use loom::thread;
use std::vec::Vec;

impl Word for AtomicU64 {
    fn peek(&self) -> u64 {
        self.load(Ordering::Relaxed)
    }

    fn add(&self, bits: u64) -> u64 {
        self.fetch_or(bits, Ordering::AcqRel)
    }

    fn take(&self) -> u64 {
        self.swap(0, Ordering::AcqRel)
    }

    fn remove(&self, bits: u64) {
        self.fetch_and(!bits, Ordering::AcqRel);
    }
}

/// What other cores know of a core.
struct Core {
    mailbox: Mailbox<AtomicU64>,
    doorbell: Notify,
}

impl Core {
    fn new() -> Self {
        let mailbox = Mailbox { sets: [(); KINDS].map(|()| AtomicU64::new(0)) };
        Self { mailbox, doorbell: Notify::new() }
    }

    /// As `Pcpu::tell`: rings only for a message that is new.
    fn tell(&self, vcpu: VcpuId) {
        if self.mailbox.send(Message::Vcpus, usize::from(vcpu.0)) {
            self.doorbell.notify();
        }
    }

    fn mail(&self) -> Vec<VcpuId> {
        self.mailbox.take(Message::Vcpus).map(|id| VcpuId(id as u8)).collect()
    }
}

mod leaving;
mod visiting;

const PARAMS: Params = Params { priority: Priority(1), quantum: Duration(1) };

/// Posts an interrupt, then says so.
fn post(posted: &AtomicU64, interrupt: u64, core: &Core, vcpu: VcpuId) {
    posted.fetch_or(interrupt, Ordering::Relaxed);
    core.tell(vcpu);
}

/// Two cores post interrupts, for one vCPU or for two, in any of the ways the
/// numbers say. The owner sees every one, and never sleeps while one is posted.
/// With a bound, only schedules with so many preemptions are tried.
fn nothing_is_lost(targets: &'static [&'static [usize]], preemptions: Option<usize>) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = preemptions;
    model.check(move || {
        let core = Arc::new(Core::new());
        let posted = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
        let senders: Vec<_> = targets
            .iter()
            .enumerate()
            .map(|(sender, vcpus)| {
                let (core, posted) = (core.clone(), posted.clone());
                thread::spawn(move || {
                    for (number, &vcpu) in vcpus.iter().enumerate() {
                        let interrupt = 1 << (4 * sender + number);
                        post(&posted[vcpu], interrupt, &core, VcpuId(vcpu as u8));
                    }
                })
            })
            .collect();
        let mut scheduler = Scheduler::new();
        for vcpu in 0..2 {
            scheduler.arrive(VcpuId(vcpu), PARAMS, false).unwrap();
        }
        let mut missing: usize = targets.iter().map(|vcpus| vcpus.len()).sum();
        while missing > 0 {
            for vcpu in core.mail() {
                scheduler.wake(vcpu);
            }
            match scheduler.decide(Instant(0)).run {
                // The guest takes its interrupts, then waits for the next.
                Some(vcpu) => {
                    let taken = posted[usize::from(vcpu.0)].swap(0, Ordering::Relaxed);
                    missing -= taken.count_ones() as usize;
                    scheduler.sleep(vcpu);
                }
                None => core.doorbell.wait(),
            }
        }
        for sender in senders {
            sender.join().unwrap();
        }
    });
}

#[test]
fn interrupts_for_one_vcpu_from_two_cores_arrive() {
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

impl Slot for AtomicU8 {
    fn put(&self, core: u8) {
        self.store(core, Ordering::Release);
    }

    fn get(&self) -> u8 {
        self.load(Ordering::Acquire)
    }

    fn fence() {
        fence(Ordering::SeqCst);
    }
}

/// A vCPU that moves between cores.
struct Moving {
    cores: [Core; 2],
    place: Place<AtomicU8>,
    posted: AtomicU64,
    /// What only its owner reads or writes.
    registers: AtomicU64,
    /// Who uses it right now.
    users: AtomicU64,
}

const MOVER: VcpuId = VcpuId(0);

impl Moving {
    /// What an owner does with its vCPU: nobody else is at it, and everything
    /// that former owners did is there.
    fn use_it(&self, expected: u64) {
        assert_eq!(self.users.fetch_add(1, Ordering::Relaxed), 0, "two cores use one vCPU");
        assert_eq!(self.registers.load(Ordering::Relaxed), expected, "a former state");
        self.registers.store(expected + 1, Ordering::Relaxed);
        self.users.fetch_sub(1, Ordering::Relaxed);
    }

    /// Off this core and on its way: everything is written before the mail.
    fn give(&self, scheduler: &mut Scheduler, to: usize) {
        scheduler.depart(MOVER).unwrap();
        self.place.set(to);
        if self.cores[to].mailbox.send(Message::Arrivals, usize::from(MOVER.0)) {
            self.cores[to].doorbell.notify();
        }
    }
}

/// A vCPU goes from core 0 to core 1 while another core posts an interrupt for
/// it, and may tell the former owner, who forwards nothing. The vCPU has one
/// owner at a time, who finds what the other wrote; and the interrupt is seen.
#[test]
fn a_vcpu_on_its_way_has_one_owner_and_is_found() {
    loom::model(|| {
        let world = Arc::new(Moving {
            cores: [Core::new(), Core::new()],
            place: Place::within(AtomicU8::new(0)),
            posted: AtomicU64::new(0),
            registers: AtomicU64::new(0),
            users: AtomicU64::new(0),
        });
        let poster = world.clone();
        let poster = thread::spawn(move || {
            poster.posted.fetch_or(1, Ordering::Relaxed);
            let owner = poster.place.find();
            poster.cores[owner].tell(MOVER);
        });
        let receiver = world.clone();
        let receiver = thread::spawn(move || {
            let (mut scheduler, mut taken) = (Scheduler::new(), 0);
            while taken == 0 {
                let core = &receiver.cores[1];
                for _ in core.mailbox.take(Message::Arrivals) {
                    receiver.use_it(1);
                    receiver.place.arrived();
                    scheduler.arrive(MOVER, PARAMS, true).unwrap();
                }
                for vcpu in core.mail() {
                    scheduler.wake(vcpu);
                }
                match scheduler.decide(Instant(0)).run {
                    Some(_) => {
                        taken += receiver.posted.swap(0, Ordering::Relaxed);
                        scheduler.sleep(MOVER);
                    }
                    None => core.doorbell.wait(),
                }
            }
        });
        let mut scheduler = Scheduler::new();
        scheduler.arrive(MOVER, PARAMS, true).unwrap();
        world.use_it(0);
        world.give(&mut scheduler, 1);
        poster.join().unwrap();
        receiver.join().unwrap();
    });
}
