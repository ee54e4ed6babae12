//! What servers and ceilings promise: first as stories, then against an oracle
//! that keeps every account at every tick.

use super::*;
use crate::server::{Account, Server, ServerKind};
use proptest::prelude::*;

const LOW: VcpuId = VcpuId(0);
const HIGH: VcpuId = VcpuId(1);

pub(super) fn server(kind: ServerKind, budget: u64, period: u64, overrun: u64) -> Server {
    let [budget, period, overrun] = [budget, period, overrun].map(Duration);
    Server { kind, budget, period, overrun }
}

fn open(kind: ServerKind, budget: u64, period: u64, overrun: u64) -> Account {
    Account::open(server(kind, budget, period, overrun), Instant(0)).unwrap()
}

/// Two ready vCPUs, the second of higher priority, with accounts alike.
fn core(account: Account) -> Scheduler {
    let mut core = Scheduler::new();
    arrive(&mut core, LOW, 1, Some(account), 0);
    arrive(&mut core, HIGH, 2, Some(account), 0);
    core
}

fn arrive(core: &mut Scheduler, id: VcpuId, priority: u16, account: Option<Account>, now: u64) {
    core.arrive(id, params(priority, 1000), true).unwrap();
    if let Some(account) = account {
        core.set_server(id, &account, Instant(now));
    }
}

fn at(core: &mut Scheduler, now: u64) -> (Option<VcpuId>, Option<u64>) {
    let decision = core.decide(Instant(now));
    (decision.owner(), decision.until.map(|until| until.0))
}

#[test]
fn a_budget_ends_and_comes_again() {
    let mut core = core(open(ServerKind::Deferrable, 3, 10, 0));
    assert_eq!(at(&mut core, 0), (Some(HIGH), Some(3)));
    assert_eq!(at(&mut core, 3), (Some(LOW), Some(6)));
    assert!(core.is_throttled(HIGH));
    assert_eq!(core.throttled().collect::<Vec<_>>(), [HIGH]);
    assert_eq!(core.state(HIGH), Some(State::Suspended));
    assert_eq!(at(&mut core, 6), (None, Some(10)));
    assert_eq!(at(&mut core, 10), (Some(HIGH), Some(13)));
}

#[test]
fn one_that_idles_its_budget_away_has_no_work() {
    let mut core = core(open(ServerKind::Periodic, 3, 10, 0));
    core.sleep(HIGH);
    assert_eq!(at(&mut core, 0), (Some(HIGH), Some(3)));
    assert!(core.is_ready(HIGH) && !core.is_ready_to_work(HIGH));
    assert!(core.is_ready_to_work(LOW));
    core.wake(HIGH);
    assert!(core.is_ready_to_work(HIGH));
}

#[test]
fn a_budget_that_ends_is_no_turn_of_equals() {
    let mut core = core(open(ServerKind::Deferrable, 3, 10, 0));
    assert!(!core.takes_turns(), "it has not decided");
    assert_eq!(at(&mut core, 0), (Some(HIGH), Some(3)));
    assert!(!core.takes_turns(), "the other one is below");
    let equal = VcpuId(2);
    arrive(&mut core, equal, 2, None, 0);
    at(&mut core, 0);
    assert!(core.takes_turns());
    core.sleep(equal);
    at(&mut core, 1);
    assert!(!core.takes_turns());
}

#[test]
fn a_deferrable_server_keeps_its_budget_until_the_period_ends() {
    let mut core = core(open(ServerKind::Deferrable, 3, 10, 0));
    core.sleep(HIGH);
    assert_eq!(at(&mut core, 0), (Some(LOW), Some(3)));
    core.wake(HIGH);
    assert_eq!(at(&mut core, 8), (Some(HIGH), Some(11)));
    // Two ticks of the old period; at 10 it was replenished.
    assert_eq!(at(&mut core, 11), (Some(HIGH), Some(13)), "back to back");
    assert_eq!(core.account(HIGH).unwrap().left(), Duration(2));
}

#[test]
fn a_periodic_server_idles_its_budget_away_and_has_the_core_meanwhile() {
    let mut core = core(open(ServerKind::Periodic, 3, 10, 0));
    core.sleep(HIGH);
    let decision = core.decide(Instant(0));
    assert_eq!((decision.run, decision.idles), (None, Some(HIGH)));
    assert_eq!(core.state(HIGH), Some(State::Sleeping));
    assert_eq!(at(&mut core, 3), (Some(LOW), Some(6)));
    core.wake(HIGH);
    assert_eq!(at(&mut core, 4), (Some(LOW), Some(6)), "nothing is left");
    core.sleep(LOW);
    assert_eq!(at(&mut core, 5), (Some(LOW), Some(6)), "the low one idles too");
    assert_eq!(at(&mut core, 6), (None, Some(10)));
}

