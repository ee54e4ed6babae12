//! Another program holds the machine now and then.

use crate::board::Board;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;
use vtime::hold::{Held, Order};
use vtime::machine::Counts;
use vtime::options::{Options, Pipes};
use vtime::stats::Statistics;

/// The other program's side: its ends of the pipes, and QEMU's.
struct Holder {
    orders: PipeWriter,
    holds: PipeReader,
    theirs: (PipeReader, PipeWriter),
}

impl Holder {
    fn new() -> Self {
        let ((orders, ours), (holds, theirs)) = (io::pipe().unwrap(), io::pipe().unwrap());
        Self { orders: ours, holds, theirs: (orders, theirs) }
    }

    fn pipes(&self) -> Pipes {
        let path = |fd: i32| PathBuf::from(format!("/proc/{}/fd/{fd}", std::process::id()));
        Pipes { orders: path(self.theirs.0.as_raw_fd()), holds: path(self.theirs.1.as_raw_fd()) }
    }
}

/// Virtual time between two holds.
const PERIOD_NS: u64 = 100_000;
const HOLDS: u64 = 30;

/// Runs the metronome on four cores that take turns, held each time for as long as `pause` says,
/// and ends it where it is held last.
pub fn held(options: Options, pause: impl Fn(u64) -> Duration) -> (Vec<Held>, Statistics) {
    let holder = Holder::new();
    let control = Some(holder.pipes());
    let options = Options { serial: true, control, ..options };
    let mut board = Board::start(4, 1 << 40, options, &[]);
    let first = Held::receive(&holder.holds).unwrap();
    assert_eq!(first, Held { at_ns: 0, at_rest: false }, "before the first instruction");
    let mut holds = vec![first];
    for number in 1..=HOLDS {
        Order::RunTo(number * PERIOD_NS).send(&holder.orders).unwrap();
        holds.push(Held::receive(&holder.holds).unwrap());
        thread::sleep(pause(number));
    }
    Order::End.send(&holder.orders).unwrap();
    let (status, statistics) = board.wait();
    assert!(status.success() && statistics.finished);
    (holds, statistics)
}

#[test]
fn what_stands_where_it_is_held_is_the_same_however_long_that_lasts() {
    let (holds, at_once) = held(Options::default(), |_| Duration::ZERO);
    let wanted = (0..=HOLDS).map(|number| Held { at_ns: number * PERIOD_NS, at_rest: false });
    assert!(holds.iter().copied().eq(wanted), "{holds:?}");
    assert_eq!(at_once.virtual_ns, HOLDS * PERIOD_NS);
    assert!(at_once.vcpus.iter().all(|vcpu| vcpu.instructions > 0));
    let pause = |number| Duration::from_millis(number % 7 * 5);
    let (held_again, slowly) = held(Options::default(), pause);
    assert_eq!(held_again, holds);
    assert_eq!(slowly.vcpus, at_once.vcpus);
    // Whether a core must wait for the main loop is the host's.
    let counts = |statistics: &Statistics| Counts { settlings: 0, ..statistics.counts };
    assert_eq!(counts(&slowly), counts(&at_once));
}

#[test]
fn a_machine_that_is_let_go_comes_to_its_end() {
    let holder = Holder::new();
    let options = Options { control: Some(holder.pipes()), ..Options::default() };
    let mut board = Board::start(2, 10, options, &[]);
    Held::receive(&holder.holds).unwrap();
    Order::RunOn.send(&holder.orders).unwrap();
    board.lines_to("metronome: done");
    assert!(board.wait().0.success());
    drop(holder.theirs);
    assert!(Held::receive(&holder.holds).is_err(), "there was another hold");
}
