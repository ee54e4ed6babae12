//! Every equation by hand, on one system small enough for paper. Times are
//! nanoseconds without a zero too many.

use super::*;
use crate::model::{Ns, Section, ServerKind, Service, System};
use crate::overheads::Overheads;

/// v1 and v3 share a pCPU, v2 has one of its own; R is used on all three, Q on
/// v1 and v3, L only on v2.
const SYSTEM: &str = r#"{"server": "deferrable", "overrun": true,
 "vcpus": [{"id": "v1", "pcpu": 0, "budget": 4, "period": 20, "priority": 1},
           {"id": "v2", "pcpu": 1, "budget": 6, "period": 20, "priority": 2},
           {"id": "v3", "pcpu": 0, "budget": 5, "period": 15, "priority": 3}],
 "tasks": [{"id": "a", "vcpu": "v1", "period": 200, "priority": 1, "segments":
              [{"wcet": 2}, {"wcet": 1, "gcs": "R"}, {"wcet": 2}]},
           {"id": "b", "vcpu": "v1", "period": 300, "priority": 2, "segments":
              [{"wcet": 1}, {"wcet": 2, "gcs": "R"}, {"wcet": 1}, {"wcet": 3, "gcs": "Q"}, {"wcet": 1}]},
           {"id": "c", "vcpu": "v2", "period": 100, "priority": 1, "segments":
              [{"wcet": 1}, {"wcet": 2, "gcs": "R"}, {"wcet": 1}, {"wcet": 4, "lcs": "L"}]},
           {"id": "d", "vcpu": "v2", "period": 150, "priority": 2, "segments":
              [{"wcet": 3}, {"wcet": 1, "lcs": "L"}]},
           {"id": "g", "vcpu": "v2", "period": 90, "priority": 3, "segments":
              [{"wcet": 2}, {"wcet": 1, "lcs": "L"}]},
           {"id": "e", "vcpu": "v3", "period": 100, "priority": 1, "segments":
              [{"wcet": 1}, {"wcet": 1, "gcs": "Q"}, {"wcet": 1}]},
           {"id": "f", "vcpu": "v3", "period": 120, "priority": 2, "segments":
              [{"wcet": 1}, {"wcet": 2, "gcs": "R"}, {"wcet": 1}]}]}"#;
const V1: usize = 0;
const V2: usize = 1;
const V3: usize = 2;
const A: usize = 0;
const B: usize = 1;
const C: usize = 2;
const D: usize = 3;
const G: usize = 4;
const E: usize = 5;
const F: usize = 6;
/// The gcs's: a's and b's on R, b's on Q, c's on R, e's on Q, f's on R.
const A_R: usize = 0;
const B_R: usize = 1;
const B_Q: usize = 2;
const C_R: usize = 3;
const E_Q: usize = 4;
const F_R: usize = 5;

fn workload(server: ServerKind, overrun: bool, bounds: Bounds) -> Workload {
    let mut workload = Workload::new(&System::from_json(SYSTEM).unwrap(), bounds).unwrap();
    workload.set_server(server, overrun);
    workload
}

fn published() -> Workload {
    workload(ServerKind::Deferrable, true, Bounds::Published)
}

fn corrected() -> Workload {
    workload(ServerKind::Deferrable, true, Bounds::Corrected)
}

#[test]
fn equation_1_takes_the_longest_gcs_of_each_task() {
    let ght = |vcpu| published().global_resource_holding_time(vcpu);
    assert_eq!([V1, V2, V3].map(ght), [1 + 3, 2, 1 + 2]);
}

#[test]
fn equation_2_adds_up_lower_vcpus_of_the_same_pcpu() {
    let blocking = |vcpu| published().blocking_periodic(vcpu);
    assert_eq!([V1, V2, V3].map(blocking), [Ok(0), Ok(0), Ok(4)]);
}

