//! A machine that never ran: its memory as EL2 and an RTOS would have left it, its consoles.

use crate::bundle::Builds;
use crate::console::{ConsoleConfig, Consoles, Cursor, Line};
use crate::guests::Transcript;
use crate::interrupt::Interrupt;
use crate::machine::Memory;
use crate::observe::{Layout, Observer, VcpuName, VmLayout};
use crate::promises::Promises;
use crate::qemu::Qemu;
use crate::session::{End, Run};
use crate::suite::Bench;
use abi::report::{Header, Sample};
use abi::status::{Status, vcpu_state, vm_state};
use sched::CoreSet;
use sched::policy::{MigrationPolicy, PolicySet};
use serde_json::{Value, json};
use std::fmt::Debug;
use std::io::Write;
use std::path::Path;
use std::time::Duration;
use vtime::stats::Statistics;
use vtime::wrap::Instrument;
use zerocopy::{FromZeros, IntoBytes};

/// The project's root.
pub(crate) fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The hypervisor's ELF file, with all parts.
pub(crate) fn hypervisor() -> Vec<u8> {
    let built = concat!(env!("CARGO_MANIFEST_DIR"), "/../../build/el2-parts.elf");
    std::fs::read(built).expect("the launcher has built it")
}

/// Asserts that the descriptions of all cases that have one are such as the packer would take, but for the
/// guests, which are not built in tests. The project is an empty directory.
pub(crate) fn lack_guests_only<C: Debug>(
    cases: impl IntoIterator<Item = C>,
    description: impl Fn(&C, &Path) -> Option<String>,
) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("system.toml");
    for case in cases {
        let Some(text) = description(&case, directory.path()) else { continue };
        let report = system::load_text(&path, &text).unwrap_err();
        let errors: Vec<_> = report.problems().iter().filter(|p| p.is_error()).collect();
        let is_missing = |p: &&system::Problem| p.message.contains("build/guests");
        assert!(!errors.is_empty() && errors.iter().all(is_missing), "{case:?}: {errors:?}");
    }
}

/// Beginning of the memory; the status area is there.
pub(crate) const BASE: u64 = 0x4000_0000;
/// The report area.
pub(crate) const REPORT: u64 = BASE + 0x1_0000;
const REPORT_SIZE: u64 = 0x1_0000;
/// Counter frequency: a tick is a microsecond.
pub(crate) const HZ: u64 = 1_000_000;

/// linux.0 on pCPU 0, linux.1 and rtos.0 on pCPU 1.
pub(crate) fn layout() -> Layout {
    layout_with(BASE, (REPORT, REPORT_SIZE))
}

/// Like [`layout`], with these places for the status area and the RTOS's report area.
pub(crate) fn layout_with(status_pa: u64, report: (u64, u64)) -> Layout {
    let vm = |name: &str, vcpus, report| VmLayout {
        name: name.into(),
        vcpus,
        report,
        policy: MigrationPolicy::None,
        may_switch_to: PolicySet::EMPTY,
    };
    let vcpu = |vm, index| VcpuName { vm, index, server: None, affinity: CoreSet::of(0) };
    Layout {
        status_pa,
        pcpus: 2,
        vms: vec![vm("linux", 0..2, None), vm("rtos", 2..3, Some(report))],
        vcpus: vec![vcpu(0, 0), vcpu(0, 1), vcpu(1, 0)],
        streams: vec![(16..24, 0)],
        plain_report: None,
    }
}

/// For tests of what runs scenarios and cases, none of which boots a machine.
pub(crate) fn bench(directory: &Path) -> Bench {
    Bench {
        root: directory.into(),
        directory: directory.into(),
        hypervisor: Builds {
            silent: b"ships",
            with_parts: b"has parts",
            tracing: b"traces",
            gic_v2: b"is of another board",
            is_checked: false,
        },
        instrument: Instrument::unpack(b"", directory).unwrap(),
        qemu: Qemu::find().unwrap(),
        interrupt: Interrupt::never(),
        records: None,
    }
}

