//! What may happen in a random run: steps of guests, devices and the hypervisor.

use super::world::World;

/// The interrupts in play: SGIs, PPIs with a line, a linked PPI, linked shared ones, shared
/// ones with a line, level- or edge-triggered, of two words.
pub const INTIDS: [u32; 14] = [0, 1, 2, 15, 16, 20, 27, 33, 34, 40, 63, 64, 65, 287];
pub const LINKED: [u32; 3] = [27, 40, 64];
pub const EDGES: [u32; 4] = [20, 34, 65, 287];

#[derive(Clone, Debug)]
pub enum Step {
    Post { vcpu: usize, intid: u32 },
    Line { vcpu: usize, intid: u32, high: bool },
    Arrive { vcpu: usize, intid: u32 },
    Write { vcpu: usize, owner: usize, register: u64, intid: u32 },
    Group { vcpu: usize, owner: usize, intid: u32 },
    Priority { vcpu: usize, owner: usize, intid: u32, priority: u8 },
    Route { vcpu: usize, intid: u32, target: u64 },
    Control { vcpu: usize, groups: u64 },
    Mask { vcpu: usize, mask: u8 },
    Acknowledge { vcpu: usize },
    End { vcpu: usize },
    Deactivate { vcpu: usize, which: usize },
    Switch { vcpu: usize },
    Sync { vcpu: usize },
}

/// What a guest remembers: acknowledged, priority not dropped yet; and, with
/// split EOI, dropped and not deactivated yet.
#[derive(Clone, Default)]
pub struct Guest {
    pub nested: Vec<u32>,
    pub dropped: Vec<u32>,
}

/// A VM in which everything in play is enabled, at different priorities.
pub fn world(vcpus: usize, list_registers: usize, split_eoi: bool) -> World {
    let mut world = World::new(vcpus, list_registers);
    for intid in LINKED {
        world.link(intid);
    }
    for vcpu in 0..vcpus {
        world.seats[vcpu].cpu.split_eoi = split_eoi;
        for (at, intid) in INTIDS.into_iter().enumerate() {
            world.enable(vcpu, intid, initial_priority(at));
            if EDGES.contains(&intid) {
                world.make_edge(vcpu, intid);
            }
        }
    }
    world
}

/// Of the interrupt at this place in [`INTIDS`].
pub fn initial_priority(at: usize) -> u8 {
    (at * 5 % 8 * 24) as u8
}
