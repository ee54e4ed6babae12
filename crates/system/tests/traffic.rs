//! What vCPUs that migrate make EL2 do on cores is in the bounds, where it is declared how often.

mod support;

use analysis::bounds::{Bounds, Workload};
use analysis::model::{Cause, Traffic, Visits};
use analysis::overheads::DEFAULT_MARGIN_PERMILLE;
use system::Checked;

/// A task of the RTOS.
const TASK: &str =
    r#"tasks = [{ name = "tick", priority = 1, period = "20ms", segments = [{ wcet = "1ms" }] }]"#;

/// Linux's second vCPU shares pCPU 1 with the RTOS; on pCPU 0 and the last pCPU there are budgets.
fn text(policy: &str, pcpus: usize, rtos: &str) -> String {
    let last = pcpus - 1;
    format!(
        r#"
board = {{ kind = "qemu-virt", pcpus = {pcpus}, memory = "512M" }}

[[vm]]
name = "linux"
kernel = "Image"
memory = {{ size = "64M" }}
{policy}
vcpus = [{{ pcpu = 0, priority = 1 }}, {{ pcpu = 1, priority = 1 }}]

[[vm]]
name = "control"
kernel = "rtos.elf"
memory = {{ size = "64M" }}
vcpus = [
    {{ pcpu = 0, priority = 5, server = {{ kind = "deferrable", budget = "2ms", period = "10ms" }} }},
    {{ pcpu = {last}, priority = 4, server = {{ kind = "deferrable", budget = "1ms", period = "10ms" }} }},
]

[[vm]]
name = "rtos"
kernel = "rtos.elf"
memory = {{ size = "64M" }}
realtime = true
[[vm.vcpus]]
pcpu = 1
priority = 10
server = {{ kind = "deferrable", budget = "2ms", period = "10ms" }}
{rtos}
"#
    )
}

fn checked(policy: &str, pcpus: usize, rtos: &str) -> Checked {
    let directory = support::files();
    support::sound(directory.path(), &text(policy, pcpus, rtos))
}

fn traffic(checked: &Checked) -> &[Traffic] {
    let timing = checked.timing.as_ref().unwrap();
    assert_eq!(timing.check(), Ok(()));
    &timing.traffic
}

fn doorbells(pcpu: u32, doorbells: u64) -> Visits {
    Visits { pcpu, doorbells, ..Visits::default() }
}

/// The warnings of visits that nothing counts.
fn warnings(checked: &Checked) -> Vec<String> {
    let plain = checked.warnings.plain();
    let lines = plain.lines().filter(|line| line.contains("uncounted-visits"));
    lines.map(str::to_owned).collect()
}

