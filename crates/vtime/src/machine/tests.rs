use super::*;
use proptest::prelude::*;

const Q: u64 = 100;

/// Two running cores and a main loop asleep until `deadline`.
fn pair(deadline_ns: Option<u64>) -> Machine {
    let mut m = Machine::new(Q, false);
    m.add(0);
    m.add(1);
    assert_eq!(m.settle(deadline_ns), Effects::default());
    m
}

fn limit(m: &Machine, vcpu: usize) -> u64 {
    match m.state(vcpu) {
        State::Running { limit_ns } => limit_ns,
        other => panic!("core {vcpu} is {other:?}"),
    }
}

#[test]
fn waits_for_the_last_core_then_opens_the_next_quantum() {
    let mut m = pair(None);
    assert_eq!(m.check_in(0, 103, false), Effects::default());
    assert_eq!(m.verdict(0), Verdict::Wait);
    assert_eq!(m.check_in(1, 101, false), Effects { unpark: 0b11, poke: false });
    assert_eq!(m.now_ns(), 101);
    assert_eq!((limit(&m, 0), limit(&m, 1)), (201, 201));
}

#[test]
fn ends_a_quantum_at_the_deadline_and_lets_the_timers_run_first() {
    let mut m = pair(Some(150));
    let _ = m.check_in(0, 100, false);
    let _ = m.check_in(1, 100, false);
    assert_eq!((limit(&m, 0), limit(&m, 1)), (150, 150));
    assert_eq!(m.counts().early_ends, 1);
    let _ = m.check_in(0, 154, false);
    assert!(m.check_in(1, 150, false).poke);
    assert_eq!((m.now_ns(), m.main_loop()), (150, MainLoop::Due));
    assert_eq!(m.unsettle(), Woken::Due);
    assert_eq!(m.verdict(0), Verdict::Wait);
    let _ = m.settle(None);
    assert_eq!((limit(&m, 0), limit(&m, 1)), (250, 250));
}

#[test]
fn jumps_to_the_deadline_when_all_sleep_and_never_without_one() {
    let mut m = pair(None);
    let _ = m.sleep(0, 10);
    assert_eq!(m.sleep(1, 20), Effects::default());
    assert_eq!(m.now_ns(), 0);
    assert_eq!(m.unsettle(), Woken::Early);
    let _ = m.settle(Some(5_000));
    assert_eq!((m.now_ns(), m.main_loop()), (5_000, MainLoop::Due));
    assert_eq!(m.counts().jumps, 1);
}

#[test]
fn a_kicked_core_is_not_idle_before_its_thread_is_up() {
    let mut m = pair(Some(5_000));
    let _ = m.sleep(1, 20);
    m.kick(1, 60);
    let _ = m.sleep(0, 70);
    assert_eq!(m.now_ns(), 0, "time waits for core 1");
    assert_eq!(m.resume(1), Some((60, 100)));
    assert_eq!(m.idle_ns(1), 40);
}

#[test]
fn a_core_kicked_from_the_past_wakes_no_earlier_than_it_slept() {
    let mut m = pair(None);
    let _ = m.sleep(1, 80);
    m.kick(1, 30);
    assert_eq!(m.resume(1), Some((80, 100)));
}

#[test]
fn a_kick_for_nothing_keeps_the_sleep_in_one_piece() {
    let mut m = pair(None);
    let _ = m.sleep(1, 20);
    m.kick(1, 60);
    let _ = m.sleep(1, 20);
    m.kick(1, 90);
    assert_eq!(m.resume(1), Some((90, 100)));
    assert_eq!(m.idle_ns(1), 70);
}

#[test]
fn a_core_that_arms_a_timer_stops_at_it_inside_the_quantum() {
    let mut m = pair(None);
    assert!(m.notify_main_loop().poke);
    let _ = m.check_in(0, 10, true);
    assert_eq!(m.state(0), State::Settling { at_ns: 10 });
    assert_eq!(m.counts().settlings, 1);
    assert_eq!(m.unsettle(), Woken::Early);
    assert_eq!(m.settle(Some(42)).unpark, 0b01);
    assert_eq!((limit(&m, 0), limit(&m, 1)), (42, 100));
    let _ = m.check_in(0, 42, false);
    assert_eq!(m.now_ns(), 0, "core 1 may still be before the deadline");
    let _ = m.check_in(1, 100, false);
    assert_eq!((m.now_ns(), m.main_loop()), (42, MainLoop::Due));
}

