//! Guests beside the models that the tests of the virtual interrupt controller have.
//!
//! The first bytes say how many vCPUs and list registers there are, whether an end of interrupt is
//! split, and at which looks something urgent has come; each step is four bytes.

#[path = "../../crates/vgic/src/tests/addresses.rs"]
mod addresses;
#[path = "../../crates/vgic/src/tests/both.rs"]
mod both;
#[path = "../../crates/vgic/src/tests/cpu.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod cpu;
#[path = "../../crates/vgic/src/tests/ideal.rs"]
mod ideal;
#[path = "../../crates/vgic/src/tests/ledger.rs"]
mod ledger;
#[path = "../../crates/vgic/src/tests/steps.rs"]
mod steps;
#[path = "../../crates/vgic/src/tests/world.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod world;

/// The tests count looks at what is urgent.
mod work {
    /// EL2 looks.
    pub fn look() {}
}

use crate::bytes::Bytes;
use addresses::*;
use both::Both;
use cpu::Looks;
use ledger::Ledger;
use steps::{INTIDS, LINKED, Step};
use world::Seat;

/// List registers, from the least to the most.
const COUNTS: [usize; 4] = [1, 2, 4, 16];

/// What a history begins with.
struct Setting {
    vcpus: usize,
    list_registers: usize,
    split_eoi: bool,
    looks: u64,
}

impl Setting {
    fn of(bytes: &mut Bytes) -> Self {
        let first = bytes.byte();
        Self {
            vcpus: usize::from(first & 3) + 1,
            list_registers: COUNTS[usize::from(first >> 2 & 3)],
            split_eoi: first & 16 != 0,
            looks: if first & 32 == 0 { 0 } else { bytes.word() },
        }
    }

    fn look(&self, seats: &mut [Seat]) {
        seats.iter_mut().for_each(|seat| seat.cpu.looks = Looks::Bits(self.looks));
    }
}

/// Reads a step: what, of which vCPUs, of which interrupt, and a value.
fn step(bytes: &mut Bytes, vcpus: usize) -> Step {
    let (what, which) = (bytes.byte(), bytes.byte());
    let (vcpu, owner) = (usize::from(which & 15) % vcpus, usize::from(which >> 4) % vcpus);
    let (intid, value) = (bytes.pick(&INTIDS), bytes.byte());
    let bits = [ISENABLER, ICENABLER, ISPENDR, ICPENDR, ICACTIVER];
    match what % 16 {
        0 => Step::Post { vcpu, intid },
        1 => Step::Line { vcpu, intid, high: value & 1 != 0 },
        2 => Step::Arrive { vcpu, intid: LINKED[usize::from(value) % LINKED.len()] },
        3 | 4 => {
            Step::Write { vcpu, owner, register: bits[usize::from(value) % bits.len()], intid }
        }
        5 => Step::Group { vcpu, owner, intid },
        6 => Step::Priority { vcpu, owner, intid, priority: value % 8 * 24 },
        7 => Step::Route { vcpu, intid, target: u64::from(value) % (vcpus as u64 + 1) },
        8 => Step::Control { vcpu, groups: u64::from(value & 3) },
        9 => Step::Mask { vcpu, mask: if value & 8 == 0 { value % 8 * 24 } else { 0xff } },
        10 | 11 => Step::Acknowledge { vcpu },
        12 => Step::End { vcpu },
        13 => Step::Deactivate { vcpu, which: value.into() },
        14 => Step::Switch { vcpu },
        _ => Step::Sync { vcpu },
    }
}

/// Doorbells are answered at once: all is as in the ideal after each step.
pub fn at_once(input: &[u8]) {
    let mut bytes = Bytes(input);
    let setting = Setting::of(&mut bytes);
    let mut both = Both::new(setting.vcpus, setting.list_registers, setting.split_eoi);
    setting.look(&mut both.world.seats);
    while !bytes.is_empty() {
        both.take(&step(&mut bytes, setting.vcpus));
        both.compare();
    }
    both.compare_registers();
    both.drain();
}

/// Doorbells are slow: nothing is lost, and nothing is there twice.
pub fn with_slow_doorbells(input: &[u8]) {
    let mut bytes = Bytes(input);
    let setting = Setting::of(&mut bytes);
    let mut ledger = Ledger::new(setting.vcpus, setting.list_registers, setting.split_eoi);
    setting.look(&mut ledger.world.seats);
    while !bytes.is_empty() {
        // One in 128 waits until all doorbells are answered.
        if bytes.0[0] == 0x7f {
            ledger.settle();
        }
        ledger.take(&step(&mut bytes, setting.vcpus));
    }
    ledger.settle();
    ledger.drain();
}
