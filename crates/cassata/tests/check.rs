//! What `cassata check` says of a sound description, to people and to programs.

mod support;

use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use support::{command, files, said};

/// Two pCPUs with an RTOS, two without; Linux has this policy.
fn describe(directory: &Path, policy: &str) {
    let text = format!(
        r#"
board = {{ kind = "qemu-virt", pcpus = 4, memory = "256M" }}

[[vm]]
name = "linux"
kernel = "Image"
memory = {{ size = "16M" }}
vcpus = [{{ pcpu = 0, priority = 1 }}, {{ pcpu = 1, priority = 1 }}, {{ pcpu = 2, priority = 1 }}]
migration_policy = "{policy}"

[[vm]]
name = "rtos"
kernel = "rtos.bin"
format = "flat"
memory = {{ size = "4M" }}
realtime = true
vcpus = [{{ pcpu = 0, priority = 10 }}]
"#
    );
    fs::write(directory.join("a.toml"), text).unwrap();
}

/// Of each VM, what its column "may leave for pCPU" says.
fn may_leave(policy: &str) -> [String; 2] {
    let directory = files();
    describe(directory.path(), policy);
    let table = said(directory.path(), &["check", "a.toml"]);
    let last = |first: &str| {
        let row = table.lines().find(|line| line.trim_start().starts_with(first)).unwrap();
        row.rsplit("  ").next().unwrap().trim().to_owned()
    };
    assert_eq!(last("VM"), "may leave for pCPU");
    ["linux", "rtos"].map(last)
}

#[test]
fn the_table_says_where_each_vcpu_may_go() {
    assert_eq!(may_leave("on-demand"), ["1 then 2 or idle 3, -, -", "-"]);
    assert_eq!(may_leave("balance"), ["idle 1 2 3, -, -", "-"]);
    assert_eq!(may_leave("none"), ["-", "-"]);
}

/// Adds a link to a.toml.
fn link(directory: &Path) {
    add(
        directory,
        "\n[[link]]\nname = \"control\"\nbetween = [\"rtos\", \"linux\"]\nsize = \"64K\"\n",
    );
}

/// Gives a VM of a.toml virtio devices of the other one.
fn virtio(directory: &Path) {
    add(
        directory,
        "\n[[virtio]]\nfront = \"rtos\"\nback = \"linux\"\ndevices = [\"block\", \"network\"]\nmemory = \"2M\"\n",
    );
}

/// Adds something to a.toml.
fn add(directory: &Path, text: &str) {
    let path = directory.join("a.toml");
    fs::write(&path, fs::read_to_string(&path).unwrap() + text).unwrap();
}

#[test]
fn links_are_told() {
    let directory = files();
    describe(directory.path(), "none");
    assert!(!said(directory.path(), &["check", "a.toml"]).contains("linked"));
    link(directory.path());
    let said = said(directory.path(), &["check", "a.toml"]);
    let expected = "\n  linked: control between rtos and linux (64 KiB)\n  \
                    parts of the hypervisor: links\n";
    assert!(said.ends_with(expected), "{said}");
}

#[test]
fn virtio_devices_are_told() {
    let directory = files();
    describe(directory.path(), "none");
    virtio(directory.path());
    let said = said(directory.path(), &["check", "a.toml"]);
    let expected = "\n  virtio devices: rtos has block, network of linux (2 MiB)\n  \
                    parts of the hypervisor: virtio\n";
    assert!(said.ends_with(expected), "{said}");
}

