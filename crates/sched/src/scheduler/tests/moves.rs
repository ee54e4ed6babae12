//! vCPUs that go from core to core with their accounts: no budget is gained or lost by that.

use super::budgets::{Kept, any_server, server};
use super::*;
use crate::server::{Account, ServerKind};
use proptest::prelude::*;

const MOVES: VcpuId = VcpuId(0);

/// Cores that all know these vCPUs, whose priorities are their numbers. They are on the first.
fn cores(count: usize, accounts: &[Option<Account>]) -> Vec<Scheduler> {
    let mut cores: Vec<_> = (0..count).map(|_| Scheduler::new()).collect();
    for (index, core) in cores.iter_mut().enumerate() {
        for (id, account) in accounts.iter().enumerate() {
            let id = VcpuId(id as u8);
            core.arrive(id, params(id.0.into(), 1000), index == 0).unwrap();
            if let (0, Some(account)) = (index, account) {
                core.set_server(id, account, Instant(0));
            }
        }
    }
    cores
}

/// What a vCPU takes along: whether it has work, and its account.
fn leave(core: &mut Scheduler, id: VcpuId, now: u64) -> (bool, Option<Account>) {
    let ready = core.set_away(id);
    (ready, take(core, id, now))
}

fn take(core: &mut Scheduler, id: VcpuId, now: u64) -> Option<Account> {
    let mut account = None;
    core.take_account(id, Instant(now), &mut account);
    account
}

fn arrive(core: &mut Scheduler, id: VcpuId, with: (bool, Option<Account>), now: u64) {
    core.come_back(id, with.0);
    if let Some(account) = with.1 {
        core.set_server(id, &account, Instant(now));
    }
}

fn one(kind: ServerKind) -> Vec<Scheduler> {
    let account = Account::open(server(kind, 3, 10, 0), Instant(0)).unwrap();
    cores(2, &[Some(account)])
}

#[test]
fn a_budget_that_is_spent_is_spent_everywhere() {
    let mut cores = one(ServerKind::Deferrable);
    assert_eq!(run(&mut cores[0], 0), Some(0));
    let with = leave(&mut cores[0], MOVES, 2);
    assert_eq!(run(&mut cores[0], 2), None);
    assert!(!cores[0].has_extras() && cores[0].account(MOVES).is_none());
    arrive(&mut cores[1], MOVES, with, 4);
    assert_eq!(cores[1].decide(Instant(4)).until, Some(Instant(5)), "1 is left");
    assert_eq!(run(&mut cores[1], 5), None);
    let with = leave(&mut cores[1], MOVES, 6);
    arrive(&mut cores[0], MOVES, with, 7);
    let decision = cores[0].decide(Instant(7));
    assert_eq!((decision.run, decision.until), (None, Some(Instant(10))), "throttled here too");
    assert!(cores[0].is_throttled(MOVES));
    assert_eq!(cores[0].decide(Instant(10)).until, Some(Instant(13)));
}

#[test]
fn a_period_that_ends_under_way_is_replenished_once() {
    let mut cores = one(ServerKind::Deferrable);
    assert_eq!(run(&mut cores[0], 0), Some(0));
    let with = leave(&mut cores[0], MOVES, 3);
    arrive(&mut cores[1], MOVES, with, 24);
    assert_eq!(cores[1].decide(Instant(24)).until, Some(Instant(27)));
    let account = cores[1].account(MOVES).unwrap();
    assert_eq!((account.replenished_at(), account.counts().replenished), (Instant(30), 3));
}

#[test]
fn what_was_taken_too_much_is_missing_on_the_next_core() {
    let mut cores = one(ServerKind::Deferrable);
    assert_eq!(run(&mut cores[0], 0), Some(0));
    let with = leave(&mut cores[0], MOVES, 5);
    arrive(&mut cores[1], MOVES, with, 6);
    assert_eq!(run(&mut cores[1], 6), None);
    assert_eq!(cores[1].decide(Instant(10)).until, Some(Instant(11)), "2 less");
}

#[test]
fn a_periodic_server_without_work_idles_on_where_it_arrives() {
    let mut cores = one(ServerKind::Periodic);
    cores[0].sleep(MOVES);
    assert_eq!(cores[0].decide(Instant(0)).idles, Some(MOVES));
    let with = leave(&mut cores[0], MOVES, 1);
    assert_eq!(cores[0].decide(Instant(1)).owner(), None);
    arrive(&mut cores[1], MOVES, with, 1);
    let decision = cores[1].decide(Instant(1));
    assert_eq!((decision.idles, decision.until), (Some(MOVES), Some(Instant(3))));
    assert_eq!(cores[1].state(MOVES), Some(State::Sleeping));
}

