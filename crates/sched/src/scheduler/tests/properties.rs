//! Whatever happens, the scheduler decides as the [model](super::model) does.

use super::budgets::any_server;
use super::model::{BOOSTED, Kept, Model};
use super::*;
use crate::server::{Account, Server};
use proptest::prelude::*;

/// The field `others` of [`Event::YieldTurn`] has a bit for each identifier.
#[derive(Clone, Debug)]
pub(super) enum Event {
    Arrive { priority: u16, quantum: u64, ready: bool },
    Remove,
    Wake,
    Sleep,
    SetAway { charged: bool },
    ComeBack { ready: bool },
    HoldBack,
    Release,
    EnterGcs,
    ExitGcs,
    Mark { on: bool },
    YieldTo,
    YieldTurn { others: u8 },
    Boost { interrupt: bool },
    EndBoost,
}

fn arrive() -> impl Strategy<Value = Event> {
    (0u16..3, 1u64..50, any::<bool>()).prop_map(|(priority, quantum, ready)| Event::Arrive {
        priority,
        quantum,
        ready,
    })
}

/// What can happen on a core that uses no extra.
fn plain() -> impl Strategy<Value = Event> {
    prop_oneof![
        2 => arrive(),
        1 => Just(Event::Remove),
        2 => Just(Event::Wake),
        2 => Just(Event::Sleep),
        2 => any::<bool>().prop_map(|charged| Event::SetAway { charged }),
        2 => any::<bool>().prop_map(|ready| Event::ComeBack { ready }),
        2 => Just(Event::YieldTo),
        2 => any::<u8>().prop_map(|others| Event::YieldTurn { others }),
    ]
}

/// What can happen on any core.
fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => plain(),
        1 => Just(Event::HoldBack),
        2 => Just(Event::Release),
        1 => Just(Event::EnterGcs),
        2 => Just(Event::ExitGcs),
        2 => any::<bool>().prop_map(|on| Event::Mark { on }),
        3 => any::<bool>().prop_map(|interrupt| Event::Boost { interrupt }),
        2 => Just(Event::EndBoost),
    ]
}

fn any_boost() -> impl Strategy<Value = Option<Boost>> {
    let limit = prop_oneof![Just(Duration::MAX), (1u64..8).prop_map(Duration)];
    let window = prop::option::of((1u64..8).prop_map(Duration));
    let boost =
        (1u16..5, limit, 1u64..20, window).prop_map(|(priority, budget, period, window)| Boost {
            priority: Priority(priority),
            budget,
            period: Duration(period),
            window,
        });
    prop::option::of(boost)
}

/// The scheduler and its model.
#[derive(Default)]
pub(super) struct Both {
    pub(super) core: Scheduler,
    pub(super) model: Model,
    /// What happened last leaves the latest decision as it is.
    stands: bool,
}

impl Both {
    pub(super) fn arrive(&mut self, id: u8, params: Params, ready: bool, server: Option<Server>) {
        if self.core.arrive(VcpuId(id), params, ready).is_ok() {
            self.model.arrive(id, params, ready);
        } else {
            return;
        }
        if let Some(server) = server {
            let account = Account::open(server, Instant(0)).unwrap();
            self.core.set_server(VcpuId(id), &account, Instant(0));
            self.model.get(id).unwrap().server = Some(Kept::new(server));
        }
    }

    /// Lets a vCPU be boosted, if it can.
    pub(super) fn set_boost(&mut self, id: u8, boost: Boost) {
        if self.core.set_boost(VcpuId(id), boost).is_ok() {
            self.model.set_boost(id, boost);
        }
    }

