//! One shared interrupt, two vCPUs, and what can happen to them.

use super::cpu::{Cpu, SPURIOUS};
use super::world::PHYSICAL_OFFSET;
use super::*;
use crate::frames::v3;
use crate::interface::{CpuInterface, Hardware};
use crate::{Effects, Gic};
use std::cell::{Cell, RefCell};
use std::sync::atomic::Ordering;

/// A shared interrupt.
const INTID: u32 = 40;
const BIT: u64 = 1 << 8;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Edge,
    /// With a physical interrupt behind it, which arrives only while inactive.
    Linked,
    /// Level-triggered; its device lowers the line when the guest takes it.
    Level,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Act {
    Sync,
    /// The device asserts its line.
    Arrive,
    Route(u64),
    Disable,
    Enable,
    ClearPending,
    ClearActive,
    /// The guest takes what it is offered; the hypervisor does not notice.
    Acknowledge,
    /// The guest ends what it took; the hypervisor does not notice.
    End,
    /// Sync, acknowledge, end, sync.
    Live,
    /// It is routed here and listed, and routed back.
    Borrow,
    /// The same, and the guest here has it active when its vCPU leaves its core.
    Steal,
}

struct Side {
    cpu: Cpu,
    interface: CpuInterface,
}

pub struct Scene {
    gic: &'static Gic,
    kind: Kind,
    sides: [RefCell<Side>; 2],
    /// The guest there has it active.
    active: [Cell<bool>; 2],
    rung: Cell<u8>,
    physical: Cell<bool>,
    arrivals: Cell<u32>,
    taken: Cell<u32>,
    /// Arrived, and neither taken nor cleared since.
    owed: Cell<bool>,
    /// GICD_ICACTIVER was written, and the interrupt not taken since.
    made_inactive: Cell<bool>,
    unsure: Cell<bool>,
}

impl Scene {
    pub fn new(gic: &'static Gic, kind: Kind) -> Self {
        gic.reset();
        gic.link(INTID, if kind == Kind::Linked { INTID + PHYSICAL_OFFSET } else { 0 });
        let _ = v3::write_distributor(gic, 0, GICD_CTLR, 4, 3);
        let edge = if kind == Kind::Level { 0 } else { u64::MAX };
        let _ = v3::write_distributor(gic, 0, ICFGR + 8, 4, edge);
        let _ = v3::write_distributor(gic, 0, ISENABLER + 4, 4, BIT);
        let side =
            |vcpu| RefCell::new(Side { cpu: Cpu::new(2), interface: CpuInterface::new(vcpu) });
        Self {
            gic,
            kind,
            sides: [side(0), side(1)],
            active: Default::default(),
            rung: Cell::new(0),
            physical: Cell::new(false),
            arrivals: Cell::new(0),
            taken: Cell::new(0),
            owed: Cell::new(false),
            made_inactive: Cell::new(false),
            unsure: Cell::new(false),
        }
    }

    pub fn act(&self, vcpu: usize, act: Act) {
        let at = IROUTER + 8 * u64::from(INTID);
        match act {
            Act::Sync => {
                self.rung.set(self.rung.get() & !(1 << vcpu));
                let side = &mut *self.sides[vcpu].borrow_mut();
                side.interface.sync(self.gic, &mut side.cpu);
                self.collect(side);
            }
            Act::Arrive if self.kind == Kind::Linked && self.physical.replace(true) => {}
            Act::Arrive if self.kind == Kind::Level => {
                let effects = self.gic.set_level(0, INTID, true);
                let rose = effects != Effects::default();
                self.arrivals.set(self.arrivals.get() + u32::from(rose));
                self.carry_out(effects);
            }
            Act::Arrive => {
                self.arrivals.set(self.arrivals.get() + 1);
                self.owed.set(true);
                self.carry_out(self.gic.post(0, INTID));
            }
            Act::Route(target) => self.write(vcpu, at, 8, target),
            Act::Disable => self.write(vcpu, ICENABLER + 4, 4, BIT),
            Act::Enable => self.write(vcpu, ISENABLER + 4, 4, BIT),
            Act::ClearPending if self.kind == Kind::Level => {
                self.write(vcpu, ICPENDR + 4, 4, BIT);
            }
            Act::ClearPending => {
                self.owed.set(false);
                self.write(vcpu, ICPENDR + 4, 4, BIT);
                // What arrived meanwhile may be cleared or not.
                self.owed.set(false);
            }
            Act::ClearActive => {
                self.made_inactive.set(true);
                self.write(vcpu, ICACTIVER + 4, 4, BIT);
                // What was taken meanwhile may be made inactive or not.
                self.unsure.set(!self.made_inactive.get());
            }
            Act::Acknowledge => {
                let intid = self.sides[vcpu].borrow_mut().cpu.acknowledge();
                if intid != SPURIOUS {
                    let twice = !self.made_inactive.get() && self.active.iter().any(Cell::get);
                    assert!(!twice, "active twice");
                    self.active[vcpu].set(true);
                    self.taken.set(self.taken.get() + 1);
                    self.owed.set(false);
                    // Or taken before the core here heard of it.
                    let unheard = self.rung.get() >> vcpu & 1 != 0;
                    self.unsure.set(self.made_inactive.replace(false) && unheard);
                    if self.kind == Kind::Level {
                        self.carry_out(self.gic.set_level(0, INTID, false));
                    }
                }
            }
            Act::End => {
                if self.active[vcpu].replace(false) {
                    let side = &mut *self.sides[vcpu].borrow_mut();
                    side.cpu.end(INTID);
                    self.collect(side);
                }
            }
            Act::Live => self.all(vcpu, &[Act::Sync, Act::Acknowledge, Act::End, Act::Sync]),
            Act::Borrow => {
                self.reroute(vcpu);
                self.act(vcpu, Act::Sync);
                self.reroute(1 - vcpu);
            }
            Act::Steal => {
                self.reroute(vcpu);
                self.all(vcpu, &[Act::Sync, Act::Acknowledge, Act::Arrive]);
                self.leave(vcpu);
                self.reroute(1 - vcpu);
            }
        }
    }

