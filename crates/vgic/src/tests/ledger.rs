//! What each interrupt is owed, while doorbells and maintenance interrupts take their time.

use super::addresses::*;
use super::cpu::SPURIOUS;
use super::steps::{self, Guest, INTIDS, LINKED, Step};
use super::world::{PHYSICAL_OFFSET, World};
use abi::platform::SPI_FIRST;
use std::collections::BTreeMap;

/// What one interrupt (of one vCPU, if private) is owed.
#[derive(Clone, Copy, Default, Debug)]
struct Account {
    /// Posted, and neither taken nor cleared since.
    owed: bool,
    /// Times it may still be taken.
    credit: u32,
    high: bool,
    /// The line may have been seen high by a vCPU that did not sync since.
    was_high: bool,
}

/// See the module.
pub struct Ledger {
    pub world: World,
    guests: Vec<Guest>,
    accounts: BTreeMap<(usize, u32), Account>,
}

impl Ledger {
    /// A VM as [`steps::world`] makes it, whose doorbells wait.
    pub fn new(vcpus: usize, count: usize, split: bool) -> Self {
        let mut world = steps::world(vcpus, count, split);
        world.prompt = false;
        Self { world, guests: vec![Guest::default(); vcpus], accounts: BTreeMap::new() }
    }

    fn account(&mut self, vcpu: usize, intid: u32) -> &mut Account {
        let owner = if intid < SPI_FIRST { vcpu } else { 0 };
        self.accounts.entry((owner, intid)).or_default()
    }

    fn posted(&mut self, vcpu: usize, intid: u32) {
        let account = self.account(vcpu, intid);
        account.owed = true;
        account.credit += 1;
    }

    fn holds(&self, vcpu: usize, intid: u32) -> bool {
        let guest = &self.guests[vcpu];
        guest.nested.iter().chain(&guest.dropped).any(|&other| other == intid)
    }

    fn is_active(&self, owner: usize, intid: u32) -> bool {
        if intid < SPI_FIRST {
            return self.holds(owner, intid);
        }
        (0..self.guests.len()).any(|vcpu| self.holds(vcpu, intid))
    }

    /// Takes a step.
    pub fn take(&mut self, step: &Step) {
        let split = self.world.seats[0].cpu.split_eoi;
        match *step {
            Step::Post { vcpu, intid } if !LINKED.contains(&intid) => {
                self.posted(vcpu, intid);
                self.world.post(vcpu, intid);
            }
            // Only level-triggered lines: an edge is a post.
            Step::Line { vcpu, intid: intid @ (16 | 33), high } => {
                let account = self.account(vcpu, intid);
                account.was_high |= high;
                account.high = high;
                self.world.set_level_of(vcpu, intid, high);
            }
            Step::Arrive { vcpu, intid } => {
                let physical = intid + PHYSICAL_OFFSET;
                let seat = &self.world.seats[vcpu].physical;
                if !seat.contains(&physical) && !self.world.physical.contains(&physical) {
                    self.posted(vcpu, intid);
                    self.world.arrive(vcpu, intid);
                }
            }
            Step::Write { vcpu, owner, register, intid } => {
                self.write(vcpu, owner, register, intid, split);
            }
            Step::Priority { vcpu, owner, intid, priority } => {
                let offset = IPRIORITYR + u64::from(intid);
                if intid < SPI_FIRST {
                    self.world.write_redistributor(vcpu, owner, offset, 1, priority.into());
                } else {
                    self.world.write_distributor(vcpu, offset, 1, priority.into());
                }
            }
            Step::Route { vcpu, intid, target } if intid >= SPI_FIRST => {
                self.world.route(vcpu, intid, target);
            }
            Step::Control { vcpu, groups } => {
                self.world.write_distributor(vcpu, GICD_CTLR, 4, groups);
            }
            Step::Mask { vcpu, mask } => self.world.seats[vcpu].cpu.mask = mask,
            Step::Acknowledge { vcpu } => self.acknowledge(vcpu),
            Step::End { vcpu } => {
                if let Some(intid) = self.guests[vcpu].nested.pop() {
                    self.world.end(vcpu, intid);
                    if split {
                        self.guests[vcpu].dropped.push(intid);
                    }
                }
            }
            Step::Deactivate { vcpu, which } => self.deactivate(vcpu, which),
            Step::Switch { vcpu } => self.world.switch_out_and_in(vcpu),
            Step::Sync { vcpu } => {
                self.world.sync(vcpu);
            }
            _ => {}
        }
    }

