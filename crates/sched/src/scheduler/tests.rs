//! What the scheduler promises, first as stories, then against an oracle that
//! is slow and obvious.

extern crate std;
use super::*;
use proptest::prelude::*;
use std::vec::Vec;

const LINUX: VcpuId = VcpuId(0);
const OTHER: VcpuId = VcpuId(1);
const RTOS: VcpuId = VcpuId(2);

fn params(priority: u16, quantum: u64) -> Params {
    Params { priority: Priority(priority), quantum: Duration(quantum) }
}

fn core(vcpus: &[(VcpuId, u16, u64)]) -> Scheduler {
    let mut core = Scheduler::new();
    for &(id, priority, quantum) in vcpus {
        core.arrive(id, params(priority, quantum), true).unwrap();
    }
    core
}

fn run(core: &mut Scheduler, now: u64) -> Option<u8> {
    core.decide(Instant(now)).run.map(|id| id.0)
}

#[test]
fn the_rtos_preempts_linux_and_gives_the_core_back() {
    let mut core = core(&[(LINUX, 1, 100), (RTOS, 10, 100)]);
    core.sleep(RTOS);
    assert_eq!(core.decide(Instant(0)), Decision { run: Some(LINUX), until: None });
    core.wake(RTOS);
    assert_eq!(core.decide(Instant(7)), Decision { run: Some(RTOS), until: None });
    assert_eq!(core.state(LINUX), Some(State::Suspended));
    core.sleep(RTOS);
    assert_eq!(run(&mut core, 9), Some(LINUX.0));
    assert_eq!(core.state(RTOS), Some(State::Sleeping));
}

#[test]
fn a_core_without_work_idles() {
    let mut core = core(&[(LINUX, 1, 100)]);
    core.sleep(LINUX);
    assert_eq!(core.decide(Instant(0)), Decision { run: None, until: None });
    assert!(core.matters(LINUX), "anything matters to an idle core");
}

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
fn departing_takes_the_state_along() {
    let mut core = core(&[(LINUX, 1, 100), (OTHER, 1, 50)]);
    run(&mut core, 0);
    assert_eq!(core.depart(LINUX), Some((params(1, 100), true)));
    assert_eq!(core.depart(LINUX), None);
    assert_eq!(core.state(LINUX), None);
    assert_eq!(run(&mut core, 1), Some(1));
}

#[test]
fn who_comes_back_from_another_core_has_its_turn_and_no_new_quantum() {
    let mut core = core(&[(LINUX, 1, 100), (OTHER, 1, 100)]);
    run(&mut core, 0);
    core.charge(Instant(60));
    assert!(core.leave(LINUX));
    assert_eq!(run(&mut core, 60), Some(OTHER.0));
    core.come_back(LINUX, true);
    assert_eq!(core.decide(Instant(80)).until, Some(Instant(120)), "40 ticks are left");
    assert_eq!(run(&mut core, 120), Some(OTHER.0));
    core.sleep(LINUX);
    assert!(!core.leave(LINUX), "asleep");
}

#[test]
fn a_turn_does_not_wait_for_ever_for_who_is_away() {
    let mut core = core(&[(LINUX, 1, 100), (OTHER, 1, 100), (RTOS, 1, 100)]);
    run(&mut core, 0);
    core.leave(LINUX);
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
        core.leave(LINUX);
        core.leave(OTHER);
        core.decide(Instant(now));
    }
    assert!(ran[0].abs_diff(ran[1]) <= 200, "{ran:?}");
}

#[test]
fn refusals_say_why() {
    let mut core = core(&[(LINUX, 1, 100)]);
    assert_eq!(core.arrive(LINUX, params(1, 1), true), Err(Refusal::AlreadyHere));
    assert_eq!(core.arrive(VcpuId(64), params(1, 1), true), Err(Refusal::UnknownVcpu));
    assert_eq!(core.arrive(RTOS, params(1, 0), true), Err(Refusal::ZeroQuantum));
}

/// The oracle: a list for each vCPU of what it is, and the order of turns among
/// equals as an explicit queue.
#[derive(Default)]
struct Oracle {
    vcpus: Vec<OracleVcpu>,
    running: Option<u8>,
    charged: u64,
}

struct OracleVcpu {
    id: u8,
    params: Params,
    ready: bool,
    away: bool,
    left: u64,
}

impl Oracle {
    /// Equals stand in the vector in cyclic order; `head` of a priority is its
    /// first in the vector. Rotating the equals is moving the head to the end.
    ///
    /// Answers whether it was the first.
    fn rotate(&mut self, id: u8) -> bool {
        let at = self.vcpus.iter().position(|v| v.id == id).unwrap();
        let priority = self.vcpus[at].params.priority;
        let head = self.vcpus.iter().position(|v| v.params.priority == priority).unwrap();
        if head == at {
            let vcpu = self.vcpus.remove(at);
            self.vcpus.push(vcpu);
        }
        head == at
    }