#[test]
fn a_timer_armed_behind_a_known_one_needs_no_wait() {
    let mut m = pair(Some(40));
    // The window was opened before the deadline was known.
    assert_eq!(limit(&m, 0), 100);
    let _ = m.check_in(0, 10, true);
    assert_eq!(limit(&m, 0), 40);
    assert_eq!(m.counts().settlings, 0);
}

#[test]
fn time_stands_still_while_the_main_loop_works() {
    let mut m = pair(None);
    assert_eq!(m.unsettle(), Woken::Early);
    let _ = m.check_in(0, 100, false);
    let _ = m.check_in(1, 100, false);
    assert_eq!(m.now_ns(), 0);
    assert_eq!(m.settle(None).unpark, 0b11);
    assert_eq!(m.now_ns(), 100);
}

#[test]
fn all_cores_leave_when_the_main_loop_is_blocked() {
    let mut m = pair(None);
    let _ = m.check_in(0, 100, false);
    assert_eq!(m.unsettle(), Woken::Early);
    let _ = m.check_in(1, 50, true);
    assert_eq!(m.set_main_loop_blocked(true).unpark, 0b11);
    assert_eq!(m.verdict(0), Verdict::Leave(LeaveReason::MainLoop));
    assert_eq!(m.verdict(1), Verdict::Leave(LeaveReason::MainLoop));
    m.leave(0, LeaveReason::MainLoop);
    assert_eq!(m.leaves(0, LeaveReason::MainLoop), 1);
    let _ = m.set_main_loop_blocked(false);
    assert_eq!(m.verdict(0), Verdict::Wait);
}

#[test]
fn a_core_that_others_are_blocked_on_leaves() {
    let mut m = pair(None);
    let _ = m.check_in(0, 100, false);
    assert_eq!(m.set_blocked(1, true).unpark, 0b01);
    assert_eq!(m.verdict(0), Verdict::Leave(LeaveReason::Stall));
    let _ = m.set_blocked(1, false);
    assert_eq!(m.verdict(0), Verdict::Wait);
}

#[test]
fn a_core_that_a_timer_wakes_stops_at_its_next_timer() {
    let mut m = pair(Some(50));
    let _ = m.sleep(0, 20);
    let _ = m.check_in(1, 100, false);
    assert_eq!((m.now_ns(), m.unsettle()), (50, Woken::Due));
    m.kick(0, 50);
    assert_eq!(m.resume(0), Some((50, 50)), "the next deadline is not known yet");
    let _ = m.check_in(0, 54, true);
    let _ = m.settle(Some(70));
    assert_eq!(limit(&m, 0), 70);
}

#[test]
fn a_core_that_another_wakes_while_the_main_loop_works_stops_at_its_timer() {
    let mut m = pair(None);
    assert_eq!(m.unsettle(), Woken::Early);
    let _ = m.check_in(0, 10, true);
    let _ = m.settle(Some(60));
    let _ = m.sleep(0, 20);
    assert_eq!(m.unsettle(), Woken::Early);
    m.kick(0, 30);
    assert_eq!(m.resume(0), Some((30, 30)));
    let _ = m.check_in(0, 33, true);
    assert_eq!(m.settle(Some(60)).unpark, 0b01);
    assert_eq!(limit(&m, 0), 60);
}

#[test]
fn a_removed_core_holds_no_other_up() {
    let mut m = pair(None);
    let _ = m.check_in(0, 100, false);
    assert_eq!(m.remove(1).unpark, 0b01);
    assert_eq!(limit(&m, 0), 200);
}

