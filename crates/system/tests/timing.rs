//! Budgets and tasks of a description become the model of the analysis.

mod support;

use abi::service::hash;
use abi::system::{VERSION, parts};
use analysis::bounds::{Bounds, Workload, analyze};
use analysis::model::{Section, ServerKind, Service};
use analysis::overheads::DEFAULT_MARGIN_PERMILLE;

const TEXT: &str = r#"
board = { kind = "qemu-virt", pcpus = 2, memory = "256M" }

[[vm]]
name = "a"
kernel = "rtos.elf"
memory = { size = "64M" }
[[vm.vcpus]]
pcpu = 0
priority = 5
server = { kind = "deferrable", budget = "3ms", period = "10ms", overrun = true }
[[vm.vcpus.tasks]]
name = "control"
priority = 2
period = "200ms"
jitter = "1.5ms"
segments = [{ wcet = "2ms" }, { wcet = "100us", gcs = "R" }, { wcet = "1ms", lcs = "L" }]
[[vm.vcpus]]
pcpu = 1
priority = 5
server = { kind = "periodic", budget = "4ms", period = "10ms", offset = "2ms" }
[[vm.vcpus.tasks]]
name = "log"
priority = 1
period = "400ms"
segments = [{ wcet = "2ms" }, { wcet = "100us", gcs = "R" }, { wcet = "1ms", lcs = "L" }]

[[vm]]
name = "b"
kernel = "rtos.elf"
memory = { size = "64M" }
vcpus = [{ pcpu = 1, priority = 1 }]
"#;

#[test]
fn what_is_described_is_what_is_analysed() {
    let directory = support::files();
    let checked = support::sound(directory.path(), TEXT);
    // Equation 1, one critical section of 100 us, and what EL2 takes meanwhile.
    let overheads = checked.overheads(DEFAULT_MARGIN_PERMILLE);
    let timing = checked.timing.as_ref().unwrap();
    let workload = Workload::with_overheads(timing, Bounds::Corrected, overheads).unwrap();
    let servers = [0, 1].map(|vcpu| checked.vms[0].vcpus[vcpu].server.unwrap());
    assert_eq!(servers.map(|server| server.overrun_ns), [workload.overrun_time(0), 0]);
    assert!((110_000..150_000).contains(&servers[0].overrun_ns), "{servers:?}");
    assert_eq!(servers.map(|server| server.offset_ns), [0, 2_000_000]);
    let system = checked.timing.unwrap();
    let service = |vcpu| system.service(vcpu);
    assert_eq!(service(0), Service { kind: ServerKind::Deferrable, overrun: true });
    assert_eq!(service(1), Service { kind: ServerKind::Periodic, overrun: false });
    assert_eq!(system.vcpus[1].offset_ns, 2_000_000);
    let ids: Vec<_> = system.vcpus.iter().map(|vcpu| vcpu.id.as_str()).collect();
    assert_eq!(ids, ["a.0", "a.1"], "a vCPU below all budgets delays no other");
    assert_eq!(
        system.vcpus.iter().map(|v| v.budget_ns).collect::<Vec<_>>(),
        [3_000_000, 4_000_000]
    );
    assert!(system.vcpus[0].priority > system.vcpus[1].priority, "the first of equals goes first");
    let control = &system.tasks[0];
    assert_eq!((control.id.as_str(), control.jitter_ns), ("a/control", 1_500_000));
    assert_eq!(control.segments[1].wcet_ns, 100_000);
    // R is one resource, L is each vCPU's own.
    let [control, log] = [&system.tasks[0], &system.tasks[1]];
    assert_eq!(control.segments[1].section, log.segments[1].section);
    assert_ne!(control.segments[2].section, log.segments[2].section);
    assert!(matches!(log.segments[2].section, Section::Local(_)));
    assert!(analyze(&system, Bounds::Corrected).unwrap().schedulable());
}