#[test]
fn programs_are_told_the_same() {
    let directory = files();
    describe(directory.path(), "on-demand");
    link(directory.path());
    virtio(directory.path());
    let said = said(directory.path(), &["check", "--json", "a.toml"]);
    let said: Value = serde_json::from_str(&said).unwrap();
    let linux = |pcpu: u32, fallback: Value, affinity: Value, rotation: Value| {
        json!({
            "pcpu": pcpu, "priority": 1, "fallback": fallback, "affinity": affinity,
            "rotation": rotation, "timer_advance_ns": 0, "adapts_timer_advance": false,
        })
    };
    let expected = json!({
        "pcpus": 4,
        "memory": 256 << 20,
        "consolidation_targets": [0, 1, 2, 3],
        "vms": [
            {
                "name": "linux", "memory": 16 << 20, "realtime": false,
                "migration_policy": "on-demand", "interrupts_to": null,
                "vcpus": [
                    linux(0, json!(1), json!([0, 1, 2, 3]), json!([1, 2])),
                    linux(1, Value::Null, json!([1]), json!([])),
                    linux(2, Value::Null, json!([2]), json!([])),
                ],
            },
            {
                "name": "rtos", "memory": 4 << 20, "realtime": true,
                "migration_policy": "none", "interrupts_to": null,
                "vcpus": [{
                    "pcpu": 0, "priority": 10, "fallback": null, "affinity": [0], "rotation": [],
                    "timer_advance_ns": 4_000, "adapts_timer_advance": false,
                }],
            },
        ],
        "links": [
            { "name": "control", "between": ["rtos", "linux"], "size": 64 << 10, "cached": false },
        ],
        "virtio": [
            { "front": "rtos", "back": "linux", "devices": ["block", "network"], "memory": 2 << 20 },
        ],
        "parts": ["links", "virtio"],
    });
    assert_eq!(said, expected);
}

/// A script that keeps the answer must learn if there is none.
#[test]
fn an_answer_that_could_not_be_said_is_an_error() {
    let directory = files();
    describe(directory.path(), "on-demand");
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = command(directory.path(), &["check", "--json", "a.toml"]).stdout(full).output();
    let output = output.unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{complaint}");
    assert!(complaint.contains("cannot write to standard output"), "{complaint}");
}

/// Describes one vCPU with one task, `rtos/t`, in a.toml.
fn describe_task(directory: &Path, [budget, every]: [&str; 2], [period, wcet]: [&str; 2]) {
    let text = format!(
        r#"
board = {{ kind = "qemu-virt", pcpus = 1, memory = "256M" }}

[[vm]]
name = "rtos"
kernel = "rtos.bin"
format = "flat"
memory = {{ size = "4M" }}
[[vm.vcpus]]
pcpu = 0
priority = 10
server = {{ kind = "deferrable", budget = "{budget}", period = "{every}" }}
tasks = [{{ name = "t", priority = 1, period = "{period}", segments = [{{ wcet = "{wcet}" }}] }}]
"#
    );
    fs::write(directory.join("a.toml"), text).unwrap();
}

