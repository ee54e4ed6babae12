use super::*;

/// The example of the documentation.
const EXAMPLE: &str = r#"{"server": "deferrable", "overrun": true,
 "vcpus": [{"id": "v1", "pcpu": 0, "budget": 3000000, "period": 10000000, "priority": 1}],
 "tasks": [{"id": "t1", "vcpu": "v1", "period": 200000000, "priority": 1,
            "segments": [{"wcet": 2000000}, {"wcet": 1000000, "gcs": "R0"}, {"wcet": 2000000, "lcs": "L1"}]}]}"#;

#[test]
fn reads_the_example_and_writes_it_back() {
    let system = System::from_json(EXAMPLE).unwrap();
    assert_eq!((system.server, system.overrun), (ServerKind::Deferrable, true));
    assert_eq!(system.resources, ["R0", "L1"]);
    let sections: Vec<_> = system.tasks[0].segments.iter().map(|s| s.section).collect();
    assert_eq!(sections, [Section::Normal, Section::Global(0), Section::Local(1)]);
    assert_eq!((system.tasks[0].offset_ns, system.tasks[0].jitter_ns), (0, 0));
    assert_eq!(System::from_json(&system.to_json()).unwrap(), system);
}

#[test]
fn guests_name_local_resources_without_knowing_of_each_other() {
    let text = r#"{"server": "periodic", "overrun": false,
      "vcpus": [{"id": "a", "pcpu": 0, "budget": 1, "period": 2, "priority": 1},
                {"id": "b", "pcpu": 0, "budget": 1, "period": 2, "priority": 2}],
      "tasks": [{"id": "t", "vcpu": "a", "period": 9, "priority": 1, "segments": [{"wcet": 1, "lcs": "L"}]},
                {"id": "u", "vcpu": "b", "period": 9, "priority": 1, "segments": [{"wcet": 1, "lcs": "L"}]}]}"#;
    let system = System::from_json(text).unwrap();
    assert_eq!(system.resources, ["L", "L"]);
    assert_eq!(System::from_json(&system.to_json()).unwrap(), system);
}

/// Changes one piece of the example; answers what is said of it.
fn refusal(from: &str, to: &str) -> String {
    assert!(EXAMPLE.contains(from), "{from}");
    let problem = System::from_json(&EXAMPLE.replacen(from, to, 1)).expect_err(to);
    assert!(!problem.mend.is_empty());
    problem.to_string()
}