#[test]
fn equation_3_counts_every_gcs_and_one_job_more() {
    let sum = |time| published().accumulated_holding_time(V1, time).unwrap();
    assert_eq!(sum(0), 1 + 5);
    assert_eq!(sum(15), 2 + 2 * 5);
    assert_eq!(sum(200), 2 + 2 * 5);
    assert_eq!(sum(201), 3 + 2 * 5);
}

#[test]
fn equation_4_is_equation_3_over_lower_vcpus() {
    assert_eq!(published().blocking_deferrable(V3, 15), Ok(12));
    assert_eq!(published().blocking_deferrable(V1, 15), Ok(0));
}

#[test]
fn equation_5_under_each_server() {
    let responses = |server, overrun| {
        let workload = workload(server, overrun, Bounds::Published);
        [V1, V2, V3].map(|vcpu| workload.vcpu_response(vcpu).unwrap())
    };
    // v3: 5 + 3 + 4. v1: 4 + 4 + 8 = 16, then two of v3's periods: 24 > 20.
    assert_eq!(responses(ServerKind::Periodic, true), [None, Some(6 + 2), Some(12)]);
    // v3: 5 + 4. v1: 4 + 5.
    assert_eq!(responses(ServerKind::Periodic, false), [Some(9), Some(6), Some(9)]);
    // v3: 5 + 12 > 15. v1: 4 + 5 = 9, ceil((9 + 10) / 15) = 2 of v3: 14.
    assert_eq!(responses(ServerKind::Deferrable, false), [Some(14), Some(6), None]);
}

#[test]
fn equation_6_without_anything_shared() {
    let text = r#"{"server": "deferrable", "overrun": false,
      "vcpus": [{"id": "v", "pcpu": 0, "budget": 3, "period": 10, "priority": 1}],
      "tasks": [{"id": "low", "vcpu": "v", "period": 100, "priority": 1, "segments": [{"wcet": 4}]},
                {"id": "high", "vcpu": "v", "period": 40, "priority": 2, "jitter": 5, "segments": [{"wcet": 1}]}]}"#;
    let verdict = analyze(&System::from_json(text).unwrap(), Bounds::Published).unwrap();
    let [low, high] = &verdict.tasks[..] else { panic!() };
    // high: 1 + 7 = 8, ceil((8 + 3) / 10) = 2 gaps: 15, and comes 5 late.
    assert_eq!((high.response_ns, high.supply_gaps_ns), (Some(15 + 5), 14));
    // low: 4 + 1 + 7 = 12; 4 + ceil((12 + 7 + 5 + 14) / 40) + 14 = 19;
    // 4 + 2 + 21 = 27; 4 + 2 + 21 = 27.
    assert_eq!((low.response_ns, low.supply_gaps_ns), (Some(27), 21));
    assert_eq!(low.preemption, [Share { of: 1, time_ns: 2 }]);
}

#[test]
fn equation_6_of_every_task() {
    let verdict = analyze(&System::from_json(SYSTEM).unwrap(), Bounds::Published).unwrap();
    let responses: Vec<_> = verdict.tasks.iter().map(|task| task.response_ns).collect();
    // g: 3 + 2, two gaps of 14. d: 4 + 6, g twice, four gaps. c: 103 after
    // 19, 54, 71, 89. f: 4 + 2 + 7, four gaps of 10. e: 3 + 6, f once, four gaps.
    // b: 8 + 3 + 14, eight gaps of 16. a: 5 + 8, b once, seven gaps.
    let expected = [Some(133), Some(153), None, Some(72), Some(33), Some(53), Some(53)];
    assert_eq!(responses, expected);
    assert!(!verdict.schedulable());
    for task in verdict.tasks.iter().filter(|task| task.schedulable()) {
        let parts = task.preemption.iter().map(|share| share.time_ns).sum::<Ns>()
            + task.execution_ns
            + task.local_blocking_ns
            + task.remote_blocking_ns.unwrap()
            + task.supply_gaps_ns;
        assert_eq!(Some(parts), task.response_ns, "a bound is the sum of its parts");
    }
}