    fn leave(&self, vcpu: usize) {
        let side = &mut *self.sides[vcpu].borrow_mut();
        assert!(side.interface.take_back(self.gic, &mut side.cpu), "nothing is urgent");
        self.collect(side);
    }

    /// A third core does it, so that neither notices at once.
    fn reroute(&self, target: usize) {
        let at = IROUTER + 8 * u64::from(INTID);
        self.carry_out(v3::write_distributor(self.gic, 2, at, 8, target as u64));
    }

    fn all(&self, vcpu: usize, acts: &[Act]) {
        acts.iter().for_each(|&act| self.act(vcpu, act));
    }

    fn write(&self, vcpu: usize, offset: u64, size: u8, value: u64) {
        let side = &mut *self.sides[vcpu].borrow_mut();
        assert!(side.interface.take_back(self.gic, &mut side.cpu), "nothing is urgent");
        let effects = v3::write_distributor(self.gic, vcpu, offset, size, value);
        side.interface.list(self.gic, &mut side.cpu);
        self.collect(side);
        self.carry_out(effects);
    }

    fn carry_out(&self, effects: Effects) {
        self.rung.set(self.rung.get() | effects.notify & 3);
        if effects.deactivate.is_some() {
            assert!(self.physical.replace(false), "deactivated twice");
        }
    }

    fn collect(&self, side: &mut Side) {
        self.rung.set(self.rung.get() | std::mem::take(&mut side.cpu.rung));
        for _ in side.cpu.deactivated.drain(..) {
            assert!(self.physical.replace(false), "deactivated twice");
        }
    }

    fn is_high(&self) -> bool {
        u64::from(self.gic.shared[0].level.load(Ordering::Relaxed)) & BIT != 0
    }

    fn is_owed(&self) -> bool {
        if self.kind == Kind::Level { self.is_high() } else { self.owed.get() }
    }

    pub fn settle(&self) {
        for _ in 0..20 {
            let needy = |vcpu: &usize| {
                let maintenance = self.sides[*vcpu].borrow().cpu.wants_maintenance();
                self.rung.get() >> vcpu & 1 != 0 || maintenance
            };
            let Some(vcpu) = (0..2).find(needy) else { return };
            self.act(vcpu, Act::Sync);
        }
        panic!("the doorbells never cease");
    }

    fn read(&self, register: u64) -> bool {
        v3::read_distributor(self.gic, 0, register + 4, 4).0 & BIT != 0
    }

    /// Every doorbell has been answered.
    pub fn check_settled(&self) {
        self.settle();
        let target = self.gic.target(INTID);
        let enabled = self.read(ISENABLER);
        let claimed = u64::from(self.gic.shared[0].listed.load(Ordering::Relaxed)) & BIT != 0;
        let mut listed = 0;
        let mut offered = [false; 2];
        for (vcpu, offered) in offered.iter_mut().enumerate() {
            let side = &mut *self.sides[vcpu].borrow_mut();
            listed += side.interface.used().count_ones();
            *offered = side.cpu.registers().iter().any(|register| register.is_pending());
            assert!(!*offered || enabled && target == Some(vcpu), "not retracted");
            assert!(side.interface.take_back(self.gic, &mut side.cpu), "nothing is urgent");
            self.collect(side);
        }
        assert_eq!(listed, u32::from(claimed), "listed without a claim, or on both");
        let (pending, active) = (self.read(ISPENDR), self.read(ISACTIVER));
        for vcpu in 0..2 {
            let side = &mut *self.sides[vcpu].borrow_mut();
            side.interface.list(self.gic, &mut side.cpu);
        }
        if self.unsure.replace(false) {
            self.made_inactive.set(!active);
        }
        let acknowledged = self.active.iter().any(Cell::get);
        assert_eq!(active, acknowledged && !self.made_inactive.get(), "active");
        assert!(pending || !self.is_owed(), "lost");
        let wanted = pending && !active && enabled;
        assert!(!wanted || target.is_none_or(|target| offered[target]), "not offered");
        assert_eq!(
            self.physical.get(),
            self.kind == Kind::Linked && (pending || active),
            "the physical one"
        );
    }

    /// The guests take and end everything.
    pub fn check_drained(&self) {
        self.act(0, Act::Enable);
        for _ in 0..3 {
            self.settle();
            for vcpu in 0..2 {
                // Not what was made inactive behind the guest's back.
                if !self.made_inactive.get() {
                    self.act(vcpu, Act::End);
                }
                self.act(vcpu, Act::Live);
            }
        }
        assert!(!self.is_owed() && !self.physical.get());
        assert!(self.taken.get() <= self.arrivals.get(), "taken too often");
        for side in &self.sides {
            let side = side.borrow();
            assert_eq!(side.cpu.empty().count_ones(), 2);
        }
    }
}
