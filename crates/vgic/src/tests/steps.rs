//! What may happen in a random run: steps of guests, devices and the hypervisor.

use super::world::World;
use super::*;
use proptest::prelude::*;

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

pub fn step(vcpus: usize) -> impl Strategy<Value = Step> {
    let vcpu = move || 0..vcpus;
    let intid = || prop::sample::select(&INTIDS[..]);
    let bits = || {
        prop::sample::select(&[ISENABLER, ISENABLER, ICENABLER, ISPENDR, ICPENDR, ICACTIVER][..])
    };
    let priority = || (0u8..8).prop_map(|priority| priority * 24);
    prop_oneof![
        10 => (vcpu(), intid()).prop_map(|(vcpu, intid)| Step::Post { vcpu, intid }),
        6 => (vcpu(), intid(), any::<bool>())
            .prop_map(|(vcpu, intid, high)| Step::Line { vcpu, intid, high }),
        6 => (vcpu(), prop::sample::select(&LINKED[..]))
            .prop_map(|(vcpu, intid)| Step::Arrive { vcpu, intid }),
        8 => (vcpu(), vcpu(), bits(), intid()).prop_map(|(vcpu, owner, register, intid)| {
            Step::Write { vcpu, owner, register, intid }
        }),
        1 => (vcpu(), vcpu(), intid())
            .prop_map(|(vcpu, owner, intid)| Step::Group { vcpu, owner, intid }),
        2 => (vcpu(), vcpu(), intid(), priority()).prop_map(|(vcpu, owner, intid, priority)| {
            Step::Priority { vcpu, owner, intid, priority }
        }),
        2 => (vcpu(), intid(), 0..vcpus as u64 + 1)
            .prop_map(|(vcpu, intid, target)| Step::Route { vcpu, intid, target }),
        1 => (vcpu(), 0..4u64, any::<bool>()).prop_map(|(vcpu, groups, all)| Step::Control {
            vcpu,
            groups: if all { 3 } else { groups },
        }),
        1 => (vcpu(), 0..8u8, any::<bool>()).prop_map(|(vcpu, mask, open)| Step::Mask {
            vcpu,
            mask: if open { 0xff } else { mask * 24 },
        }),
        20 => vcpu().prop_map(|vcpu| Step::Acknowledge { vcpu }),
        14 => vcpu().prop_map(|vcpu| Step::End { vcpu }),
        10 => (vcpu(), any::<usize>()).prop_map(|(vcpu, which)| Step::Deactivate { vcpu, which }),
        2 => vcpu().prop_map(|vcpu| Step::Switch { vcpu }),
        1 => vcpu().prop_map(|vcpu| Step::Sync { vcpu }),
    ]
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
