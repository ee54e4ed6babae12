//! From pending to acknowledged to inactive.

use super::*;
use crate::Gic;
use crate::frames::v3;

#[test]
fn an_sgi_is_taken_once_with_any_number_of_registers() {
    for count in COUNTS {
        let mut world = World::new(2, count);
        world.enable(1, 5, 0x80);
        world.post(1, 5);
        assert_eq!(world.acknowledge(0), SPURIOUS);
        assert_eq!(world.drain(1), [5]);
        assert_eq!(world.listed(1), []);
    }
}

#[test]
fn more_pending_than_registers_come_in_order_of_priority() {
    for count in COUNTS {
        let mut world = World::new(1, count);
        for intid in 0..32 {
            world.enable(0, intid, (31 - intid as u8) * 8);
            world.make_edge(0, intid);
        }
        world.prompt = false;
        for intid in [7, 3, 31, 0, 16, 8, 9, 15, 1, 20, 21, 22, 23, 30, 29, 28, 27, 26, 12] {
            world.post(0, intid);
        }
        let order = [31, 30, 29, 28, 27, 26, 23, 22, 21, 20, 16, 15, 12, 9, 8, 7, 3, 1, 0];
        assert_eq!(world.drain(0), order, "{count} list registers");
    }
}

#[test]
fn what_is_not_enabled_waits() {
    let mut world = World::new(1, 4);
    world.post(0, 3);
    assert_eq!(world.acknowledge(0), SPURIOUS);
    assert!(world.read_bit(0, ISPENDR, 3));
    world.enable(0, 3, 0);
    assert_eq!(world.drain(0), [3]);
}

#[test]
fn disabling_retracts_what_is_listed() {
    for intid in [3, 40] {
        let mut world = World::new(1, 4);
        world.make_edge(0, intid);
        world.enable(0, intid, 0);
        world.post(0, intid);
        assert_eq!(world.listed_intids(0), [intid]);
        world.write_bit(0, ICENABLER, intid);
        assert_eq!(world.listed(0), []);
        assert!(world.read_bit(0, ISPENDR, intid));
        world.write_bit(0, ISENABLER, intid);
        assert_eq!(world.drain(0), [intid]);
    }
}

#[test]
fn disabling_a_group_retracts_what_is_listed() {
    let mut world = World::new(2, 4);
    world.enable(1, 3, 0);
    world.enable(1, 4, 0);
    world.write_bit(1, IGROUPR, 4);
    world.post(1, 3);
    world.post(1, 4);
    world.write_distributor(0, GICD_CTLR, 4, 2);
    assert_eq!(world.drain(1), [4]);
    world.write_distributor(0, GICD_CTLR, 4, 3);
    assert_eq!(world.drain(1), [3]);
}

#[test]
fn a_level_interrupt_comes_again_while_its_line_is_high() {
    for count in COUNTS {
        let mut world = World::new(1, count);
        world.enable(0, 33, 0x80);
        world.set_level(33, true);
        for _ in 0..3 {
            assert_eq!(world.acknowledge(0), 33);
            assert_eq!(world.acknowledge(0), SPURIOUS);
            world.end(0, 33);
        }
        assert_eq!(world.acknowledge(0), 33);
        world.set_level(33, false);
        world.end(0, 33);
        assert_eq!(world.acknowledge(0), SPURIOUS);
        assert_eq!(world.listed(0), []);
    }
}

#[test]
fn a_level_interrupt_is_retracted_when_its_line_falls_first() {
    let mut world = World::new(1, 1);
    world.enable(0, 33, 0x80);
    world.set_level(33, true);
    assert_eq!(world.listed_intids(0), [33]);
    world.set_level(33, false);
    assert_eq!(world.acknowledge(0), SPURIOUS);
    assert!(!world.read_bit(0, ISPENDR, 33));
}

#[test]
fn a_line_is_followed_that_another_core_changes_meanwhile() {
    for levels in [&[true][..], &[false, true], &[true, false, true], &[false, true, false, true]] {
        let mut world = World::new(1, 1);
        world.enable(0, 33, 0x80);
        world.follow_level(33, levels);
        assert_eq!(world.listed_intids(0), [33], "{levels:?}");
        world.follow_level(33, &[true, false]);
        assert_eq!(world.acknowledge(0), SPURIOUS, "{levels:?}");
        world.follow_level(33, &[true, false, true, false, true, false, true, false]);
    }
    let mut world = World::new(1, 1);
    world.make_edge(0, 33);
    world.enable(0, 33, 0x80);
    world.follow_level(33, &[true, false]);
    assert_eq!(world.drain(0), [33], "an edge is not overlooked");
}