    /// Lets something happen to a vCPU, if it can.
    pub(super) fn apply(&mut self, id: u8, event: &Event, now: u64) {
        let (core, model, vcpu) = (&mut self.core, &mut self.model, VcpuId(id));
        self.stands = false;
        if let Event::Arrive { priority, quantum, ready } = *event {
            return self.arrive(id, params(priority, quantum), ready, None);
        }
        let (base, id) = (id, model.at(id));
        let Some(of) = model.get(base) else { return };
        // Such a vCPU has no sections.
        let boosts = of.boosts.is_some();
        let Some(known) = model.get(id) else { return };
        match *event {
            Event::EnterGcs | Event::Mark { .. } | Event::Remove if boosts => {}
            Event::Boost { interrupt: true } => {
                model.charge(now);
                if model.get(base).and_then(|of| of.boosts).is_some_and(|of| of.rises()) {
                    core.charge_running(Instant(now));
                    let at = core.find(vcpu).unwrap();
                    let changes = core.begin_boost(at, true, Instant(now));
                    assert_eq!(changes, model.boost(base, true, now));
                }
            }
            Event::Boost { interrupt: false } => {
                self.stands = model.lengthen_boost(base, false, now);
                let expected = if self.stands {
                    Reported::Stands
                } else if model.boost(base, false, now) {
                    Reported::Decide
                } else {
                    Reported::Refused
                };
                assert_eq!(core.boost(vcpu, Instant(now)), expected);
            }
            Event::EndBoost => {
                assert_eq!(core.end_boost(vcpu), model.end_boost(base));
            }
            // What is away is another core's to wake, and what holds a resource has work, unless it is
            // only marked.
            Event::Wake if !known.away => {
                let rises = model.wake(base);
                assert_eq!(core.wake(vcpu) == Woken::Rises, rises);
                if rises {
                    self.stands = model.lengthen_boost(base, true, now);
                    assert_eq!(core.rises(vcpu, Instant(now)), !self.stands);
                }
            }
            Event::Sleep if !known.away && (known.sections == 0 || known.marked) => {
                model.sleep(id);
                core.sleep(vcpu);
            }
            Event::SetAway { charged } => {
                if charged {
                    core.charge(Instant(now));
                    model.charge(now);
                }
                assert_eq!(core.set_away(vcpu), model.set_away(id));
            }
            Event::ComeBack { ready } => {
                let ready = ready || known.sections > 0 && !known.marked;
                core.come_back(vcpu, ready);
                model.come_back(id, ready);
                if ready {
                    model.wake(base);
                }
            }
            Event::HoldBack => {
                core.hold_back(vcpu);
                known.held_back = true;
            }
            Event::Release => {
                core.release(vcpu);
                known.held_back = false;
            }
            Event::EnterGcs if known.work && !known.marked => {
                model.charge(now);
                model.get(id).unwrap().sections += 1;
                core.enter_gcs(vcpu, Instant(now));
            }
            Event::ExitGcs if known.sections > 0 && !known.marked => {
                model.charge(now);
                model.get(id).unwrap().sections -= 1;
                core.exit_gcs(vcpu, Instant(now));
            }
            // A section that no task begins or ends.
            Event::Mark { on }
                if known.server.is_none() && (known.sections == 0 || known.marked) =>
            {
                let changes = known.marked != on;
                if changes {
                    model.charge(now);
                    let known = model.get(id).unwrap();
                    (known.marked, known.sections) = (on, on.into());
                }
                assert_eq!(core.mark(vcpu, on, Instant(now)), changes);
            }
            Event::YieldTurn { others } => {
                let others: Vec<u8> = (0..8).filter(|id| others >> id & 1 == 1).collect();
                let ids = others.iter().map(|&id| VcpuId(id));
                let at: Vec<u8> = others.iter().map(|&id| model.at(id)).collect();
                let changed = core.yield_turn(vcpu, ids, Instant(now));
                assert_eq!(changed, model.yield_turn(id, &at, now));
            }
            Event::YieldTo => assert_eq!(core.yield_to(vcpu), model.yield_to(id)),
            Event::Remove if known.sections == 0 => {
                model.remove(id);
                assert!(core.remove(vcpu).is_some());
            }
            _ => {}
        }
        model.vcpus.iter_mut().for_each(model::Vcpu::settle);
        model.drop_yield_to_blocked();
    }

