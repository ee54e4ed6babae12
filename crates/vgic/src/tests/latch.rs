//! What is made pending without a line: by a post or by GICD_ISPENDR.

use super::*;

#[test]
fn a_level_interrupt_made_pending_by_hand_is_taken_once() {
    for count in COUNTS {
        let mut world = World::new(1, count);
        world.enable(0, 33, 0x80);
        world.write_bit(0, ISPENDR, 33);
        world.switch_out_and_in(0);
        assert!(world.read_bit(0, ISPENDR, 33));
        assert_eq!(world.drain(0), [33]);
        assert!(!world.read_bit(0, ISPENDR, 33));
    }
}

#[test]
fn the_latch_and_the_line_are_two_things() {
    let mut world = World::new(1, 4);
    world.enable(0, 33, 0x80);
    world.write_bit(0, ISPENDR, 33);
    world.set_level(33, true);
    world.set_level(33, false);
    assert_eq!(world.listed_intids(0), [33], "the latch holds when the line falls");
    world.set_level(33, true);
    world.write_bit(0, ICPENDR, 33);
    assert_eq!(world.listed_intids(0), [33], "the line holds when the latch is cleared");
    world.set_level(33, false);
    assert_eq!(world.listed(0), []);
}

#[test]
fn a_level_interrupt_made_pending_while_active_comes_again() {
    for count in COUNTS {
        let mut world = World::new(1, count);
        world.enable(0, 33, 0x80);
        world.set_level(33, true);
        assert_eq!(world.acknowledge(0), 33);
        world.set_level(33, false);
        world.write_bit(0, ISPENDR, 33);
        assert!(world.read_bit(0, ISACTIVER, 33) && world.read_bit(0, ISPENDR, 33));
        world.switch_out_and_in(0);
        world.end(0, 33);
        assert_eq!(world.drain(0), [33]);
    }
}

#[test]
fn clearing_what_is_pending_by_hand() {
    for intid in [3, 33, 40] {
        let mut world = World::new(2, 4);
        world.make_edge(0, 40);
        world.enable(0, intid, 0x80);
        world.write_bit(0, ISPENDR, intid);
        world.write_bit_of(1, 0, ICPENDR, intid);
        assert_eq!(world.acknowledge(0), SPURIOUS);
        assert!(!world.read_bit(0, ISPENDR, intid));
        world.post(0, intid);
        assert_eq!(world.drain(0), [intid], "cleared once, not for ever");
    }
}

#[test]
fn an_edge_that_comes_while_its_interrupt_is_active_is_taken_after() {
    for intid in [3, 40] {
        for count in COUNTS {
            let mut world = World::new(1, count);
            world.make_edge(0, intid);
            world.enable(0, intid, 0x80);
            world.post(0, intid);
            assert_eq!(world.acknowledge(0), intid);
            world.post(0, intid);
            assert_eq!(world.acknowledge(0), SPURIOUS);
            world.end(0, intid);
            assert_eq!(world.drain(0), [intid], "{count} list registers");
        }
    }
}

#[test]
fn a_linked_interrupt_made_pending_while_active_is_taken_after() {
    for intid in [27, 40] {
        for count in COUNTS {
            let mut world = World::new(1, count);
            world.link(intid);
            world.enable(0, intid, 0x80);
            world.arrive(0, intid);
            assert_eq!(world.acknowledge(0), intid);
            world.write_bit(0, ISPENDR, intid);
            world.end(0, intid);
            assert!(world.seats[0].physical.is_empty() && world.physical.is_empty());
            // Now both are pending, and it is still one interrupt.
            world.arrive(0, intid);
            assert_eq!(world.drain(0), [intid]);
            assert!(world.seats[0].physical.is_empty() && world.physical.is_empty());
        }
    }
}

/// A physical interrupt is not active where its guest has made the virtual one pending or active.
/// Whatever the guest does with that, in any order: no interrupt that comes is lost, and none stays
/// active. What the guest may have is one more of its own.
#[test]
fn a_linked_interrupt_that_is_made_pending_or_active_loses_none_that_comes() {
    const ACTS: u32 = 6;
    const LENGTH: u32 = 5;
    for intid in [27, 40] {
        for count in [1, 4] {
            for history in 0..ACTS.pow(LENGTH) {
                let mut world = World::new(1, count);
                (world.by_hand, world.seats[0].cpu.split_eoi) = (true, false);
                world.link(intid);
                world.enable(0, intid, 0x80);
                // Taken and not ended; and whether one has come that was not taken since.
                let (mut taken, mut comes) = (false, false);
                for act in (0..LENGTH).map(|at| history / ACTS.pow(at) % ACTS) {
                    match act {
                        0 => world.write_bit(0, ISPENDR, intid),
                        1 => world.write_bit(0, ISACTIVER, intid),
                        2 => {
                            let was_active = is_active_physically(&world, intid);
                            world.arrive(0, intid);
                            comes |= !was_active;
                        }
                        3 if !taken => {
                            taken = world.acknowledge(0) == intid;
                            comes &= !taken;
                        }
                        4 if taken => {
                            world.end(0, intid);
                            taken = false;
                        }
                        5 => world.switch_out_and_in(0),
                        _ => {}
                    }
                }
                if taken {
                    world.end(0, intid);
                }
                // What was made active by hand the guest ends likewise.
                world.write_bit(0, ICACTIVER, intid);
                let last = world.drain(0);
                assert!(!comes || last.contains(&intid), "{intid} is lost in history {history}");
                assert!(!is_active_physically(&world, intid), "{intid} after history {history}");
                world.arrive(0, intid);
                assert_eq!(world.drain(0), [intid], "{intid} comes again, history {history}");
            }
        }
    }
}

fn is_active_physically(world: &World, intid: u32) -> bool {
    let physical = intid + world::PHYSICAL_OFFSET;
    world.physical.contains(&physical) || world.seats[0].physical.contains(&physical)
}