#[test]
fn a_vcpu_that_is_displaced_costs_its_base_and_the_pcpu_it_goes_to() {
    let checked = checked(r#"migration_policy = "on-demand""#, 2, TASK);
    let timing = checked.timing.as_ref().unwrap();
    let by = timing.vcpus.iter().position(|vcpu| vcpu.id == "rtos.0").unwrap();
    let base = Visits { departures: 1, ..doorbells(1, 1) };
    let visits = vec![doorbells(0, 2), base];
    assert_eq!(
        traffic(&checked),
        [Traffic { cause: Cause::Displacement { by: vec![by] }, visits }]
    );
    assert!(warnings(&checked).is_empty(), "{}", checked.warnings.plain());
    // A job of the RTOS and a period of its server, two of each, and what one earlier time left:
    // each makes EL2 visit pCPU 0 twice, with a doorbell and a switch.
    let overheads = checked.overheads(DEFAULT_MARGIN_PERMILLE);
    let without = analysis::model::System { traffic: Vec::new(), ..timing.clone() };
    let el2 = |system| {
        let workload = Workload::with_overheads(system, Bounds::Corrected, overheads).unwrap();
        workload.el2_time(0, 0)
    };
    let visit = overheads.doorbell_ns + overheads.switch_ns();
    assert_eq!(timing.vcpus[0].pcpu, 0);
    assert_eq!(el2(timing) - el2(&without), (2 + 2 + 1) * 2 * visit);
}

/// It waits first, and is asked again.
#[test]
fn an_adaptive_vcpu_costs_its_base_an_interrupt_by_the_timer_of_el2_besides() {
    let checked = checked(r#"migration_policy = "adaptive""#, 2, TASK);
    let base = Visits { departures: 1, timers: 1, ..doorbells(1, 1) };
    assert_eq!(traffic(&checked)[0].visits, [doorbells(0, 2), base]);
}

#[test]
fn without_migration_there_is_no_traffic() {
    for policy in ["", r#"migration_policy = "partition""#] {
        let checked = checked(policy, 2, TASK);
        assert!(traffic(&checked).is_empty(), "{policy}");
        assert!(warnings(&checked).is_empty(), "{policy}");
    }
}

#[test]
fn what_displaces_without_declared_tasks_is_named() {
    let policy = r#"migration_policy = "on-demand""#;
    let [warning] = &warnings(&checked(policy, 2, ""))[..] else { panic!() };
    assert!(
        warning.contains("how often `rtos.0` displaces `linux.1` is not declared"),
        "{warning}"
    );
    assert!(warning.contains("bounds on pCPUs 0 and 1 assume that"), "{warning}");
    // Its periods are counted nevertheless.
    assert_eq!(traffic(&checked(policy, 2, "")).len(), 1);
    // Without a budget there is nothing to count, and pCPU 1 has no bound.
    let directory = support::files();
    let server = r#"server = { kind = "deferrable", budget = "2ms", period = "10ms" }"#;
    let all = text(policy, 2, "");
    let (head, tail) = all.rsplit_once(server).unwrap();
    let head = head.replace("pcpu = 1, priority = 4", "pcpu = 0, priority = 4");
    let checked = support::sound(directory.path(), &format!("{head}{tail}"));
    assert!(traffic(&checked).is_empty());
    let [warning] = &warnings(&checked)[..] else { panic!() };
    assert!(warning.contains("bounds on pCPU 0 assume that"), "{warning}");
}

#[test]
fn a_vcpu_that_goes_on_to_whatever_idles_is_named() {
    let checked = checked(r#"migration_policy = "on-demand""#, 3, TASK);
    let visits = &traffic(&checked)[0].visits;
    let base = Visits { departures: 1, ..doorbells(1, 1) };
    assert_eq!(visits, &[doorbells(0, 2), base, doorbells(2, 2)]);
    let [warning] = &warnings(&checked)[..] else { panic!() };
    assert!(warning.contains("how often `linux.1` migrates has no bound"), "{warning}");
    assert!(warning.contains("on to whatever pCPU idles: bounds on pCPUs 0 and 2"), "{warning}");
}

#[test]
fn a_vcpu_with_one_pcpu_to_go_to_stays_there() {
    for policy in ["on-demand-fixed", "on-demand-lazy"] {
        let checked = checked(&format!("migration_policy = \"{policy}\""), 3, TASK);
        let base = Visits { departures: 1, ..doorbells(1, 1) };
        assert_eq!(traffic(&checked)[0].visits, [doorbells(0, 2), base], "{policy}");
        assert!(warnings(&checked).is_empty(), "{policy}");
    }
}

#[test]
fn a_vcpu_whose_guest_decides_is_named() {
    for policy in ["trap-based", "trap-based-eager", "trap-based-deferred", "trap-based-paper"] {
        let checked = checked(&format!("migration_policy = \"{policy}\""), 2, TASK);
        assert!(traffic(&checked).is_empty(), "a displacement does not make it leave");
        let [warning] = &warnings(&checked)[..] else { panic!("{policy}") };
        assert!(warning.contains("as its guest decides: bounds on pCPUs 0 and 1"), "{warning}");
    }
}

#[test]
fn siblings_that_stop_are_told_wherever_they_may_be() {
    let checked = checked(r#"migration_policy = "coscheduling""#, 2, TASK);
    // Both vCPUs are displaced by the RTOS, should it have their pCPUs: it has one.
    assert_eq!(traffic(&checked).len(), 1);
    assert_eq!(traffic(&checked)[0].visits, [doorbells(0, 2), doorbells(1, 2)]);
    assert!(warnings(&checked).is_empty());
}

#[test]
fn a_core_that_is_powered_down_moves_its_vcpus_once_in_a_window() {
    let directory = support::files();
    let text = r#"
board = { kind = "qemu-virt", pcpus = 2, memory = "512M" }
hypervisor = { consolidation_window = "5ms" }

[[vm]]
name = "linux"
kernel = "Image"
memory = { size = "64M" }
consolidate = true
vcpus = [
    { pcpu = 0, priority = 2, server = { kind = "deferrable", budget = "2ms", period = "10ms" } },
    { pcpu = 1, priority = 1, server = { kind = "deferrable", budget = "2ms", period = "10ms" } },
    { pcpu = 1, priority = 3, server = { kind = "deferrable", budget = "1ms", period = "10ms" } },
]
"#;
    let checked = support::sound(directory.path(), text);
    let target = Visits { timers: 1, ..doorbells(0, 4) };
    let left = Visits { timers: 1, departures: 2, ..doorbells(1, 2) };
    let traffic = traffic(&checked);
    assert_eq!(traffic, [Traffic { cause: Cause::Every(5_000_000), visits: vec![left, target] }]);
    assert!(warnings(&checked).is_empty());
}
