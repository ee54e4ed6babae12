//! A synthetic machine memory stands in for a running system.

use super::*;
use abi::report::{Header, Sample};
use abi::status::{Status, vcpu_state};
use zerocopy::{FromZeros, IntoBytes};

const BASE: u64 = 0x4000_0000;
const STATUS: u64 = BASE + 0x1_0000;
const REPORT: u64 = BASE + 0x8_0000;
const REPORT_SIZE: u64 = 64 + 8 * 16;
const HZ: u64 = 1_000_000;

fn memory() -> Memory {
    Memory::create(BASE, 1 << 20).unwrap()
}

fn layout() -> Layout {
    crate::testing::layout_with(STATUS, (REPORT, REPORT_SIZE))
}

fn status() -> Status {
    let mut status = Status::new_zeroed();
    status.magic = abi::status::MAGIC;
    status.counter_hz = HZ;
    status.boot = 1_000;
    for (pcpu, current) in status.pcpus.iter_mut().zip([0, 2]) {
        (pcpu.online, pcpu.current, pcpu.since) = (1, current, 1_000);
    }
    for (vcpu, pcpu) in status.vcpus.iter_mut().zip([0, 1, 1]) {
        (vcpu.state, vcpu.pcpu) = (vcpu_state::SUSPENDED, pcpu);
    }
    status
}

/// A guest that reports, over a ring of eight samples.
struct Guest<'a> {
    memory: &'a Memory,
    header: Header,
}

impl<'a> Guest<'a> {
    fn new(memory: &'a Memory) -> Self {
        let header = Header {
            magic: abi::report::MAGIC,
            counter_hz: HZ,
            capacity: 8,
            written: 0,
            missed: 0,
            period: 1_000,
            load_permille: 300,
            load_units: 0,
        };
        memory.write_bytes(REPORT, header.as_bytes()).unwrap();
        Self { memory, header }
    }

