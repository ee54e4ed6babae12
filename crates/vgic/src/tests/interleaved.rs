//! Two cores, step by step: whatever one of them does, something that the other
//! does happens in between, before each of its accesses in turn.
//!
//! One shared interrupt of each kind, in every state that it can be in when
//! this begins.

use super::pausing;
use super::scene::{Act, Kind, Scene};
use crate::Gic;
use std::rc::Rc;

const ACTS: [Act; 12] = [
    Act::Sync,
    Act::Arrive,
    Act::Route(0),
    Act::Route(1),
    Act::Disable,
    Act::Enable,
    Act::ClearPending,
    Act::ClearActive,
    Act::Acknowledge,
    Act::Live,
    Act::Borrow,
    Act::Steal,
];

/// What has happened to the interrupt when the test begins.
const HISTORIES: [&[Act]; 9] = [
    &[],
    &[Act::Arrive],
    &[Act::Arrive, Act::Sync],
    &[Act::Arrive, Act::Sync, Act::Acknowledge],
    &[Act::Arrive, Act::Sync, Act::Acknowledge, Act::Sync],
    &[Act::Arrive, Act::Sync, Act::Acknowledge, Act::End],
    &[Act::Arrive, Act::Sync, Act::Acknowledge, Act::End, Act::Arrive],
    &[Act::Arrive, Act::Disable, Act::Sync],
    &[Act::Arrive, Act::Sync, Act::Acknowledge, Act::Route(1), Act::Arrive],
];

#[test]
fn whatever_happens_in_between() {
    let gic: &'static Gic = Box::leak(Box::new(Gic::new()));
    let mut scenes = 0;
    for (history, first, then) in HISTORIES
        .into_iter()
        .flat_map(|history| ACTS.into_iter().map(move |first| (history, first)))
        .flat_map(|(history, first)| ACTS.into_iter().map(move |then| (history, first, then)))
    {
        for (holder, kind) in [0, 1]
            .into_iter()
            .flat_map(|holder| [Kind::Edge, Kind::Linked, Kind::Level].map(|kind| (holder, kind)))
        {
            for at in 0.. {
                let scene = Rc::new(Scene::new(gic, kind));
                scene.act(0, Act::Route(holder as u64));
                scene.settle();
                history.iter().for_each(|&act| scene.act(holder, act));
                let other = Rc::clone(&scene);
                pausing::interpose(at, move || other.act(0, then));
                let name =
                    format!("{kind:?} {history:?} on {holder}, 1: {first:?}, 0: {then:?} at {at}");
                let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    scene.act(1, first);
                    let happened = pausing::happened();
                    if then == Act::Borrow {
                        // Guests that are faster than all doorbells.
                        scene.act(0, Act::Acknowledge);
                        scene.act(1, Act::Acknowledge);
                    }
                    scene.check_settled();
                    scene.check_drained();
                    happened
                }));
                scenes += 1;
                match outcome {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(_) => panic!("{name}"),
                }
            }
        }
    }
    assert!(scenes > 10_000, "{scenes}");
}
