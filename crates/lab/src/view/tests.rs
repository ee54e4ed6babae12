use super::live::lines;
use super::scene::Recent;
use super::*;
use crate::machine::Memory;
use crate::observe::{Layout, Observer, VcpuName, VmLayout};
use abi::report::{Header, Sample};
use abi::status::{Status, vm_state};
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use zerocopy::{FromZeros, IntoBytes};

const BASE: u64 = 0x4000_0000;
const REPORT: u64 = BASE + 0x1_0000;

fn observer() -> Observer {
    let memory = Memory::create(BASE, 1 << 20).unwrap();
    let mut status = Status::new_zeroed();
    (status.magic, status.counter_hz, status.boot) = (abi::status::MAGIC, 1_000_000, 0);
    (status.vms[0].state, status.vms[0].starts) = (vm_state::RUNNING, 2);
    status.vcpus[0].run = 250_000;
    (status.pcpus[0].online, status.pcpus[0].current) = (1, u64::MAX);
    status.pcpus[0].since = 1_000_000;
    memory.write_bytes(BASE, status.as_bytes()).unwrap();
    let header = Header {
        magic: abi::report::MAGIC,
        counter_hz: 1_000_000,
        capacity: 8,
        written: 1,
        missed: 7,
        period: 1000,
        load_permille: 0,
        load_units: 0,
    };
    let sample = Sample { raised: 5_000, response: 3, dispatch: 21 };
    memory.write_bytes(REPORT, header.as_bytes()).unwrap();
    memory.write_bytes(REPORT + 64, sample.as_bytes()).unwrap();
    let vm = VmLayout { name: "rtos".into(), vcpus: 0..1, report: Some((REPORT, 4096)) };
    let vcpus = vec![VcpuName { vm: 0, index: 0, server: None }];
    let layout = Layout { status_pa: BASE, pcpus: 1, vms: vec![vm], vcpus };
    let mut observer = Observer::new(layout);
    observer.poll_held(&memory, Duration::ZERO).unwrap();
    observer
}

fn tail(text: &'static str) -> Tail {
    let mut tail = Tail::default();
    tail.extend(&crate::testing::lines(text));
    tail
}

#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn plain_lines_come_every_two_seconds_and_say_it_all() {
    let (paper, observer, tail) = (Paper::default(), observer(), tail("\x1f1hello\nworld\n"));
    let mut view = Plain::new(paper.clone());
    for ms in (0..5_000).step_by(50) {
        let elapsed = Duration::from_millis(ms);
        view.show(&Scene {
            elapsed,
            virtual_time: None,
            limit: None,
            observer: &observer,
            tail: &tail,
        });
    }
    let text = String::from_utf8(paper.0.lock().unwrap().clone()).unwrap();
    let first = "[   2.0 s] rtos: running (2 starts); vCPU 0 has 25.0 % of pCPU 0; \
                 1 activations, 7 missed, dispatch p50 21.0 µs, p99 21.0 µs, max 21.0 µs";
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[..2], [first, "[   2.0 s] rtos| world"]);
    assert_eq!(lines.len(), 3, "what was said before is not said again: {text}");
}

#[test]
fn the_live_block_shows_state_shares_latency_and_last_lines() {
    let (observer, tail) = (observer(), tail("\x1f0up\n\x1f1a\nb\n\nc\nd\ne\n"));
    let scene = Scene {
        elapsed: Duration::from_millis(1_500),
        virtual_time: Some(Duration::from_millis(250)),
        limit: Some(Duration::from_secs(90)),
        observer: &observer,
        tail: &tail,
    };
    let block = lines("cassata demo", &scene, &mut Recent::over(Duration::from_secs(1)));
    let block: Vec<_> = block.iter().map(|l| console::strip_ansi_codes(l).into_owned()).collect();
    assert_eq!(block[0], "cassata demo  1.5 s, 0.25 of 90 s of virtual time; Ctrl-C ends it");
    assert!(block[2].starts_with("  rtos            running (2 starts)"), "{}", block[2]);
    assert!(block[2].ends_with("vCPU 0 on pCPU 0  ████░░░░░░░░░░░░  25.0 %"), "{}", block[2]);
    assert!(block[3].contains("7 missed, dispatch p50 21.0 µs"));
    assert_eq!(
        block[5..],
        ["  hypervisor│ up", "  rtos│ b", "  rtos│ c", "  rtos│ d", "  rtos│ e"]
    );
}

#[test]
fn before_el2_has_begun_the_views_say_so() {
    let layout = observer().layout.clone();
    let observer = Observer::new(layout);
    let tail = Tail::default();
    let scene = Scene {
        elapsed: Duration::ZERO,
        virtual_time: None,
        limit: None,
        observer: &observer,
        tail: &tail,
    };
    let block = lines("x", &scene, &mut Recent::over(Duration::from_secs(1)));
    assert!(block[2].contains("rtos") && block[2].contains("waiting"), "{}", block[2]);
}