    /// What the scheduler answers about each vCPU agrees with the model.
    pub(super) fn check_answers(&self) {
        self.core.check();
        for vcpu in &self.model.vcpus {
            let id = VcpuId(vcpu.id & !BOOSTED);
            if self.model.at(id.0) != vcpu.id {
                assert!(!vcpu.work && !vcpu.away && !vcpu.held_back, "nothing is at a shadow");
                continue;
            }
            assert_eq!(self.core.is_boosted(id), vcpu.id & BOOSTED != 0, "{id:?}");
            assert_eq!(self.core.is_ready(id), vcpu.is_able(), "{id:?}");
            let works = vcpu.is_able() && vcpu.work;
            assert_eq!(self.core.is_ready_to_work(id), works, "{id:?}");
            assert_eq!(self.core.is_held_back(id), vcpu.held_back, "{id:?}");
            assert_eq!(self.core.in_gcs(id), vcpu.sections > 0, "{id:?}");
            if !vcpu.away {
                let state = match (vcpu.work, self.model.running == Some(vcpu.id)) {
                    (false, _) => State::Sleeping,
                    (true, true) => State::Running,
                    (true, false) => State::Suspended,
                };
                assert_eq!(self.core.state(id), Some(state), "{id:?}");
            }
        }
        let sleeps = |id: &VcpuId| {
            let at = self.model.at(id.0);
            let vcpu = self.model.vcpus.iter().find(|vcpu| vcpu.id == at).unwrap();
            !vcpu.has_reason() && self.core.matters(*id)
        };
        let sleepers: Vec<_> = self.core.vcpus().filter(sleeps).collect();
        assert_eq!(self.core.sleepers_that_matter().collect::<Vec<_>>(), sleepers);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Asked at any time, early or late, a core without extras decides as the model does,
    /// and says how long that holds.
    #[test]
    fn without_extras_it_decides_as_the_model_does(
        events in prop::collection::vec((0u64..80, 0u8..6, plain()), 1..120),
    ) {
        let (mut both, mut now) = (Both::default(), 0);
        for (pause, id, event) in events {
            now += pause / 2 * (pause % 2);
            both.apply(id, &event, now);
            let decision = both.core.decide(Instant(now));
            let (run, until) = both.model.decide(now);
            prop_assert_eq!(decision.run.map(|id| id.0), run);
            prop_assert_eq!(decision.until.map(|at| at.0), until);
            prop_assert_eq!(both.core.special, 0);
            both.check_answers();
        }
    }

    /// Priorities, quanta, servers, ceilings, vCPUs that are away or held back, and
    /// directed yield, all on one core: asked only when it wants to be or something
    /// happens, it has decided at every tick as the model does.
    #[test]
    fn with_all_extras_it_decides_as_the_model_does(
        vcpus in prop::collection::vec((0u16..3, 1u64..12, any_server(), any_boost()), 1..6),
        events in prop::collection::vec((0u64..100, 0u8..6, any_event()), 0..100),
    ) {
        let mut both = Both::default();
        for (id, &(priority, quantum, server, boost)) in vcpus.iter().enumerate() {
            // It has one or the other.
            let server = server.filter(|_| boost.is_none());
            both.arrive(id as u8, params(priority, quantum), true, server);
        }
        for (id, (.., boost)) in vcpus.into_iter().enumerate() {
            if let Some(boost) = boost {
                both.set_boost(id as u8, boost);
            }
        }
        let mut until = Some(Instant(0));
        for now in 0..120u64 {
            both.model.vcpus.iter_mut().for_each(|vcpu| vcpu.begin_tick(now));
            both.model.drop_yield_to_blocked();
            if until.is_some_and(|until| until.0 <= now) {
                until = decide(&mut both, now)?;
            }
            for (_, id, event) in events.iter().filter(|(when, ..)| *when == now) {
                both.apply(*id, event, now);
                if !both.stands {
                    until = decide(&mut both, now)?;
                }
            }
            prop_assert!(both.model.stands(now), "at {}", now);
            let running = both.model.running;
            if let Some(vcpu) = running.and_then(|id| both.model.get(id)) {
                vcpu.run_for_one_tick();
            }
        }
    }

    /// No ready vCPU waits longer for its turn than its equals' quanta, or twice that if
    /// the core yields to them.
    #[test]
    fn a_turn_comes_within_the_equals_quanta(
        quanta in prop::collection::vec(1u64..40, 2..6),
        sleeps in prop::collection::vec((0u8..6, 1u64..30, 0u8..6), 0..40),
    ) {
        let mut core = Scheduler::new();
        for (id, &quantum) in quanta.iter().enumerate() {
            core.arrive(VcpuId(id as u8), params(1, quantum), true).unwrap();
        }
        let yields = sleeps.iter().any(|&(_, _, favoured)| favoured > 0);
        let bound: u64 = quanta.iter().sum::<u64>() * if yields { 2 } else { 1 };
        let mut waiting = std::vec![0u64; quanta.len()];
        let mut now = 0;
        for (sleeper, pause, favoured) in sleeps {
            // One vCPU other than the first blocks and wakes again at once; the first never
            // sleeps, so its wait is bounded.
            if sleeper > 0 { core.sleep(VcpuId(sleeper)); core.wake(VcpuId(sleeper)); }
            // The core yields to others, in its turn too.
            if favoured > 0 { core.yield_to(VcpuId(favoured)); }
            // Others give up their turns.
            let all = (0..6).map(VcpuId);
            if sleeper > 3 { core.yield_turn(VcpuId(sleeper), all, Instant(now)); }
            let end = now + pause;
            while now < end {
                let decision = core.decide(Instant(now));
                let next = decision.until.map_or(end, |at| at.0.min(end));
                let ran = decision.run.unwrap().0;
                for (id, wait) in waiting.iter_mut().enumerate() {
                    *wait = if id == usize::from(ran) { 0 } else { *wait + next - now };
                }
                prop_assert!(waiting[0] <= bound, "waited {} of {bound}", waiting[0]);
                now = next;
            }
        }
    }
}

/// Asks both, and compares. Answers when the scheduler wants to be asked again.
fn decide(both: &mut Both, now: u64) -> Result<Option<Instant>, TestCaseError> {
    let decision = both.core.decide(Instant(now));
    let (run, _) = both.model.decide(now);
    let ran = run.map(|id| id & !BOOSTED);
    prop_assert_eq!(decision.owner().map(|id| id.0), ran, "at {}", now);
    let idles = run.is_some_and(|id| !both.model.get(id).unwrap().work);
    prop_assert_eq!(decision.idles.is_some(), idles);
    both.check_answers();
    Ok(decision.until)
}