#[test]
fn an_account_does_not_leave_from_a_section() {
    let mut cores = one(ServerKind::Deferrable);
    assert_eq!(run(&mut cores[0], 0), Some(0));
    cores[0].enter_gcs(MOVES, Instant(1));
    cores[0].set_away(MOVES);
    assert_eq!(take(&mut cores[0], MOVES, 1), None);
    assert_eq!(take(&mut cores[0], VcpuId(1), 1), None, "it is not known");
}

#[test]
fn what_keeps_the_core_before_its_turn_has_no_more_than_its_budget() {
    let account = Account::open(server(ServerKind::Deferrable, 3, 10, 0), Instant(0)).unwrap();
    let mut cores = cores(1, &[Some(account), None]);
    cores[0].sleep(VcpuId(1));
    assert_eq!(run(&mut cores[0], 0), Some(0));
    cores[0].wake(VcpuId(1));
    assert_eq!(run(&mut cores[0], 1), Some(1));
    assert_eq!(cores[0].let_finish(MOVES, Instant(1)), Some(Instant(3)));
    assert_eq!(run(&mut cores[0], 3), Some(1));
    assert_eq!(cores[0].let_finish(VcpuId(1), Instant(3)), None);
}

#[test]
fn what_keeps_the_core_is_told_of_the_replenishment_of_what_would_preempt_it() {
    let account = Account::open(server(ServerKind::Deferrable, 3, 10, 0), Instant(0)).unwrap();
    let mut cores = cores(1, &[None, None, Some(account)]);
    let (keeps, chosen) = (MOVES, VcpuId(1));
    assert_eq!(run(&mut cores[0], 0), Some(2));
    assert_eq!(cores[0].decide(Instant(3)).run, Some(chosen), "the one with a budget has spent it");
    assert_eq!(cores[0].let_finish(keeps, Instant(3)), Some(Instant(10)));
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Wake,
    Sleep,
    Enter,
    Leave,
    /// To a core, which it reaches so many ticks later.
    Move {
        to: usize,
        after: u64,
    },
    /// The core decides though nothing asks it to.
    Ask,
}

fn event() -> impl Strategy<Value = Event> {
    let moves = (0usize..3, 0u64..15).prop_map(|(to, after)| Event::Move { to, after });
    prop_oneof![
        3 => Just(Event::Wake),
        2 => Just(Event::Sleep),
        1 => Just(Event::Enter),
        2 => Just(Event::Leave),
        6 => moves,
        1 => Just(Event::Ask),
    ]
}

/// A vCPU, its account as the oracle keeps it, and where it is.
struct Mover {
    kept: Kept,
    core: usize,
    /// When it is there, and with what, while it is under way.
    arrives: Option<(u64, Option<Account>)>,
    /// The period that it ran in last, and for how long.
    used: (u64, u64),
}