#[test]
fn in_a_gcs_the_lower_vcpu_comes_first() {
    let mut core = core(open(ServerKind::Deferrable, 3, 10, 0));
    core.enter_gcs(LOW, Instant(0));
    assert_eq!(at(&mut core, 0), (Some(LOW), Some(3)));
    core.enter_gcs(HIGH, Instant(1));
    assert_eq!(at(&mut core, 1).0, Some(HIGH), "among the raised as before");
    core.exit_gcs(HIGH, Instant(2));
    assert_eq!(at(&mut core, 2).0, Some(LOW));
    core.exit_gcs(LOW, Instant(3));
    assert_eq!(at(&mut core, 3).0, Some(HIGH));
}

#[test]
fn all_sections_of_a_vcpu_end_at_once() {
    let mut core = core(open(ServerKind::Deferrable, 3, 10, 0));
    core.enter_gcs(LOW, Instant(0));
    core.enter_gcs(LOW, Instant(0));
    assert_eq!(at(&mut core, 0).0, Some(LOW));
    assert!(core.exit_all(LOW, Instant(1)));
    assert!(!core.in_gcs(LOW) && !core.exit_all(LOW, Instant(1)), "it is in none");
    assert_eq!(at(&mut core, 1).0, Some(HIGH));
}

#[test]
fn overrun_ends_with_the_gcs_or_at_its_limit() {
    for (leaves, end) in [(5, 5), (20, 7)] {
        let mut core = core(open(ServerKind::Deferrable, 3, 10, 4));
        assert_eq!(at(&mut core, 0).0, Some(HIGH));
        core.enter_gcs(HIGH, Instant(2));
        assert_eq!(at(&mut core, 2), (Some(HIGH), Some(7)));
        if leaves < 7 {
            core.exit_gcs(HIGH, Instant(leaves));
        }
        assert_eq!(at(&mut core, end).0, Some(LOW));
        assert!(core.is_throttled(HIGH));
    }
}

#[test]
fn a_vcpu_that_is_raised_for_too_long_is_lowered() {
    let limited = open(ServerKind::Deferrable, 6, 10, 0).raised_for_at_most(Duration(2));
    let mut core = core(limited);
    core.sleep(HIGH);
    assert_eq!(at(&mut core, 0).0, Some(LOW));
    assert_eq!(core.open_gcs(Instant(0)), Some(Instant(2)));
    assert_eq!(core.open_gcs(Instant(0)), None);
    assert!(!core.enter_gcs(LOW, Instant(0)), "one inside the other");
    core.wake(HIGH);
    assert_eq!(at(&mut core, 1), (Some(LOW), Some(2)));
    assert_eq!(at(&mut core, 2).0, Some(HIGH));
    assert!(core.in_gcs(LOW));
    assert!(!core.exit_gcs(LOW, Instant(3)));
    core.sleep(HIGH);
    assert_eq!(at(&mut core, 4).0, Some(LOW));
    core.wake(HIGH);
    assert_eq!(at(&mut core, 10).0, Some(HIGH), "a new period does not raise it again");
    core.exit_gcs(LOW, Instant(11));
    core.enter_gcs(LOW, Instant(11));
    assert_eq!(at(&mut core, 11), (Some(LOW), Some(13)), "a new section does");
    assert_eq!(core.account(LOW).unwrap().counts().lowered, 1);
}

#[test]
fn a_short_section_of_the_vcpu_that_runs_needs_no_decision() {
    let mut core = core(open(ServerKind::Deferrable, 3, 10, 4).raised_for_at_most(Duration(3)));
    assert_eq!(at(&mut core, 0), (Some(HIGH), Some(3)));
    assert_eq!(core.open_gcs(Instant(1)), Some(Instant(3)), "its budget ends");
    assert_eq!(core.ceiling(HIGH).map(|ceiling| ceiling.gcs), Some(true));
    assert!(core.close_gcs(Instant(2)));
    assert!(!core.in_gcs(HIGH));
    assert_eq!(core.open_gcs(Instant(2)), Some(Instant(3)));
    assert!(!core.close_gcs(Instant(3)), "its budget is spent");
    assert!(core.exit_gcs(HIGH, Instant(3)));
    assert_eq!(at(&mut core, 3).0, Some(LOW));
    assert_eq!(core.open_gcs(Instant(3)), Some(Instant(6)));
    assert_eq!(at(&mut core, 6), (None, Some(10)), "lowered, it may not overrun");
}

