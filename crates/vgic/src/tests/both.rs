//! A VM beside the ideal interrupt controller: after every single step everything must be as there.

use super::addresses::*;
use super::cpu::SPURIOUS;
use super::ideal::Ideal;
use super::steps::{self, EDGES, Guest, INTIDS, LINKED, Step, initial_priority};
use super::world::{PHYSICAL_OFFSET, World};
use abi::platform::SPI_FIRST;

/// See the module.
pub struct Both {
    pub world: World,
    ideal: Ideal,
    guests: Vec<Guest>,
}

impl Both {
    /// A VM as [`steps::world`] makes it.
    pub fn new(vcpus: usize, list_registers: usize, split: bool) -> Self {
        let mut ideal = Ideal::new(vcpus);
        for vcpu in 0..vcpus {
            for (at, intid) in INTIDS.into_iter().enumerate() {
                let interrupt = ideal.of(vcpu, intid);
                (interrupt.enabled, interrupt.priority) = (true, initial_priority(at));
                interrupt.edge |= EDGES.contains(&intid);
            }
        }
        let world = steps::world(vcpus, list_registers, split);
        Self { world, ideal, guests: vec![Guest::default(); vcpus] }
    }

    /// Takes a step on both sides.
    pub fn take(&mut self, step: &Step) {
        let split = self.world.seats[0].cpu.split_eoi;
        match *step {
            Step::Post { vcpu, intid } => {
                // A linked interrupt is posted because its physical one came.
                if !LINKED.contains(&intid) {
                    self.world.post(vcpu, intid);
                    self.ideal.of(vcpu, intid).latched = true;
                }
            }
            Step::Line { vcpu, intid, high } => {
                if intid >= 16 && !LINKED.contains(&intid) {
                    self.world.set_level_of(vcpu, intid, high);
                    self.ideal.set_level(vcpu, intid, high);
                }
            }
            Step::Arrive { vcpu, intid } => {
                let physical = intid + PHYSICAL_OFFSET;
                let seat = &self.world.seats[vcpu].physical;
                let busy = seat.contains(&physical) || self.world.physical.contains(&physical);
                self.world.arrive(vcpu, intid);
                self.ideal.of(vcpu, intid).latched |= !busy;
            }
            Step::Write { vcpu, owner, register, intid } => {
                self.write(vcpu, owner, register, intid, split);
            }
            Step::Group { vcpu, owner, intid } => {
                let owner = if intid < SPI_FIRST { owner } else { 0 };
                let interrupt = self.ideal.of(owner, intid);
                interrupt.group1 ^= true;
                let mut word = 0;
                for other in (intid & !31)..(intid | 31) + 1 {
                    word |= u64::from(self.ideal.of(owner, other).group1) << (other % 32);
                }
                let offset = IGROUPR + u64::from(intid / 32) * 4;
                if intid < SPI_FIRST {
                    self.world.write_redistributor(vcpu, owner, offset, 4, word);
                } else {
                    self.world.write_distributor(vcpu, offset, 4, word);
                }
            }
            Step::Priority { vcpu, owner, intid, priority } => {
                let offset = IPRIORITYR + u64::from(intid);
                if intid < SPI_FIRST {
                    self.world.write_redistributor(vcpu, owner, offset, 1, priority.into());
                } else {
                    self.world.write_distributor(vcpu, offset, 1, priority.into());
                }
                self.ideal.of(owner, intid).priority = priority;
            }
            Step::Route { vcpu, intid, target } => {
                if intid >= SPI_FIRST {
                    self.world.route(vcpu, intid, target);
                    self.ideal.of(0, intid).route = target;
                }
            }
            Step::Control { vcpu, groups } => {
                self.world.write_distributor(vcpu, GICD_CTLR, 4, groups);
                self.ideal.groups = [groups & 1 != 0, groups & 2 != 0];
            }
            Step::Mask { vcpu, mask } => self.world.seats[vcpu].cpu.mask = mask,
            Step::Acknowledge { vcpu } => {
                let wanted = self.ideal.signalled(vcpu, self.world.seats[vcpu].cpu.mask);
                assert_eq!(self.world.acknowledge(vcpu), wanted, "vCPU {vcpu}");
                if wanted != SPURIOUS {
                    self.ideal.acknowledge(vcpu, wanted);
                    self.guests[vcpu].nested.push(wanted);
                }
            }
            Step::End { vcpu } => {
                if let Some(intid) = self.guests[vcpu].nested.pop() {
                    self.world.end(vcpu, intid);
                    self.ideal.drop_priority(vcpu);
                    if split {
                        self.guests[vcpu].dropped.push(intid);
                    } else {
                        self.ideal.of(vcpu, intid).active = false;
                    }
                }
            }
            Step::Deactivate { vcpu, which } => {
                // A shared interrupt may be deactivated by any vCPU.
                let by = vcpu;
                let taken_by = which % self.guests.len();
                let dropped = &mut self.guests[taken_by].dropped;
                if dropped.is_empty() {
                    return;
                }
                let at = which / 8 % dropped.len();
                let intid = dropped[at];
                if intid < SPI_FIRST && by != taken_by {
                    return;
                }
                dropped.remove(at);
                self.world.deactivate(by, intid);
                self.ideal.of(taken_by, intid).active = false;
            }
            Step::Switch { vcpu } => self.world.switch_out_and_in(vcpu),
            Step::Sync { vcpu } => {
                self.world.sync(vcpu);
                self.world.settle();
            }
        }
    }

