//! Which figures are findings, and what is a fault.

use super::*;
use crate::bench::case_study::hypervisor::bounds;
use crate::promises::SeenResponse;
use crate::trace::{Subject, Turn, vcpu};

fn seen(scheme: Scheme, mean_ms: u64) -> Seen {
    let task = |number: usize| SeenResponse {
        task: format!("one/t{}", number + 1),
        vcpu: "one.0".into(),
        jobs: JOBS,
        late: 0,
        mean: Some(Duration::from_millis(mean_ms)),
        longest: Duration::from_millis(mean_ms + 1),
        bound: (number >= TASKS - bounds(scheme) as usize).then(|| Duration::from_millis(100)),
        period: HYPERPERIOD,
    };
    let tasks = (0..TASKS).map(task).collect();
    Seen { scheme, tasks, broken: Vec::new(), drawing: None, directory: "x".into() }
}

fn booted(boot: &Boot) -> Booted {
    let ran = |number| RanTask {
        task: format!("t{}", number + 1),
        jobs: JOBS,
        start_mean_ns: 7_000,
        start_max_ns: 9_000 + number,
    };
    let is_traced = boot.purpose == Purpose::Traced;
    let watched = is_traced.then(|| Watched {
        orders: Vec::new(),
        odd: 0,
        had_ns: vec![vec![4_000_000, 5_000_000]; TASKS],
    });
    let seen = seen(boot.scheme, if boot.scheme == Scheme::Mpcp { 20 } else { 10 });
    let ran = (0..TASKS as u64).map(ran).collect();
    Booted { boot: boot.clone(), real_s: 1.0, seen, ran, watched }
}

fn linux(spoil: impl Fn(&mut Booted)) -> Linux {
    let measurements = cases().into_iter().map(|boot| {
        let mut booted = booted(&boot);
        spoil(&mut booted);
        booted
    });
    let measurements = measurements.collect();
    let found = Findings { planned: cases(), measurements, failures: Vec::new(), all: 9 };
    let inputs = serde_json::from_value(serde_json::json!({})).unwrap();
    Linux { found, inputs }
}

fn exit_code(linux: &Linux) -> u8 {
    let mut answer = Answer::new("x", "", "");
    linux.tell(&mut answer);
    answer.outcome.exit_code(false)
}

#[test]
fn figures_unlike_the_papers_are_a_finding_and_no_fault() {
    let linux = linux(|_| ());
    let mut answer = Answer::new("x", "", "");
    linux.tell(&mut answer);
    let differs = answer.outcome.checks().iter().filter(|check| !check.holds()).count();
    assert_eq!((differs, exit_code(&linux)), (5, 0));
}

#[test]
fn whatever_does_not_hold_under_any_purpose_is_a_fault() {
    let spoils: [fn(&mut Booted); 4] = [
        |booted| booted.seen.tasks[3].jobs = JOBS - 1,
        // One fewer than can be, or one more.
        |booted| booted.seen.tasks[7].bound = booted.seen.tasks[7].bound.xor(Some(HYPERPERIOD)),
        |booted| booted.seen.tasks.truncate(7),
        |booted| booted.seen.broken.push("it fell".into()),
    ];
    for boot in cases() {
        for spoil in spoils {
            let spoilt = linux(|booted| {
                if booted.boot == boot {
                    spoil(booted);
                }
            });
            assert_eq!(exit_code(&spoilt), 1, "{}", boot.name());
        }
    }
    let above = linux(|booted| booted.seen.tasks[7].longest = Duration::from_millis(101));
    assert_eq!(exit_code(&above), 1);
    let odd = linux(|booted| booted.watched.iter_mut().for_each(|watched| watched.odd = 1));
    assert_eq!(exit_code(&odd), 1);
}

#[test]
fn a_boot_that_failed_is_a_fault() {
    let mut linux = linux(|_| ());
    let failed = linux.found.measurements.remove(0).boot;
    linux.found.failures.push((failed, "no".into()));
    assert_eq!(exit_code(&linux), 1);
}

#[test]
fn a_boot_is_kept_in_a_file_by_the_name_of_its_scheme() {
    let boot = Boot { scheme: Scheme::DeferrableWithOverrun, purpose: Purpose::Beside };
    assert_eq!(boot.name(), "linux-vmpcp-dswo-beside");
    let text = serde_json::to_string(&booted(&boot)).unwrap();
    let read: Booted = serde_json::from_str(&text).unwrap();
    assert_eq!((&read.boot, &read.seen.tasks), (&boot, &booted(&boot).seen.tasks));
    let error = serde_json::from_str::<Booted>(&text.replace("vMPCP+DSwO", "FCFS"));
    assert!(error.unwrap_err().to_string().contains("no scheme `FCFS`"));
}

#[test]
fn what_a_vcpu_had_is_counted_in_each_hyperperiod() {
    const LENGTH: u64 = HYPERPERIOD.as_nanos() as u64;
    let subject = Subject { vcpus: vec![vcpu(0, 0), vcpu(1, 0)], ..Subject::default() };
    let turn = |vcpu, from, to| Turn { pcpu: 0, vcpu, idles: false, from, to };
    let turns = [turn(0, 90, 110), turn(1, 110, 150), turn(0, LENGTH + 95, LENGTH + 107)];
    let had = had(&subject, &turns, &[100, LENGTH + 100]);
    assert_eq!((&had[0], &had[1]), (&vec![15, 7], &vec![40, 0]));
}

#[test]
fn the_description_has_the_probes_tasks_and_these_jobs() {
    let root = crate::testing::root();
    let read = |system| std::fs::read_to_string(root.join(system)).unwrap();
    let timing = |text: &str| -> Vec<String> {
        let keys = ["pcpu = ", "priority = ", "server = ", "tasks = "];
        let lines = text.lines().filter(|line| keys.iter().any(|key| line.starts_with(key)));
        lines.map(str::to_owned).collect()
    };
    let linux = read(SYSTEM);
    assert_eq!(timing(&linux), timing(&read(super::super::hypervisor::SYSTEM)));
    assert_eq!(linux.matches(&format!("--jobs {JOBS} ")).count(), 2);
    let edited = Purpose::Beside.edits().into_iter().fold(linux, |text, (from, to)| {
        assert!(text.contains(&from), "{from}");
        text.replace(&from, &to)
    });
    assert_eq!(edited.matches(r#"wcet = "2100us""#).count(), 16);
    assert_eq!(edited.matches(r#"wcet = "1100us", gcs"#).count(), 7);
    assert_eq!(edited.matches(r#"wcet = "1200us", gcs"#).count(), 1);
}
