//! vCPUs that are at a second, higher position at times.

use super::*;
use proptest::prelude::*;

const RISES: VcpuId = VcpuId(0);

fn boost(priority: u16, budget: Duration, period: u64, window: Option<u64>) -> Boost {
    let (priority, window) = (Priority(priority), window.map(Duration));
    Boost { priority, budget, period: Duration(period), window }
}

/// A vCPU that may rise from 1 to 5 beside an equal, and one at 3.
fn three(boost: Boost) -> Scheduler {
    let mut core = core(&[(RISES, 1, 10), (VcpuId(1), 1, 10), (VcpuId(2), 3, 10)]);
    core.set_boost(RISES, boost).unwrap();
    core
}

#[test]
fn a_boosted_vcpu_runs_before_those_between_its_two_priorities() {
    let mut core = three(boost(5, Duration::MAX, 100, None));
    assert_eq!(run(&mut core, 0), Some(2));
    assert_eq!(core.boost(RISES, Instant(1)), Reported::Decide);
    assert!(core.is_boosted(RISES));
    assert_eq!(core.decide(Instant(1)).until, None, "nothing ends it");
    assert_eq!(run(&mut core, 1), Some(0));
    assert!(core.end_boost(RISES));
    assert_eq!(run(&mut core, 7), Some(2));
    assert!(!core.is_boosted(RISES) && !core.end_boost(RISES), "it has ended");
    core.check();
}

#[test]
fn a_guest_that_lies_gets_its_budget_in_each_period_and_no_more() {
    let mut core = three(boost(5, Duration(4), 20, None));
    assert_eq!(core.boost(RISES, Instant(10)), Reported::Decide);
    assert_eq!(core.decide(Instant(10)).until, Some(Instant(14)));
    assert_eq!(run(&mut core, 14), Some(2), "it is spent");
    assert!(!core.is_boosted(RISES));
    for now in 15..30 {
        assert_eq!(core.boost(RISES, Instant(now)), Reported::Refused, "at {now}");
        assert_eq!(run(&mut core, now), Some(2));
    }
    assert_eq!(core.boost(RISES, Instant(30)), Reported::Decide, "a new period");
    assert_eq!(core.decide(Instant(30)).until, Some(Instant(34)));
}

/// It need not say it again, and its neighbour need not sleep.
#[test]
fn a_guest_that_is_refused_is_boosted_when_the_next_period_begins() {
    let mut core = three(boost(5, Duration(4), 20, None));
    core.boost(RISES, Instant(10));
    assert_eq!(run(&mut core, 10), Some(0));
    let decision = core.decide(Instant(14));
    assert_eq!((decision.run, decision.until), (Some(VcpuId(2)), Some(Instant(30))));
    assert_eq!(core.boost(RISES, Instant(15)), Reported::Refused);
    assert_eq!(core.decide(Instant(15)).until, Some(Instant(30)));
    let decision = core.decide(Instant(30));
    assert_eq!((decision.run, decision.until), (Some(RISES), Some(Instant(34))));
    assert_eq!(run(&mut core, 34), Some(2), "and for its budget");
    assert!(!core.end_boost(RISES), "now it is not urgent");
    assert_eq!(core.decide(Instant(35)).until, None);
    assert_eq!(run(&mut core, 60), Some(2));
    core.check();
}

#[test]
fn an_interrupt_that_comes_when_the_limit_is_spent_boosts_in_the_next_period() {
    let mut core = three(boost(5, Duration(4), 20, Some(4)));
    core.wake(RISES);
    assert_eq!(run(&mut core, 10), Some(0));
    assert_eq!(run(&mut core, 14), Some(2));
    assert_eq!(core.wake(RISES), Woken::Rises);
    assert_eq!(core.decide(Instant(15)).until, Some(Instant(30)));
    assert_eq!(run(&mut core, 30), Some(0));
    assert_eq!(core.decide(Instant(34)).until, None, "one interrupt, one boost");
    core.check();
}

/// A boost begins before its timer fires, and may be over by then.
#[test]
fn an_interrupt_that_had_less_than_its_window_boosts_in_the_next_period() {
    let mut core = three(boost(5, Duration(4), 20, Some(3)));
    core.wake(RISES);
    assert_eq!(core.decide(Instant(10)).until, Some(Instant(13)));
    core.rises_at(RISES, Instant(15));
    assert_eq!(core.decide(Instant(13)).until, Some(Instant(15)));
    assert_eq!(core.decide(Instant(15)).until, Some(Instant(16)), "the rest of its limit");
    core.rises_at(RISES, Instant(15));
    let decision = core.decide(Instant(16));
    assert_eq!((decision.run, decision.until), (Some(VcpuId(2)), Some(Instant(30))));
    assert_eq!(core.decide(Instant(30)).until, Some(Instant(33)), "a window");
    assert_eq!(core.decide(Instant(33)).until, None, "and that is all");
    core.check();
}

