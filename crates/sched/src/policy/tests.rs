use super::*;

const READY: Displaced = Displaced { ready: true, idle_core: false };
const ASLEEP: Displaced = Displaced { ready: false, idle_core: false };

fn policy(name: &str) -> &'static Policy {
    MigrationPolicy::named(name).unwrap().policy()
}

#[test]
fn numbers_and_names_are_each_its_own() {
    for (i, kind) in MigrationPolicy::ALL.iter().enumerate() {
        assert_eq!(MigrationPolicy::from_number(*kind as u16), Some(*kind));
        assert!(MigrationPolicy::ALL[..i].iter().all(|other| other.name() != kind.name()));
    }
    assert_eq!(MigrationPolicy::from_number(MigrationPolicy::ALL.len() as u16), Option::None);
    assert_eq!(MigrationPolicy::default().name(), "none");
}

/// PECCS, Figure 1: the lock holder is left behind, and the others spin.
#[test]
fn none_leaves_the_lock_holder_where_it_is() {
    assert_eq!(policy("none").displaced(READY), Then::Stay);
    assert_eq!(policy("partition").displaced(READY), Then::Stay);
}

/// PECCS, section 4.2.3: the RTOS wakes, Linux leaves core 0 for core 1; it
/// sleeps, and Linux is back.
#[test]
fn on_demand_leaves_whatever_linux_is_doing() {
    assert_eq!(policy("on-demand").displaced(READY), Then::LeaveUntilFree);
    assert_eq!(policy("on-demand").displaced(ASLEEP), Then::LeaveUntilFree);
}

/// PECCS, Figure 4 and section 4.2.2: system calls and interrupts are served on
/// core 1, programs run on core 0, and there the RTOS may preempt them.
#[test]
fn trap_based_keeps_the_kernel_off_the_shared_core() {
    for name in ["trap-based", "trap-based-eager", "trap-based-deferred", "trap-based-paper"] {
        let policy = policy(name);
        assert_eq!(policy.view(true), View::UserOnly);
        assert_eq!(policy.crossed(Mode::Kernel), Side::Fallback);
        assert_eq!(policy.displaced(READY), Then::Stay, "a program holds no lock of the kernel");
    }
}

/// PECCS, Figure 4: a system call takes the program to core 1 and its end takes
/// it back to core 0.
#[test]
fn as_in_the_paper_a_program_returns_at_once() {
    for name in ["trap-based-eager", "trap-based-deferred", "trap-based-paper"] {
        let policy = policy(name);
        assert_eq!(policy.view(false), View::KernelOnly);
        assert_eq!(policy.crossed(Mode::User), Side::Base);
        assert!(!policy.needs().asks_base);
    }
}

/// A program that makes one system call after the other stays on core 1, as
/// long as core 1 has nothing else to run.
#[test]
fn a_program_stays_until_another_vcpu_wants_the_core() {
    let policy = policy("trap-based");
    assert_eq!(policy.view(false), View::Full);
    assert_eq!(policy.crossed(Mode::User), Side::Here, "it was only waited for");
    assert!(policy.makes_room(Mode::User) && !policy.makes_room(Mode::Kernel));
    assert!(policy.needs().asks_base);
}

/// On-demand with four cores: core 1 has something to run and core 2 has not.
#[test]
fn a_vcpu_that_leaves_for_its_fallback_may_go_anywhere_in_its_affinity() {
    for kind in MigrationPolicy::ALL {
        let moves = [
            "on-demand",
            "trap-based",
            "trap-based-eager",
            "trap-based-deferred",
            "balance",
            "adaptive",
        ];
        assert_eq!(kind.policy().needs().wanders, moves.contains(&kind.name()), "{}", kind.name());
    }
}