#[test]
fn equation_7_compares_ceilings() {
    let blocking = |workload: Workload| [C, D, G].map(|task| workload.lcs_blocking(task));
    // L's ceiling is g's priority.
    assert_eq!(blocking(published()), [0, 4, 0]);
    assert_eq!(blocking(corrected()), [0, 4, 4]);
}

#[test]
fn equation_8_takes_one_gcs_of_each_task_below() {
    let blocking = |task| published().gcs_blocking(task);
    assert_eq!([A, B, C, D, G, E, F].map(blocking), [0, 1, 0, 2, 2, 0, 1]);
}

#[test]
fn equation_9_multiplies_by_segments() {
    let blocking = |task| published().local_blocking(task).unwrap();
    assert_eq!([A, B, C, D, G, E, F].map(blocking), [0, 3, 0, 4 + 2, 2, 0, 2]);
    assert_eq!(corrected().local_blocking(G), Ok(4 + 2));
}

#[test]
fn equation_10_adds_up_the_waits() {
    let blocking = |task| published().remote_blocking(task, &[None; 7]).unwrap();
    assert_eq!(blocking(B), Some(8 + 6));
    assert_eq!(blocking(D), Some(0));
}

#[test]
fn equation_11_waits_for_one_below_and_all_above() {
    let wait = |section| published().remote_wait(section, &[None; 7]).unwrap();
    // a: c and f, once, then twice, 2 each.
    assert_eq!(wait(A_R), Some(8));
    // b on Q: e, once, then twice, 3 each.
    assert_eq!(wait(B_Q), Some(6));
    // c: the longer of a's 7 and b's 5, and f twice.
    assert_eq!(wait(C_R), Some(7 + 4));
    // f, e: none above.
    assert_eq!((wait(F_R), wait(E_Q)), (Some(7), Some(6)));
    let periodic = workload(ServerKind::Periodic, true, Bounds::Published);
    assert_eq!(periodic.remote_wait(C_R, &[None; 7]), Ok(Some(23 + 2 * 12)));
}

#[test]
fn equation_12_loads_one_gcs_of_each_task_above() {
    let load = |section| published().load(section);
    assert_eq!([A_R, B_R, B_Q, C_R, E_Q, F_R].map(load), [1 + 3, 2, 3, 2, 1 + 2, 2]);
}

#[test]
fn equation_13_takes_the_gcs_of_vcpus_above() {
    let preemption = |section| published().vcpu_preemption(section);
    assert_eq!([A_R, B_R, B_Q, C_R, E_Q, F_R].map(preemption), [3, 3, 3, 0, 0, 0]);
}

#[test]
fn equation_14_waits_for_a_period() {
    let response = |section| published().gcs_response_periodic_overrun(section).unwrap();
    assert_eq!([A_R, B_R, B_Q, C_R, E_Q, F_R].map(response), [23, 21, 22, 16, 13, 12]);
}

#[test]
fn equation_15_runs_at_once() {
    let response = |section| published().gcs_response_deferrable_overrun(section).unwrap();
    assert_eq!([A_R, B_R, B_Q, C_R, E_Q, F_R].map(response), [7, 5, 6, 2, 3, 2]);
}

#[test]
fn equation_16_spans_periods() {
    let mut workload = published();
    assert_eq!(workload.gcs_response_no_overrun(A_R), Ok(16 + 4 + 3));
    workload.set_budget(V1, 3);
    assert_eq!(workload.gcs_response_no_overrun(A_R), Ok(2 * 17 + 4 + 3));
}

#[test]
fn each_server_has_its_equation() {
    let response = |server, overrun| workload(server, overrun, Bounds::Published).gcs_response(A_R);
    assert_eq!(response(ServerKind::Periodic, true), Ok(23));
    assert_eq!(response(ServerKind::Deferrable, true), Ok(7));
    assert_eq!(response(ServerKind::Periodic, false), Ok(23));
    assert_eq!(response(ServerKind::Deferrable, false), Ok(23));
}

