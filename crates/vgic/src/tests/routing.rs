//! Shared interrupts that change their target, and what one vCPU does to
//! another's interrupts.

use super::super::interface::CpuInterface;
use super::*;

fn with_edge(vcpus: usize, count: usize, intid: u32) -> World {
    let mut world = World::new(vcpus, count);
    world.make_edge(0, intid);
    world.enable(0, intid, 0x80);
    world
}

#[test]
fn a_pending_interrupt_follows_its_route() {
    for count in COUNTS {
        let mut world = with_edge(2, count, 40);
        world.post(0, 40);
        assert_eq!(world.listed_intids(0), [40]);
        world.route(0, 40, 1);
        assert_eq!(world.listed(0), []);
        assert_eq!(world.acknowledge(0), SPURIOUS);
        assert_eq!(world.drain(1), [40]);
    }
}

#[test]
fn the_new_target_may_look_before_the_old_one_lets_go() {
    for by_line in [false, true] {
        let mut world = World::new(3, 4);
        world.enable(0, 33, 0x80);
        if by_line {
            world.set_level(33, true);
        } else {
            world.post(0, 33);
        }
        world.prompt = false;
        world.route(2, 33, 1);
        assert_eq!(world.sync(1), 0, "still listed on the other vCPU");
        assert_eq!(world.sync(0), 0);
        world.settle();
        assert_eq!(world.listed_intids(1), [33]);
    }
}

#[test]
fn a_line_that_falls_after_rerouting_is_heard_by_both() {
    let mut world = World::new(2, 4);
    world.enable(0, 33, 0x80);
    world.set_level(33, true);
    world.prompt = false;
    world.route(1, 33, 1);
    world.set_level(33, false);
    world.prompt = true;
    world.settle();
    assert_eq!((world.acknowledge(0), world.acknowledge(1)), (SPURIOUS, SPURIOUS));
}

#[test]
fn an_active_interrupt_stays_where_it_is_and_comes_again_elsewhere() {
    for count in COUNTS {
        let mut world = with_edge(2, count, 40);
        world.post(0, 40);
        assert_eq!(world.acknowledge(0), 40);
        world.route(0, 40, 1);
        world.post(0, 40);
        assert_eq!(world.acknowledge(1), SPURIOUS, "one interrupt is active once");
        world.switch_out_and_in(0);
        assert_eq!(world.acknowledge(1), SPURIOUS);
        world.end(0, 40);
        assert_eq!(world.acknowledge(0), SPURIOUS);
        assert_eq!(world.drain(1), [40]);
    }
}

#[test]
fn no_vcpu_takes_what_is_routed_nowhere() {
    let mut world = with_edge(2, 4, 40);
    world.post(0, 40);
    world.route(0, 40, 7);
    assert_eq!((world.acknowledge(0), world.acknowledge(1)), (SPURIOUS, SPURIOUS));
    world.route(0, 40, 1);
    assert_eq!(world.drain(1), [40]);
}

#[test]
fn clearing_pending_of_what_another_vcpu_has_listed() {
    for intid in [3, 40] {
        let mut world = with_edge(2, 4, intid);
        world.post(0, intid);
        world.write_bit_of(1, 0, ICPENDR, intid);
        assert_eq!(world.listed(0), []);
        assert_eq!(world.drain(0), []);
    }
}

#[test]
fn a_post_after_clearing_pending_is_not_lost() {
    for intid in [3, 40] {
        let mut world = with_edge(2, 4, intid);
        world.post(0, intid);
        world.prompt = false;
        world.write_bit_of(1, 0, ICPENDR, intid);
        // Too late: the guest takes it before its core hears of the write.
        assert_eq!(world.acknowledge(0), intid);
        world.post(0, intid);
        world.settle();
        world.end(0, intid);
        assert_eq!(world.drain(0), [intid]);
    }
}