/// A core, what it decided last, and what that was before a section.
struct Core {
    scheduler: Scheduler,
    said: Decision,
    before: Option<Instant>,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    /// Each core, asked only when it wants to be asked or something happens, says at every tick
    /// what an oracle says that keeps all accounts at every tick, wherever their vCPUs are; and no
    /// vCPU has more than budget and overrun in any period, on all cores together.
    #[test]
    fn an_account_is_exact_wherever_its_vcpu_goes(
        servers in prop::collection::vec((any_server(), 1u64..6), 1..5),
        events in prop::collection::vec((0u64..80, 0usize..4, event()), 0..80),
    ) {
        let open = |&(server, gcs_limit): &(Option<_>, u64)| {
            let account = server.map(|server| Account::open(server, Instant(0)).unwrap());
            account.map(|account| account.raised_for_at_most(Duration(gcs_limit)))
        };
        let accounts: Vec<_> = servers.iter().map(open).collect();
        let now = Decision { run: None, idles: None, until: Some(Instant(0)) };
        let mut cores: Vec<_> = cores(3, &accounts).into_iter()
            .map(|scheduler| Core { scheduler, said: now, before: None })
            .collect();
        let mut movers: Vec<_> = servers.iter()
            .map(|&(server, gcs_limit)| Mover {
                kept: Kept::new(server, gcs_limit),
                core: 0,
                arrives: None,
                used: (0, 0),
            })
            .collect();
        for now in 0..100u64 {
            movers.iter_mut().for_each(|mover| mover.kept.begin_tick(now));
            let mut ask = [false; 3];
            for (core, ask) in cores.iter_mut().zip(&mut ask) {
                if core.said.until.is_some_and(|until| until.0 <= now) {
                    match core.scheduler.renew(Instant(now)) {
                        Some((_, until)) => core.said.until = Some(until),
                        None => *ask = true,
                    }
                }
            }
            for &(_, index, event) in events.iter().filter(|(when, ..)| *when == now) {
                let Some(mover) = movers.get_mut(index) else { continue };
                apply(mover, VcpuId(index as u8), event, &mut cores, &mut ask, now);
            }
            for (index, mover) in movers.iter_mut().enumerate() {
                let Some((_, account)) = mover.arrives.take_if(|(at, _)| *at <= now) else {
                    continue;
                };
                let with = (mover.kept.work, account);
                arrive(&mut cores[mover.core].scheduler, VcpuId(index as u8), with, now);
                ask[mover.core] = true;
            }
            for (index, core) in cores.iter_mut().enumerate() {
                if ask[index] {
                    core.said = core.scheduler.decide(Instant(now));
                }
                core.scheduler.check();
                let here = |of: &Mover| of.core == index && of.arrives.is_none();
                for (id, mover) in movers.iter().enumerate() {
                    let has = core.scheduler.account(VcpuId(id as u8)).is_some();
                    prop_assert_eq!(has, here(mover) && mover.kept.server.is_some());
                }
                let expected = (0..movers.len())
                    .filter(|&id| here(&movers[id]) && movers[id].kept.is_able())
                    .max_by_key(|&id| (movers[id].kept.raised, id));
                let owner = core.said.owner().map(|id| usize::from(id.0));
                prop_assert_eq!(owner, expected, "core {} at {}", index, now);
                let Some(mover) = expected.and_then(|id| movers.get_mut(id)) else { continue };
                prop_assert_eq!(core.said.idles.is_some(), !mover.kept.work);
                mover.kept.run_for_one_tick();
                if let Some(server) = mover.kept.server {
                    let (period, (latest, ticks)) = (now / server.period.0, mover.used);
                    mover.used = (period, if latest == period { ticks + 1 } else { 1 });
                    prop_assert!(mover.used.1 <= server.budget.0 + server.overrun.0);
                }
            }
        }
    }
}

/// Lets something happen to a vCPU, if it can.
fn apply(
    mover: &mut Mover,
    id: VcpuId,
    event: Event,
    cores: &mut [Core],
    ask: &mut [bool; 3],
    now: u64,
) {
    let (kept, at, instant) = (&mut mover.kept, mover.core, Instant(now));
    let Core { scheduler, said, before } = &mut cores[at];
    let runs = kept.server.is_some() && said.run == Some(id) && !ask[at];
    match event {
        // Where it arrives, what has come for it meanwhile is found.
        Event::Wake if mover.arrives.is_some() => kept.work = true,
        _ if mover.arrives.is_some() => {}
        Event::Wake => {
            kept.work = true;
            ask[at] |= scheduler.wake(id) == Woken::Decide;
        }
        // A vCPU in a gcs has work, and stays.
        Event::Sleep if kept.held == 0 => {
            kept.work = false;
            scheduler.sleep(id);
            ask[at] = true;
        }
        Event::Move { to, after } if kept.held == 0 && (to != at || after > 0) => {
            let (_, account) = leave(scheduler, id, now);
            ask[at] = true;
            (mover.core, mover.arrives) = (to, Some((now + after, account)));
        }
        Event::Enter if kept.work => {
            kept.enter();
            match runs.then(|| scheduler.open_gcs(instant)).flatten() {
                Some(end) => {
                    *before = said.until;
                    ask[at] |= end.0 <= now;
                    said.until = said.until.into_iter().chain([end]).min();
                }
                None => ask[at] |= scheduler.enter_gcs(id, instant),
            }
        }
        Event::Leave if kept.held > 0 => {
            kept.leave();
            if runs && scheduler.close_gcs(instant) {
                said.until = *before;
            } else {
                ask[at] |= scheduler.exit_gcs(id, instant);
            }
        }
        Event::Ask => ask[at] = true,
        _ => {}
    }
    mover.kept.settle();
}