#[test]
fn what_overflows_is_told_with_a_name() {
    let huge = SYSTEM.replace("\"period\": 20,", &format!("\"period\": {},", u64::MAX));
    let huge = huge.replace("\"budget\": 4,", &format!("\"budget\": {},", u64::MAX - 1));
    let error = analyze(&System::from_json(&huge).unwrap(), Bounds::Published).unwrap_err();
    assert_eq!(error.cause, Uncomputable::Overflow);
    assert!(error.to_string().contains("vCPU `v1`"), "{error}");
}

#[test]
fn below_what_has_no_bound_nothing_has_one() {
    let late = SYSTEM.replace("\"period\": 90,", "\"period\": 32,");
    let verdict = analyze(&System::from_json(&late).unwrap(), Bounds::Published).unwrap();
    let because = |task: usize| verdict.tasks[task].unbounded_because_of;
    assert_eq!([C, D, G].map(because), [Some(G), Some(G), None]);
    assert_eq!([C, D, G].map(|task| verdict.tasks[task].response_ns), [None; 3]);
}

/// One vCPU, one task with a gcs of 5. A switch takes 2, all else 1: a job makes EL2 take 16, a
/// period 12. In any window, that of one instant too, two of each are active.
fn with_el2(service: Service) -> Workload {
    let text = r#"{"server": "deferrable", "overrun": false,
      "vcpus": [{"id": "v", "pcpu": 0, "budget": 40, "period": 200, "priority": 1}],
      "tasks": [{"id": "t", "vcpu": "v", "period": 1000, "priority": 1,
                 "segments": [{"wcet": 10}, {"wcet": 5, "gcs": "R"}]}]}"#;
    let overheads = Overheads {
        release_ns: 1,
        switch_on_wake_ns: 2,
        switch_on_sleep_ns: 1,
        timer_ns: 1,
        doorbell_ns: 1,
        gcs_call_ns: 1,
        grant_ns: 1,
        ..Overheads::NONE
    };
    let mut system = System::from_json(text).unwrap();
    system.set_service(0, service);
    Workload::with_overheads(&system, Bounds::Published, overheads).unwrap()
}

#[test]
fn el2_takes_what_jobs_and_periods_cause() {
    let workload = with_el2(Service { kind: ServerKind::Deferrable, overrun: false });
    // EL2 is busy for 2 * 16 + 2 * 12 = 56 at a stretch: windows are longer by that.
    assert_eq!([0, 144, 145, 344, 345].map(|t| workload.el2_time(0, t)), [56, 56, 68, 68, 80]);
    // 40 and 56; the window of 96 + 56 is within one period.
    assert_eq!(workload.vcpu_response(0), Ok(Some(96)));
    // 15, 104 of EL2, and 4 gaps of 160.
    assert_eq!(workload.task_response(0, &[None]), Ok(Some(759)));
    // 5 and 92 of EL2, for which 3 budgets are needed.
    assert_eq!(workload.gcs_response(0), Ok(3 * 160 + 97));
    assert_eq!(workload.overrun_time(0), 0);
}

#[test]
fn an_overrun_contains_what_el2_takes() {
    let workload = with_el2(Service { kind: ServerKind::Deferrable, overrun: true });
    assert_eq!(workload.gcs_response(0), Ok(5 + 56));
    assert_eq!(workload.overrun_time(0), 5 + 56);
    let workload = with_el2(Service { kind: ServerKind::Periodic, overrun: true });
    assert_eq!(workload.gcs_response(0), Ok(160 + 5 + 68), "EL2 is busy in the gap, too");
    assert_eq!(workload.overrun_time(0), 5 + 56);
}

#[test]
fn a_core_that_el2_takes_whole_has_no_bounds() {
    let system = System::from_json(SYSTEM).unwrap();
    let overheads = Overheads { duty_ns: 10, duty_every_ns: 10, ..Overheads::NONE };
    let error = analyze_with(&system, Bounds::Published, overheads).unwrap_err();
    assert_eq!(
        error.cause.to_string(),
        "EL2 alone takes all of pCPU 0: of 300 ns its visits take 310 ns, and 310 ns of that for other \
         duties; longer periods leave it less to do"
    );
}