    fn head_of(&self, priority: Priority) -> &OracleVcpu {
        self.vcpus.iter().find(|v| v.params.priority == priority).unwrap()
    }

    fn charge(&mut self, now: u64) {
        let taken = now - self.charged;
        self.charged = now;
        if let Some(id) = self.running {
            let expired = self.vcpus.iter_mut().find(|v| v.id == id && v.ready).is_some_and(|v| {
                v.left = v.left.saturating_sub(taken);
                v.left == 0
            });
            if expired {
                let vcpu = self.vcpus.iter_mut().find(|v| v.id == id).unwrap();
                vcpu.left = vcpu.params.quantum.0;
                let priority = vcpu.params.priority;
                // The turn of one that is away has waited for so long.
                if self.head_of(priority).away {
                    while self.head_of(priority).id != id {
                        let head = self.head_of(priority).id;
                        self.rotate(head);
                    }
                }
                self.rotate(id);
            }
        }
    }

    fn decide(&mut self, now: u64) -> (Option<u8>, Option<u64>) {
        self.charge(now);
        let Some(top) = self.vcpus.iter().filter(|v| v.ready).map(|v| v.params.priority).max()
        else {
            self.running = None;
            return (None, None);
        };
        // Skip sleepers at the head: the turn moves past them. It waits for one that
        // is away; others run meanwhile.
        if !self.head_of(top).away {
            while !self.head_of(top).ready {
                let head = self.head_of(top).id;
                self.rotate(head);
            }
        }
        let mut ready = self.vcpus.iter().filter(|v| v.ready && v.params.priority == top);
        let next = ready.next().unwrap();
        let alone = ready.next().is_none();
        let result = (Some(next.id), (!alone).then(|| now + next.left));
        self.running = result.0;
        result
    }
}

#[derive(Clone, Debug)]
enum Event {
    Arrive { id: u8, priority: u16, quantum: u64, ready: bool },
    Depart(u8),
    Wake(u8),
    Sleep(u8),
    Leave { id: u8, charged: bool },
    ComeBack { id: u8, ready: bool },
    Pass(u64),
}

fn event() -> impl Strategy<Value = Event> {
    let id = 0u8..6;
    prop_oneof![
        (id.clone(), 0u16..3, 1u64..50, any::<bool>()).prop_map(
            |(id, priority, quantum, ready)| Event::Arrive { id, priority, quantum, ready }
        ),
        id.clone().prop_map(Event::Depart),
        id.clone().prop_map(Event::Wake),
        id.clone().prop_map(Event::Sleep),
        (id.clone(), any::<bool>()).prop_map(|(id, charged)| Event::Leave { id, charged }),
        (id, any::<bool>()).prop_map(|(id, ready)| Event::ComeBack { id, ready }),
        (0u64..80).prop_map(Event::Pass),
    ]
}

