use super::live::{fitted, lines};
use super::scene::Recent;
use super::*;
use crate::guests::Transcript;
use crate::machine::Memory;
use crate::observe::{Layout, Observer, VcpuName, VmLayout};
use crate::trace::Latest;
use abi::report::events::Event;
use abi::report::{Header, Sample};
use abi::status::{Status, vm_state};
use abi::trace::{Kind, Record};
use sched::CoreSet;
use sched::policy::{MigrationPolicy, PolicySet};
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use zerocopy::{FromZeros, IntoBytes};

const BASE: u64 = 0x4000_0000;
const REPORT: u64 = BASE + 0x1_0000;

fn observer() -> Observer {
    observer_of(u64::MAX)
}

/// An observer of a machine whose one core has vCPU `current`, if it is one, for 250 ms.
fn observer_of(current: u64) -> Observer {
    let memory = Memory::create(BASE, 1 << 20).unwrap();
    let mut status = Status::new_zeroed();
    (status.magic, status.counter_hz, status.boot) = (abi::status::MAGIC, 1_000_000, 0);
    (status.vms[0].state, status.vms[0].starts) = (vm_state::RUNNING, 2);
    status.vcpus[0].run = 250_000;
    (status.pcpus[0].online, status.pcpus[0].current) = (1, current);
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
    let vm = VmLayout {
        name: "rtos".into(),
        vcpus: 0..1,
        report: Some((REPORT, 4096)),
        policy: MigrationPolicy::None,
        may_switch_to: PolicySet::EMPTY,
    };
    let vcpus = vec![VcpuName { vm: 0, index: 0, server: None, affinity: CoreSet::of(0) }];
    let layout = Layout {
        status_pa: BASE,
        pcpus: 1,
        vms: vec![vm],
        vcpus,
        streams: Vec::new(),
        plain_report: None,
    };
    let mut observer = Observer::new(layout);
    observer.poll_held(&memory, Duration::ZERO).unwrap();
    observer
}

fn said(text: &'static str) -> Transcript {
    let mut said = Transcript::new(1);
    said.hear(&crate::testing::lines(text));
    said
}

/// What there is to show at the very beginning.
fn scene<'a>(
    observer: &'a Observer,
    said: &'a Transcript,
    latest: Option<&'a Latest>,
) -> Scene<'a> {
    let (elapsed, virtual_time, limit) = (Duration::ZERO, None, None);
    Scene { elapsed, virtual_time, limit, observer, said, latest }
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
    let (paper, observer, said) = (Paper::default(), observer(), said("\x1f1hello\nworld\n"));
    let mut view = Plain::new(paper.clone());
    for ms in (0..5_000).step_by(50) {
        let elapsed = Duration::from_millis(ms);
        view.show(&Scene { elapsed, ..scene(&observer, &said, None) });
    }
    let text = String::from_utf8(paper.0.lock().unwrap().clone()).unwrap();
    let first = "[   2.0 s] rtos: running (2 starts); vCPU 0 has 25.0 % of pCPU 0; \
                 1 activations, 7 missed, dispatch p50 21.0 µs, p99 -, max 21.0 µs";
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[..2], [first, "[   2.0 s] rtos| world"]);
    assert_eq!(lines.len(), 3, "what was said before is not said again: {text}");
}

#[test]
fn the_live_block_shows_state_shares_latency_and_last_lines() {
    let (observer, said) = (observer(), said("\x1f0up\n\x1f1a\nb\n\nc\nd\ne\n"));
    let scene = Scene {
        elapsed: Duration::from_millis(1_500),
        virtual_time: Some(Duration::from_millis(250)),
        limit: Some(Duration::from_secs(90)),
        ..scene(&observer, &said, None)
    };
    let block = lines("cassata demo", &scene, &mut Recent::over(Duration::from_secs(1)));
    let block: Vec<_> = block.iter().map(|l| console::strip_ansi_codes(l).into_owned()).collect();
    assert_eq!(block[0], "cassata demo  1.5 s, 0.25 of 90 s of virtual time; Ctrl-C ends it");
    assert!(block[2].starts_with("  rtos            running (2 starts)"), "{}", block[2]);
    assert!(block[2].ends_with("vCPU 0 on pCPU 0  ████░░░░░░░░░░░░  25.0 %"), "{}", block[2]);
    assert!(block[3].contains("7 missed, dispatch p50 21.0 µs"));
    assert_eq!(block[5], "  pCPU 0  idle                        ", "as EL2 says");
    assert_eq!(
        block[7..],
        ["  hypervisor│ up", "  rtos│ b", "  rtos│ c", "  rtos│ d", "  rtos│ e"]
    );
}

