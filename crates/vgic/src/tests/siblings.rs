//! What siblings and devices do while a vCPU's core lists an interrupt: two things, before any two
//! of its accesses. Nothing of that may be lost, nor come that was not posted.

use super::cpu::{Cpu, Looks, SPURIOUS};
use super::pausing;
use super::*;
use crate::frames::v3;
use crate::interface::{CpuInterface, Hardware};
use crate::{Bits, Gic};
use abi::platform::SPI_FIRST;
use std::cell::Cell;
use std::rc::Rc;

#[derive(Clone, Copy, Debug)]
enum Act {
    Post(u32),
    ClearPending(u32),
    /// An interrupt that is not posted becomes active.
    SetActive(u32),
    Disable(u32),
}

/// What happens meanwhile. `own` is what is being listed, `beside` has the same word and `far`
/// another one.
fn acts(own: u32) -> [Act; 7] {
    let (beside, far) = (own + 1, (own + 32) % 64);
    [
        Act::Post(own),
        Act::Post(beside),
        Act::Post(far),
        Act::ClearPending(own),
        Act::SetActive(own + 2),
        Act::SetActive(far + 2),
        Act::Disable(own),
    ]
}

/// All that happens at other cores. Interrupts below 64, a bit each.
struct Outside {
    gic: &'static Gic,
    rung: Cell<bool>,
    /// Posted, and neither taken nor cleared since.
    owed: Cell<u64>,
    /// Posted at all.
    posted: Cell<u64>,
    made_active: Cell<u64>,
    acts: Cell<u32>,
}

impl Outside {
    fn act(&self, act: Act) {
        self.acts.set(self.acts.get() + 1);
        let set = |set: &Cell<u64>, intid: u32| set.set(set.get() | 1 << intid);
        match act {
            Act::Post(intid) => {
                set(&self.owed, intid);
                set(&self.posted, intid);
                self.rung.set(self.rung.get() | (self.gic.post(0, intid).notify != 0));
            }
            Act::ClearPending(intid) => {
                self.owed.set(self.owed.get() & !(1 << intid));
                self.write(ICPENDR, intid);
            }
            Act::SetActive(intid) => {
                set(&self.made_active, intid);
                self.write(ISACTIVER, intid);
            }
            Act::Disable(intid) => self.write(ICENABLER, intid),
        }
    }

    fn write(&self, register: u64, intid: u32) {
        let (offset, bit) = (register + u64::from(intid / 32) * 4, 1 << (intid % 32));
        let effects = if intid < SPI_FIRST {
            v3::write_redistributor(self.gic, 0, 0x1_0000 + offset, 4, bit)
        } else {
            v3::write_distributor(self.gic, 1, offset, 4, bit)
        };
        assert!(effects.deactivate.is_none(), "nothing is linked");
        self.rung.set(self.rung.get() | (effects.notify != 0));
    }
}

/// One vCPU at its core, and the others.
struct Scene {
    cpu: Cpu,
    interface: CpuInterface,
    outside: Rc<Outside>,
}

impl Scene {
    /// All is enabled, at one priority.
    fn new(gic: &'static Gic) -> Self {
        gic.reset();
        let _ = v3::write_distributor(gic, 0, GICD_CTLR, 4, 3);
        let all = u64::from(u32::MAX);
        let _ = v3::write_redistributor(gic, 0, 0x1_0000 + ISENABLER, 4, all);
        let _ = v3::write_distributor(gic, 0, ISENABLER + 4, 4, all);
        let _ = v3::write_distributor(gic, 0, ICFGR + 8, 4, all);
        let _ = v3::write_distributor(gic, 0, ICFGR + 12, 4, all);
        let outside = Outside {
            gic,
            rung: Cell::new(true),
            owed: Cell::new(0),
            posted: Cell::new(0),
            made_active: Cell::new(0),
            acts: Cell::new(0),
        };
        let (cpu, interface) = (Cpu::new(4), CpuInterface::new(0));
        let mut scene = Self { cpu, interface, outside: Rc::new(outside) };
        scene.settle();
        scene
    }

    fn sync(&mut self) {
        self.outside.rung.set(false);
        let gic = self.outside.gic;
        self.interface.sync(gic, &mut self.cpu);
        while self.interface.is_unfinished() {
            assert!(self.interface.has_news(gic), "nothing makes it go on");
            self.interface.sync(gic, &mut self.cpu);
        }
        self.interface.check(gic);
    }

