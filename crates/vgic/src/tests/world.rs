//! A VM as the hypervisor would run it: vCPUs, each with a core to itself,
//! doorbells, maintenance interrupts, and physical interrupts behind virtual
//! ones.

use super::addresses::*;
use super::cpu::{Cpu, Looks, SPURIOUS};
use crate::frames::v3;
use crate::interface::{CpuInterface, Hardware, ListRegister};
use crate::{CTLR_GROUP0, CTLR_GROUP1, Effects, Gic};
use abi::platform::SPI_FIRST;
use notes::each;
use std::cell::Cell;
use std::collections::BTreeSet;

/// Physical INTIDs in the tests are the virtual ones plus this.
pub const PHYSICAL_OFFSET: u32 = 500;

pub struct Seat {
    pub cpu: Cpu,
    pub interface: CpuInterface,
    /// Other core's doorbell has rung for this vCPU and was not answered yet.
    pub rung: bool,
    /// Physical private interrupts active on this core.
    pub physical: BTreeSet<u32>,
}

pub struct World {
    pub gic: Gic,
    pub seats: Vec<Seat>,
    /// Physical shared interrupts that are active.
    pub physical: BTreeSet<u32>,
    /// Doorbells and maintenance interrupts are answered at once.
    pub prompt: bool,
    /// Guests make linked interrupts pending or active: then they may end a physical interrupt
    /// that is not active, which is nothing to the interrupt controller.
    pub by_hand: bool,
}

impl World {
    /// Both groups enabled, nothing else.
    pub fn new(vcpus: usize, list_registers: usize) -> Self {
        let seat = |vcpu| Seat {
            cpu: Cpu::new(list_registers),
            interface: CpuInterface::new(vcpu),
            rung: false,
            physical: BTreeSet::new(),
        };
        let world = Self {
            gic: Gic::new(),
            seats: (0..vcpus).map(seat).collect(),
            physical: BTreeSet::new(),
            prompt: true,
            by_hand: false,
        };
        let _ =
            v3::write_distributor(&world.gic, 0, GICD_CTLR, 4, (CTLR_GROUP0 | CTLR_GROUP1).into());
        world
    }

    /// Enables an interrupt of a vCPU (any, if it is shared) at a priority.
    pub fn enable(&mut self, vcpu: usize, intid: u32, priority: u8) {
        let (offset, value) = (IPRIORITYR + u64::from(intid), u64::from(priority));
        if intid < SPI_FIRST {
            self.write_redistributor(vcpu, vcpu, offset, 1, value);
        } else {
            self.write_distributor(vcpu, offset, 1, value);
        }
        self.write_bit(vcpu, ISENABLER, intid);
    }

    /// An interrupt becomes edge-triggered.
    pub fn make_edge(&mut self, vcpu: usize, intid: u32) {
        let offset = ICFGR + u64::from(intid / 16) * 4;
        let bit = 2 << (2 * (intid % 16));
        if intid < SPI_FIRST {
            let before = self.read_redistributor(vcpu, vcpu, offset);
            self.write_redistributor(vcpu, vcpu, offset, 4, before | bit);
        } else {
            let before = self.read_distributor(vcpu, offset);
            self.write_distributor(vcpu, offset, 4, before | bit);
        }
    }

    pub fn route(&mut self, vcpu: usize, intid: u32, target: u64) {
        self.write_distributor(vcpu, IROUTER + 8 * u64::from(intid), 8, target);
    }

    /// vCPU `vcpu` writes one interrupt's bit of a bit register.
    pub fn write_bit(&mut self, vcpu: usize, register: u64, intid: u32) {
        self.write_bit_of(vcpu, vcpu, register, intid);
    }

    /// The same, of vCPU `owner`'s redistributor if the interrupt is private.
    pub fn write_bit_of(&mut self, vcpu: usize, owner: usize, register: u64, intid: u32) {
        let (offset, bit) = (register + u64::from(intid / 32) * 4, 1 << (intid % 32));
        if intid < SPI_FIRST {
            self.write_redistributor(vcpu, owner, offset, 4, bit);
        } else {
            self.write_distributor(vcpu, offset, 4, bit);
        }
    }

    pub fn read_bit(&mut self, vcpu: usize, register: u64, intid: u32) -> bool {
        self.read_bit_of(vcpu, vcpu, register, intid)
    }

    pub fn read_bit_of(&mut self, vcpu: usize, owner: usize, register: u64, intid: u32) -> bool {
        let offset = register + u64::from(intid / 32) * 4;
        let value = if intid < SPI_FIRST {
            self.read_redistributor(vcpu, owner, offset)
        } else {
            self.read_distributor(vcpu, offset)
        };
        value >> (intid % 32) & 1 != 0
    }