#[test]
fn cores_take_turns_by_their_time_if_serial() {
    let mut m = Machine::new(Q, true);
    (0..3).for_each(|i| m.add(i));
    let _ = m.settle(None);
    let _ = m.check_in(0, 103, false);
    let _ = m.check_in(1, 101, false);
    assert_eq!(m.check_in(2, 101, false).unpark, 0b010, "the earliest, of two the first");
    assert_eq!(limit(&m, 1), 201);
    assert_eq!(m.check_in(1, 150, true).unpark, 0b100, "it armed a timer: core 2 is earlier now");
    assert_eq!(m.sleep(2, 120).unpark, 0b001);
    assert_eq!(m.check_in(0, 205, false).unpark, 0b010);
    m.kick(2, 160);
    assert_eq!(m.resume(2), Some((160, 160)), "it waits for its turn");
    let _ = m.check_in(2, 164, true);
    assert_eq!(m.check_in(1, 203, false).unpark, 0b100);
    assert_eq!(m.now_ns(), 101);
    assert_eq!(m.check_in(2, 201, false).unpark, 0b100, "a new window");
    assert_eq!((m.now_ns(), limit(&m, 2)), (201, 301));
}

#[test]
fn cores_leave_one_by_one_if_serial() {
    let mut m = Machine::new(Q, true);
    (0..3).for_each(|i| m.add(i));
    let _ = m.settle(None);
    let _ = m.check_in(0, 10, false);
    let _ = m.check_in(1, 20, false);
    assert_eq!(m.check_in(2, 20, false).unpark, 0b001);
    // Core 0 wants an exclusive section; the others must be outside.
    assert_eq!(m.set_blocked(0, true).unpark, 0b010);
    assert_eq!((m.verdict(1), m.verdict(2)), (Verdict::Leave(LeaveReason::Stall), Verdict::Wait));
    m.leave(1, LeaveReason::Stall);
    assert_eq!(m.verdict(2), Verdict::Wait, "core 1 is out");
    assert_eq!(m.set_blocked(1, true).unpark, 0b100);
    m.leave(2, LeaveReason::Stall);
    let _ = m.check_in(2, 24, false);
    let _ = m.set_blocked(1, false);
    let _ = m.check_in(1, 23, false);
    assert_eq!((m.verdict(1), m.verdict(2)), (Verdict::Wait, Verdict::Wait), "once is enough");
    let _ = m.set_blocked(0, false);
    assert_eq!(m.set_blocked(0, true).unpark, 0b010, "but now core 0 is blocked again");
}

#[test]
fn no_core_has_a_turn_while_one_is_outside_if_serial() {
    let mut m = Machine::new(Q, true);
    (0..2).for_each(|i| m.add(i));
    let _ = m.settle(None);
    let _ = m.check_in(0, 10, false);
    assert_eq!(m.check_in(1, 20, false).unpark, 0b01);
    // Core 0 wants an exclusive section; core 1 leaves, and waits for its end.
    assert_eq!(m.set_blocked(0, true).unpark, 0b10);
    m.leave(1, LeaveReason::Stall);
    let _ = m.set_blocked(1, true);
    let _ = m.set_blocked(0, false);
    assert_eq!(m.verdict(1), Verdict::Wait);
    // The section has ended, but core 1 has not heard of it yet.
    let _ = m.check_in(0, 30, false);
    assert_eq!(m.verdict(0), Verdict::Leave(LeaveReason::Stall), "core 1 may wait for core 0");
    let _ = m.set_blocked(1, false);
    assert_eq!(m.verdict(0), Verdict::Wait, "core 1 is on its way");
    assert_eq!(m.check_in(1, 26, false).unpark, 0b10, "both are back; core 1 is earlier");
    assert_eq!((m.verdict(0), limit(&m, 1)), (Verdict::Wait, 100));
}

#[test]
fn a_core_that_wakes_another_waits_until_it_is_up_or_asleep_if_serial() {
    let mut m = Machine::new(Q, true);
    (0..2).for_each(|i| m.add(i));
    let _ = m.settle(None);
    let _ = m.sleep(1, 5);
    let _ = m.check_in(0, 10, false);
    assert_eq!(limit(&m, 0), 100);
    assert!(m.kick(1, 40) && !m.kick(1, 41), "the second time it is awake");
    let _ = m.check_in(0, 42, false);
    assert_eq!(m.verdict(0), Verdict::Wait);
    assert_eq!(m.sleep(1, 40).unpark, 0b01, "it was nothing");
    assert!(m.kick(1, 50));
    let _ = m.check_in(0, 52, false);
    assert_eq!(m.resume(1), Some((50, 50)));
    assert_eq!(m.check_in(1, 50, true).unpark, 0b10, "it is up, and earlier");
    assert_eq!(m.verdict(0), Verdict::Wait);
}