#[test]
fn what_runs_too_long_has_less_next_time() {
    let mut core = core(open(ServerKind::Deferrable, 3, 10, 0));
    assert_eq!(at(&mut core, 0), (Some(HIGH), Some(3)));
    assert_eq!(at(&mut core, 5).0, Some(LOW), "it was stopped late");
    assert_eq!(at(&mut core, 10), (Some(HIGH), Some(11)));
    assert_eq!(at(&mut core, 11).0, Some(LOW));
    assert_eq!(at(&mut core, 20), (Some(HIGH), Some(23)), "that is settled");
}

#[test]
fn a_new_period_of_the_vcpu_that_runs_needs_no_decision() {
    let mut core = core(open(ServerKind::Deferrable, 10, 10, 0));
    core.sleep(LOW);
    assert_eq!(at(&mut core, 0), (Some(HIGH), Some(10)));
    assert_eq!(core.renew(Instant(9)), None, "the period is not over");
    assert_eq!(core.renew(Instant(11)), Some((HIGH, Instant(20))), "it came a little late");
    core.wake(LOW);
    assert_eq!(core.renew(Instant(20)), Some((HIGH, Instant(30))), "the other one is below");
    assert_eq!(core.account(HIGH).unwrap().counts().replenished, 1, "the others are told");
    core.open_gcs(Instant(29));
    assert_eq!(core.renew(Instant(30)), None, "it is in a section");
}

#[test]
fn only_a_deferrable_server_begins_to_overrun_once_it_has_stopped() {
    for (kind, runs) in [(ServerKind::Deferrable, HIGH), (ServerKind::Periodic, LOW)] {
        let mut core = core(open(kind, 3, 10, 4));
        assert_eq!(at(&mut core, 0).0, Some(HIGH));
        assert_eq!(at(&mut core, 3).0, Some(LOW));
        core.enter_gcs(HIGH, Instant(4));
        assert_eq!(at(&mut core, 4).0, Some(runs), "{kind:?}");
    }
}

#[test]
fn a_period_without_a_look_is_no_longer_than_one_with() {
    let mut core = core(open(ServerKind::Deferrable, 3, 10, 0));
    core.sleep(HIGH);
    core.sleep(LOW);
    assert_eq!(at(&mut core, 0), (None, None), "no vCPU waits for a replenishment");
    core.wake(HIGH);
    assert_eq!(at(&mut core, 58), (Some(HIGH), Some(61)));
    assert_eq!(at(&mut core, 61), (Some(HIGH), Some(63)));
    assert_eq!(core.account(HIGH).unwrap().replenished_at(), Instant(70));
}

#[test]
fn before_its_first_period_a_server_gives_nothing() {
    let account = Account::open(server(ServerKind::Deferrable, 3, 10, 3), Instant(4)).unwrap();
    let mut core = core(account);
    core.enter_gcs(LOW, Instant(0));
    assert_eq!(at(&mut core, 0), (None, Some(4)));
    assert_eq!(at(&mut core, 4), (Some(LOW), Some(10)));
}

#[test]
fn without_a_server_nothing_ends() {
    let mut core = Scheduler::new();
    arrive(&mut core, LOW, 1, None, 0);
    assert_eq!(at(&mut core, 0), (Some(LOW), None));
    arrive(&mut core, HIGH, 2, Some(open(ServerKind::Deferrable, 1, 5, 0)), 7);
    assert_eq!(at(&mut core, 7), (Some(HIGH), Some(8)));
    assert_eq!(at(&mut core, 8), (Some(LOW), Some(10)));
}

#[test]
fn a_vcpu_takes_its_account_along_but_no_resource() {
    let mut here = core(open(ServerKind::Deferrable, 3, 10, 2));
    assert_eq!(at(&mut here, 0).0, Some(HIGH));
    here.enter_gcs(HIGH, Instant(1));
    assert_eq!(here.remove(HIGH), None);
    here.exit_gcs(HIGH, Instant(2));
    here.charge(Instant(2));
    let gone = here.remove(HIGH).unwrap();
    assert_eq!(gone.account.unwrap().left(), Duration(1));
    assert!(gone.ready);
    let mut there = Scheduler::new();
    there.arrive(HIGH, gone.params, gone.ready).unwrap();
    there.set_server(HIGH, &gone.account.unwrap(), Instant(4));
    assert_eq!(at(&mut there, 4), (Some(HIGH), Some(5)));
}