/// Thesis, sections 4.3.1 and 4.3.2: one core is set beforehand, and a vCPU that sleeps reads
/// whether it may go back.
#[test]
fn controls_have_nothing_that_the_papers_have_not() {
    let controls = MigrationPolicy::ALL.iter().filter(|kind| kind.is_control());
    let controls = controls.filter(|kind| kind.name() != "masked");
    assert!(controls.clone().count() == 3);
    for kind in controls {
        let needs = kind.policy().needs();
        assert!(needs.fallback && !needs.wanders && !needs.notices_interrupts, "{}", kind.name());
        assert_eq!(needs.returns_by_itself, kind.name() == "on-demand-lazy");
        assert_eq!(needs.asks_base, needs.returns_by_itself, "{}", kind.name());
    }
    assert_eq!(policy("on-demand-fixed").displaced(ASLEEP), Then::LeaveUntilFree);
    assert_eq!(policy("on-demand-lazy").displaced(READY), Then::Leave, "it is not recalled");
    assert_eq!(policy("trap-based-paper").interrupted(), Then::Stay);
}

/// Thesis, sections 6.2 and 8.1: an inter-processor interrupt for a vCPU that
/// lies preempted in a program.
#[test]
fn the_interrupt_rule_is_what_tells_eager_and_deferred_apart() {
    assert_eq!(policy("trap-based-eager").interrupted(), Then::Leave);
    assert!(policy("trap-based-eager").needs().notices_interrupts);
    assert_eq!(policy("trap-based").interrupted(), Then::Leave);
    assert_eq!(policy("trap-based-deferred").interrupted(), Then::Stay);
    assert!(!policy("trap-based-deferred").needs().notices_interrupts);
}

/// Uhlig and others, section 3: no preemption in the kernel.
#[test]
fn safe_unsafe_makes_the_rtos_wait_for_the_kernel_only() {
    assert!(policy("safe-unsafe").delays(Mode::Kernel, false));
    assert!(!policy("safe-unsafe").delays(Mode::User, true));
    let others = MigrationPolicy::ALL.iter().filter(|kind| kind.name() != "safe-unsafe");
    assert!(others.into_iter().all(|kind| !kind.policy().delays(Mode::Kernel, false)));
}

/// PECCS, section 4.1, and thesis, section 2.2.2: the guest says when it holds a lock. EL2 need not
/// see it leave its kernel, so this needs no views.
#[test]
fn delayed_makes_the_rtos_wait_for_a_guest_that_asks() {
    for (name, by) in [
        ("delayed-call", Request::Call),
        ("delayed-page", Request::Page),
        ("delayed-peek", Request::Peek),
        ("masked", Request::Mask),
    ] {
        let (policy, needs) = (policy(name), policy(name).needs());
        assert!(policy.delays(Mode::User, true) && !policy.delays(Mode::Kernel, false), "{name}");
        assert_eq!(policy.request(), by);
        assert!(needs.a_say && !needs.views && !needs.fallback && !needs.wanders, "{name}");
        assert_eq!(policy.displaced(READY), Then::Stay, "it waits, when the limit is over");
    }
    let asked = MigrationPolicy::ALL.iter().filter(|kind| kind.policy().request() != Request::None);
    assert_eq!(asked.count(), 4);
}

#[test]
fn coscheduling_stops_the_others_only_for_one_that_could_run() {
    assert_eq!(policy("coscheduling").displaced(READY), Then::StopOthers);
    assert_eq!(policy("coscheduling").displaced(ASLEEP), Then::Stay);
}

#[test]
fn balance_never_puts_two_on_one_core() {
    let idle = Displaced { ready: true, idle_core: true };
    assert_eq!(policy("balance").displaced(idle), Then::LeaveForIdle);
    assert_eq!(policy("balance").displaced(READY), Then::Stay);
    assert_eq!(policy("balance").displaced(ASLEEP), Then::Stay);
}

/// Under any other policy EL2 observes nothing, and asks once.
#[test]
fn adaptive_is_on_demand_that_may_wait() {
    let needs = policy("adaptive").needs();
    assert_eq!(Needs { observes: false, ..needs }, policy("on-demand").needs());
    let all = MigrationPolicy::ALL.iter().filter(|kind| kind.policy().needs().observes);
    assert!(all.map(|kind| kind.name()).eq(["adaptive"]));
}