#[test]
fn cores_whose_wait_is_over_go_on_one_by_one_if_serial() {
    let mut m = Machine::new(Q, true);
    (0..4).for_each(|i| m.add(i));
    let _ = m.settle(None);
    let _ = m.sleep(3, 5);
    let _ = m.check_in(0, 10, false);
    let _ = m.check_in(1, 20, false);
    let _ = m.check_in(2, 20, false);
    // Core 0 has an exclusive section, for which core 1 has left.
    let _ = m.set_blocked(0, true);
    m.leave(1, LeaveReason::Stall);
    let _ = m.set_blocked(1, true);
    let _ = m.release(0);
    assert!(m.go_on(0), "nothing else moves");
    // It wakes core 3 and ends its section.
    assert!(m.kick(3, 12));
    let _ = m.release(1);
    assert!(!m.go_on(3) && !m.go_on(1), "core 0 moves");
    assert_eq!(m.called_on(), None);
    let _ = m.check_in(0, 14, false);
    assert_eq!(m.called_on(), Some(1), "the least index");
    assert!(!m.go_on(3) && m.go_on(1));
    assert!(!m.go_on(3), "core 1 moves");
    // It wants a section of its own, for which core 0 is to leave.
    let _ = m.set_blocked(1, true);
    assert!(m.go_on(3), "core 1 waits");
    let _ = m.sleep(3, 12);
    assert_eq!(m.verdict(0), Verdict::Leave(LeaveReason::Stall));
}

#[test]
fn a_core_leaves_for_the_main_loop_only_when_none_is_about_to_go_on_if_serial() {
    let mut m = Machine::new(Q, true);
    (0..2).for_each(|i| m.add(i));
    let _ = m.settle(None);
    let _ = m.sleep(0, 5);
    let _ = m.check_in(1, 10, false);
    assert_eq!(m.unsettle(), Woken::Early);
    let _ = m.check_in(1, 100, false);
    assert!(m.kick(0, 100));
    let _ = m.set_main_loop_blocked(true);
    assert_eq!((m.verdict(1), m.called_on()), (Verdict::Wait, Some(0)));
    assert!(m.go_on(0));
    assert_eq!(m.verdict(1), Verdict::Wait, "core 0 moves");
    assert_eq!(m.sleep(0, 100).unpark, 0b10);
    assert_eq!(m.verdict(1), Verdict::Leave(LeaveReason::MainLoop));
}

#[test]
fn a_hold_comes_behind_all_that_happens_up_to_its_time() {
    let mut m = pair(Some(150));
    m.hold_at(Some(150));
    let _ = m.check_in(0, 100, false);
    let _ = m.check_in(1, 100, false);
    let _ = m.check_in(0, 154, false);
    let _ = m.check_in(1, 150, false);
    assert_eq!(m.unsettle(), Woken::Due, "the timer of that time comes first");
    assert_eq!(m.settle(None).unpark, 0b11, "a core has yet to go beyond it");
    let _ = m.check_in(0, 250, false);
    assert_eq!(m.check_in(1, 251, false), Effects { unpark: 0, poke: true });
    assert_eq!((m.now_ns(), m.unsettle()), (150, Woken::Held { at_rest: false }));
    assert_eq!((m.verdict(0), m.verdict(1)), (Verdict::Wait, Verdict::Wait));
    m.hold_at(Some(10_000));
    assert_eq!(m.settle(None).unpark, 0b11);
    assert_eq!((m.now_ns(), limit(&m, 0)), (250, 350));
}