#[test]
fn a_ceiling_stays_with_its_vcpu_when_others_come_and_go() {
    let mut core = core(open(ServerKind::Deferrable, 3, 10, 0));
    core.enter_gcs(LOW, Instant(0));
    arrive(&mut core, VcpuId(2), 3, None, 0);
    assert_eq!(at(&mut core, 0).0, Some(LOW));
    core.charge(Instant(1));
    core.remove(VcpuId(2)).unwrap();
    core.remove(HIGH).unwrap();
    arrive(&mut core, HIGH, 0, None, 1);
    core.exit_gcs(LOW, Instant(2));
    core.enter_gcs(HIGH, Instant(2));
    assert_eq!(at(&mut core, 2).0, Some(HIGH));
}

#[test]
fn refusals_say_why() {
    let refused = |budget, period, overrun| {
        Account::open(server(ServerKind::Periodic, budget, period, overrun), Instant(0))
            .unwrap_err()
    };
    assert_eq!(refused(0, 10, 0), Refusal::ZeroBudget);
    assert_eq!(refused(1, 0, 0), Refusal::ZeroPeriod);
    assert_eq!(refused(11, 10, 0), Refusal::BudgetBeyondPeriod);
    assert_eq!(refused(6, 10, 5), Refusal::OverrunBeyondPeriod);
    assert!(std::format!("{}", refused(11, 10, 0)).contains("larger than its period"));
}

/// One vCPU as the oracle keeps it.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) server: Option<Server>,
    left: u64,
    overrun_left: u64,
    stopped: bool,
    pub(super) work: bool,
    pub(super) held: u8,
    /// How long it may be raised in each period, and for how long still.
    gcs_limit: u64,
    gcs_left: u64,
    pub(super) raised: bool,
}

impl Kept {
    /// One that has work, before its first period.
    pub(super) fn new(server: Option<Server>, gcs_limit: u64) -> Self {
        Self {
            server,
            left: 0,
            overrun_left: 0,
            stopped: false,
            work: true,
            held: 0,
            gcs_limit,
            gcs_left: gcs_limit,
            raised: false,
        }
    }

    fn periodic(&self) -> bool {
        self.server.is_some_and(|server| server.kind == ServerKind::Periodic)
    }

    fn may_run(&self) -> bool {
        self.server.is_none()
            || self.left > 0
            || (self.raised && self.overrun_left > 0 && !self.stopped)
    }

    /// It would run if none were above it.
    pub(super) fn is_able(&self) -> bool {
        (self.work || self.periodic()) && self.may_run()
    }

    pub(super) fn enter(&mut self) {
        self.held += 1;
        self.raised |= self.held == 1 && (self.server.is_none() || self.gcs_left > 0);
    }

    pub(super) fn leave(&mut self) {
        self.held -= 1;
        self.raised &= self.held > 0;
    }

    /// Stops as soon as it may not go on.
    pub(super) fn settle(&mut self) {
        self.stopped |= self.periodic() && !self.may_run();
    }

    pub(super) fn begin_tick(&mut self, now: u64) {
        if let Some(server) = self.server.filter(|server| now.is_multiple_of(server.period.0)) {
            (self.left, self.overrun_left) = (server.budget.0, server.overrun.0);
            self.gcs_left = self.gcs_limit;
            self.stopped = false;
        }
        self.raised &= self.server.is_none() || self.gcs_left > 0;
        self.settle();
    }