    fn acknowledge(&mut self, vcpu: usize) {
        let intid = self.world.acknowledge(vcpu);
        if intid == SPURIOUS {
            return;
        }
        assert!(!self.is_active(vcpu, intid), "{intid} taken while active");
        let account = self.account(vcpu, intid);
        account.owed = false;
        if !account.high && !account.was_high {
            assert!(account.credit > 0, "{intid} taken more often than posted");
            account.credit -= 1;
        }
        self.guests[vcpu].nested.push(intid);
    }

    fn deactivate(&mut self, vcpu: usize, which: usize) {
        let taken_by = which % self.guests.len();
        let dropped = &mut self.guests[taken_by].dropped;
        if dropped.is_empty() {
            return;
        }
        let at = which / 8 % dropped.len();
        let intid = dropped[at];
        if intid >= SPI_FIRST || vcpu == taken_by {
            dropped.remove(at);
            self.world.deactivate(vcpu, intid);
        }
    }

    fn write(&mut self, vcpu: usize, owner: usize, register: u64, intid: u32, split: bool) {
        match register {
            ISPENDR if LINKED.contains(&intid) => return,
            ISPENDR => self.posted(owner, intid),
            // Whether it was taken before cannot be foretold.
            ICPENDR => self.account(owner, intid).owed = false,
            ICACTIVER => {
                let taken = |at: usize| intid >= SPI_FIRST || at == owner;
                let mut guests = self.guests.iter_mut().enumerate();
                let Some((_, guest)) =
                    guests.find(|(at, guest)| taken(*at) && guest.dropped.contains(&intid))
                else {
                    return;
                };
                assert!(split);
                guest.dropped.retain(|&other| other != intid);
            }
            _ => {}
        }
        self.world.write_bit_of(vcpu, owner, register, intid);
    }

    /// All doorbells are answered: nothing lags behind any more.
    pub fn settle(&mut self) {
        self.world.settle();
        for owner in 0..self.guests.len() {
            for intid in INTIDS {
                // The first read makes the vCPU sync that has it listed.
                let mut read = |register| {
                    self.world.read_bit(owner, register, intid);
                    self.world.settle();
                    self.world.read_bit(owner, register, intid)
                };
                let (active, pending) = (read(ISACTIVER), read(ISPENDR));
                assert_eq!(active, self.is_active(owner, intid), "{intid} active");
                let account = *self.account(owner, intid);
                assert!(pending || !account.owed && !account.high, "{intid} lost: {account:?}");
                if LINKED.contains(&intid) {
                    let physical = intid + PHYSICAL_OFFSET;
                    let there = self.world.physical.contains(&physical)
                        || self.world.seats[owner].physical.contains(&physical);
                    assert_eq!(there, active || pending, "physical interrupt behind {intid}");
                }
                self.account(owner, intid).was_high = account.high;
            }
        }
    }

    /// Everything is opened, taken and ended: nothing is left.
    pub fn drain(&mut self) {
        for vcpu in 0..self.guests.len() {
            for intid in [16, 33] {
                self.take(&Step::Line { vcpu, intid, high: false });
            }
        }
        self.take(&Step::Control { vcpu: 0, groups: 3 });
        let vcpus = self.guests.len();
        for vcpu in 0..vcpus {
            self.world.seats[vcpu].cpu.mask = 0xff;
            for intid in INTIDS {
                self.write(vcpu, vcpu, ISENABLER, intid, false);
                if self.world.gic.target(intid).is_some_and(|target| target >= vcpus) {
                    self.world.route(vcpu, intid, 0);
                }
            }
        }
        for _ in 0..100 {
            self.world.settle();
            for vcpu in 0..vcpus {
                self.take(&Step::Acknowledge { vcpu });
                self.take(&Step::End { vcpu });
                for which in 0..vcpus {
                    self.take(&Step::Deactivate { vcpu: which, which });
                }
            }
        }
        self.settle();
        for vcpu in 0..vcpus {
            assert_eq!(self.world.listed(vcpu), [], "vCPU {vcpu}");
            assert!(self.guests[vcpu].nested.is_empty() && self.guests[vcpu].dropped.is_empty());
        }
        assert!(self.accounts.values().all(|account| !account.owed));
    }
}