/// `v` displaces a vCPU, for which EL2 visits pCPU 1 twice: 6 each time. What keeps `v` from
/// running may be on its pCPU, too. On pCPU 1 there is a vCPU without tasks.
fn with_traffic(beside: &str) -> Workload {
    let text = format!(
        r#"{{"server": "deferrable", "overrun": false,
      "vcpus": [{{"id": "v", "pcpu": 0, "budget": 40, "period": 200, "priority": 5}}{beside},
                {{"id": "w", "pcpu": 1, "budget": 40, "period": 200, "priority": 1}}],
      "tasks": [{{"id": "t", "vcpu": "v", "period": 1000, "priority": 1,
                 "segments": [{{"wcet": 10}}, {{"wcet": 5, "gcs": "R"}}]}}],
      "traffic": [{{"by": ["v"], "visits": [{{"pcpu": 1, "doorbells": 2}}, {{"pcpu": 7, "doorbells": 9}}]}}]}}"#
    );
    let overheads = Overheads {
        switch_on_wake_ns: 2,
        switch_on_sleep_ns: 1,
        timer_ns: 1,
        doorbell_ns: 1,
        ..Overheads::NONE
    };
    let system = System::from_json(&text).unwrap();
    Workload::with_overheads(&system, Bounds::Published, overheads).unwrap()
}

#[test]
fn el2_takes_what_a_displacement_on_another_pcpu_causes() {
    let workload = with_traffic("");
    // w's periods, 12 each. v begins to run for each job, each gcs and each period, of which two
    // are active; one earlier displacement may have left something: 7.
    let alone = 2 * 12 + (2 * 2 + 2 + 1) * 6;
    // Windows are longer by that, and a third period begins after 200.
    let longer = 3 * 12 + (2 * 2 + 3 + 1) * 6;
    let window = |workload: &Workload, times: [Ns; 3]| times.map(|time| workload.el2_time(1, time));
    assert_eq!(window(&workload, [0, 200 - alone, 201 - alone]), [alone, alone, longer]);
    // 40 and EL2.
    assert_eq!(workload.vcpu_response(1), Ok(Some(40 + alone)));
    // What stops above v, to which each period of its does that twice.
    let above = |priority: u64| {
        let id = r#", {"id": "x", "pcpu": 0, "budget": 9, "period": 200, "priority": "#;
        with_traffic(&format!("{id}{priority}}}")).el2_time(2, 0)
    };
    assert_eq!(above(9), 2 * 12 + (2 * 2 + 2 + 2 * 2 + 1) * 6);
    assert_eq!(above(3), alone, "below v it keeps v from nothing");
}

#[test]
fn el2_takes_what_comes_again_and_again() {
    let text = r#"{"server": "periodic", "overrun": false,
      "vcpus": [{"id": "v", "pcpu": 0, "budget": 40, "period": 1000, "priority": 2},
                {"id": "w", "pcpu": 1, "budget": 40, "period": 1000, "priority": 1}],
      "tasks": [], "traffic": [{"every": 500, "visits": [{"pcpu": 1, "timers": 2, "departures": 1}]}]}"#;
    let overheads = Overheads { timer_ns: 1, departure_ns: 3, ..Overheads::NONE };
    let system = System::from_json(text).unwrap();
    let workload = Workload::with_overheads(&system, Bounds::Published, overheads).unwrap();
    let times = |vcpu| [0, 440, 447].map(|time| workload.el2_time(vcpu, time));
    // A switch contains a departure, 3, and a server has four in a period: 16.
    assert_eq!(times(0), [2 * 16; 3], "it is on another pCPU");
    // 2 * (1 + 3) + 3; windows are longer by 2 * 16 + 2 * 11.
    assert_eq!(times(1), [2 * 16 + 2 * 11, 2 * 16 + 2 * 11, 2 * 16 + 3 * 11]);
}