#[test]
fn clearing_active_of_what_another_vcpu_has_active() {
    for intid in [3, 40] {
        for count in COUNTS {
            let mut world = with_edge(2, count, intid);
            world.enable(0, 5, 0);
            world.post(0, intid);
            assert_eq!(world.acknowledge(0), intid);
            world.post(0, 5);
            assert_eq!(world.acknowledge(0), 5, "with one list register, {intid} is spilled");
            assert!(world.read_bit(0, ISACTIVER, intid));
            world.write_bit_of(1, 0, ICACTIVER, intid);
            assert!(!world.read_bit_of(1, 0, ISACTIVER, intid));
            assert!(!world.read_bit(0, ISACTIVER, intid));
            assert!(!world.listed_intids(0).contains(&intid));
            // It pends again and is taken when the priorities allow.
            world.post(0, intid);
            world.end(0, 5);
            world.end(0, intid);
            assert_eq!(world.drain(0), [intid]);
        }
    }
}

#[test]
fn clearing_active_twice_deactivates_the_physical_one_once() {
    for intid in [27, 40] {
        let mut world = World::new(2, 4);
        world.link(intid);
        world.enable(0, intid, 0x80);
        world.arrive(0, intid);
        assert_eq!(world.acknowledge(0), intid);
        world.prompt = false;
        world.write_bit_of(1, 0, ICACTIVER, intid);
        world.write_bit_of(1, 0, ICACTIVER, intid);
        world.settle();
        assert!(world.seats[0].physical.is_empty() && world.physical.is_empty());
        world.arrive(0, intid);
        world.settle();
        assert_eq!(world.listed_intids(0), [intid]);
    }
}

#[test]
fn clearing_active_loses_to_an_end_that_came_first() {
    let mut world = World::new(2, 4);
    world.link(40);
    world.enable(0, 40, 0x80);
    world.arrive(0, 40);
    assert_eq!(world.acknowledge(0), 40);
    world.switch_out_and_in(0);
    world.prompt = false;
    // The list register deactivates both; that must not happen again.
    world.end(0, 40);
    world.write_bit_of(1, 0, ICACTIVER, 40);
    world.settle();
    assert!(world.physical.is_empty());
}

#[test]
fn clearing_pending_deactivates_the_physical_interrupt_behind() {
    for intid in [27, 40] {
        for writer in [0, 1] {
            for enabled in [false, true] {
                let mut world = World::new(2, 4);
                world.link(intid);
                if enabled {
                    world.enable(0, intid, 0x80);
                }
                world.arrive(0, intid);
                world.write_bit_of(writer, 0, ICPENDR, intid);
                assert_eq!(world.acknowledge(0), SPURIOUS);
                assert!(world.seats[0].physical.is_empty() && world.physical.is_empty());
                world.enable(0, intid, 0x80);
                world.arrive(0, intid);
                assert_eq!(world.drain(0), [intid]);
            }
        }
    }
}

#[test]
fn clearing_pending_of_what_came_before_its_core_noticed_the_end() {
    let mut world = World::new(2, 4);
    world.link(40);
    world.enable(0, 40, 0x80);
    world.arrive(0, 40);
    assert_eq!(world.acknowledge(0), 40);
    world.prompt = false;
    // The list register deactivated it, so it can come again, although this
    // core believes it listed.
    world.end(0, 40);
    world.arrive(0, 40);
    world.write_bit_of(1, 0, ICPENDR, 40);
    world.settle();
    assert!(world.physical.is_empty());
    world.arrive(0, 40);
    assert_eq!(world.drain(0), [40]);
}

#[test]
fn clearing_pending_concerns_what_is_pending_not_what_arrives_later() {
    let mut world = World::new(2, 4);
    world.link(27);
    world.enable(0, 27, 0x80);
    world.prompt = false;
    world.write_bit_of(1, 0, ICPENDR, 27);
    world.arrive(0, 27);
    world.settle();
    assert_eq!(world.drain(0), [27]);
}