#[test]
fn a_hold_comes_before_a_jump_beyond_it() {
    let mut m = pair(Some(5_000));
    m.hold_at(Some(700));
    let _ = m.sleep(0, 10);
    assert!(m.sleep(1, 20).poke);
    assert_eq!((m.now_ns(), m.unsettle()), (700, Woken::Held { at_rest: false }));
    assert_eq!((m.idle_ns(0), m.idle_ns(1)), (690, 680));
    m.hold_at(Some(9_000));
    let _ = m.settle(Some(5_000));
    assert_eq!((m.now_ns(), m.main_loop(), m.counts().jumps), (5_000, MainLoop::Due, 1));
}

#[test]
fn a_machine_at_rest_is_held_once_until_something_happens() {
    let mut m = pair(None);
    m.hold_at(Some(1_000));
    let _ = m.sleep(0, 10);
    assert!(m.sleep(1, 20).poke);
    assert_eq!((m.now_ns(), m.unsettle()), (0, Woken::Held { at_rest: true }));
    m.hold_at(Some(1_000));
    assert_eq!(m.settle(None), Effects::default());
    assert_eq!(m.unsettle(), Woken::Early, "input");
    m.kick(0, 0);
    assert_eq!(m.resume(0), Some((10, 10)));
    let _ = m.settle(None);
    assert!(m.sleep(0, 50).poke);
    assert_eq!(m.unsettle(), Woken::Held { at_rest: true });
    m.hold_at(None);
    assert_eq!(m.settle(None), Effects::default());
}

/// A core of the model below.
#[derive(Clone, Copy, Debug)]
enum Step {
    Run(u64),
    Sleep,
    Kick(usize),
    Arm(u64),
    Block,
}

fn step() -> impl Strategy<Value = (usize, Step)> {
    let what = prop_oneof![
        8 => (1..40_u64).prop_map(Step::Run),
        1 => Just(Step::Sleep),
        2 => (0..4_usize).prop_map(Step::Kick),
        2 => (1..500_u64).prop_map(Step::Arm),
        1 => Just(Step::Block),
    ];
    (0..4_usize, what)
}

/// What a core is told and does, with the timers it armed.
struct Model {
    serial: bool,
    m: Machine,
    time_ns: [u64; 4],
    timers: Vec<(u64, usize)>,
    fired: Vec<(u64, u64)>,
    /// Time between two holds of the machine.
    hold_every_ns: Option<u64>,
    holds: Vec<u64>,
}

impl Model {
    fn new(serial: bool, hold_every_ns: Option<u64>) -> Self {
        let mut m = Machine::new(Q, serial);
        m.hold_at(hold_every_ns);
        (0..4).for_each(|i| m.add(i));
        let (timers, fired, holds) = (Vec::new(), Vec::new(), Vec::new());
        let mut model = Self { serial, m, time_ns: [0; 4], timers, fired, hold_every_ns, holds };
        model.main_loop();
        model
    }

    /// Looks at the machine, and orders the next hold.
    fn held(&mut self, at_rest: bool) {
        let (now, every) = (self.m.now_ns(), self.hold_every_ns.unwrap());
        assert!(self.time_ns.iter().zip(0..).all(|(&time_ns, vcpu)| {
            time_ns >= now || matches!(self.m.state(vcpu), State::Idle { .. })
        }));
        assert!(at_rest || now.is_multiple_of(every), "held at {now}");
        self.holds.push(now);
        self.m.hold_at(Some(now - now % every + every));
    }

    /// Runs the main loop as QEMU does, until it sleeps.
    fn main_loop(&mut self) {
        loop {
            if let Woken::Held { at_rest } = self.m.unsettle() {
                self.held(at_rest);
            }
            let now = self.m.now_ns();
            let (due, rest) = self.timers.iter().partition(|(at, _)| *at <= now);
            self.timers = rest;
            let due: Vec<(u64, usize)> = due;
            for (at, owner) in due {
                self.fired.push((at, now));
                self.m.kick(owner, now);
                self.resume(owner);
            }
            let _ = self.m.settle(self.timers.iter().map(|t| t.0).min());
            if !matches!(self.m.main_loop(), MainLoop::Due | MainLoop::Held { .. }) {
                return;
            }
        }
    }