#[test]
fn refuses_what_makes_no_sense_and_says_where() {
    let second_vcpu = r#""priority": 1},
        {"id": "v1", "pcpu": 0, "budget": 3, "period": 10, "priority": 2}],"#;
    let same_priority = r#""priority": 1},
        {"id": "v2", "pcpu": 1, "budget": 3, "period": 10, "priority": 1}],"#;
    let second_task = |id: &str, priority: u32| {
        format!(
            r#""tasks": [{{"id": "{id}", "vcpu": "v1", "period": 9, "priority": {priority}, "segments": [{{"wcet": 1}}]}}, "#
        )
    };
    let cases = [
        ("3000000", "0", "vcpus[0].budget"),
        ("3000000", "-5", "vcpus[0].budget"),
        ("3000000", "1.5", "vcpus[0].budget"),
        ("3000000", "18446744073709551616", "vcpus[0].budget"),
        ("3000000", "10000001", "vcpus[0].budget: a budget of 10000001 ns is above the period"),
        ("10000000", "0", "vcpus[0].period"),
        ("\"wcet\": 1000000", "\"wcet\": 0", "tasks[0].segments[1].wcet"),
        ("\"wcet\": 1000000", "\"wcet\": -1", "tasks[0].segments[1].wcet"),
        ("\"wcet\": 1000000", "\"wcet\": 196000001", "tasks[0].segments[2].wcet: with this"),
        ("\"wcet\": 1000000", "\"wcet\": 200000001", "tasks[0].segments[1].wcet: with this"),
        ("200000000", "0", "tasks[0].period"),
        ("200000000", "\"1 ms\"", "tasks[0].period"),
        ("\"vcpu\": \"v1\"", "\"vcpu\": \"v9\"", "tasks[0].vcpu: there is no vCPU `v9`"),
        ("\"priority\": 1}],", second_vcpu, "vcpus[1].id: vCPU `v1` is described twice"),
        ("\"priority\": 1}],", same_priority, "vcpus[1].priority: two vCPUs have priority 1"),
        ("\"tasks\": [", &second_task("t1", 7), "tasks[1].id: task `t1` is described twice"),
        ("\"tasks\": [", &second_task("t2", 1), "tasks[1].priority: two tasks of vCPU `v1`"),
        ("\"gcs\": \"R0\"", "\"gcs\": \"R0\", \"lcs\": \"L1\"", "tasks[0].segments[1]: gcs `R0`"),
        ("\"gcs\": \"R0\"", "\"gcs\": [\"R0\", \"R1\"]", "tasks[0].segments[1].gcs"),
        (
            "\"gcs\": \"R0\"",
            "\"segments\": []",
            "tasks[0].segments[1]: a critical section is nested",
        ),
        ("\"lcs\": \"L1\"", "\"lcs\": \"R0\"", "tasks[0].segments[2]: resource `R0` is local"),
        ("\"gcs\": \"R0\"", "\"gcs\": \"\"", "tasks[0].segments[1]: a name is empty"),
        ("\"id\": \"t1\"", "\"id\": \"\"", "tasks[0].id: a name is empty"),
        ("\"id\": \"t1\"", "\"id\": \"t\\n1\"", "tasks[0].id: a name has line breaks"),
        ("\"gcs\": \"R0\"", "\"gcs\": \"R\\u001b\"", "tasks[0].segments[1]: a name has"),
        ("{\"wcet\": 2000000}", "[2000000]", "invalid type: sequence, expected an object"),
        ("{\"wcet\": 2000000}", "5", "tasks[0].segments[0], line 4 column 26: invalid type"),
        ("\"pcpu\": 0", "\"pcpu\": \"a\"", "expected a whole number from 0 to 2^32 - 1"),
        ("\"priority\": 1}", "\"priority\": 0.5}", "expected a whole number from -2^63"),
        ("\"pcpu\": 0", "\"pcpu\": -1", "vcpus[0].pcpu"),
        ("\"pcpu\": 0, ", "", "missing field `pcpu`"),
        ("\"pcpu\": 0", "\"cpu\": 0", "unknown field `cpu`"),
        ("\"deferrable\"", "\"sporadic\"", "server"),
        ("\"overrun\": true", "\"overrun\": 1", "overrun"),
        ("\"priority\": 1,", "\"priority\": 1, \"jitter\": 200000000,", "tasks[0].jitter"),
        ("\"priority\": 1,", "\"priority\": 1, \"priority\": 2,", "duplicate field `priority`"),
        ("\"vcpus\"", "vcpus", "line 2 column"),
        ("]}]}", "]}]} 1", "line 4 column"),
    ];
    for (from, to, said) in cases {
        let refusal = refusal(from, to);
        assert!(refusal.contains(said), "{from} -> {to}: {refusal}");
    }
}

#[test]
fn what_a_program_builds_is_checked_too() {
    let mut system = System::from_json(EXAMPLE).unwrap();
    system.tasks[0].vcpu = 1;
    assert_eq!(system.check().unwrap_err().place, "tasks[0].vcpu");
    let mut system = System::from_json(EXAMPLE).unwrap();
    system.tasks[0].segments[1].section = Section::Global(2);
    assert_eq!(system.check().unwrap_err().place, "tasks[0].segments[1]");
    let mut twice = system.clone();
    twice.resources = vec!["R".into(); 3];
    let kinds = twice.check().unwrap_err().what;
    assert_eq!(kinds, "resource `R` is local (lcs) here, global (gcs) in task `t1`");
    let mut zero = system.clone();
    zero.tasks[0].segments[0].wcet_ns = 0;
    assert_eq!(zero.check().unwrap_err().what, "`wcet` is 0 ns");
    system.tasks[0].segments.clear();
    assert_eq!(system.check().unwrap_err().place, "tasks[0].segments");
    system.vcpus = Vcpus::default();
    assert_eq!(system.check().unwrap_err().place, "vcpus");
}

#[test]
fn a_local_resource_has_one_home() {
    let mut system = System::from_json(EXAMPLE).unwrap();
    let mut vcpu = system.vcpus[0].clone();
    (vcpu.id, vcpu.priority) = ("v2".into(), 2);
    system.vcpus.push(vcpu);
    let mut task = system.tasks[0].clone();
    (task.id, task.vcpu) = ("t2".into(), 1);
    system.tasks.push(task);
    assert_eq!(system.check().unwrap_err().place, "tasks[1].segments[2].lcs");
}

