//! What cores note at marks, and where they stall.

use crate::board::{Board, eventually};
use vtime::marks::{AllSequences, Kind, Marks};
use vtime::options::Options;

/// Where the program begins.
const BEGIN: u64 = 0x4100_0000;
/// Six instructions that are executed [`TURNS`] times, and then nothing that is marked: however long
/// the machine runs, all turns are among those that are kept. The third of the six sees time, so
/// its block is counted in two parts.
const PROGRAM: [u32; 8] = [
    0xd289_c401, // mov x1, #20000
    0xd503_201f, // nop
    0xd503_201f, // nop
    0xd53b_e040, // mrs x0, cntvct_el0
    0xd503_201f, // nop
    0xf100_0421, // subs x1, x1, #1
    0x54ff_ff61, // b.ne .-20
    0x1400_0000, // b .
];
const TURNS: usize = 20_000;
/// Which of them are marks.
const MARKED: [u64; 4] = [2, 3, 4, 6];

/// Runs the loop with these options and its marks; returns the times of each turn.
fn turns(options: Options) -> Vec<Vec<u64>> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("marks.json");
    let mark = |&index: &u64| {
        let kind = if index == 6 { Kind::End } else { Kind::Plain };
        (kind, format!("at{index}@{:#x}", BEGIN + 4 * index).parse().unwrap())
    };
    let marks = Marks { file: file.clone(), all: MARKED.iter().map(mark).collect() };
    let range = Some(BEGIN..BEGIN + 0x1000);
    let options = Options { marks: Some(marks), range, ..options };
    let mut board = Board::program(&[(BEGIN, &PROGRAM[..])], options);
    eventually("every turn", || {
        let counted = board.has_statistics().then(|| board.statistics());
        let cores = counted.map(|statistics| statistics.vcpus).unwrap_or_default();
        cores.first().is_some_and(|core| core.instructions > 6 * TURNS as u64 + 1)
    });
    board.signal("TERM");
    board.wait();
    let noted = AllSequences::read(&file).unwrap();
    assert_eq!(noted.names, ["at2", "at3", "at4", "at6"]);
    let kept = &noted.vcpus[0].kept;
    assert_eq!(kept.len(), TURNS);
    assert!(kept.iter().all(|turn| turn.iter().map(|noted| noted.0).eq(0..4)));
    kept.iter().map(|turn| turn.iter().map(|noted| noted.2).collect()).collect()
}

#[test]
fn a_mark_has_the_time_of_its_instruction() {
    let turns = turns(Options { serial: true, ..Options::default() });
    let first = turns[0][0];
    for (turn, times) in (0..).zip(&turns) {
        let begin = first + 6 * turn;
        assert_eq!(*times, [begin, begin + 1, begin + 2, begin + 4], "turn {turn}");
    }
}

#[test]
fn nothing_is_executed_in_a_stall() {
    let stalls = vec!["0@20000:7000".parse().unwrap()];
    let turns = turns(Options { serial: true, stalls, ..Options::default() });
    let times = turns.concat();
    let gaps: Vec<_> = times.windows(2).filter(|pair| pair[1] - pair[0] > 2).collect();
    let [gap] = gaps[..] else { panic!("{gaps:?}") };
    // It begins with the first block behind its time, which has six instructions.
    assert!((19_999..20_006).contains(&gap[0]) && (27_000..27_006).contains(&gap[1]), "{gap:?}");
}