/// What its guest said before it slept holds when it wakes, also without a window.
#[test]
fn a_refused_guest_that_sleeps_is_boosted_when_it_wakes_in_the_next_period() {
    let mut core = three(boost(5, Duration(4), 20, None));
    core.boost(RISES, Instant(10));
    assert_eq!(run(&mut core, 10), Some(0));
    assert_eq!(run(&mut core, 14), Some(2));
    core.sleep(RISES);
    assert_eq!(core.decide(Instant(15)).until, None);
    assert_eq!(core.wake(RISES), Woken::Decide);
    assert_eq!(core.decide(Instant(20)).until, Some(Instant(30)));
    core.sleep(RISES);
    assert_eq!(run(&mut core, 31), Some(2));
    assert_eq!(core.wake(RISES), Woken::Decide);
    assert_eq!(run(&mut core, 32), Some(0));
    core.check();
}

#[test]
fn a_boost_by_an_interrupt_lasts_for_its_window() {
    let mut core = three(boost(5, Duration(9), 20, Some(2)));
    core.sleep(RISES);
    assert_eq!(run(&mut core, 0), Some(2));
    assert!(core.matters(RISES), "its timer is watched");
    assert_eq!(core.wake(RISES), Woken::Decide);
    assert_eq!(core.decide(Instant(1)).run, Some(RISES));
    assert_eq!(run(&mut core, 3), Some(2), "its guest has said nothing");
    assert_eq!(core.wake(RISES), Woken::Rises, "awake, and another interrupt");
    assert_eq!(core.decide(Instant(4)).until, Some(Instant(6)));
    assert_eq!(
        core.boost(RISES, Instant(5)),
        Reported::Stands,
        "now its guest says that it is urgent"
    );
    assert_eq!(core.decide(Instant(5)).until, Some(Instant(11)), "9 less 2 and 1");
}

#[test]
fn a_boost_that_is_lengthened_has_what_is_left_of_its_limit_and_no_more() {
    let mut core = three(boost(5, Duration(9), 50, Some(3)));
    core.wake(RISES);
    assert_eq!(core.decide(Instant(1)).until, Some(Instant(4)));
    // Nothing was charged since the decision.
    assert_eq!(core.boost(RISES, Instant(3)), Reported::Stands);
    let decision = core.decide(Instant(4));
    assert_eq!((decision.run, decision.until), (Some(RISES), Some(Instant(10))), "9 from 1 on");
    // It is spent, but the core has not looked yet.
    assert_eq!(core.boost(RISES, Instant(10)), Reported::Refused);
    assert_eq!(run(&mut core, 10), Some(2));
    core.check();
}

#[test]
fn a_boost_that_is_lengthened_in_a_new_period_has_a_new_limit() {
    let mut core = three(boost(5, Duration(9), 4, Some(3)));
    core.wake(RISES);
    assert_eq!(core.decide(Instant(1)).until, Some(Instant(4)));
    assert_eq!(core.wake(RISES), Woken::Rises);
    assert_eq!(core.decide(Instant(3)).until, Some(Instant(6)));
    assert_eq!(core.boost(RISES, Instant(5)), Reported::Decide);
    assert_eq!(core.decide(Instant(5)).until, Some(Instant(14)));
    core.check();
}

#[test]
fn a_boosted_vcpu_is_awaited_by_all_that_are_here() {
    let mut core = three(boost(5, Duration::MAX, 100, None));
    assert_eq!(run(&mut core, 0), Some(2));
    assert!(!core.boost_is_awaited(), "it is not boosted");
    core.boost(RISES, Instant(1));
    assert_eq!(run(&mut core, 1), Some(0));
    assert!(core.boost_is_awaited());
    // One that sleeps may wake while the core does not look.
    core.sleep(VcpuId(1));
    core.sleep(VcpuId(2));
    assert_eq!(run(&mut core, 2), Some(0));
    assert!(core.boost_is_awaited());
}