#[test]
fn before_el2_has_begun_the_views_say_so() {
    let layout = observer().layout.clone();
    let observer = Observer::new(layout);
    let said = said("");
    let scene = scene(&observer, &said, None);
    let block = lines("x", &scene, &mut Recent::over(Duration::from_secs(1)));
    assert!(block[2].contains("rtos") && block[2].contains("waiting"), "{}", block[2]);
}

/// Returns the line that the block has of the core.
fn core_line(observer: &Observer, latest: Option<&Latest>) -> String {
    let said = said("");
    let scene = scene(observer, &said, latest);
    let block = lines("x", &scene, &mut Recent::over(Duration::from_secs(1)));
    let block: Vec<_> = block.iter().map(|l| console::strip_ansi_codes(l).into_owned()).collect();
    let mut cores = block.iter().filter(|line| line.starts_with("  pCPU "));
    let line = cores.next().unwrap().trim_end().to_owned();
    assert_eq!(cores.next(), None, "one core, one line: {block:?}");
    line
}

#[test]
fn the_live_block_shows_what_each_core_does() {
    let (busy, idle) = (observer_of(0), observer_of(u64::MAX));
    assert_eq!(core_line(&idle, None), "  pCPU 0  idle");
    assert!(core_line(&busy, None).starts_with("  pCPU 0  rtos.0 for "));
    // A vCPU that there is not.
    assert_eq!(core_line(&observer_of(9), None), "  pCPU 0  idle");
    // Nothing was recorded yet.
    assert_eq!(core_line(&busy, Some(&Latest::of(1))), "  pCPU 0  rtos.0");
}

#[test]
fn a_trace_tells_the_latest_switches_of_each_core() {
    let mut latest = Latest::of(1);
    let run = |time, argument| Record::new(time, Kind::Run, 0, argument);
    let stop = |time| Record::new(time, Kind::Stop, 0, 0);
    latest.take(0, &[run(100, 0), stop(121), run(200, 1), stop(1_200), run(2_000, 0)]);
    let mut switch = Event { length: 7, ..Event::new_zeroed() };
    switch.text[..7].copy_from_slice(b"measure");
    latest.hear(0, &[switch]);
    let observer = observer_of(u64::MAX);
    let before = "before: rtos.0 (idles) 1.00 ms, rtos.0 21.0 µs";
    assert_eq!(
        core_line(&observer, Some(&latest)),
        format!("  pCPU 0  rtos.0 measure                {before}"),
        "the trace is newer than what EL2 has counted"
    );
    latest.take(0, &[stop(2_005)]);
    let idle =
        format!("  pCPU 0  idle                          before: rtos.0 5.00 µs, {}", &before[8..]);
    assert_eq!(core_line(&observer, Some(&latest)), idle);
}

#[test]
fn a_narrow_terminal_has_the_beginning_of_each_line() {
    let mut latest = Latest::of(1);
    let run = |time| Record::new(time, Kind::Run, 0, 0);
    (0..20).for_each(|turn| latest.take(0, &[run(turn * 1_000)]));
    let (observer, said) = (observer_of(0), said("\x1f1hello\n"));
    let scene = scene(&observer, &said, Some(&latest));
    let block = lines("cassata run", &scene, &mut Recent::over(Duration::from_secs(1)));
    for (height, width) in [(1, 1), (2, 10), (8, 40), (100, 300)] {
        let fitted = fitted(&block, height, width);
        assert!(fitted.len() <= (height - 1).max(1), "{height}: {fitted:?}");
        assert!(fitted.iter().all(|line| console::measure_text_width(line) <= width), "{fitted:?}");
    }
    let narrow = fitted(&block, 8, 40);
    let core = narrow.iter().find(|line| line.contains("pCPU 0  rtos.0"));
    assert!(core.is_some_and(|line| line.contains('…')), "{narrow:?}");
}
