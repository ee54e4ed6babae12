//! The vCPU of highest priority runs.

use super::*;

#[test]
fn the_rtos_preempts_linux_and_gives_the_core_back() {
    let mut core = core(&[(LINUX, 1, 100), (RTOS, 10, 100)]);
    core.sleep(RTOS);
    assert_eq!(core.decide(Instant(0)), Decision { run: Some(LINUX), idles: None, until: None });
    core.wake(RTOS);
    assert_eq!(core.decide(Instant(7)), Decision { run: Some(RTOS), idles: None, until: None });
    assert_eq!(core.state(LINUX), Some(State::Suspended));
    core.sleep(RTOS);
    assert_eq!(run(&mut core, 9), Some(LINUX.0));
    assert_eq!(core.state(RTOS), Some(State::Sleeping));
}

#[test]
fn a_core_without_work_idles() {
    let mut core = core(&[(LINUX, 1, 100)]);
    core.sleep(LINUX);
    assert_eq!(core.decide(Instant(0)), Decision { run: None, idles: None, until: None });
    assert!(core.matters(LINUX), "anything matters to an idle core");
}

#[test]
fn what_is_lower_does_not_matter_to_the_running() {
    let mut core = core(&[(LINUX, 1, 100), (OTHER, 1, 100), (RTOS, 10, 1)]);
    run(&mut core, 0);
    assert!(!core.matters(LINUX));
    assert!(core.matters(RTOS));
    core.sleep(RTOS);
    run(&mut core, 1);
    assert!(core.matters(OTHER), "an equal has to be shared with");
    assert_eq!(core.sleepers_that_matter().collect::<Vec<_>>(), [RTOS]);
}

#[test]
fn removing_takes_the_state_along() {
    let mut core = core(&[(LINUX, 1, 100), (OTHER, 1, 50)]);
    run(&mut core, 0);
    let removed = Removed { params: params(1, 100), account: None, ready: true };
    assert_eq!(core.remove(LINUX), Some(removed));
    assert_eq!(core.remove(LINUX), None);
    assert_eq!(core.state(LINUX), None);
    assert_eq!(run(&mut core, 1), Some(1));
}

#[test]
fn refusals_say_why() {
    let mut core = core(&[(LINUX, 1, 100)]);
    assert_eq!(core.arrive(LINUX, params(1, 1), true), Err(Refusal::AlreadyHere));
    assert_eq!(core.arrive(VcpuId(64), params(1, 1), true), Err(Refusal::UnknownVcpu));
    assert_eq!(core.arrive(RTOS, params(1, 0), true), Err(Refusal::ZeroQuantum));
}