#[test]
fn a_vcpu_may_be_served_in_a_way_of_its_own() {
    let own = EXAMPLE.replacen("\"priority\": 1}", "\"priority\": 1, \"server\": \"periodic\"}", 1);
    let system = System::from_json(&own).unwrap();
    assert_eq!(system.service(0), Service { kind: ServerKind::Periodic, overrun: true });
    assert!(!system.serves_all_alike());
    assert_eq!(System::from_json(&system.to_json()).unwrap(), system);
    let same = own.replace("\"periodic\"", "\"deferrable\"");
    assert_eq!(System::from_json(&same).unwrap(), System::from_json(EXAMPLE).unwrap());
}

#[test]
fn traffic_is_read_and_written_back() {
    let with = |traffic: &str| {
        let vcpus = r#"{"id": "v2", "pcpu": 1, "budget": 3, "period": 10, "priority": 2}],"#;
        let text = EXAMPLE.replacen("}],", &format!("}}, {vcpus}"), 1);
        let end = format!(r#"]}}], "traffic": [{traffic}]}}"#);
        System::from_json(&text.replacen("]}]}", &end, 1))
    };
    let both = r#"{"by": ["v1"], "visits": [{"pcpu": 1, "doorbells": 2}]},
                  {"every": 7, "visits": [{"pcpu": 0, "timers": 1, "departures": 3}, {"pcpu": 1}]}"#;
    let system = with(both).unwrap();
    let [displaced, every] = &system.traffic[..] else { panic!() };
    let visits = Visits { pcpu: 1, doorbells: 2, ..Visits::default() };
    let by = Cause::Displacement { by: vec![0] };
    assert_eq!(displaced, &Traffic { cause: by, visits: vec![visits] });
    let visits = Visits { timers: 1, departures: 3, ..Visits::default() };
    let idle = Visits { pcpu: 1, ..Visits::default() };
    assert_eq!(every, &Traffic { cause: Cause::Every(7), visits: vec![visits, idle] });
    assert_eq!(System::from_json(&system.to_json()).unwrap(), system);
    for (wrong, what) in [
        (r#"{"visits": []}"#, "traffic[0]: it has not one cause"),
        (r#"{"by": ["v1"], "every": 7, "visits": []}"#, "traffic[0]: it has not one cause"),
        (r#"{"by": [], "visits": []}"#, "traffic[0].by: no vCPU displaces any"),
        (r#"{"by": ["v3"], "visits": []}"#, "traffic[0].by: there is no vCPU `v3`"),
        (r#"{"by": ["v1", "v2"], "visits": []}"#, "`v1` and `v2` are on two pCPUs"),
        (r#"{"every": 0, "visits": []}"#, "traffic[0].every: it happens every 0 ns"),
        (r#"{"every": 1, "visits": [{"pcpu": 1}, {"pcpu": 1}]}"#, "pCPU 1 is named twice"),
        (r#"{"every": 1, "visits": [{"pcpu": 1, "timers": -1}]}"#, "number from 0 to 2^64 - 1"),
        (r#"{"every": 1, "visits": [{"timers": 1}]}"#, "pcpu"),
    ] {
        let problem = with(wrong).expect_err(wrong).to_string();
        assert!(problem.contains(what), "{wrong}: {problem}");
    }
    let mut system = system;
    system.traffic[0].cause = Cause::Displacement { by: vec![2] };
    assert!(system.check().unwrap_err().to_string().contains("no vCPU with index 2"));
}

#[test]
fn handlers_are_of_vcpus_and_leave_time() {
    let with = |handlers: &str| {
        let handlers = format!(r#"], "handlers": [{handlers}]}}"#);
        let text = EXAMPLE.strip_suffix("]}").unwrap().to_owned() + &handlers;
        System::from_json(&text)
    };
    let tick = r#"{"id": "tick", "vcpu": "v1", "period": 1000, "wcet": 999}"#;
    let system = with(tick).unwrap();
    let [handler] = &system.handlers[..] else { panic!() };
    assert_eq!((handler.vcpu, handler.period_ns, handler.wcet_ns), (0, 1_000, 999));
    assert_eq!(System::from_json(&system.to_json()).unwrap(), system);
    let cases = [
        (tick.replace("v1", "v2"), "handlers[0].vcpu: there is no vCPU `v2`"),
        (tick.replace("1000", "999"), "handlers[0].wcet: handler `tick` executes for 999 ns"),
        (tick.replace("999", "0"), "handlers[0].wcet"),
        (tick.replace("1000", "0"), "handlers[0].period"),
        (tick.replace("tick", ""), "handlers[0].id: a name is empty"),
        (format!("{tick}, {tick}"), "handlers[1].id: handler `tick` is described twice"),
    ];
    for (handlers, said) in cases {
        let problem = with(&handlers).expect_err(&handlers).to_string();
        assert!(problem.starts_with(said), "{problem}");
    }
}