/// vlk, section 4.3: the RTOS makes way for Linux's real-time vCPU, and no other
/// policy lets any vCPU above a real-time guest displace it.
#[test]
fn what_displaces_what() {
    let linux = Contender { vm: 0, priority: 1, realtime: false };
    let rtos = Contender { vm: 1, priority: 10, realtime: true };
    let raised = Contender { priority: 20, ..linux };
    assert!(displaces(rtos, linux, MigrationPolicy::OnDemand));
    assert!(!displaces(linux, rtos, MigrationPolicy::RtVcpu), "below it");
    assert!(displaces(raised, rtos, MigrationPolicy::RtVcpu));
    assert!(!displaces(raised, rtos, MigrationPolicy::OnDemand));
    assert!(
        !displaces(raised, Contender { priority: 2, ..linux }, MigrationPolicy::OnDemand),
        "a sibling"
    );
}

#[test]
fn what_each_needs_is_what_it_uses() {
    for kind in MigrationPolicy::ALL {
        let (policy, needs) = (kind.policy(), kind.policy().needs());
        let answers = [READY, ASLEEP, Displaced { ready: true, idle_core: true }]
            .map(|vcpu| policy.displaced(vcpu));
        let leaves = answers.iter().any(|then| !matches!(then, Then::Stay | Then::StopOthers));
        assert_eq!(leaves, needs.leaves_when_displaced, "{}", kind.name());
        let falls_back = answers.contains(&Then::LeaveUntilFree)
            || answers.contains(&Then::Leave)
            || answers.contains(&Then::LeaveIfItPays)
            || policy.view(true) == View::UserOnly;
        assert_eq!(falls_back || needs.lives_at_fallback, needs.fallback, "{}", kind.name());
        let views = policy.view(true) != View::Full || policy.delays(Mode::Kernel, false);
        assert_eq!(views, needs.views, "{}", kind.name());
    }
}

/// A policy that answers when a vCPU is displaced, and does nothing else, can follow another.
#[test]
fn what_can_follow_each_other_needs_no_more_than_all_of_it_does() {
    let of = |kind: MigrationPolicy| kind.policy().needs();
    let switchable = || MigrationPolicy::ALL.iter().copied().filter(|kind| kind.is_switchable());
    let any = |has: fn(&Needs) -> bool| switchable().any(|kind| has(&of(kind)));
    let all = Needs {
        a_say: any(|needs| needs.a_say),
        fallback: any(|needs| needs.fallback),
        lives_at_fallback: any(|needs| needs.lives_at_fallback),
        wanders: any(|needs| needs.wanders),
        asks_base: any(|needs| needs.asks_base),
        returns_by_itself: any(|needs| needs.returns_by_itself),
        leaves_when_displaced: any(|needs| needs.leaves_when_displaced),
        views: any(|needs| needs.views),
        notices_interrupts: any(|needs| needs.notices_interrupts),
        for_realtime: any(|needs| needs.for_realtime),
        moves_on_request: any(|needs| needs.moves_on_request),
        observes: any(|needs| needs.observes),
    };
    assert_eq!(all, Needs::SWITCHABLE);
    for kind in switchable() {
        let policy = kind.policy();
        assert!(policy.request() == Request::None && !kind.delays(), "{}", kind.name());
        assert!(!policy.makes_room(Mode::User), "{}", kind.name());
    }
    assert_eq!(switchable().count(), 4);
    assert!(switchable().eq(MigrationPolicy::SWITCHABLE), "each has its own number");
}

/// What a VM's word says, which other cores read, and what was worked out for EL2.
#[test]
fn words_and_tables_say_what_the_policy_says() {
    for kind in MigrationPolicy::ALL {
        let answers = Answers::from_bits(kind.policy().answers().bits());
        for seen in Displaced::ALL {
            assert_eq!(answers.when(seen), kind.policy().displaced(seen), "{}", kind.name());
        }
        assert_eq!(kind.needs(), kind.policy().needs(), "{}", kind.name());
    }
    let sleeps_beside_idle = Displaced { ready: false, idle_core: true };
    assert_eq!(policy("balance").displaced(sleeps_beside_idle), Then::Stay);
}

/// PECCS, section 4.2.1: the vCPU goes where it is asked to go, and nowhere else.
#[test]
fn on_request_moves_for_nothing_but_a_request() {
    let needs = policy("on-request").needs();
    assert_eq!(needs, Needs { moves_on_request: true, ..Needs::default() });
    let others = MigrationPolicy::ALL.iter().filter(|kind| kind.name() != "on-request");
    assert!(others.into_iter().all(|kind| !kind.policy().needs().moves_on_request));
}
