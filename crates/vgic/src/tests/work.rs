//! How much is done between two looks at what is urgent, whatever the guest has prepared, and that
//! what is stopped at any look comes to the same end.

use super::cpu::Looks;
use super::*;
use crate::WORDS;
use crate::pausing::before_each_access;
use abi::platform::{INTID_END, SPI_FIRST};
use std::cell::Cell;

/// Accesses to words that cores share, between two looks. Each of the 32 interrupts of a word
/// takes up to three (its route, its holder, its priority), the word itself some twenty.
const LIMIT: u64 = 140;

thread_local! {
    static ACCESSES: Cell<u64> = const { Cell::new(0) };
    static MOST: Cell<u64> = const { Cell::new(0) };
    static LOOKS: Cell<u64> = const { Cell::new(0) };
}

/// EL2 looks.
pub fn look() {
    MOST.set(MOST.get().max(ACCESSES.take()));
    LOOKS.set(LOOKS.get() + 1);
}

/// Does something, and answers the most accesses between two looks, and the number of looks.
fn measure(what: impl FnOnce()) -> (u64, u64) {
    before_each_access(|| ACCESSES.set(ACCESSES.get() + 1));
    ACCESSES.set(0);
    MOST.set(0);
    LOOKS.set(0);
    what();
    look();
    before_each_access(|| {});
    (MOST.get(), LOOKS.get())
}

/// Writes all ones to a bit register of every word.
fn write_all(world: &mut World, register: u64) {
    world.write_redistributor(0, 0, register, 4, u64::from(u32::MAX));
    for word in 1..WORDS as u64 {
        world.write_distributor(0, register + 4 * word, 4, u64::from(u32::MAX));
    }
}

/// Everything is enabled, later INTIDs at higher priority: each that is looked at comes before
/// all that were.
fn steep(count: usize) -> World {
    let mut world = World::new(1, count);
    for intid in 0..INTID_END {
        world.enable(0, intid, 0xf0 - (intid / 10 * 8) as u8);
        if intid >= SPI_FIRST {
            world.route(0, intid, 0);
        }
    }
    world
}

/// Everything is pending, and masked.
fn all_pending(count: usize) -> World {
    let mut world = steep(count);
    world.seats[0].cpu.mask = 0;
    write_all(&mut world, ISPENDR);
    world
}

/// Everything is active: the guest has taken each interrupt, dropped its priority and ended none.
fn all_active(count: usize) -> World {
    let mut world = steep(count);
    world.seats[0].cpu.split_eoi = true;
    for intid in 0..INTID_END {
        world.post(0, intid);
        assert_eq!(world.acknowledge(0), intid);
        world.end(0, intid);
    }
    world
}

/// A maintenance interrupt for 31 ends of interrupts that are in no list register.
fn many_ends(world: &mut World) {
    let listed = world.listed_intids(0);
    let spilled = (0..INTID_END).filter(|intid| !listed.contains(intid));
    for intid in spilled.take(31) {
        world.seats[0].cpu.deactivate_virtual(intid);
    }
    world.sync(0);
}

fn write_control(world: &mut World) {
    world.write_distributor(0, GICD_CTLR, 4, 3);
}

type Act = fn(&mut World);
type Prepare = fn(usize) -> World;

/// What a hostile guest prepares, and what it does then.
const CASES: [(Prepare, Act); 5] = [
    (all_pending, write_control),
    (all_active, write_control),
    (all_active, many_ends),
    (all_active, |world| write_all(world, ICACTIVER)),
    (all_active, |world| {
        write_all(world, ISPENDR);
        many_ends(world);
        write_all(world, ICPENDR);
    }),
];

#[test]
fn little_is_done_between_two_looks() {
    for (at, (prepare, act)) in CASES.into_iter().enumerate() {
        for count in COUNTS {
            let mut world = prepare(count);
            let (most, _) = measure(|| act(&mut world));
            // Filling list registers is one piece, too.
            let limit = LIMIT + 10 * count as u64;
            assert!(most <= limit, "case {at}, {count} list registers: {most} accesses");
        }
    }
}

#[test]
fn all_is_the_same_wherever_it_stops() {
    for (prepare, act) in CASES {
        for count in COUNTS {
            let mut whole = prepare(count);
            act(&mut whole);
            let mut pieces = prepare(count);
            pieces.seats[0].cpu.looks = Looks::Always;
            act(&mut pieces);
            assert_eq!(pieces.listed(0), whole.listed(0));
            pieces.seats[0].cpu.looks = Looks::Never;
            for register in [ISPENDR, ISACTIVER] {
                for intid in 0..INTID_END {
                    let read = |world: &mut World| world.read_bit(0, register, intid);
                    assert_eq!(read(&mut pieces), read(&mut whole), "{register:#x} of {intid}");
                }
            }
        }
    }
}

/// A guest that has nothing going on is not looked at more often than it has words that changed,
/// and once before the access.
#[test]
fn a_guest_at_rest_costs_few_looks() {
    let mut world = World::new(1, 4);
    world.sync(0);
    let (_, looks) = measure(|| world.write_bit(0, ISENABLER, 40));
    assert!(looks <= 5, "{looks} looks");
}