    fn resume(&mut self, vcpu: usize) {
        if let State::Waking { .. } = self.m.state(vcpu) {
            let (at, _) = self.m.resume(vcpu).unwrap();
            assert!(at >= self.time_ns[vcpu], "core {vcpu} went back");
            self.time_ns[vcpu] = at;
        }
    }

    fn settle_if_needed(&mut self) {
        let settled = matches!(self.m.main_loop(), MainLoop::Settled { .. } | MainLoop::Awake);
        if !settled {
            self.main_loop();
        }
    }

    fn apply(&mut self, vcpu: usize, step: Step) {
        if !matches!(self.m.state(vcpu), State::Running { .. }) {
            return;
        }
        let at = self.time_ns[vcpu];
        match step {
            Step::Run(n) => {
                // As translated code does: the first block that crosses the
                // limit checks in.
                self.time_ns[vcpu] += n;
                if self.time_ns[vcpu] >= limit(&self.m, vcpu) {
                    let _ = self.m.check_in(vcpu, self.time_ns[vcpu], false);
                }
            }
            Step::Sleep => {
                let _ = self.m.sleep(vcpu, at);
            }
            Step::Kick(other) => {
                self.m.kick(other, at);
                self.resume(other);
            }
            Step::Arm(after) => {
                let first = self.timers.iter().all(|t| at + after < t.0);
                self.timers.push((at + after, vcpu));
                if first {
                    let _ = self.m.notify_main_loop();
                }
                let _ = self.m.check_in(vcpu, at, true);
            }
            Step::Block => {
                let _ = self.m.set_blocked(vcpu, true);
                let _ = self.m.set_blocked(vcpu, false);
            }
        }
        self.settle_if_needed();
    }

    fn check(&self, before_ns: u64) {
        let now = self.m.now_ns();
        assert!(now >= before_ns, "global time went back");
        let may_run = |vcpu: &usize| match self.m.state(*vcpu) {
            State::Running { limit_ns } => self.time_ns[*vcpu] < limit_ns,
            _ => false,
        };
        assert!(!self.serial || (0..4).filter(may_run).count() <= 1, "more than one core runs");
        for vcpu in 0..4 {
            match self.m.state(vcpu) {
                State::Running { limit_ns } => {
                    assert!(limit_ns <= now + 2 * Q, "core {vcpu} may run too far");
                    assert!(self.time_ns[vcpu] >= now, "core {vcpu} is behind global time");
                }
                State::Arrived { at_ns } => assert!(at_ns >= now),
                _ => {}
            }
        }
        assert!(self.timers.iter().all(|t| t.0 >= now), "a timer was passed by");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn time_is_monotonic_bounded_and_stops_at_every_timer(
        serial in any::<bool>(),
        steps in prop::collection::vec(step(), 1..400)
    ) {
        let mut model = Model::new(serial, None);
        for (vcpu, step) in steps {
            let before = model.m.now_ns();
            model.apply(vcpu, step);
            model.check(before);
        }
        for (armed_for, fired_at) in model.fired {
            prop_assert_eq!(armed_for, fired_at);
        }
    }

    #[test]
    fn holds_change_nothing(
        serial in any::<bool>(),
        every_ns in 1..700_u64,
        steps in prop::collection::vec(step(), 1..400)
    ) {
        let (mut free, mut held) = (Model::new(serial, None), Model::new(serial, Some(every_ns)));
        for (vcpu, step) in steps {
            free.apply(vcpu, step);
            held.apply(vcpu, step);
            prop_assert_eq!(free.time_ns, held.time_ns);
            for vcpu in 0..4 {
                prop_assert_eq!(free.m.state(vcpu), held.m.state(vcpu));
            }
        }
        prop_assert_eq!((free.fired, free.m.counts()), (held.fired, held.m.counts()));
        prop_assert!(held.holds.is_sorted());
        // That of the present comes when the cores have left it behind.
        let passed = held.m.now_ns().saturating_sub(1) / every_ns;
        prop_assert!(held.holds.len() as u64 >= passed, "{} of {passed}", held.holds.len());
    }
}