#[test]
fn without_budgets_there_is_nothing_to_analyse() {
    let directory = support::files();
    let text = "board = { kind = \"qemu-virt\", pcpus = 1, memory = \"256M\" }\n[[vm]]\nname = \"a\"\n\
                kernel = \"rtos.elf\"\nmemory = { size = \"64M\" }\nvcpus = [{ pcpu = 0, priority = 1 }]\n";
    assert!(support::sound(directory.path(), text).timing.is_none());
}

#[test]
fn the_tables_have_what_tasks_share() {
    let directory = support::files();
    let checked = support::sound(directory.path(), TEXT);
    let packed = system::pack(&checked, &support::elf::plain_hypervisor()).unwrap();
    let mut file = Vec::new();
    packed.write(&mut file).unwrap();
    let tables = system::unpack(&file).unwrap().tables;
    assert_eq!(tables.header.version, VERSION | parts::SECTIONS);
    assert_eq!(tables.header.mutex_count, 1, "local resources need none");
    let mutex = &tables.mutexes[0];
    assert_eq!((mutex.name, mutex.claimant_count), (hash(b"R"), 2));
    assert_eq!(mutex.vcpus[..2], [0, 1], "the higher vCPU's task is served first");
    assert_eq!(mutex.tasks[..2], [hash(b"control") as u32, hash(b"log") as u32]);
    assert_eq!([0, 1, 2].map(|vcpu: usize| tables.vcpus[vcpu].mutexes), [1, 1, 0]);
    // Two jobs may fall into a period of 10 ms, each with 100 us and what EL2 takes.
    let [first, second, without] = [0, 1, 2].map(|vcpu: usize| tables.vcpus[vcpu]);
    assert_eq!([first, second, without].map(|vcpu| vcpu.gcs_calls), [2, 2, 0]);
    assert!((200_000..230_000).contains(&first.gcs_ns), "{}", first.gcs_ns);
    assert_eq!((second.gcs_ns, without.gcs_ns), (first.gcs_ns, 0));
}

/// Of the baseline, tasks come first and no vCPU is raised.
#[test]
fn under_mpcp_tasks_come_first_and_nothing_is_promised() {
    let directory = support::files();
    let text =
        TEXT.replace("overrun = true", "overrun = false").replace("priority = 2", "priority = 0");
    let text = format!("hypervisor = {{ protocol = \"mpcp\" }}\n{text}");
    let checked = support::sound(directory.path(), &text);
    assert!(checked.promised().is_none() && checked.timing.is_some());
    assert!(checked.warnings.plain().contains("no bounds are known for MPCP"));
    let packed = system::pack(&checked, &support::elf::plain_hypervisor()).unwrap();
    let mut file = Vec::new();
    packed.write(&mut file).unwrap();
    let tables = system::unpack(&file).unwrap().tables;
    let mutex = &tables.mutexes[0];
    assert_eq!(mutex.vcpus[..2], [1, 0], "the higher task is served first");
    assert_eq!([0, 1].map(|vcpu: usize| tables.vcpus[vcpu].mutexes), [1, 1]);
    let ceilings =
        [0, 1].map(|vcpu: usize| (tables.vcpus[vcpu].gcs_ns, tables.vcpus[vcpu].gcs_calls));
    assert_eq!(ceilings, [(0, 0); 2]);
    let overruns = text.replace("overrun = false", "overrun = true");
    let told = system::load_text(&directory.path().join("s.toml"), &overruns).unwrap_err();
    assert!(told.plain().contains("under MPCP no server overruns"), "{}", told.plain());
}