/// Two seconds after boot: linux.0 had half of pCPU 0, rtos.0 a quarter of
/// pCPU 1 and linux.1 the rest.
pub(crate) fn status() -> Status {
    let mut status = Status::new_zeroed();
    (status.magic, status.counter_hz) = (abi::status::MAGIC, HZ);
    for pcpu in &mut status.pcpus[..2] {
        (pcpu.online, pcpu.current, pcpu.since) = (1, u64::MAX, 2 * HZ);
    }
    status.pcpus[0].idle = HZ;
    for vm in &mut status.vms[..2] {
        (vm.state, vm.starts) = (vm_state::RUNNING, 1);
    }
    for (vcpu, (pcpu, run)) in status.vcpus.iter_mut().zip([(0, HZ), (1, 3 * HZ / 2), (1, HZ / 2)])
    {
        (vcpu.state, vcpu.pcpu, vcpu.run) = (vcpu_state::SLEEPING, pcpu, run);
        (vcpu.switches, vcpu.longest_el2) = (1_234, 7);
        (vcpu.kernel_preemptions, vcpu.kernel_preempted) = (56, HZ / 8);
        vcpu.exits = [10, 20, 30, 40, 50, 60, 70, 80, 90];
    }
    status
}

/// A header and samples: an activation each millisecond, the n-th dispatched
/// 10 + n % 100 us late and its handler 4 us earlier.
pub(crate) fn report(activations: u64, missed: u64) -> Vec<u8> {
    let header = Header {
        magic: abi::report::MAGIC,
        counter_hz: HZ,
        capacity: (REPORT_SIZE - 64) / 16,
        written: activations,
        missed,
        period: HZ / 1000,
        load_permille: 250,
        load_units: 99,
    };
    let mut bytes = header.as_bytes().to_vec();
    for n in 0..activations {
        let dispatch = 10 + (n % 100) as u32;
        let sample = Sample { raised: 1_000 * (n + 1), response: dispatch - 4, dispatch };
        bytes.extend_from_slice(sample.as_bytes());
    }
    bytes
}

/// An observer that has looked once at `status` and `report`.
pub(crate) fn observer(status: &Status, report: &[u8]) -> Observer {
    let memory = Memory::create(BASE, 1 << 20).unwrap();
    memory.write_bytes(BASE, status.as_bytes()).unwrap();
    memory.write_bytes(REPORT, report).unwrap();
    let mut observer = Observer::new(layout());
    observer.poll_held(&memory, Duration::ZERO).unwrap();
    observer
}

/// What the instrument counted in two seconds of virtual time, with a core for each of `cores`:
/// its instructions and, if there was a range, those in it.
pub(crate) fn statistics<R: Into<Value>>(cores: impl IntoIterator<Item = (u64, R)>) -> Statistics {
    let core = |(instructions, range): (u64, R)| {
        json!({
            "instructions": instructions, "idle_ns": 1_500_000_000, "range": range.into(),
            "forced_leaves": { "stall": 0, "main_loop": 0, "timeout": 0 },
        })
    };
    let counts = json!({
        "finished": true, "quantum_ns": 2_000, "mhz": 1_000, "virtual_ns": 2_000_000_000,
        "real_ns": 9_000_000_000_u64, "slowdown": 4.5, "quanta": 1, "early_ends": 0,
        "deadlines": 0, "jumps": 0, "settlings": 0,
        "vcpus": cores.into_iter().map(core).collect::<Value>(),
    });
    serde_json::from_value(counts).unwrap()
}

/// Returns the lines of a UART that carried `text`.
pub(crate) fn lines(text: &str) -> Vec<Line> {
    let (output, mut machine) = std::io::pipe().unwrap();
    machine.write_all(text.as_bytes()).unwrap();
    drop(machine);
    let silent = Box::new(std::io::sink());
    let consoles = Consoles::start(output, silent, &ConsoleConfig::default()).unwrap();
    consoles.finish();
    consoles.follow(&mut Cursor::default(), Duration::ZERO)
}

/// A run of two seconds that left `observer` and said `text`.
pub(crate) fn run(observer: Observer, text: &str, end: End) -> Run {
    let mut said = Transcript::new(observer.layout.vms.len());
    said.hear(&lines(text));
    let (elapsed, directory) = (Duration::from_secs(2), "results/run-x".into());
    let promises = Promises::default();
    let (paths, host, instrument, inspected) = (None, None, None, Vec::new());
    Run { observer, promises, paths, said, end, elapsed, host, instrument, directory, inspected }
}