    /// As EL2 does before the guest runs on: what is taken note of already is no news.
    fn settle(&mut self) {
        for _ in 0..20 {
            if !self.interface.has_news(self.outside.gic) && !self.cpu.wants_maintenance() {
                return;
            }
            assert!(self.outside.rung.get() || self.cpu.wants_maintenance(), "nothing tells EL2");
            self.sync();
        }
        panic!("the doorbells never cease");
    }

    /// The guest takes what it is offered and ends it.
    fn drain(&mut self) {
        loop {
            self.settle();
            let intid = self.cpu.acknowledge();
            if intid == SPURIOUS {
                return;
            }
            assert!(self.outside.posted.get() >> intid & 1 == 1, "{intid} was not posted");
            self.outside.owed.set(self.outside.owed.get() & !(1 << intid));
            self.settle();
            self.cpu.end(intid);
        }
    }

    /// Each interrupt that GICD_ISACTIVER has made active has a list register, in which the guest ends it.
    fn end_active(&mut self) {
        let made_active = self.outside.made_active.take();
        let words = [made_active as u32, (made_active >> 32) as u32];
        let each = words.into_iter().zip([0, 32]);
        for intid in each.flat_map(|(bits, first)| Bits(bits).map(move |bit| first + bit)) {
            let is_it = |it: &&crate::interface::ListRegister| it.intid() == intid;
            let register = self.cpu.registers().iter().find(is_it);
            assert!(register.is_some_and(|it| it.is_active()), "{intid} is not listed as active");
            self.cpu.deactivate_virtual(intid);
        }
    }

    fn check(&mut self, own: u32) {
        self.settle();
        self.end_active();
        self.drain();
        self.outside.write(ISENABLER, own);
        self.drain();
        assert_eq!(self.outside.owed.get(), 0, "lost");
        self.sync();
        assert_eq!(self.cpu.empty().count_ones(), 4);
        for word in 0..2 {
            let bank = self.outside.gic.bank(0, word);
            let active = self.outside.gic.active(0, word);
            assert_eq!((bank.pending_bits(), active), (0, 0), "{word}");
        }
    }
}

/// Does two things meanwhile, before these accesses: the second is counted from the first. Returns how
/// many of them happened.
fn run(gic: &'static Gic, own: u32, comes_again: bool, acts: [Act; 2], at: [usize; 2]) -> u32 {
    let mut scene = Scene::new(gic);
    if comes_again {
        scene.outside.act(Act::Post(own));
        scene.settle();
        assert_eq!(scene.cpu.acknowledge(), own);
        scene.outside.owed.set(0);
        scene.cpu.end(own);
    }
    scene.outside.act(Act::Post(own));
    let before = scene.outside.acts.get();
    if (at[0] + at[1]) % 2 == 1 {
        scene.cpu.looks = Looks::Always;
    }
    let outside = Rc::clone(&scene.outside);
    pausing::interpose(at[0], move || {
        outside.act(acts[0]);
        pausing::interpose(at[1], move || outside.act(acts[1]));
    });
    scene.sync();
    pausing::happened();
    let happened = scene.outside.acts.get() - before;
    scene.cpu.looks = Looks::Never;
    scene.check(own);
    happened
}

#[test]
fn nothing_is_lost_that_happens_meanwhile() {
    let gic: &'static Gic = Box::leak(Box::new(Gic::new()));
    let mut scenes = 0;
    for (own, comes_again) in [(1, false), (1, true), (40, false), (40, true)] {
        let pairs = acts(own).into_iter().flat_map(|one| acts(own).map(|other| [one, other]));
        for both in pairs {
            for first in 0.. {
                let mut happened = 0;
                for second in 0.. {
                    let at = [first, second];
                    let outcome = std::panic::catch_unwind(|| run(gic, own, comes_again, both, at));
                    scenes += 1;
                    let Ok(count) = outcome else {
                        panic!("{own}, again: {comes_again}, meanwhile {both:?} at {at:?}")
                    };
                    happened = happened.max(count);
                    if count < 2 {
                        break;
                    }
                }
                if happened == 0 {
                    break;
                }
            }
        }
    }
    assert!(scenes > 10_000, "{scenes}");
}
