//! Report areas, in which a guest may have written anything.

use crate::bytes::Bytes;
use crate::{files, trace};
use abi::report::{events, tasks};
use abi::status::{self, Status};
use abi::system::System;
use lab::bundle::Bundle;
use lab::figures;
use lab::guests::Transcript;
use lab::machine::Memory;
use lab::observe::Observer;
use lab::session::{End, Run};
use lab::trace::{Recorder, Sources, Trace};
use std::sync::LazyLock;
use std::time::Duration;
use zerocopy::{FromZeros, IntoBytes};

const HZ: u64 = 1_000_000_000;

/// Two VMs with tasks under one mutex, and a report area each.
const TEXT: &str = r#"
[board]
kind = "qemu-virt"
pcpus = 2
memory = "128M"

[hypervisor]
trace = "4K"

[[vm]]
name = "one"
kernel = "rtos.elf"
memory = { size = "2M" }
report = "8K"

[[vm.vcpus]]
pcpu = 0
priority = 2
server = { kind = "deferrable", budget = "1ms", period = "10ms", overrun = true }

[[vm.vcpus.tasks]]
name = "low"
period = "20ms"
priority = 1
segments = [{ wcet = "20us" }, { wcet = "10us", gcs = "page" }]

[[vm]]
name = "two"
kernel = "rtos.elf"
memory = { size = "2M" }
report = "8K"

[[vm.vcpus]]
pcpu = 1
priority = 3
server = { kind = "periodic", budget = "1ms", period = "10ms", overrun = true }

[[vm.vcpus.tasks]]
name = "high"
period = "30ms"
priority = 1
segments = [{ wcet = "20us" }, { wcet = "10us", gcs = "page" }]
"#;

static BUNDLE: LazyLock<Bundle> = LazyLock::new(|| {
    let checked = files::checked(TEXT);
    let (packed, _) = files::packed(&checked);
    Bundle::unstarted(&checked, packed.tables)
});

/// The machine's memory, with the status area as EL2 leaves it and empty report areas.
struct Machine {
    tables: &'static System,
    memory: Memory,
}

impl Machine {
    fn new() -> Self {
        let tables = &BUNDLE.tables;
        let memory = Memory::create(tables.board.ram_pa, tables.board.ram_size).expect("memory");
        let mut status = Status::new_zeroed();
        (status.magic, status.counter_hz, status.boot) = (status::MAGIC, HZ, 1_000);
        for (number, pcpu) in status.pcpus[..2].iter_mut().enumerate() {
            (pcpu.online, pcpu.current, pcpu.since) = (1, number as u64, 5_000_000);
        }
        for (number, vcpu) in status.vcpus[..2].iter_mut().enumerate() {
            (vcpu.pcpu, vcpu.run, vcpu.switches) = (number as u64, 1_000_000, 7);
        }
        memory.write_bytes(tables.board.status_pa, status.as_bytes()).expect("it is in memory");
        Self { tables, memory }
    }

    /// A guest writes, or time passes: then true.
    fn step(&self, bytes: &mut Bytes) -> bool {
        let what = bytes.byte();
        let vm = &self.tables.vms()[usize::from(what >> 7)];
        let put = |offset: u64, bytes: &[u8]| {
            let offset = offset.min(vm.report_size - bytes.len() as u64);
            self.memory.write_bytes(vm.report_pa + offset, bytes).expect("it is in memory");
        };
        let half = events::offset(vm.report_size);
        match what % 8 {
            // A header that makes sense.
            0 => put(0, header(bytes).as_bytes()),
            1 => {
                let (tasks, capacity) = (u64::from(bytes.byte() & 7), u64::from(bytes.byte() & 7));
                let header = tasks::Header { magic: tasks::MAGIC, counter_hz: HZ, tasks, capacity };
                put(0, header.as_bytes());
                // The task that is described.
                let name = if what >> 7 == 0 { "low" } else { "high" };
                put(tasks::task(0), abi::service::hash(name.as_bytes()).as_bytes());
            }
            2 => {
                let (rings, capacity) = (u64::from(bytes.byte() & 3), u64::from(bytes.byte() & 63));
                let begun = bytes.byte().into();
                let counter_hz = HZ;
                let magic = events::MAGIC;
                let reserved = [0; 3];
                let header = events::Header { magic, counter_hz, begun, rings, capacity, reserved };
                put(half, header.as_bytes());
            }
            // The mutex that is described, in the first section of the first task.
            3 => put(tasks::section(0, 0, 1, 1), abi::service::hash(b"page").as_bytes()),
            // Any word, near the beginning of either half or anywhere.
            4 => put(u64::from(bytes.byte()) * 8, bytes.word().as_bytes()),
            5 => put(half + u64::from(bytes.byte()) * 8, bytes.word().as_bytes()),
            6 => put(u64::from(bytes.half()) * 8 % vm.report_size, bytes.word().as_bytes()),
            _ => return true,
        }
        false
    }
}

/// The header of a guest that measures.
fn header(bytes: &mut Bytes) -> abi::report::Header {
    abi::report::Header {
        magic: abi::report::MAGIC,
        counter_hz: HZ,
        capacity: (bytes.byte() & 63).into(),
        written: bytes.word(),
        missed: 0,
        period: bytes.word(),
        load_permille: 0,
        load_units: 0,
    }
}

/// What `run` sees, and everything that it tells.
pub fn follow(input: &[u8]) {
    let (mut bytes, machine) = (Bytes(input), Machine::new());
    let mut observer = Observer::new(BUNDLE.layout());
    let mut now = Duration::from_millis(10);
    while !bytes.is_empty() {
        if machine.step(&mut bytes) {
            now += Duration::from_millis(bytes.byte().into());
            observer.poll_held(&machine.memory, now).expect("all is in memory");
        }
    }
    observer.poll_held(&machine.memory, now).expect("all is in memory");
    let promises = BUNDLE.promises.clone();
    for (_, claims) in promises.claims(&observer) {
        drop(lab::promises::objections(&claims, 2_000));
    }
    let run = Run {
        observer,
        promises,
        said: Transcript::new(2),
        end: End::Reached,
        elapsed: now,
        host: None,
        instrument: None,
        paths: None,
        directory: "none".into(),
        inspected: Vec::new(),
    };
    let mut answer = lab::answer::Answer::new("fuzz", "Fuzz", "");
    figures::tell(&mut answer, &run);
    figures::promises::check(&mut answer.outcome, &run);
    drop(answer.page());
}

/// What a trace has of it.
pub fn record(input: &[u8]) {
    let (mut bytes, machine) = (Bytes(input), Machine::new());
    let directory = tempfile::tempdir().expect("a temporary directory");
    let sources = Sources::of(&BUNDLE).expect("it asks for a trace");
    let mut recorder = Recorder::create(&sources, directory.path()).expect("a file");
    let mut observer = Observer::new(BUNDLE.layout());
    let mut poll = || {
        observer.poll_held(&machine.memory, Duration::from_millis(10)).expect("in memory");
        recorder.poll(&machine.memory, observer.latest()).expect("all is in memory");
    };
    while !bytes.is_empty() {
        if machine.step(&mut bytes) {
            poll();
        }
    }
    poll();
    recorder.finish().expect("there is room");
    trace::use_all(&Trace::read(directory.path()).expect("what was written can be read"));
}