/// One vCPU with a handler each 30, another one below it on the same pCPU whose gcs raises it.
fn handled(wcet: Ns) -> System {
    let text = r#"{"server": "deferrable", "overrun": false,
      "vcpus": [{"id": "v", "pcpu": 0, "budget": 10, "period": 20, "priority": 2},
                {"id": "low", "pcpu": 0, "budget": 5, "period": 500, "priority": 1},
                {"id": "other", "pcpu": 1, "budget": 5, "period": 500, "priority": 3}],
      "tasks": [{"id": "t", "vcpu": "v", "period": 100, "priority": 1, "segments": [{"wcet": 4}]},
                {"id": "u", "vcpu": "low", "period": 9000, "priority": 1,
                 "segments": [{"wcet": 1, "gcs": "R"}]}],
      "handlers": [{"id": "tick", "vcpu": "v", "period": 30, "wcet": 2},
                   {"id": "lower", "vcpu": "low", "period": 600, "wcet": 1}]}"#;
    let mut system = System::from_json(text).unwrap();
    system.handlers[0].wcet_ns = wcet;
    system
}

#[test]
fn handlers_interrupt_every_task_of_their_vcpu() {
    let system = handled(1);
    let workload = Workload::with_overheads(&system, Bounds::Corrected, Overheads::NONE).unwrap();
    // Those that have come up to two periods of the server before, and one more.
    assert_eq!([0, 20, 21].map(|time| workload.handler_time(0, time)), [3, 3, 4]);
    // 4, four handlers, and two gaps of 10: 28 is less than a third period.
    assert_eq!(workload.task_response(0, &[None; 2]), Ok(Some(28)));
    assert_eq!(workload.handlers_demand(0), 4, "of two periods, and as much before");
    assert_eq!(workload.handlers_demand(2), 0);
}

#[test]
fn handlers_of_a_vcpu_that_a_gcs_raises_delay_those_above_it() {
    let verdict = analyze(&handled(1), Bounds::Corrected).unwrap();
    assert_eq!((verdict.vcpus[0].blocking_ns, verdict.vcpus[0].handlers_ns), (2, 3));
    assert_eq!(verdict.vcpus[0].response_ns, Some(10 + 2 + 3));
    let (no_gcs, mut system) = (Section::Normal, handled(1));
    system.tasks[1].segments[0].section = no_gcs;
    assert_eq!(analyze(&system, Bounds::Corrected).unwrap().vcpus[0].handlers_ns, 0);
    // The gcs itself waits for the handlers of its vCPU, but not for those of one without a gcs.
    let workload =
        Workload::with_overheads(&handled(1), Bounds::Corrected, Overheads::NONE).unwrap();
    assert_eq!(workload.gcs_response_deferrable_overrun(0), Ok(1 + 3));
}

#[test]
fn handlers_that_a_budget_does_not_suffice_for_have_no_bound() {
    let holds = |wcet| {
        let verdict = analyze(&handled(wcet), Bounds::Corrected).unwrap();
        (verdict.vcpus[0].handlers_end(), verdict.tasks[0].response_ns.is_some())
    };
    assert_eq!([2, 3].map(holds), [(true, true), (false, false)], "four of 3 are more than 10");
}

#[test]
fn what_el2_takes_for_an_interrupt_is_what_it_takes_for_a_job() {
    let overheads = Overheads {
        release_ns: 1,
        switch_on_wake_ns: 10,
        timer_advance_ns: 100,
        ..Overheads::NONE
    };
    let el2 = |system: &System| {
        Workload::with_overheads(system, Bounds::Corrected, overheads).unwrap().el2_time(0, 0)
    };
    let mut system = handled(1);
    crate::random::lengthen(&mut system, 1_000);
    system.handlers.iter_mut().for_each(|handler| handler.period_ns *= 1_000);
    let with = el2(&system);
    system.handlers.remove(0);
    // Two periods of 20, rounded up to two of 30, and one more.
    assert_eq!(with - el2(&system), 3 * (1 + 2 * 10 + 100));
}