    fn write(&mut self, count: u64) {
        for _ in 0..count {
            let n = self.header.written;
            let dispatch = 20 + n as u32;
            let sample = Sample { raised: 5_000 + n * 1_000, response: 10, dispatch };
            let slot = REPORT + 64 + n % self.header.capacity * 16;
            self.memory.write_bytes(slot, sample.as_bytes()).unwrap();
            self.header.written += 1;
            self.memory.write_bytes(REPORT, self.header.as_bytes()).unwrap();
        }
    }
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

#[test]
fn nothing_is_seen_before_el2_has_begun() {
    let memory = memory();
    let mut observer = Observer::new(layout());
    observer.poll_held(&memory, Duration::ZERO).unwrap();
    assert!(observer.latest().is_none());
    assert!(observer.reports(0).is_none());
    assert!(observer.reports(1).unwrap().header.is_none());
}

#[test]
fn a_guest_without_a_hypervisor_is_followed_where_its_area_is() {
    let memory = memory();
    let plain_report = Some((REPORT, REPORT_SIZE));
    let mut observer = Observer::new(Layout { plain_report, ..Layout::default() });
    let mut guest = Guest::new(&memory);
    for count in [5, 7] {
        guest.write(count);
        observer.poll_held(&memory, Duration::ZERO).unwrap();
    }
    let reports = observer.reports(0).unwrap();
    assert_eq!((reports.lateness().unwrap().activations, reports.lost()), (12, 0));
    assert_eq!(reports.dispatch.max(), Some(31));
    assert!(observer.latest().is_none() && observer.reports(1).is_none());
}

/// What a guest reports may be any time, and any period.
#[test]
fn a_guest_that_reports_the_end_of_time_ends_nothing() {
    let (memory, mut status) = (memory(), status());
    status.vcpus[0].run = 5_000;
    memory.write_bytes(STATUS, status.as_bytes()).unwrap();
    let mut guest = Guest::new(&memory);
    guest.header.period = 1;
    guest.write(2);
    let sample = Sample { raised: u64::MAX, response: 1, dispatch: 2 };
    memory.write_bytes(REPORT + 64, sample.as_bytes()).unwrap();
    let sample = Sample { raised: 0, ..sample };
    memory.write_bytes(REPORT + 64 + 16, sample.as_bytes()).unwrap();
    let mut observer = Observer::new(layout());
    for _ in 0..2 {
        observer.look(&memory, Duration::ZERO, None).unwrap();
    }
    assert_eq!(observer.reports(1).unwrap().due(), Some(u64::MAX));
    assert_eq!(observer.latest().unwrap().vcpus[0].run, u64::MAX);
    // In virtual time the counter is known, so what a guest says concerns no other.
    let mut observer = Observer::new(layout());
    for _ in 0..2 {
        observer.poll_held(&memory, Duration::from_millis(9)).unwrap();
    }
    assert_eq!(observer.latest().unwrap().vcpus[0].run, 5_000 + 8_000);
}

#[test]
fn shares_count_the_turn_that_is_not_over() {
    let (memory, mut status) = (memory(), status());
    let mut observer = Observer::new(layout());
    let mut poll = |status: &Status| {
        memory.write_bytes(STATUS, status.as_bytes()).unwrap();
        observer.poll_held(&memory, Duration::ZERO).unwrap();
        observer.latest().unwrap().clone()
    };
    let first = poll(&status);
    // By 11,000 rtos.0 has run 3,000 and linux.1 began at 4,000.
    status.vcpus[2].run = 3_000;
    (status.pcpus[1].current, status.pcpus[1].since) = (1, 4_000);
    // pCPU 0 rests since 11,000: the latest timestamp anywhere, hence "now".
    (status.pcpus[0].current, status.pcpus[0].since) = (u64::MAX, 11_000);
    (status.pcpus[0].idle, status.vcpus[0].run) = (6_000, 4_000);
    let second = poll(&status);
    assert_eq!(second.now, 10_000);
    let shares: Vec<f64> = (0..3).map(|v| second.share(v, Some(&first))).collect();
    assert!(near(shares[0], 0.4) && near(shares[1], 0.7) && near(shares[2], 0.3), "{shares:?}");
    assert_eq!(second.pcpus[0].idle, 6_000);
    assert_eq!(second.time(second.now), Duration::from_millis(10));
}

#[test]
fn a_turn_without_a_switch_counts_up_to_where_the_machine_is_held() {
    let (memory, status) = (memory(), status());
    memory.write_bytes(STATUS, status.as_bytes()).unwrap();
    let mut observer = Observer::new(layout());
    observer.poll_held(&memory, Duration::from_millis(500)).unwrap();
    let latest = observer.latest().unwrap();
    // EL2 wrote nothing since it was entered, at 1,000.
    assert_eq!((latest.now, latest.vcpus[0].run), (499_000, 499_000));
    assert!(near(latest.share(0, None), 1.0) && near(latest.share(1, None), 0.0));
}

#[test]
fn a_torn_look_never_makes_a_sum_step_back() {
    let (memory, mut status) = (memory(), status());
    let mut observer = Observer::new(layout());
    status.pcpus[0].since = 9_000;
    memory.write_bytes(STATUS, status.as_bytes()).unwrap();
    observer.poll_held(&memory, Duration::ZERO).unwrap();
    assert_eq!(observer.latest().unwrap().vcpus[2].run, 8_000);
    // The pCPU has moved on already, the vCPU's sum has not.
    (status.pcpus[1].current, status.pcpus[1].since) = (1, 9_000);
    memory.write_bytes(STATUS, status.as_bytes()).unwrap();
    observer.poll_held(&memory, Duration::ZERO).unwrap();
    assert_eq!(observer.latest().unwrap().vcpus[2].run, 8_000);
}

/// It did once: looks each 50 us saw a vCPU with more than its budget.
#[test]
fn a_look_while_a_turn_is_booked_does_not_take_it_for_a_later_one() {
    let (memory, mut status) = (memory(), status());
    let mut layout = layout();
    layout.vcpus[2].server =
        Some(Served { budget_ns: 40_000_000, overrun_ns: 0, period_ns: 100_000_000, offset_ns: 0 });
    let mut observer = Observer::new(layout);
    let mut look = |status: &Status, now| {
        memory.write_bytes(STATUS, status.as_bytes()).unwrap();
        observer.poll_held(&memory, Duration::from_micros(now)).unwrap();
        observer.most_in_a_period(2)
    };
    // 40 ms in each period of 100 ms, at the end of one and at the beginning of the other.
    (status.pcpus[1].current, status.pcpus[1].since) = (u64::MAX, 1_000);
    look(&status, 2_000);
    look(&status, 102_000);
    // The turn from 160,990 on has ended, and is not booked.
    (status.pcpus[1].current, status.pcpus[1].since) = (u64::MAX, 200_990);
    look(&status, 200_990);
    look(&status, 200_993);
    status.vcpus[2].run = 80_000;
    status.pcpus[1].since = 241_000;
    let had = look(&status, 300_000).unwrap();
    let limit = Duration::from_millis(40);
    assert!(had.least <= limit && limit <= had.most, "{had:?}");
}

#[test]
fn in_real_time_an_undisturbed_turn_grows_with_our_clock() {
    let (memory, status) = (memory(), status());
    memory.write_bytes(STATUS, status.as_bytes()).unwrap();
    let mut observer = Observer::new(layout());
    observer.look(&memory, Duration::ZERO, None).unwrap();
    observer.look(&memory, Duration::from_millis(250), None).unwrap();
    let latest = observer.latest().unwrap();
    assert_eq!(latest.now, 250_000);
    assert!(near(latest.share(0, None), 1.0));
    assert!(near(latest.share(1, None), 0.0));
    let span = observer.timeline.spans().next().unwrap();
    assert_eq!(span.shares, [(0, 1.0), (1, 0.0), (1, 1.0)]);
}

#[test]
fn a_follower_that_keeps_up_sees_every_sample() {
    let memory = memory();
    let mut guest = Guest::new(&memory);
    let mut observer = Observer::new(layout());
    for count in [3, 0, 5, 4, 7, 1] {
        guest.write(count);
        observer.poll_held(&memory, Duration::ZERO).unwrap();
    }
    let reports = observer.reports(1).unwrap();
    let seen: Vec<_> = reports.dispatch.iter().collect();
    assert_eq!(seen, (20..40).map(|value| (value, 1)).collect::<Vec<_>>());
    assert_eq!((reports.lost(), reports.due()), (0, Some(20)));
}

#[test]
fn an_overrun_is_counted_and_nothing_torn_is_taken() {
    let memory = memory();
    let mut guest = Guest::new(&memory);
    let mut observer = Observer::new(layout());
    guest.write(2);
    observer.poll_held(&memory, Duration::ZERO).unwrap();
    guest.write(20);
    observer.poll_held(&memory, Duration::ZERO).unwrap();
    let reports = observer.reports(1).unwrap();
    // Of 22, two came before, and of the eight in the ring the oldest may be
    // under the guest's pen.
    let seen: Vec<_> = reports.dispatch.iter().map(|(value, _)| value).collect();
    assert_eq!(seen, [20, 21, 35, 36, 37, 38, 39, 40, 41]);
    assert_eq!(reports.lost(), 13);
    assert_eq!(reports.header.unwrap().written, reports.dispatch.count() + reports.lost());
}

#[test]
fn a_guest_that_starts_over_is_followed_from_its_start() {
    let memory = memory();
    let mut observer = Observer::new(layout());
    Guest::new(&memory).write(6);
    observer.poll_held(&memory, Duration::ZERO).unwrap();
    Guest::new(&memory).write(2);
    observer.poll_held(&memory, Duration::ZERO).unwrap();
    let reports = observer.reports(1).unwrap();
    assert_eq!((reports.ring.restarts, reports.lost(), reports.dispatch.count()), (1, 0, 8));
}

#[test]
fn a_header_that_lies_is_not_believed() {
    let memory = memory();
    let mut observer = Observer::new(layout());
    for (capacity, written) in [(0, 5), (9, 5), (u64::MAX, u64::MAX)] {
        let mut guest = Guest::new(&memory);
        (guest.header.capacity, guest.header.written) = (capacity, written);
        memory.write_bytes(REPORT, guest.header.as_bytes()).unwrap();
        observer.poll_held(&memory, Duration::ZERO).unwrap();
        assert!(observer.reports(1).unwrap().header.is_none(), "capacity {capacity}");
    }
}

#[test]
fn a_long_run_is_thinned_out_and_stays_whole() {
    let (memory, mut status) = (memory(), status());
    let mut observer = Observer::new(layout());
    for step in 0..5_000_u64 {
        let now = 1_000 + step * 200_000;
        // Each core's turn begins anew at every look; linux.0 has 75 %.
        status.pcpus.iter_mut().for_each(|pcpu| pcpu.since = now);
        status.vcpus[0].run = step * 150_000;
        memory.write_bytes(STATUS, status.as_bytes()).unwrap();
        observer.poll_held(&memory, Duration::ZERO).unwrap();
    }
    let spans: Vec<_> = observer.timeline.spans().collect();
    assert!((400..=1024).contains(&spans.len()), "{}", spans.len());
    assert!(near(spans[0].begin_s, 0.0) && spans.last().unwrap().end_s > 990.0);
    assert!(spans.iter().all(|span| near(span.shares[0].1, 0.75)));
    assert!(spans.windows(2).all(|pair| near(pair[0].end_s, pair[1].begin_s)));
}

#[test]
fn the_layout_is_what_the_tables_say() {
    let mut system = abi::system::System::default();
    system.header.vm_count = 2;
    system.header.vcpu_count = 3;
    (system.board.status_pa, system.board.pcpu_count) = (STATUS, 2);
    system.vms[0].name[..5].copy_from_slice(b"linux");
    system.vms[0].vcpu_count = 2;
    system.vms[1].name[..4].copy_from_slice(b"rtos");
    (system.vms[1].vcpu_first, system.vms[1].vcpu_count) = (2, 1);
    (system.vms[1].report_pa, system.vms[1].report_size) = (REPORT, REPORT_SIZE);
    system.vcpus[1].index = 1;
    system.vcpus[2].vm = 1;
    system.vcpus[..3].iter_mut().for_each(|vcpu| vcpu.affinity = 1);
    (system.smmu.confined[0].first, system.smmu.confined[0].count) = (16, 8);
    let seen = Layout::of(&system);
    assert_eq!(seen, layout());
    assert_eq!((seen.vm("rtos"), seen.vcpu_label(1)), (Some(1), "linux.1".to_owned()));
}

#[test]
fn a_vm_that_just_starts_has_not_ended() {
    use abi::status::vm_state;
    let memory = memory();
    let mut observer = Observer::new(layout());
    let mut look = |state, starts| {
        let mut status = status();
        (status.vms[1].state, status.vms[1].starts) = (state, starts);
        memory.write_bytes(STATUS, status.as_bytes()).unwrap();
        observer.poll_held(&memory, Duration::ZERO).unwrap();
        observer.latest().unwrap().vms[1].is_over()
    };
    assert!(!look(vm_state::OFF, 0), "not yet");
    assert!(!look(vm_state::OFF, 1), "the state may be older than the start");
    assert!(!look(vm_state::RUNNING, 1));
    assert!(look(vm_state::OFF, 1));
    assert!(!look(vm_state::OFF, 2), "again");
    assert!(look(vm_state::OFF, 2));
    assert!(look(vm_state::FAILED, 3));
}