#[test]
fn each_interrupt_has_its_window() {
    let mut core = three(boost(5, Duration(9), 50, Some(3)));
    assert_eq!(run(&mut core, 0), Some(2));
    assert_eq!(core.wake(RISES), Woken::Rises);
    assert_eq!(core.decide(Instant(1)).until, Some(Instant(4)));
    assert_eq!(core.wake(RISES), Woken::Rises, "boosted by an interrupt, and another one");
    assert_eq!(core.decide(Instant(3)).until, Some(Instant(6)));
    // Its timer fires, and the guest does not see that yet.
    core.rises_at(RISES, Instant(5));
    assert_eq!(core.decide(Instant(6)).until, Some(Instant(9)));
    core.rises_at(RISES, Instant(5));
    assert_eq!(run(&mut core, 9), Some(2), "one instant boosts it once");
    core.rises_at(RISES, Instant(10));
    assert_eq!(core.decide(Instant(9)).until, Some(Instant(10)));
    assert_eq!(core.decide(Instant(10)).until, Some(Instant(11)), "9 less 3, 3 and 2");
    core.check();
}

/// The guest that takes the interrupt does not wait for a decision.
#[test]
fn an_interrupt_for_one_that_is_boosted_lengthens_that_without_a_decision() {
    let mut core = three(boost(5, Duration(9), 20, Some(3)));
    assert_eq!(core.wake(RISES), Woken::Rises);
    assert!(core.rises(RISES, Instant(0)), "it is not boosted yet");
    assert_eq!(core.decide(Instant(0)).until, Some(Instant(3)));
    for now in 1..3 {
        assert_eq!(core.wake(RISES), Woken::Rises);
        assert!(!core.rises(RISES, Instant(now)), "and again at {now}, without one in between");
    }
    let decision = core.decide(Instant(3));
    assert_eq!(
        (decision.run, decision.until),
        (Some(RISES), Some(Instant(5))),
        "a window from 2 on"
    );
    assert_eq!(core.wake(RISES), Woken::Rises);
    assert!(
        !core.rises(RISES, Instant(5)),
        "it has ended just now, which the core has not looked at"
    );
    assert_eq!(core.decide(Instant(5)).until, Some(Instant(8)));
    assert_eq!(core.wake(RISES), Woken::Rises);
    assert!(!core.rises(RISES, Instant(8)));
    assert_eq!(core.decide(Instant(8)).until, Some(Instant(9)), "the rest of its limit");
    assert_eq!(core.wake(RISES), Woken::Rises);
    assert!(core.rises(RISES, Instant(9)), "that is spent");
    assert_eq!(core.decide(Instant(9)).run, Some(VcpuId(2)));
    core.check();
}

#[test]
fn an_interrupt_that_waits_when_a_boost_ends_begins_another_one() {
    let mut core = three(boost(5, Duration::MAX, 100, Some(3)));
    assert_eq!(core.boost(RISES, Instant(0)), Reported::Decide);
    assert_eq!(run(&mut core, 0), Some(0));
    assert_eq!(core.wake(RISES), Woken::Nothing, "its guest has said more than that");
    assert!(core.end_boost(RISES));
    assert_eq!(core.wake(RISES), Woken::Rises);
    let decision = core.decide(Instant(4));
    assert_eq!((decision.run, decision.until), (Some(RISES), Some(Instant(7))));
}

#[test]
fn a_guest_that_ends_a_boost_while_its_timer_is_due_is_boosted_anew() {
    let mut core = three(boost(5, Duration::MAX, 100, Some(3)));
    assert_eq!(run(&mut core, 0), Some(2));
    core.rises_at(RISES, Instant(1));
    assert_eq!(core.decide(Instant(1)).until, Some(Instant(4)));
    // It has handled another interrupt first.
    assert!(core.end_boost(RISES));
    core.rises_at(RISES, Instant(1));
    let decision = core.decide(Instant(2));
    assert_eq!((decision.run, decision.until), (Some(RISES), Some(Instant(5))));
}

#[test]
fn interrupts_boost_only_those_that_they_are_to() {
    let mut core = three(boost(5, Duration::MAX, 100, None));
    core.sleep(RISES);
    assert_eq!(run(&mut core, 0), Some(2));
    assert!(!core.matters(RISES));
    assert_eq!(core.wake(RISES), Woken::Waits);
    assert_eq!(run(&mut core, 1), Some(2));
}

#[test]
fn the_core_decides_when_the_timer_of_one_that_waits_is_to_boost_it() {
    let mut core = three(boost(5, Duration::MAX, 100, Some(3)));
    assert_eq!(run(&mut core, 0), Some(2));
    core.rises_at(RISES, Instant(7));
    assert_eq!(core.decide(Instant(1)).until, Some(Instant(7)));
    assert_eq!(core.wake(RISES), Woken::Rises);
    assert_eq!(core.decide(Instant(7)).run, Some(RISES));
    assert_eq!(core.decide(Instant(8)).until, Some(Instant(10)), "the window alone");
}