    fn write(&mut self, vcpu: usize, owner: usize, register: u64, intid: u32, split: bool) {
        let linked = LINKED.contains(&intid);
        match register {
            // Physical interrupts pend because they arrive.
            ISPENDR if linked => return,
            // Without split EOI the guest would end it later, in vain; and then
            // all that counts EOIs is undone, as on hardware.
            ICACTIVER if !split || self.guests.iter().any(|g| g.nested.contains(&intid)) => return,
            _ => {}
        }
        self.world.write_bit_of(vcpu, owner, register, intid);
        let interrupt = self.ideal.of(owner, intid);
        match register {
            ISENABLER => interrupt.enabled = true,
            ICENABLER => interrupt.enabled = false,
            ISPENDR => interrupt.latched = true,
            ICPENDR => interrupt.latched = false,
            _ => {
                interrupt.active = false;
                for (at, guest) in self.guests.iter_mut().enumerate() {
                    if intid >= SPI_FIRST || at == owner {
                        guest.dropped.retain(|&other| other != intid);
                    }
                }
            }
        }
    }

    /// Everything that can be seen agrees, and each vCPU's invariants hold.
    pub fn compare(&mut self) {
        for vcpu in 0..self.guests.len() {
            let seat = &mut self.world.seats[vcpu];
            seat.interface.check(&self.world.gic);
            let wanted = self.ideal.signalled(vcpu, seat.cpu.mask);
            assert_eq!(seat.cpu.signalled_intid(), wanted, "what vCPU {vcpu} would take");
            let listed = self.world.listed(vcpu).len();
            assert!(listed <= self.world.seats[vcpu].cpu.registers().len());
        }
    }

    /// Every register agrees, and every physical interrupt that is active has
    /// a vCPU that will deactivate it.
    pub fn compare_registers(&mut self) {
        for owner in 0..self.guests.len() {
            for intid in INTIDS {
                let interrupt = self.ideal.of(owner, intid).clone();
                let mut read = |register| {
                    // What another vCPU has listed is as of its latest sync; the
                    // first read makes it sync.
                    self.world.read_bit(owner, register, intid);
                    self.world.read_bit(owner, register, intid)
                };
                assert_eq!(read(ISENABLER), interrupt.enabled, "{intid} enabled");
                assert_eq!(read(ISACTIVER), interrupt.active, "{intid} active");
                assert_eq!(read(ISPENDR), interrupt.is_pending(), "{intid} pending");
                if LINKED.contains(&intid) {
                    let physical = intid + PHYSICAL_OFFSET;
                    let there = self.world.physical.contains(&physical)
                        || self.world.seats[owner].physical.contains(&physical);
                    let here = interrupt.latched || interrupt.active;
                    assert_eq!(there, here, "physical interrupt behind {intid}");
                }
            }
        }
    }

    /// The guests open their masks, and take and end everything: nothing is
    /// left anywhere.
    pub fn drain(&mut self) {
        for vcpu in 0..self.guests.len() {
            for intid in INTIDS {
                self.take(&Step::Line { vcpu, intid, high: false });
            }
        }
        self.take(&Step::Control { vcpu: 0, groups: 3 });
        for vcpu in 0..self.guests.len() {
            self.take(&Step::Mask { vcpu, mask: 0xff });
            for intid in INTIDS {
                self.write(vcpu, vcpu, ISENABLER, intid, false);
                if self.ideal.of(vcpu, intid).route >= self.guests.len() as u64 {
                    self.take(&Step::Route { vcpu, intid, target: 0 });
                }
            }
        }
        for _ in 0..200 {
            for vcpu in 0..self.guests.len() {
                self.take(&Step::Acknowledge { vcpu });
                self.take(&Step::End { vcpu });
                for which in 0..self.guests.len() {
                    self.take(&Step::Deactivate { vcpu: which, which });
                }
            }
        }
        self.compare_registers();
        for vcpu in 0..self.guests.len() {
            assert_eq!(self.world.listed(vcpu), [], "vCPU {vcpu}");
            assert!(self.guests[vcpu].nested.is_empty() && self.guests[vcpu].dropped.is_empty());
        }
    }
}