#[test]
fn an_edge_is_remembered_when_its_line_falls() {
    let mut world = World::new(1, 1);
    world.make_edge(0, 33);
    world.enable(0, 33, 0x80);
    world.set_level(33, true);
    world.set_level(33, false);
    assert_eq!(world.drain(0), [33]);
    world.set_level(33, true);
    assert_eq!(world.drain(0), [33]);
    assert_eq!(world.drain(0), []);
}

#[test]
fn a_physical_interrupt_is_deactivated_with_its_virtual_one() {
    for (intid, count) in [(27, 1), (27, 4), (40, 1), (40, 4)] {
        let mut world = World::new(1, count);
        world.link(intid);
        world.enable(0, intid, 0x80);
        for _ in 0..3 {
            world.arrive(0, intid);
            assert_eq!(world.listed(0)[0].physical(), Some(intid + world::PHYSICAL_OFFSET));
            assert_eq!(world.drain(0), [intid]);
            assert!(world.seats[0].physical.is_empty() && world.physical.is_empty());
        }
    }
}

#[test]
fn leaving_the_core_loses_nothing() {
    for count in COUNTS {
        let mut world = World::new(1, count);
        for intid in 0..8 {
            world.enable(0, intid, intid as u8 * 8);
            world.post(0, intid);
        }
        world.seats[0].cpu.mask = 0;
        world.switch_out_and_in(0);
        world.seats[0].cpu.mask = 0xff;
        assert_eq!(world.acknowledge(0), 0);
        world.switch_out_and_in(0);
        world.end(0, 0);
        assert_eq!(world.drain(0), [1, 2, 3, 4, 5, 6, 7]);
    }
}

#[test]
fn sgis_are_edge_triggered_after_reset() {
    let gic = Gic::new();
    let (config, _) = v3::read_redistributor(&gic, 0, false, 0x1_0000 + ICFGR, 4);
    assert_eq!(config, 0xaaaa_aaaa);
}

#[test]
fn what_was_taken_back_is_listed_by_any_later_sync() {
    let mut world = World::new(1, 2);
    for intid in 0..4 {
        world.enable(0, intid, intid as u8 * 8);
        world.post(0, intid);
    }
    let seat = &mut world.seats[0];
    // The vCPU leaves its core.
    assert!(seat.interface.take_back(&world.gic, &mut seat.cpu));
    assert_eq!(world.sync(0), 2);
    assert_eq!(world.drain(0), [0, 1, 2, 3]);
}

#[test]
fn an_arrival_does_not_overtake_what_is_more_urgent() {
    let mut world = World::new(1, 1);
    world.link(27);
    world.enable(0, 27, 0x80);
    world.enable(0, 1, 0x10);
    world.enable(0, 2, 0x20);
    world.post(0, 1);
    world.post(0, 2);
    world.prompt = false;
    assert_eq!(world.acknowledge(0), 1);
    world.end(0, 1);
    // The maintenance interrupt that makes room for 2 is still on its way.
    world.arrive(0, 27);
    assert_eq!(world.listed_intids(0), [2]);
    assert_eq!(world.drain(0), [2, 27]);
}

#[test]
fn arrivals_of_two_sources_alternate() {
    for count in COUNTS {
        let mut world = World::new(1, count);
        for intid in [27, 30] {
            world.link(intid);
            world.enable(0, intid, 0x80);
        }
        for intid in [27, 27, 30, 27, 30, 30, 27] {
            world.arrive(0, intid);
            assert_eq!(world.acknowledge(0), intid);
            world.end(0, intid);
        }
        world.arrive(0, 27);
        world.arrive(0, 30);
        assert_eq!(world.drain(0), [27, 30]);
        assert!(world.seats[0].physical.is_empty());
    }
}

#[test]
fn an_arrival_after_a_change_is_as_the_change_says() {
    let mut world = World::new(2, 4);
    world.link(27);
    world.enable(0, 27, 0x80);
    world.arrive(0, 27);
    assert_eq!(world.drain(0), [27]);
    // The doorbell has not been answered when the interrupt comes again.
    world.prompt = false;
    world.write_bit_of(1, 0, ICENABLER, 27);
    world.arrive(0, 27);
    assert_eq!(world.acknowledge(0), SPURIOUS);
    world.write_bit_of(1, 0, ISENABLER, 27);
    assert_eq!(world.drain(0), [27]);
    assert!(world.seats[0].physical.is_empty());
}