#[test]
fn a_timer_that_boosts_below_what_runs_is_not_waited_for() {
    let mut core = three(boost(2, Duration::MAX, 100, Some(3)));
    assert_eq!(run(&mut core, 0), Some(2));
    core.rises_at(RISES, Instant(7));
    assert_eq!(core.decide(Instant(1)).until, None);
    core.sleep(RISES);
    assert!(!core.matters(RISES));
}

#[test]
fn what_cannot_be_boosted_is_refused() {
    let mut core = three(boost(5, Duration::MAX, 100, None));
    let any = boost(9, Duration(1), 2, Some(1));
    assert_eq!(core.set_boost(RISES, any), Err(Refusal::NoMoreBoosts));
    assert_eq!(core.set_boost(VcpuId(9), any), Err(Refusal::UnknownVcpu));
    let below = Boost { priority: Priority(3), ..any };
    assert_eq!(core.set_boost(VcpuId(2), below), Err(Refusal::NoBoost));
    let endless = Boost { period: Duration(0), ..any };
    assert_eq!(core.set_boost(VcpuId(2), endless), Err(Refusal::ZeroPeriod));
    assert_eq!(core.remove(RISES), None);
    let others = (10..).map(VcpuId).take(MAX_BOOSTS);
    for (number, id) in others.enumerate() {
        core.arrive(id, params(1, 10), false).unwrap();
        let refused = core.set_boost(id, any).err();
        assert_eq!(refused, (number + 1 == MAX_BOOSTS).then_some(Refusal::NoMoreBoosts));
    }
    core.check();
}

/// What a guest may do to be boosted for longer.
#[derive(Clone, Copy, Debug)]
enum Trick {
    Boost,
    EndBoost,
    Sleep,
    /// An interrupt, which wakes it where it sleeps.
    Interrupt,
    /// The timer is set, to fire after so long.
    Timer(u64),
}

fn trick() -> impl Strategy<Value = Trick> {
    prop_oneof![
        Just(Trick::Boost),
        Just(Trick::EndBoost),
        Just(Trick::Sleep),
        Just(Trick::Interrupt),
        (0u64..9).prop_map(Trick::Timer),
    ]
}

/// Has a guest try these, each after a pause. Returns when it ran boosted: from, to.
fn boosted_turns(core: &mut Scheduler, tricks: &[(Trick, u64)]) -> Vec<(u64, u64)> {
    let (mut now, mut turns) = (0, Vec::new());
    let mut decision = core.decide(Instant(now));
    for &(trick, pause) in tricks {
        let end = now + pause;
        while now < end {
            let next = decision.until.map_or(end, |until| until.0.clamp(now, end));
            if decision.run == Some(RISES) && core.is_boosted(RISES) {
                turns.push((now, next));
            }
            now = next;
            if decision.until.is_some_and(|until| until.0 <= now) {
                decision = core.decide(Instant(now));
            }
        }
        match trick {
            Trick::Boost => _ = core.boost(RISES, Instant(now)),
            Trick::EndBoost => _ = core.end_boost(RISES),
            Trick::Sleep => core.sleep(RISES),
            Trick::Interrupt => {
                if core.wake(RISES) == Woken::Rises && !core.rises(RISES, Instant(now)) {
                    continue;
                }
            }
            Trick::Timer(after) => core.rises_at(RISES, Instant(now + after)),
        }
        decision = core.decide(Instant(now));
    }
    turns
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// The promise of [`Boost`], whatever the guest does: one budget in each period, and two in any time as long as
    /// one.
    #[test]
    fn no_guest_is_boosted_for_longer_than_promised(
        (budget, rest, window) in (1u64..6, 1u64..20, prop::option::of(1u64..6)),
        tricks in prop::collection::vec((trick(), 0u64..8), 1..80),
    ) {
        let period = budget + rest;
        let mut core = three(boost(5, Duration(budget), period, window));
        let turns = boosted_turns(&mut core, &tricks);
        for &(begin, _) in &turns {
            for periods in 1..4 {
                let end = begin + periods * period;
                let in_it = turns.iter().filter(|turn| turn.0 >= begin && turn.0 < end);
                let boosted: u64 = in_it.map(|turn| turn.1.min(end) - turn.0).sum();
                prop_assert!(
                    boosted <= (periods + 1) * budget,
                    "{boosted} in {periods} periods of {period} from {begin}, the budget is {budget}"
                );
            }
        }
    }
}
