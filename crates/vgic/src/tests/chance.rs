//! Steps by chance.

use super::steps::{INTIDS, LINKED, Step};
use super::*;
use proptest::prelude::*;

/// Any step of a VM with so many vCPUs.
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
