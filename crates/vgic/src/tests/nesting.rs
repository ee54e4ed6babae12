//! Handlers that are interrupted by handlers, deeper than there are list
//! registers.

use super::*;

/// SGIs 0 to `depth` - 1, the higher the more urgent, each taken while the one
/// before is active.
fn nested(count: usize, depth: u32) -> World {
    let mut world = World::new(1, count);
    for intid in 0..16 {
        world.enable(0, intid, 0xf0 - intid as u8 * 8);
    }
    for intid in 0..depth {
        world.post(0, intid);
        assert_eq!(world.acknowledge(0), intid);
    }
    world
}

#[test]
fn they_end_in_order() {
    for count in COUNTS {
        let mut world = nested(count, 16);
        for intid in (0..16).rev() {
            assert!(world.read_bit(0, ISACTIVER, intid));
            world.end(0, intid);
            assert!(!world.read_bit(0, ISACTIVER, intid));
        }
        assert_eq!(world.listed(0), []);
        assert_eq!(world.drain(0), []);
    }
}

#[test]
fn they_end_in_order_while_others_pend_and_are_taken() {
    for count in COUNTS {
        let mut world = nested(count, 10);
        for intid in (0..10).rev() {
            world.post(0, 15);
            world.post(0, intid);
            assert_eq!(world.acknowledge(0), 15);
            world.end(0, 15);
            world.end(0, intid);
            assert_eq!(world.acknowledge(0), intid, "{count} list registers");
            world.end(0, intid);
        }
        assert_eq!(world.listed(0), []);
    }
}

#[test]
fn the_guest_is_faster_than_the_maintenance_interrupt() {
    for count in COUNTS {
        let mut world = nested(count, 8);
        // The first of these is listed and may be taken as soon as 7 is ended,
        // before EL2 has heard of that.
        world.post(0, 15);
        world.seats[0].cpu.mask = 0;
        world.prompt = false;
        world.end(0, 7);
        world.seats[0].cpu.mask = 0xff;
        assert_eq!(world.acknowledge(0), 15);
        world.settle();
        assert!(world.read_bit(0, ISACTIVER, 15));
        assert!(!world.read_bit(0, ISACTIVER, 7));
        world.prompt = true;
        world.end(0, 15);
        for intid in (0..7).rev() {
            world.end(0, intid);
        }
        assert_eq!(world.listed(0), []);
    }
}

#[test]
fn they_are_dropped_in_order_and_deactivated_in_any() {
    for count in COUNTS {
        let mut world = World::new(1, count);
        world.seats[0].cpu.split_eoi = true;
        for intid in 0..8 {
            world.enable(0, intid, 0x80);
            world.post(0, intid);
            assert_eq!(world.acknowledge(0), intid);
            world.end(0, intid);
        }
        for intid in [3, 7, 0, 1, 6, 5, 2, 4] {
            world.post(0, intid);
            assert_eq!(world.acknowledge(0), SPURIOUS, "still active");
            world.deactivate(0, intid);
            assert_eq!(world.acknowledge(0), intid, "{count} list registers");
            world.end(0, intid);
            world.deactivate(0, intid);
        }
        assert_eq!(world.listed(0), []);
    }
}

#[test]
fn an_end_without_an_interrupt_ends_no_other() {
    let mut world = nested(1, 1);
    // The guest errs: EOI of something that is not active.
    world.seats[0].cpu.deactivate_virtual(9);
    world.post(0, 1);
    assert_eq!(world.acknowledge(0), 1);
    assert!(world.read_bit(0, ISACTIVER, 0) && world.read_bit(0, ISACTIVER, 1));
    world.end(0, 1);
    world.end(0, 0);
    assert_eq!(world.listed(0), []);
}

#[test]
fn spilled_physical_interrupts_are_deactivated() {
    for count in COUNTS {
        let mut world = World::new(1, count);
        let order = [27, 40, 30, 41];
        for (at, intid) in order.into_iter().enumerate() {
            world.link(intid);
            world.enable(0, intid, 0x80 - at as u8 * 8);
            world.arrive(0, intid);
            assert_eq!(world.acknowledge(0), intid);
        }
        for intid in order.into_iter().rev() {
            world.end(0, intid);
        }
        assert!(world.seats[0].physical.is_empty() && world.physical.is_empty());
    }
}

#[test]
fn a_new_priority_does_not_change_the_order_in_which_they_end() {
    for count in COUNTS {
        let mut world = nested(count, 8);
        // 5 is the most urgent now, of those that are active; but 7 was taken
        // last and ends first.
        world.enable(0, 7, 0xf8);
        world.enable(0, 5, 0);
        for intid in (0..8).rev() {
            world.end(0, intid);
            assert!(!world.read_bit(0, ISACTIVER, intid), "{count} list registers");
            assert!(intid == 0 || world.read_bit(0, ISACTIVER, intid - 1));
        }
    }
}

#[test]
fn a_new_priority_may_come_after_the_acknowledge() {
    for count in COUNTS {
        let mut world = World::new(2, count);
        world.enable(0, 1, 0x80);
        world.enable(0, 2, 0x40);
        world.enable(0, 3, 0x20);
        world.post(0, 1);
        assert_eq!(world.acknowledge(0), 1);
        world.post(0, 2);
        world.prompt = false;
        assert_eq!(world.acknowledge(0), 2);
        world.write_redistributor(1, 0, IPRIORITYR + 2, 1, 0xf0);
        world.settle();
        world.prompt = true;
        world.post(0, 3);
        assert_eq!(world.acknowledge(0), 3);
        for intid in [3, 2, 1] {
            world.end(0, intid);
            assert!(!world.read_bit(0, ISACTIVER, intid), "{count} list registers");
        }
    }
}