    pub fn write_distributor(&mut self, vcpu: usize, offset: u64, size: u8, value: u64) {
        self.access(vcpu, |gic| ((), v3::write_distributor(gic, vcpu, offset, size, value)));
    }

    pub fn write_redistributor(
        &mut self,
        vcpu: usize,
        owner: usize,
        offset: u64,
        size: u8,
        value: u64,
    ) {
        self.access(vcpu, |gic| {
            ((), v3::write_redistributor(gic, owner, 0x1_0000 + offset, size, value))
        });
    }

    pub fn read_distributor(&mut self, vcpu: usize, offset: u64) -> u64 {
        if !v3::DISTRIBUTOR_STATE.contains(&offset) {
            return v3::peek_distributor(&self.gic, vcpu, offset, 4);
        }
        self.access(vcpu, |gic| v3::read_distributor_state(gic, vcpu, offset, 4))
    }

    pub fn read_redistributor(&mut self, vcpu: usize, owner: usize, offset: u64) -> u64 {
        let offset = 0x1_0000 + offset;
        if !v3::REDISTRIBUTOR_STATE.contains(&offset) {
            return v3::peek_redistributor(&self.gic, owner, false, offset, 4);
        }
        self.access(vcpu, |gic| v3::read_redistributor_state(gic, owner, offset, 4))
    }

    /// A register access traps: the list registers are taken back, the access
    /// is carried out, they are filled again.
    fn access<T>(&mut self, vcpu: usize, access: impl FnOnce(&Gic) -> (T, Effects)) -> T {
        let seat = &mut self.seats[vcpu];
        if !seat.interface.take_back_for_access(&self.gic, &mut seat.cpu) {
            self.finish(vcpu);
            return self.again(vcpu, |world| world.access(vcpu, access));
        }
        let (value, effects) = access(&self.gic);
        seat.interface.list(&self.gic, &mut seat.cpu);
        self.finish(vcpu);
        self.carry_out(effects);
        value
    }

    /// An SGI, or an interrupt from an emulated device without a line.
    pub fn post(&mut self, vcpu: usize, intid: u32) {
        let effects = self.gic.post(vcpu, intid);
        self.carry_out(effects);
    }

    pub fn set_level(&mut self, intid: u32, high: bool) {
        self.set_level_of(0, intid, high);
    }

    /// `vcpu` matters to private interrupts.
    pub fn set_level_of(&mut self, vcpu: usize, intid: u32, high: bool) {
        let effects = self.gic.set_level(vcpu, intid, high);
        self.carry_out(effects);
    }

    /// Follows a line whose level is each of these, one after the other, and then the last.
    pub fn follow_level(&mut self, intid: u32, levels: &[bool]) {
        let looks = Cell::new(0);
        let effects = self.gic.follow_level::<{ each::ANYTHING }, 4>(0, intid, || {
            let look = looks.replace(looks.get() + 1);
            levels[look.min(levels.len() - 1)]
        });
        assert!(looks.get() <= 5, "{levels:?}");
        self.carry_out(effects);
    }

    pub fn link(&mut self, intid: u32) {
        self.gic.link(intid, intid + PHYSICAL_OFFSET);
    }

    /// The device behind a linked interrupt asserts its line; `vcpu` matters to
    /// private interrupts. Nothing happens while the physical one is active.
    pub fn arrive(&mut self, vcpu: usize, intid: u32) {
        let physical = intid + PHYSICAL_OFFSET;
        if intid >= SPI_FIRST {
            if self.physical.insert(physical) {
                self.post(vcpu, intid);
            }
        } else if self.seats[vcpu].physical.insert(physical) {
            let seat = &mut self.seats[vcpu];
            seat.interface.inject(&self.gic, &mut seat.cpu, intid, physical);
            self.finish(vcpu);
            self.after(vcpu);
        }
    }

    pub fn sync(&mut self, vcpu: usize) -> usize {
        let seat = &mut self.seats[vcpu];
        seat.rung = false;
        let listed = seat.interface.sync(&self.gic, &mut seat.cpu);
        let listed = listed + self.finish(vcpu);
        let seat = &mut self.seats[vcpu];
        assert!(!seat.cpu.wants_maintenance(), "a maintenance interrupt that never ends");
        self.collect(vcpu);
        listed
    }

    /// Goes on where the work for a vCPU has stopped, before its guest runs. Between two
    /// pieces its core may do something else: the vCPU leaves it and comes back. Answers how
    /// many interrupts are listed by that.
    fn finish(&mut self, vcpu: usize) -> usize {
        let (seat, mut listed) = (&mut self.seats[vcpu], 0);
        while seat.interface.is_unfinished() {
            assert!(seat.interface.has_news(&self.gic), "nothing makes it go on");
            seat.interface.park(&self.gic, &mut seat.cpu, 27);
            listed += seat.interface.sync(&self.gic, &mut seat.cpu);
        }
        listed
    }