/// 3 ms of a task and two gaps of 7 ms: 17 ms, if EL2 takes nothing.
#[test]
fn a_deadline_without_room_for_el2_is_not_promised() {
    let directory = files();
    describe_task(directory.path(), ["3ms", "10ms"], ["17ms", "3ms"]);
    let run = |arguments: &[&str]| command(directory.path(), arguments).output().unwrap();
    assert_eq!(run(&["check", "a.toml", "--no-overheads"]).status.code(), Some(0));
    let refused = run(&["check", "a.toml"]);
    assert_eq!(refused.status.code(), Some(1));
    let complaint = String::from_utf8_lossy(&refused.stderr);
    assert!(complaint.contains("task `rtos/t` may miss its deadline of 17 ms"), "{complaint}");
    let answer = |arguments: &[&str]| -> Value {
        let output = run(&[&["analyze", "a.toml", "--json"], arguments].concat());
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let [plain, once, twice] =
        [&["--no-overheads"][..], &["--margin", "1"], &["--margin", "2"]].map(answer);
    assert_eq!(
        (&plain["overheads"], &plain["tasks"][0]["response"]),
        (&Value::Null, &json!(17_000_000))
    );
    let release = |answer: &Value| answer["overheads"]["release_ns"].as_u64().unwrap();
    assert_eq!(release(&twice), 2 * release(&once));
}

/// The same, but for all the time in the world: seconds. What is computed from the image is never
/// less than what was measured.
#[test]
fn bounds_contain_what_is_computed_from_the_image_when_asked() {
    let directory = files();
    describe_task(directory.path(), ["5s", "10s"], ["50s", "1s"]);
    let run = |arguments: &[&str]| command(directory.path(), arguments).output().unwrap();
    let answer = |arguments: &[&str]| -> Value {
        let output =
            run(&[&["analyze", "a.toml", "--json", "--bounds", "corrected"], arguments].concat());
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        serde_json::from_slice(&output.stdout).expect(&complaint)
    };
    let measured = answer(&["--margin", "1"]);
    let computed = answer(&["--overheads", "computed"]);
    let sum = |answer: &Value, names: &[&str]| -> u64 {
        let times = &answer["overheads"];
        names.iter().map(|name| times[name].as_u64().unwrap()).sum()
    };
    for names in [
        &["release_ns"][..],
        &["switch_on_wake_ns", "departure_ns"],
        &["switch_on_sleep_ns", "departure_ns"],
        &["timer_ns"],
        &["doorbell_ns"],
        &["gcs_call_ns", "grant_ns"],
        &["duty_ns"],
    ] {
        let [measured, computed] = [&measured, &computed].map(|answer| sum(answer, names));
        assert!(computed >= measured, "{names:?}: {computed} < {measured}");
    }
    let response = |answer: &Value| answer["tasks"][0]["response"].as_u64().unwrap();
    assert!(response(&computed) > response(&measured));
    assert_eq!(run(&["check", "a.toml", "--overheads", "computed"]).status.code(), Some(0));
    // For JSON the figures are those of any system.
    let json = r#"{"server": "deferrable", "overrun": false, "tasks": [],
      "vcpus": [{"id": "v", "pcpu": 0, "budget": 5000000000, "period": 1000000000000, "priority": 1}]}"#;
    fs::write(directory.path().join("a.json"), json).unwrap();
    let any = run(&["analyze", "a.json", "--json", "--overheads", "computed"]);
    let any: Value = serde_json::from_slice(&any.stdout).unwrap();
    assert!(sum(&any, &["timer_ns"]) > sum(&computed, &["timer_ns"]));
}

#[test]
fn what_is_computed_has_no_margin() {
    let directory = files();
    describe(directory.path(), "on-demand");
    let run = |arguments: &[&str]| command(directory.path(), arguments).output().unwrap();
    let json = r#"{"server": "deferrable", "overrun": false, "tasks": [],
      "vcpus": [{"id": "v", "pcpu": 0, "budget": 5, "period": 10, "priority": 1}]}"#;
    fs::write(directory.path().join("a.json"), json).unwrap();
    let margin = ["--overheads", "computed", "--margin", "2"];
    let refused = run(&[&["analyze", "a.json"], &margin[..]].concat());
    let complaint = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{complaint}");
    assert!(complaint.contains("has no margin"), "{complaint}");
    for both in [["--no-overheads", "--margin=2"], ["--no-overheads", "--overheads=measured"]] {
        let refused = run(&[&["analyze", "a.json"], &both[..]].concat());
        let complaint = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{complaint}");
        assert!(complaint.contains("cannot be used with"), "{complaint}");
    }
}

#[test]
fn no_budgets_are_searched_for_vcpus_that_migrate() {
    let directory = files();
    let text = r#"
board = { kind = "qemu-virt", pcpus = 2, memory = "256M" }

[[vm]]
name = "guest"
kernel = "rtos.bin"
format = "flat"
memory = { size = "4M" }
migration_policy = "on-demand"
vcpus = [{ pcpu = 0, priority = 1, server = { kind = "deferrable", budget = "3ms", period = "10ms" } }]

[[vm]]
name = "rtos"
kernel = "rtos.bin"
format = "flat"
memory = { size = "4M" }
realtime = true
vcpus = [{ pcpu = 0, priority = 9, server = { kind = "deferrable", budget = "3ms", period = "10ms" } }]
"#;
    fs::write(directory.path().join("a.toml"), text).unwrap();
    let run = |arguments: &[&str]| command(directory.path(), arguments).output().unwrap();
    assert_eq!(run(&["analyze", "a.toml"]).status.code(), Some(0));
    let refused = run(&["analyze", "a.toml", "--find-budgets"]);
    let complaint = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(2), "{complaint}");
    assert!(complaint.contains("no budgets are searched for vCPUs that migrate"), "{complaint}");
}
