//! vCPUs that other cores have for a while.

use super::*;

#[test]
fn a_vcpu_that_comes_back_has_its_turn_and_no_new_quantum() {
    let mut core = core(&[(LINUX, 1, 100), (OTHER, 1, 100)]);
    run(&mut core, 0);
    core.charge(Instant(60));
    assert!(core.set_away(LINUX));
    assert_eq!(run(&mut core, 60), Some(OTHER.0));
    core.come_back(LINUX, true);
    assert_eq!(core.decide(Instant(80)).until, Some(Instant(120)), "40 ticks are left");
    assert_eq!(run(&mut core, 120), Some(OTHER.0));
    core.sleep(LINUX);
    assert!(!core.set_away(LINUX), "asleep");
}

#[test]
fn a_turn_does_not_wait_for_ever_for_a_vcpu_that_is_away() {
    let mut core = core(&[(LINUX, 1, 100), (OTHER, 1, 100), (RTOS, 1, 100)]);
    run(&mut core, 0);
    core.set_away(LINUX);
    assert_eq!(run(&mut core, 0), Some(OTHER.0));
    assert_eq!(run(&mut core, 100), Some(RTOS.0), "a quantum was used up meanwhile");
    core.come_back(LINUX, true);
    assert_eq!(run(&mut core, 150), Some(RTOS.0), "and the turn is its");
    assert_eq!(run(&mut core, 200), Some(LINUX.0));
}

/// Two vCPUs of Linux's leave for the RTOS and come back, one always first. Each
/// visit is shorter than a quantum.
#[test]
fn two_that_come_and_go_together_share_the_core() {
    let mut core = core(&[(LINUX, 1, 100), (OTHER, 1, 100)]);
    let mut ran = [0; 2];
    for visit in 0..200 {
        let begin = visit * 30;
        core.come_back(LINUX, true);
        core.decide(Instant(begin));
        core.come_back(OTHER, true);
        let mut now = begin + 1;
        while now < begin + 15 {
            let decision = core.decide(Instant(now));
            let next = decision.until.map_or(begin + 15, |until| until.0.min(begin + 15));
            ran[usize::from(decision.run.unwrap().0)] += next - now;
            now = next;
        }
        core.charge(Instant(now));
        core.set_away(LINUX);
        core.set_away(OTHER);
        core.decide(Instant(now));
    }
    assert!(ran[0].abs_diff(ran[1]) <= 200, "{ran:?}");
}