/// Linux's vCPU 0 spins until vCPU 1, suspended on the same core, has answered
/// its inter-processor interrupt: vCPU 1 does so before its turn.
#[test]
fn who_is_waited_for_runs_at_once_out_of_its_own_quantum() {
    let mut core = Scheduler::new();
    for id in 0..3 {
        core.arrive(VcpuId(id), params(1, 100), true).unwrap();
    }
    let run = |core: &mut Scheduler, now| {
        let decision = core.decide(Instant(now));
        (decision.run.map(|id| id.0), decision.until.map(|at| at.0))
    };
    assert_eq!(run(&mut core, 0), (Some(0), Some(100)));
    assert!(core.hurry(VcpuId(1)));
    assert_eq!(run(&mut core, 30), (Some(1), Some(130)), "its own quantum");
    assert!(core.hurry(VcpuId(0)), "it answers, and is waited for in its turn");
    assert_eq!(run(&mut core, 40), (Some(0), Some(110)), "what was left of the turn");
    assert!(core.hurry(VcpuId(1)));
    assert_eq!(run(&mut core, 50), (Some(1), Some(140)));
    assert_eq!(run(&mut core, 140), (Some(0), Some(200)));
    assert!(!core.hurry(VcpuId(1)), "it has nothing left in this round");
    assert_eq!(run(&mut core, 200), (Some(2), Some(300)), "vCPU 1 had its turn");
    assert!(core.hurry(VcpuId(1)), "a new round for it");
    core.sleep(VcpuId(1));
    assert!(!core.hurry(VcpuId(1)), "a sleeping vCPU cannot run");
    assert!(!core.hurry(VcpuId(2)), "it runs already");
    assert_eq!(run(&mut core, 300), (Some(0), Some(400)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Every decision equals the oracle's, whatever happened before.
    #[test]
    fn decides_as_the_oracle_does(events in prop::collection::vec(event(), 1..120)) {
        let (mut core, mut oracle, mut now) = (Scheduler::new(), Oracle::default(), 0);
        for event in events {
            match event {
                Event::Arrive { id, priority, quantum, ready } => {
                    let params = params(priority, quantum);
                    if core.arrive(VcpuId(id), params, ready).is_ok() {
                        // Behind the last arrival in the cycle, which need not be
                        // the last in the line as it stands now.
                        oracle.vcpus.push(OracleVcpu { id, params, ready, away: false, left: quantum });
                        reorder(&mut oracle, &core);
                    }
                }
                Event::Depart(id) => {
                    if core.depart(VcpuId(id)).is_some() {
                        oracle.vcpus.retain(|v| v.id != id);
                        if oracle.running == Some(id) { oracle.running = None; }
                    }
                }
                Event::Wake(id) => {
                    core.wake(VcpuId(id));
                    oracle.vcpus.iter_mut().filter(|v| v.id == id).for_each(|v| v.ready = true);
                }
                Event::Sleep(id) => {
                    core.sleep(VcpuId(id));
                    if oracle.vcpus.iter().any(|v| v.id == id) {
                        let had_turn = oracle.rotate(id);
                        let v = oracle.vcpus.iter_mut().find(|v| v.id == id).unwrap();
                        v.ready = false;
                        // What was used before its turn stays used.
                        if had_turn { v.left = v.params.quantum.0; }
                    }
                }
                Event::Leave { id, charged } => {
                    if charged {
                        core.charge(Instant(now));
                        oracle.charge(now);
                    }
                    let vcpu = oracle.vcpus.iter_mut().find(|v| v.id == id);
                    let was_ready = vcpu.is_some_and(|v| {
                        v.away |= v.ready;
                        core::mem::take(&mut v.ready)
                    });
                    prop_assert_eq!(core.leave(VcpuId(id)), was_ready);
                }
                Event::ComeBack { id, ready } => {
                    core.come_back(VcpuId(id), ready);
                    if let Some(v) = oracle.vcpus.iter_mut().find(|v| v.id == id) {
                        v.away = false;
                        v.ready |= ready;
                    }
                }
                Event::Pass(ticks) => now += ticks,
            }
            let decision = core.decide(Instant(now));
            let (run, until) = oracle.decide(now);
            let sleepers: Vec<_> = core
                .vcpus()
                .filter(|&id| core.state(id) == Some(State::Sleeping) && core.matters(id))
                .collect();
            prop_assert_eq!(core.sleepers_that_matter().collect::<Vec<_>>(), sleepers);
            prop_assert_eq!(decision.run.map(|id| id.0), run);
            prop_assert_eq!(decision.until.map(|at| at.0), until);
        }
    }

    /// No ready vCPU waits longer for its turn than its equals' quanta, or twice
    /// that if they are hurried.
    #[test]
    fn a_turn_comes_within_the_equals_quanta(
        quanta in prop::collection::vec(1u64..40, 2..6),
        sleeps in prop::collection::vec((0u8..6, 1u64..30, 0u8..6), 0..40),
    ) {
        let mut core = Scheduler::new();
        for (id, &quantum) in quanta.iter().enumerate() {
            core.arrive(VcpuId(id as u8), params(1, quantum), true).unwrap();
        }
        let hurries = sleeps.iter().any(|&(_, _, hurried)| hurried > 0);
        let bound: u64 = quanta.iter().sum::<u64>() * if hurries { 2 } else { 1 };
        let mut waiting = std::vec![0u64; quanta.len()];
        let mut now = 0;
        for (sleeper, pause, hurried) in sleeps {
            // One vCPU other than the first blocks and wakes again at once; the
            // first never sleeps, so its wait is bounded.
            if sleeper > 0 { core.sleep(VcpuId(sleeper)); core.wake(VcpuId(sleeper)); }
            // Others are hurried, in its turn too.
            if hurried > 0 { core.hurry(VcpuId(hurried)); }
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

/// Puts the oracle's newcomer where the scheduler has it: directly behind the
/// last arrival among its equals, in cyclic order.
fn reorder(oracle: &mut Oracle, core: &Scheduler) {
    let newcomer = oracle.vcpus.last().unwrap().id;
    let priority = oracle.vcpus.last().unwrap().params.priority;
    let cyclic: Vec<u8> = core
        .vcpus()
        .map(|id| id.0)
        .filter(|&id| oracle.vcpus.iter().any(|v| v.id == id && v.params.priority == priority))
        .collect();
    let Some(head) = oracle
        .vcpus
        .iter()
        .find(|v| v.params.priority == priority && v.id != newcomer)
        .map(|v| v.id)
    else {
        return;
    };
    let start = cyclic.iter().position(|&id| id == head).unwrap();
    let rank = |id: u8| {
        let at = cyclic.iter().position(|&c| c == id);
        at.map(|at| (at + cyclic.len() - start) % cyclic.len())
    };
    let (mut equals, mut others): (Vec<_>, Vec<_>) =
        oracle.vcpus.drain(..).partition(|v| v.params.priority == priority);
    equals.sort_by_key(|v| rank(v.id));
    others.append(&mut equals);
    oracle.vcpus = others;
}
