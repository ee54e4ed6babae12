//! Virtual time seen from inside the machine.

use crate::board::Board;
use vtime::metronome::Report;
use vtime::options::Options;
use vtime::rate::ClockRate;

fn report(cores: u32, interrupts: u64, options: Options) -> Report {
    let mut board = Board::start(cores, interrupts, options, &[]);
    let lines = board.lines_to("metronome: done");
    let (status, statistics) = board.wait();
    assert!(status.success());
    assert!(statistics.finished);
    Report::read(lines.iter().map(String::as_str)).unwrap()
}

/// Three instructions reach the read of the counter from the vector; before
/// them the block ends that crosses the timer's time, one round of the loop.
const EXACT_NS: u64 = 3 + 4;

#[test]
fn four_cores_take_every_interrupt_in_time_and_count_every_instruction() {
    let options = Options::default();
    let report = report(4, 1_000, options.clone());
    assert_eq!(report.records.len(), 16);
    for record in &report.records {
        assert_eq!(
            (record.interrupts, record.early, record.most_surplus),
            (1_000, 0, 0),
            "{record:?}"
        );
        // Where cores interrupt each other, a timer's interrupt can find
        // interrupts masked.
        let limit = if record.phase == "ipi" { options.quantum_ns } else { EXACT_NS };
        assert!(record.latest_ns <= limit && record.most_missing <= limit, "{record:?}");
    }
    assert!(report.phase("ipi").all(|record| record.sgis > 0));
    assert!(report.farthest_behind_ns <= options.quantum_ns, "{}", report.farthest_behind_ns);
}

#[test]
fn cores_that_leave_each_other_alone_give_the_same_figures_every_time() {
    let figures = |cores, quantum_ns| {
        let report = report(cores, 300, Options { quantum_ns, ..Options::default() });
        let alone = |name| report.phase(name).take(2).cloned().collect::<Vec<_>>();
        ["busy", "idle", "mixed"].map(alone)
    };
    let two = figures(2, 2_000);
    assert_eq!(two, figures(2, 2_000));
    assert_eq!(two, figures(8, 2_000), "more neighbours");
    assert_eq!(two, figures(2, 20_000), "another quantum");
}

#[test]
fn another_clock_rate_changes_what_an_instruction_takes() {
    let rate = ClockRate::from_mhz(500).unwrap();
    for record in report(2, 200, Options { rate, ..Options::default() }).phase("busy") {
        assert_eq!(record.early, 0, "{record:?}");
        assert!(record.latest_ns <= 2 * EXACT_NS, "{record:?}");
        // Half of the time is missing from the count of instructions.
        assert!(record.most_missing > 100, "{record:?}");
    }
}