#[test]
fn there_is_room_for_so_many_mutexes_and_tasks() {
    let directory = support::files();
    let segments = |count: usize| -> String {
        (0..count).map(|n| format!("{{ wcet = \"1us\", gcs = \"R{n}\" }},")).collect()
    };
    let tasks = |count: usize| -> String {
        let task = |n| {
            format!(
                "{{ name = \"t{n}\", priority = {n}, period = \"400ms\",
                   segments = [{{ wcet = \"1us\", gcs = \"R\" }}] }},"
            )
        };
        (0..count).map(task).collect()
    };
    let one = |segments: &str| {
        format!("{{ name = \"t\", priority = 1, period = \"400ms\", segments = [{segments}] }}")
    };
    let describe = |tasks: &str| {
        format!(
            r#"
            board = {{ kind = "qemu-virt", pcpus = 1, memory = "256M" }}
            [[vm]]
            name = "a"
            kernel = "rtos.elf"
            memory = {{ size = "64M" }}
            [[vm.vcpus]]
            pcpu = 0
            priority = 5
            server = {{ kind = "deferrable", budget = "3ms", period = "10ms" }}
            tasks = [{tasks}]
            "#
        )
    };
    for (tasks, problem) in [
        (one(&segments(16)), None),
        (one(&segments(17)), Some("more than 16 global resources")),
        (tasks(56), None),
        (tasks(57), Some("more than 56 tasks use `R`")),
    ] {
        let told = system::load_text(&directory.path().join("s.toml"), &describe(&tasks));
        match problem {
            None => assert!(told.is_ok(), "{}", told.unwrap_err().plain()),
            Some(problem) => assert!(told.unwrap_err().plain().contains(problem)),
        }
    }
}

#[test]
fn more_tasks_than_a_device_tree_can_name_are_refused() {
    let task = |number| {
        format!(
            "[[vm.vcpus.tasks]]\nname = \"t{number}\"\npriority = {number}\nperiod = \"9s\"\n\
             segments = [{}]\n",
            "{ wcet = \"1us\" }, ".repeat(40)
        )
    };
    let tasks: String = (0..=255).map(task).collect();
    let (head, _) = TEXT.split_once("[[vm.vcpus.tasks]]").unwrap();
    let directory = support::files();
    let refused = support::check(directory.path(), &(head.to_owned() + &tasks)).unwrap_err();
    let said = refused.plain();
    assert!(said.contains("the tasks of VM `a` do not fit its device tree"), "{said}");
    assert!(said.contains("describe fewer tasks"), "{said}");
}

/// A real-time VM on pCPU 0, whose vCPU displaces the first one of a Linux; a task on pCPU 1, below.
const MIGRATES: &str = r#"
board = { kind = "qemu-virt", pcpus = 3, memory = "256M" }

[[vm]]
name = "linux"
kernel = "Image"
memory = { size = "64M" }
migration_policy = "on-demand"
vcpus = [{ pcpu = 0, priority = 3, server = { kind = "periodic", budget = "2ms", period = "10ms" } }]

[[vm]]
name = "rtos"
kernel = "rtos.elf"
memory = { size = "64M" }
realtime = true
vcpus = [{ pcpu = 0, priority = 9, server = { kind = "deferrable", budget = "3ms", period = "10ms" } }]

[[vm]]
name = "below"
kernel = "rtos.elf"
memory = { size = "64M" }
[[vm.vcpus]]
pcpu = 1
priority = 2
server = { kind = "deferrable", budget = "5ms", period = "10ms" }
[[vm.vcpus.tasks]]
name = "t"
priority = 1
period = "40ms"
segments = [{ wcet = "2ms" }]
"#;

/// Names, pCPUs and priorities of the vCPUs of the model.
fn modelled(text: &str) -> Vec<(String, u32, i64)> {
    let system = support::sound(support::files().path(), text).timing.unwrap();
    assert_eq!(system.check(), Ok(()));
    system.vcpus.iter().map(|vcpu| (vcpu.id.clone(), vcpu.pcpu, vcpu.priority)).collect()
}

#[test]
fn a_budget_is_admitted_wherever_its_vcpu_may_be() {
    let (lowest, low, middle, high) = (0, 1, 2, 4);
    let expected = [
        ("linux.0", 0, low),
        ("rtos.0", 0, high),
        ("below.0", 1, lowest),
        ("linux.0 on pCPU 1", 1, middle),
        ("linux.0 on pCPU 2", 2, middle + 1),
    ];
    assert_eq!(modelled(MIGRATES), expected.map(|(id, pcpu, rank)| (id.to_owned(), pcpu, rank)));
    let checked = support::sound(support::files().path(), MIGRATES);
    assert_eq!(checked.vms[0].vcpus[0].server.unwrap().kind, ServerKind::Periodic);
    let system = checked.timing.unwrap();
    // It may have its budget at the end of one period elsewhere, and the next at once.
    let service = Service { kind: ServerKind::Deferrable, overrun: false };
    assert_eq!([0, 3, 4].map(|vcpu| system.service(vcpu)), [service; 3]);
    let response = |system| analyze(system, Bounds::Corrected).unwrap().vcpus[2].response_ns;
    assert_eq!(response(&system), Some(9_000_000), "5 ms, and twice 2 ms of the other one");
    let stays = MIGRATES.replace("migration_policy = \"on-demand\"", "");
    assert_eq!(modelled(&stays).len(), 3);
}

#[test]
fn more_budgets_than_fit_where_one_may_come_are_found() {
    let more = MIGRATES.replace("budget = \"5ms\"", "budget = \"7ms\"");
    let system = support::sound(support::files().path(), &more).timing.unwrap();
    let verdict = analyze(&system, Bounds::Corrected).unwrap();
    assert!(!verdict.schedulable() && verdict.vcpus[2].response_ns.is_none());
}

#[test]
fn a_budget_is_where_its_policy_or_consolidation_puts_its_vcpu() {
    let partition = MIGRATES.replace("on-demand", "partition");
    let all = modelled(&partition);
    assert_eq!(all.len(), 3, "it is only there: {all:?}");
    assert_eq!((all[0].0.as_str(), all[0].1), ("linux.0", 2), "no vCPU is there");
    let gathered = r#"
        board = { kind = "qemu-virt", pcpus = 3, memory = "256M" }
        [[vm]]
        name = "linux"
        kernel = "Image"
        memory = { size = "64M" }
        consolidate = true
        vcpus = [
            { pcpu = 0, priority = 3, server = { kind = "deferrable", budget = "2ms", period = "10ms" } },
            { pcpu = 1, priority = 2, server = { kind = "deferrable", budget = "2ms", period = "10ms" } },
            { pcpu = 2, priority = 1, server = { kind = "deferrable", budget = "2ms", period = "10ms" } },
        ]
    "#;
    let all: Vec<_> = modelled(gathered).into_iter().map(|(id, pcpu, _)| (id, pcpu)).collect();
    let expected = [
        ("linux.0", 0),
        ("linux.1", 1),
        ("linux.2", 2),
        ("linux.1 on pCPU 0", 0),
        ("linux.2 on pCPU 0", 0),
    ];
    assert_eq!(all, expected.map(|(id, pcpu)| (id.to_owned(), pcpu)));
    let warnings = support::sound(support::files().path(), gathered).warnings;
    assert_eq!(warnings.plain(), "", "a budget leaves time for those below it");
}

#[test]
fn handlers_are_analysed_and_lengthen_what_el2_allows() {
    let directory = support::files();
    let tick = "handlers = [{ name = \"tick\", period = \"1ms\", wcet = \"20us\" }]\n";
    let tasks = "[[vm.vcpus.tasks]]\nname = \"control\"";
    let with = TEXT.replace(tasks, &format!("{tick}{tasks}"));
    let [without, with] = [TEXT, with.as_str()].map(|text| support::sound(directory.path(), text));
    let timing = with.timing.as_ref().unwrap();
    let [handler] = &timing.handlers[..] else { panic!() };
    assert_eq!((handler.id.as_str(), handler.vcpu), ("a.0/tick", 0));
    assert_eq!((handler.period_ns, handler.wcet_ns), (1_000_000, 20_000));
    let overrun = |checked: &system::Checked| checked.vms[0].vcpus[0].server.unwrap().overrun_ns;
    // A section of 100 us, and the interrupts of two periods of the server and one more.
    let more = overrun(&with) - overrun(&without);
    assert!((22 * 20_000..22 * 26_000).contains(&more), "{more}");
    let raised = |checked: &system::Checked| {
        let packed = system::pack(checked, &support::elf::plain_hypervisor()).unwrap();
        let mut file = Vec::new();
        packed.write(&mut file).unwrap();
        system::unpack(&file).unwrap().tables.vcpus[0].gcs_ns
    };
    assert!(raised(&with) >= raised(&without) + 30 * 20_000, "of one period more");
}
