//! What is drawn, and what is said of what was seen.

use super::case::{Seen, SeenTask};
use super::machine::Machine;
use super::*;
use abi::{MAX_PCPUS, MAX_VMS};
use analysis::model::{Section, ServerKind};
use std::path::Path;

#[test]
fn the_machine_tests_run_a_hundred_systems_of_every_kind() {
    let machines: Vec<_> =
        cases(smoke::FIRST, smoke::SYSTEMS).iter().map(|case| Machine::draw(case.seed)).collect();
    let systems: Vec<_> = machines.iter().flat_map(|machine| &machine.systems).collect();
    assert!((100..120).contains(&systems.len()), "{}", systems.len());
    let with = |wanted: fn(&machine::Drawn) -> bool| systems.iter().filter(|s| wanted(s)).count();
    assert!(with(|drawn| drawn.system.service(0).kind == ServerKind::Periodic) > 10);
    assert!(with(|drawn| drawn.system.service(0).kind == ServerKind::Deferrable) > 10);
    assert!(with(|drawn| drawn.system.service(0).overrun) > 10);
    assert!(with(|drawn| drawn.vms() == 2) > 10);
    assert!(with(|drawn| drawn.pcpus().len() > 1) > 10);
    let shared = with(|drawn| machine::shares_pcpus(&drawn.system));
    assert!(shared > 40, "{shared} share a global resource");
    let local = with(|drawn| {
        let mut segments = drawn.system.tasks.iter().flat_map(|task| &task.segments);
        segments.any(|segment| matches!(segment.section, Section::Local(_)))
    });
    assert!(local > 10, "{local} have local resources");
}

#[test]
fn a_machine_has_room_for_what_it_runs_and_follows_from_its_seed() {
    for seed in 1..10 {
        let machine = Machine::draw(seed);
        assert!(
            machine.systems.iter().map(|drawn| drawn.pcpus().len()).sum::<usize>() <= MAX_PCPUS
        );
        assert!(machine.systems.iter().map(machine::Drawn::vms).sum::<usize>() <= MAX_VMS);
        let text = machine.text(Path::new("probe.elf"));
        assert_eq!(text, Machine::draw(seed).text(Path::new("probe.elf")));
        let vms = machine.systems.iter().map(machine::Drawn::vms).sum::<usize>();
        assert_eq!(text.matches("[[vm]]").count(), vms);
    }
}

#[test]
fn what_does_not_hold_is_told_with_its_seed() {
    let task =
        |longest_ns| SeenTask { name: "s0a/t0".into(), jobs: 7, longest_ns, bound_ns: 1_000 };
    let seen = |longest_ns, broken: &[&str]| Seen {
        case: Case { seed: 17 },
        real_s: 1.0,
        systems: 4,
        tasks: vec![task(longest_ns)],
        sections: [3, 2],
        supplies: [9, 9],
        broken: broken.iter().map(|&what| what.into()).collect(),
    };
    let good = report::answer(&[seen(1_000, &[]), seen(550, &[])]);
    assert!(good.outcome.holds());
    assert_eq!(good.outcome.figures["systems"], 8);
    assert_eq!(good.outcome.figures["largest_of_bound"], 1.0);
    assert_eq!(good.outcome.figures["spread"][5]["tasks"], 1);
    let bad = report::answer(&[seen(1_001, &["longest response of s0a/t0: 1.001 us"])]);
    assert_eq!(bad.outcome.exit_code(false), 1);
    assert!(bad.summary().contains("Seed 17:\n  longest response"), "{}", bad.summary());
    let other = report::answer(&[seen(10, &["s0-1: t1 waited"])]);
    assert_eq!(other.outcome.exit_code(false), 1);
}
