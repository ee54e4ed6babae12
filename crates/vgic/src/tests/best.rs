//! The choice of the most urgent: every set of a few interrupts, with every priority of a few, in
//! every order in which they may be offered, for every number of places, beside a list that is
//! sorted.

use crate::Gic;
use crate::best::{Best, Choice};
use crate::interface::MAX_LIST_REGISTERS;
use std::sync::atomic::Ordering;

/// Interrupts of three words, two of which have two.
const INTIDS: [u32; 5] = [3, 30, 40, 41, 287];
/// The last two are one, as the lower three bits are not there.
const PRIORITIES: [u8; 4] = [0, 0x80, 0xf8, 0xff];

/// Calls `with` for every order of every set of `INTIDS`.
fn orders(begun: &mut Vec<usize>, with: &mut impl FnMut(&[usize])) {
    with(begun);
    for at in 0..INTIDS.len() {
        if !begun.contains(&at) {
            begun.push(at);
            orders(begun, with);
            begun.pop();
        }
    }
}

/// Returns an interrupt's word as a bit.
fn word(intid: u32) -> u32 {
    1 << (intid / 32)
}

#[test]
fn the_most_urgent_are_chosen_of_every_set_in_every_order() {
    let gic = Gic::new();
    let (mut best, mut cases) = (Best::NONE, 0);
    let last = PRIORITIES.len().pow(INTIDS.len() as u32);
    for number in 0..last {
        let priorities: [u8; INTIDS.len()] = std::array::from_fn(|at| {
            PRIORITIES[number / PRIORITIES.len().pow(at as u32) % PRIORITIES.len()]
        });
        for (intid, priority) in INTIDS.into_iter().zip(priorities) {
            let bank = gic.bank(0, intid as usize / 32);
            bank.priority[intid as usize % 32].store(priority, Ordering::Relaxed);
        }
        let choices = INTIDS.map(|intid| Choice::new(&gic, 0, intid));
        orders(&mut Vec::new(), &mut |order| {
            let mut sorted: Vec<(u8, u32)> =
                order.iter().map(|&at| (priorities[at] & 0xf8, INTIDS[at])).collect();
            sorted.sort_unstable();
            for limit in 0..=INTIDS.len() + 1 {
                // What the case before has left stands there still.
                best.restart(limit);
                order.iter().for_each(|&at| best.offer(choices[at]));
                let (chosen, others) = sorted.split_at(limit.min(sorted.len()));
                let found = best.chosen().iter().map(|choice| (choice.priority(), choice.intid()));
                assert!(found.eq(chosen.iter().copied()), "{order:?} of {priorities:?}: {limit}");
                let left_out = others.iter().fold(0, |words, &(_, intid)| words | word(intid));
                assert_eq!(best.left_out, left_out, "{order:?} of {priorities:?}: {limit}");
                assert_eq!(best.is_empty(), chosen.is_empty());
                assert_eq!(best.is_full(), chosen.len() == limit);
                cases += 1;
            }
        });
    }
    // Orders of 0 to 5 of 5: 1 + 5 + 20 + 60 + 120 + 120.
    assert_eq!(cases, last * 326 * (INTIDS.len() + 2));
}

#[test]
fn there_are_never_more_places_than_list_registers() {
    let gic = Gic::new();
    let mut best = Best::NONE;
    best.restart(MAX_LIST_REGISTERS + 1);
    // From the least urgent on.
    for intid in (0..32).rev() {
        best.offer(Choice::new(&gic, 0, intid));
    }
    let found: Vec<u32> = best.chosen().iter().map(|choice| choice.intid()).collect();
    assert_eq!(found, Vec::from_iter(0..MAX_LIST_REGISTERS as u32));
    assert_eq!(best.left_out, 1);
}
