//! Equals take turns, and one may be yielded to.

use super::*;

#[test]
fn equals_take_turns_by_quantum() {
    let mut core = core(&[(LINUX, 1, 100), (OTHER, 1, 50)]);
    assert_eq!(core.decide(Instant(0)).until, Some(Instant(100)));
    assert_eq!(run(&mut core, 99), Some(0), "the quantum is not over");
    assert_eq!(run(&mut core, 100), Some(1));
    assert_eq!(core.decide(Instant(100)).until, Some(Instant(150)));
    assert_eq!(run(&mut core, 150), Some(0));
}

#[test]
fn the_preempted_resumes_with_what_it_had_left() {
    let mut core = core(&[(LINUX, 1, 100), (OTHER, 1, 100), (RTOS, 10, 1)]);
    core.sleep(RTOS);
    run(&mut core, 0);
    core.wake(RTOS);
    assert_eq!(run(&mut core, 60), Some(RTOS.0));
    core.sleep(RTOS);
    let decision = core.decide(Instant(90));
    assert_eq!(decision.run, Some(LINUX), "not its equal, whose turn it is not");
    assert_eq!(decision.until, Some(Instant(130)), "30 ticks of the RTOS are not charged");
}

#[test]
fn sleeping_gives_up_the_turn() {
    let mut core = core(&[(LINUX, 1, 100), (OTHER, 1, 100)]);
    run(&mut core, 0);
    core.sleep(LINUX);
    assert_eq!(run(&mut core, 10), Some(1));
    core.wake(LINUX);
    assert_eq!(run(&mut core, 20), Some(1), "a wake does not jump the queue");
    assert_eq!(run(&mut core, 110), Some(0));
}

#[test]
fn what_keeps_the_core_is_not_disturbed_by_the_end_of_a_quantum_that_has_not_begun() {
    let mut core = core(&[(LINUX, 1, 100), (OTHER, 1, 1)]);
    run(&mut core, 0);
    let decision = core.decide(Instant(100));
    assert_eq!((decision.run, decision.until), (Some(OTHER), Some(Instant(101))));
    assert_eq!(core.let_finish(LINUX, Instant(100)), None);
}

/// Linux's vCPU 0 spins until vCPU 1, suspended on the same core, has answered
/// its inter-processor interrupt: vCPU 1 does so before its turn.
#[test]
fn a_vcpu_that_is_waited_for_runs_at_once_out_of_its_own_quantum() {
    let mut core = Scheduler::new();
    for id in 0..3 {
        core.arrive(VcpuId(id), params(1, 100), true).unwrap();
    }
    let run = |core: &mut Scheduler, now| {
        let decision = core.decide(Instant(now));
        (decision.run.map(|id| id.0), decision.until.map(|at| at.0))
    };
    assert_eq!(run(&mut core, 0), (Some(0), Some(100)));
    assert!(core.yield_to(VcpuId(1)));
    assert_eq!(run(&mut core, 30), (Some(1), Some(130)), "its own quantum");
    assert!(core.yield_to(VcpuId(0)), "it answers, and is waited for in its turn");
    assert_eq!(run(&mut core, 40), (Some(0), Some(110)), "what was left of the turn");
    assert!(core.yield_to(VcpuId(1)));
    assert_eq!(run(&mut core, 50), (Some(1), Some(140)));
    assert_eq!(run(&mut core, 140), (Some(0), Some(200)));
    assert!(!core.yield_to(VcpuId(1)), "it has nothing left in this round");
    assert_eq!(run(&mut core, 200), (Some(2), Some(300)), "vCPU 1 had its turn");
    assert!(core.yield_to(VcpuId(1)), "a new round for it");
    core.sleep(VcpuId(1));
    assert!(!core.yield_to(VcpuId(1)), "a sleeping vCPU cannot run");
    assert!(!core.yield_to(VcpuId(2)), "it runs already");
    let all = || (0..3).rev().map(VcpuId);
    assert!(core.yield_to_any(all()), "the first of these that can run");
    assert_eq!(run(&mut core, 250), (Some(0), Some(350)));
    assert_eq!(run(&mut core, 350), (Some(2), Some(400)), "the rest of its turn");
    assert!(!core.yield_to_any(all()), "none can");
}

/// It ran before its turn, and sleeps and wakes in the instant in which its quantum ends.
#[test]
fn sleeping_does_not_give_back_what_was_used_before_the_turn() {
    let mut core = core(&[(LINUX, 1, 100), (OTHER, 1, 100), (RTOS, 1, 100)]);
    run(&mut core, 0);
    assert!(core.yield_to(RTOS));
    assert_eq!(core.decide(Instant(10)).until, Some(Instant(110)));
    core.sleep(RTOS);
    core.wake(RTOS);
    assert_eq!(run(&mut core, 110), Some(LINUX.0));
    assert!(!core.yield_to(RTOS), "it has nothing left in this round");
    assert_eq!(run(&mut core, 200), Some(OTHER.0));
    assert_eq!(run(&mut core, 300), Some(LINUX.0), "its turn has passed");
}

/// Linux's vCPU 0 spins for a lock that vCPU 1 holds, and says so. Both give way to each other, and
/// another VM's vCPU 2 of their priority loses nothing.
#[test]
fn a_vcpu_that_spins_gives_up_its_turn() {
    let mut core = core(&[(LINUX, 1, 100), (OTHER, 1, 100), (RTOS, 1, 100)]);
    let siblings = || [LINUX, OTHER].into_iter();
    run(&mut core, 0);
    assert!(!core.yield_turn(OTHER, siblings(), Instant(10)), "it does not run");
    assert!(core.yield_turn(LINUX, siblings(), Instant(10)));
    assert_eq!(core.decide(Instant(10)).until, Some(Instant(110)));
    assert_eq!(run(&mut core, 10), Some(OTHER.0));
    assert!(core.yield_turn(OTHER, siblings(), Instant(20)));
    assert_eq!(run(&mut core, 20), Some(RTOS.0), "its turn comes before the sibling's");
    assert_eq!(core.decide(Instant(20)).until, Some(Instant(120)), "a whole quantum");
    assert_eq!(run(&mut core, 120), Some(LINUX.0));
    assert_eq!(core.decide(Instant(120)).until, Some(Instant(220)), "the rest was given up");
    core.sleep(OTHER);
    assert!(!core.yield_turn(LINUX, siblings(), Instant(130)), "no sibling is ready");
    assert_eq!(run(&mut core, 130), Some(LINUX.0), "it keeps its turn");
}

/// A vCPU that runs before its turn gives up only that.
#[test]
fn a_vcpu_that_was_yielded_to_gives_the_core_back() {
    let mut core = core(&[(LINUX, 1, 100), (OTHER, 1, 100)]);
    run(&mut core, 0);
    assert!(core.yield_to(OTHER));
    assert_eq!(run(&mut core, 30), Some(OTHER.0));
    assert!(core.yield_turn(OTHER, [LINUX].into_iter(), Instant(40)));
    assert_eq!(core.decide(Instant(40)).until, Some(Instant(110)), "the rest of its turn");
    assert_eq!(run(&mut core, 110), Some(OTHER.0));
    assert_eq!(core.decide(Instant(110)).until, Some(Instant(200)), "less what it used");
}