    pub(super) fn run_for_one_tick(&mut self) {
        if self.server.is_some() {
            let from = if self.left > 0 { &mut self.left } else { &mut self.overrun_left };
            *from -= 1;
            if self.raised {
                self.gcs_left -= 1;
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Wake(usize),
    Sleep(usize),
    Enter(usize),
    Leave(usize),
}

fn event() -> impl Strategy<Value = Event> {
    let index = 0usize..4;
    prop_oneof![
        3 => index.clone().prop_map(Event::Wake),
        2 => index.clone().prop_map(Event::Sleep),
        1 => index.clone().prop_map(Event::Enter),
        2 => index.prop_map(Event::Leave),
    ]
}

pub(super) fn any_server() -> impl Strategy<Value = Option<Server>> {
    let kind = prop_oneof![Just(ServerKind::Periodic), Just(ServerKind::Deferrable)];
    let server = (kind, 2u64..12).prop_flat_map(|(kind, period)| {
        (Just(kind), 1..=period, Just(period)).prop_flat_map(|(kind, budget, period)| {
            (0..=period - budget).prop_map(move |over| server(kind, budget, period, over))
        })
    });
    prop_oneof![1 => Just(None), 5 => server.prop_map(Some)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    /// Asked only when it wants to be asked or something happens, it says at
    /// every tick what an oracle says that keeps all accounts at every tick; and
    /// no vCPU has more than budget and overrun in any period, or is raised for longer than
    /// it may be.
    #[test]
    fn lazy_accounts_are_exact(
        servers in prop::collection::vec((any_server(), 1u64..6), 1..5),
        events in prop::collection::vec((0u64..60, event()), 0..60),
    ) {
        let mut core = Scheduler::new();
        let mut kept = Vec::new();
        for (id, &(server, gcs_limit)) in servers.iter().enumerate() {
            let open = |server| Account::open(server, Instant(0)).unwrap();
            let account = server.map(open);
            let account = account.map(|account| account.raised_for_at_most(Duration(gcs_limit)));
            arrive(&mut core, VcpuId(id as u8), id as u16, account, 0);
            kept.push(Kept::new(server, gcs_limit));
        }
        let mut said = Decision { run: None, idles: None, until: Some(Instant(0)) };
        let mut before = None;
        let mut used = std::vec![(0u64, 0u64); kept.len()];
        for now in 0..80u64 {
            kept.iter_mut().for_each(|vcpu| vcpu.begin_tick(now));
            let mut ask = false;
            let fires = said.until.is_some_and(|until| until.0 <= now);
            if fires {
                match core.renew(Instant(now)) {
                    Some((id, until)) => {
                        assert_eq!(said.run, Some(id));
                        said.until = Some(until);
                    }
                    None => ask = true,
                }
            }
            for &(_, event) in events.iter().filter(|(when, _)| *when == now) {
                let (Event::Wake(index)
                | Event::Sleep(index)
                | Event::Enter(index)
                | Event::Leave(index)) = event;
                let (id, Some(vcpu)) = (VcpuId(index as u8), kept.get_mut(index)) else { continue };
                let runs = vcpu.server.is_some() && said.run == Some(id);
                match event {
                    Event::Wake(_) => {
                        vcpu.work = true;
                        ask |= core.wake(id) == Woken::Decide;
                    }
                    // A vCPU in a gcs has work.
                    Event::Sleep(_) if vcpu.held == 0 => {
                        vcpu.work = false;
                        core.sleep(id);
                        ask = true;
                    }
                    Event::Enter(_) if vcpu.work => {
                        vcpu.enter();
                        let open = runs.then(|| core.open_gcs(Instant(now)));
                        match open.flatten() {
                            Some(end) => {
                                before = said.until;
                                ask |= end.0 <= now;
                                said.until = said.until.into_iter().chain([end]).min();
                            }
                            None => ask |= core.enter_gcs(id, Instant(now)),
                        }
                    }
                    Event::Leave(_) if vcpu.held > 0 => {
                        vcpu.leave();
                        if runs && core.close_gcs(Instant(now)) {
                            said.until = before;
                        } else {
                            ask |= core.exit_gcs(id, Instant(now));
                        }
                    }
                    _ => {}
                }
                vcpu.settle();
            }
            if ask {
                said = core.decide(Instant(now));
            }
            let expected = (0..kept.len())
                .filter(|&index| kept[index].is_able())
                .max_by_key(|&index| (kept[index].raised, index));
            prop_assert_eq!(said.owner().map(|id| usize::from(id.0)), expected, "at {}", now);
            let Some(index) = expected else {
                prop_assert_eq!(said.idles, None);
                continue;
            };
            prop_assert_eq!(said.idles.is_some(), !kept[index].work);
            kept[index].run_for_one_tick();
            if let Some(server) = kept[index].server {
                let period = now / server.period.0;
                let (latest, ticks) = used[index];
                used[index] = (period, if latest == period { ticks + 1 } else { 1 });
                prop_assert!(used[index].1 <= server.budget.0 + server.overrun.0);
            }
        }
    }
}