    /// Answers doorbells and maintenance interrupts until there are none.
    pub fn settle(&mut self) {
        for _ in 0..100 {
            let needy = |seat: &Seat| seat.rung || seat.cpu.wants_maintenance();
            let Some(vcpu) = self.seats.iter().position(needy) else { return };
            self.sync(vcpu);
        }
        panic!("the doorbells never cease");
    }

    pub fn acknowledge(&mut self, vcpu: usize) -> u32 {
        let intid = self.seats[vcpu].cpu.acknowledge();
        self.after(vcpu);
        intid
    }

    pub fn end(&mut self, vcpu: usize, intid: u32) {
        self.seats[vcpu].cpu.end(intid);
        self.after(vcpu);
    }

    /// ICC_DIR_EL1; EL2 traps it always where its INTID may be another vCPU's.
    pub fn deactivate(&mut self, vcpu: usize, intid: u32) {
        let seat = &mut self.seats[vcpu];
        if seat.cpu.traps_dir() || intid >= SPI_FIRST {
            let done = seat.interface.deactivate(&self.gic, &mut seat.cpu, intid);
            self.finish(vcpu);
            if !done {
                self.again(vcpu, |world| world.deactivate(vcpu, intid));
            }
        } else {
            seat.cpu.deactivate_virtual(intid);
        }
        self.after(vcpu);
    }

    /// The guest executes an instruction again, for which it needs a moment in which nothing pends.
    fn again<T>(&mut self, vcpu: usize, act: impl FnOnce(&mut Self) -> T) -> T {
        let looks = std::mem::replace(&mut self.seats[vcpu].cpu.looks, Looks::Never);
        let value = act(self);
        self.seats[vcpu].cpu.looks = looks;
        value
    }

    /// The vCPU leaves its core and comes back.
    pub fn switch_out_and_in(&mut self, vcpu: usize) {
        let seat = &mut self.seats[vcpu];
        if seat.interface.take_back(&self.gic, &mut seat.cpu) {
            assert_eq!(seat.cpu.empty().count_ones() as usize, seat.cpu.count());
            seat.interface.list(&self.gic, &mut seat.cpu);
        }
        self.finish(vcpu);
        self.after(vcpu);
    }

    /// What a vCPU has listed.
    pub fn listed(&self, vcpu: usize) -> Vec<ListRegister> {
        let registers = self.seats[vcpu].cpu.registers().iter();
        registers.copied().filter(|r| r.is_pending() || r.is_active()).collect()
    }

    pub fn listed_intids(&self, vcpu: usize) -> Vec<u32> {
        self.listed(vcpu).iter().map(|register| register.intid()).collect()
    }

    /// The guest takes and ends everything it is offered; answers what.
    pub fn drain(&mut self, vcpu: usize) -> Vec<u32> {
        let mut taken = Vec::new();
        loop {
            self.settle();
            let intid = self.acknowledge(vcpu);
            if intid == SPURIOUS {
                return taken;
            }
            taken.push(intid);
            self.settle();
            self.end(vcpu, intid);
            if self.seats[vcpu].cpu.split_eoi {
                self.deactivate(vcpu, intid);
            }
        }
    }

    fn after(&mut self, vcpu: usize) {
        self.collect(vcpu);
        if self.prompt {
            self.settle();
        }
    }

    fn carry_out(&mut self, effects: Effects) {
        self.ring(effects.notify);
        if let Some((word, bits)) = effects.deactivate {
            for bit in numbers(bits) {
                let intid = word as u32 * 32 + bit;
                if let Some(physical) = self.gic.physical(intid) {
                    let active = self.physical.remove(&physical);
                    assert!(active || self.by_hand, "{intid} was not active physically");
                }
            }
        }
        for vcpu in 0..self.seats.len() {
            self.collect(vcpu);
        }
        if self.prompt {
            self.settle();
        }
    }

    fn ring(&mut self, vcpus: u8) {
        for vcpu in numbers(vcpus.into()) {
            if let Some(seat) = self.seats.get_mut(vcpu as usize) {
                seat.rung = true;
            }
        }
    }

    /// What a core has deactivated can arrive again.
    fn collect(&mut self, vcpu: usize) {
        let seat = &mut self.seats[vcpu];
        for physical in seat.cpu.deactivated.drain(..) {
            let active = if physical - PHYSICAL_OFFSET < SPI_FIRST {
                seat.physical.remove(&physical)
            } else {
                self.physical.remove(&physical)
            };
            assert!(active || self.by_hand, "{physical} deactivated, but was not active");
        }
        let rung = std::mem::take(&mut seat.cpu.rung);
        self.ring(rung);
    }
}

/// The numbers of the bits that are set.
fn numbers(bits: u32) -> impl Iterator<Item = u32> {
    (0..u32::BITS).filter(move |bit| bits >> bit & 1 == 1)
}
