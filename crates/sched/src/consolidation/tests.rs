//! Loads as they come, window by window, and what the cores do about them.

extern crate std;
use super::*;
use proptest::prelude::*;
use std::vec::Vec;

const WINDOW: Duration = Duration(1_000_000);

/// So many parts of a thousand.
fn load(per_mille: u64) -> Load {
    Load::of(WINDOW, Duration(WINDOW.0 - per_mille * 1000))
}

/// How many windows a core stays with such a load; none: for ever.
fn leaves_after(leaver: &mut Leaver, own: u64, target: u64) -> Option<u16> {
    (1..=1000).find(|_| leaver.window(load(own), load(target)))
}

#[test]
fn a_load_is_what_is_not_idle() {
    assert_eq!(Load::of(Duration(1000), Duration(1000)).per_mille(), 0);
    assert_eq!(Load::of(Duration(1000), Duration(250)).per_mille(), 750);
    assert_eq!(Load::of(Duration(1000), Duration(0)), Load::FULL);
    assert_eq!(Load::of(Duration(1000), Duration(2000)).per_mille(), 0);
    assert_eq!(Load::of(Duration(0), Duration(0)), Load::FULL, "of no time nothing is known");
    assert_eq!(Load::of(Duration(u64::MAX), Duration(0)), Load::FULL);
}

#[test]
fn an_idle_core_leaves_after_some_windows() {
    assert_eq!(leaves_after(&mut Leaver::new(), 0, 0), Some(PATIENCE));
}

/// What the two have to do must fit one core twice.
#[test]
fn a_core_leaves_only_if_its_target_has_room() {
    assert_eq!(leaves_after(&mut Leaver::new(), 200, 300), Some(PATIENCE));
    assert_eq!(leaves_after(&mut Leaver::new(), 201, 300), None);
    assert_eq!(leaves_after(&mut Leaver::new(), 0, 501), None);
    assert_eq!(leaves_after(&mut Leaver::new(), 501, 0), None);
}

#[test]
fn one_busy_window_begins_the_wait_anew() {
    let mut leaver = Leaver::new();
    for _ in 1..PATIENCE {
        assert!(!leaver.window(load(0), load(0)));
    }
    assert!(!leaver.window(load(900), load(0)));
    assert_eq!(leaves_after(&mut leaver, 0, 0), Some(PATIENCE));
    leaver.back(1 << 40);
    assert!(!leaver.window(load(0), load(0)));
    leaver.stays();
    assert_eq!(leaves_after(&mut leaver, 0, 0), Some(PATIENCE));
}

/// Four cores with a quarter of one to do each would go and come for ever.
#[test]
fn a_core_that_is_called_back_soon_waits_ever_longer() {
    let mut leaver = Leaver::new();
    let stays: Vec<_> = (0..6)
        .map(|_| {
            let windows = leaves_after(&mut leaver, 250, 250).unwrap();
            leaver.back(u64::from(ENDURANCE));
            windows
        })
        .collect();
    assert_eq!(stays, [4, 8, 16, 32, 64, 64]);
    leaver.back(1_000);
    assert_eq!(leaves_after(&mut leaver, 250, 250), Some(PATIENCE), "it was away for long");
}

#[test]
fn a_target_calls_when_it_has_no_time_left_for_a_while() {
    let mut target = Target::new();
    assert!(!target.window(load(1000)));
    assert!(!target.window(load(899)), "it had time");
    assert!(!target.window(load(900)));
    assert!(target.window(load(1000)));
    assert!(target.window(load(1000)), "it goes on calling while it has none");
    assert!(!target.window(load(100)));
}

proptest! {
    /// A core that leaves would not be called back for what the two had to do before.
    #[test]
    fn no_core_leaves_into_a_crowd(loads in prop::collection::vec((0..=1000_u64, 0..=1000_u64), 1..200)) {
        let mut leaver = Leaver::new();
        for (own, target) in loads {
            if leaver.window(load(own), load(target)) {
                prop_assert!(own + target < u64::from(HIGH));
                leaver.back(0);
            }
        }
    }
}