#[test]
fn deactivating_from_another_vcpu() {
    for count in COUNTS {
        let mut world = with_edge(2, count, 40);
        world.seats[0].cpu.split_eoi = true;
        world.post(0, 40);
        assert_eq!(world.acknowledge(0), 40);
        world.end(0, 40);
        world.deactivate(1, 40);
        assert!(!world.read_bit(1, ISACTIVER, 40));
        world.post(0, 40);
        assert_eq!(world.acknowledge(0), 40);
    }
}

#[test]
fn an_interrupt_made_active_by_hand_waits_until_it_is_made_inactive() {
    for intid in [3, 40] {
        let mut world = with_edge(2, 4, intid);
        world.write_bit(0, ISACTIVER, intid);
        world.post(0, intid);
        assert!(world.read_bit(0, ISACTIVER, intid) && world.read_bit(0, ISPENDR, intid));
        assert_eq!(world.acknowledge(0), SPURIOUS);
        world.write_bit_of(1, 0, ICACTIVER, intid);
        assert_eq!(world.drain(0), [intid]);
        // Made active while it is listed as pending.
        world.post(0, intid);
        world.write_bit_of(1, 0, ISACTIVER, intid);
        assert_eq!(world.acknowledge(0), SPURIOUS);
        world.deactivate(0, intid);
        assert_eq!(world.drain(0), [intid]);
    }
}

#[test]
fn a_vcpu_that_stops_leaves_nothing_active() {
    for count in COUNTS {
        let mut world = World::new(2, count);
        for (at, intid) in [27, 40, 30, 41].into_iter().enumerate() {
            world.link(intid);
            world.enable(0, intid, 0x80 - at as u8 * 8);
            world.arrive(0, intid);
            if at < 3 {
                assert_eq!(world.acknowledge(0), intid);
            }
        }
        let seat = &mut world.seats[0];
        seat.interface.begin_to_abandon();
        assert!(seat.interface.abandon(&world.gic, &mut seat.cpu));
        seat.cpu.restart();
        world.sync(0);
        assert!(world.seats[0].physical.is_empty() && world.physical.is_empty());
        assert!(!world.seats[0].cpu.wants_maintenance());
        for intid in [27, 40, 30, 41] {
            assert!(!world.read_bit(0, ISACTIVER, intid) && !world.read_bit(0, ISPENDR, intid));
            world.arrive(0, intid);
        }
        assert_eq!(world.drain(0), [41, 30, 40, 27]);
    }
}

#[test]
fn what_was_listed_when_a_vcpu_went_off_it_finds_when_it_is_switched_on() {
    for count in COUNTS {
        let mut world = World::new(2, count);
        for intid in [3, 40, 41] {
            world.enable(0, intid, 0x80);
            world.post(0, intid);
        }
        let seat = &mut world.seats[0];
        seat.interface.begin_to_abandon();
        assert!(seat.interface.abandon(&world.gic, &mut seat.cpu));
        seat.interface = CpuInterface::starting(0);
        seat.cpu.restart();
        assert!(world.seats[0].interface.has_unlisted(&world.gic));
        world.sync(0);
        assert_eq!(world.drain(0), [3, 40, 41]);
    }
}

#[test]
fn a_request_that_came_too_late_does_not_concern_the_next_holder() {
    use std::sync::atomic::Ordering;
    let mut world = with_edge(2, 4, 40);
    // As left by writers that saw the interrupt listed on vCPU 0, and were
    // overtaken by its end.
    let bank = &world.gic.shared[0];
    bank.drop_active.fetch_or(1 << 8, Ordering::Relaxed);
    bank.drop_pending.fetch_or(1 << 8, Ordering::Relaxed);
    world.route(1, 40, 1);
    world.post(1, 40);
    world.switch_out_and_in(1);
    assert_eq!(world.acknowledge(1), 40);
    assert!(world.read_bit(1, ISACTIVER, 40));
    world.end(1, 40);
    assert!(!world.read_bit(1, ISACTIVER, 40));
}
