//! Which instructions were executed.

use crate::board::{Board, eventually};
use crate::holds::held;
use std::time::Duration;
use vtime::coverage::{Coverage, Executed};
use vtime::options::Options;

/// Where the program begins, and a byte behind its last instruction.
const BEGIN: u64 = 0x4100_0000;
const END: u64 = BEGIN + 0x1000;
/// The vector of synchronous exceptions, behind the beginning (Arm DDI 0487, D1.4.2).
const VECTOR: u64 = 0x800 + 0x200;

/// The load finds no device (external abort), in the middle of a block.
const FAULTS: [u32; 9] = [
    0x1000_4000, // adr x0, .+0x800
    0xd518_c000, // msr vbar_el1, x0
    0xd503_3fdf, // isb
    0xd2a1_a002, // movz x2, #0xd00, lsl #16
    0xd503_201f, // nop
    0xf940_0041, // ldr x1, [x2]
    0xd503_201f, // nop
    0xd503_201f, // nop
    0x1400_0000, // b .
];
/// The instruction of the program that faults.
const LOAD: usize = 5;
const STAYS: [u32; 1] = [0x1400_0000]; // b .

#[test]
fn what_an_exception_left_out_was_not_executed() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("coverage");
    let coverage = Coverage { range: BEGIN..END, file: file.clone() };
    let options = Options { coverage: Some(coverage), ..Options::default() };
    let program = [(BEGIN, &FAULTS[..]), (BEGIN + VECTOR, &STAYS)];
    let mut board = Board::program(&program, options);
    eventually("a million instructions", || {
        let counted = board.has_statistics().then(|| board.statistics());
        let cores = counted.map(|statistics| statistics.vcpus).unwrap_or_default();
        cores.first().is_some_and(|core| core.instructions > 1_000_000)
    });
    let record = Executed::read(&file).unwrap();
    assert_eq!(record, Executed::none(1024), "it is written at the end");
    board.signal("TERM");
    board.wait();
    let record = Executed::read(&file).unwrap();
    let executed: Vec<_> = (0..1024).filter(|&index| record.contains(index)).collect();
    let vector = usize::try_from(VECTOR / 4).unwrap();
    assert_eq!(executed, (0..=LOAD).chain([vector]).collect::<Vec<_>>());
}

/// Counts, instructions of every core and visits to the range too.
#[test]
fn a_record_changes_nothing_that_is_counted() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("coverage");
    // All of the metronome's code.
    let range = 0x4040_0000..0x4040_2200;
    let coverage = Coverage { range: range.clone(), file: file.clone() };
    let counted = Options { range: Some(range), ..Options::default() };
    let (holds, without) = held(counted.clone(), |_| Duration::ZERO);
    let recorded = Options { coverage: Some(coverage), ..counted };
    let (held_too, with) = held(recorded, |_| Duration::ZERO);
    assert_eq!(held_too, holds);
    assert_eq!(with.virtual_ns, without.virtual_ns);
    assert_eq!(with.vcpus, without.vcpus);
    assert!(with.vcpus.iter().all(|vcpu| vcpu.range.as_ref().unwrap().instructions > 0));
    let record = Executed::read(&file).unwrap();
    assert!(record.contains(0) && (100..2_000).contains(&record.count()), "{}", record.count());
}
