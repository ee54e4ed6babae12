//! How long a request to a disk takes that is said to take a while.

use crate::board::Board;
use vtime::options::Options;

/// No whole milliseconds, and more than one.
const LATENCY_NS: u64 = 1_234_567;
/// What the guest itself needs to see that a request is done.
const SEEN_NS: u64 = 40;
const REQUESTS: usize = 20;

/// How the guest waits for a request.
#[derive(Clone, Copy, Debug)]
enum Waits {
    Spinning = 0,
    Asleep = 1,
    /// It arms timers all the time, for which QEMU's main loop wakes.
    Arming = 2,
}

/// Returns the times of all requests, ns.
fn requests(waits: Waits, serial: bool) -> Vec<u64> {
    let options = Options { serial, ..Options::default() };
    let mut board = Board::disk(waits as u64, LATENCY_NS, options);
    let times = (0..REQUESTS).map(|_| u64::from_str_radix(&board.line(), 16).unwrap()).collect();
    assert!(board.wait().0.success());
    times
}

/// What waits in QEMU's main loop does so for milliseconds, counted from when that last woke.
#[test]
fn a_request_takes_as_long_as_is_said_whatever_the_core_does_meanwhile() {
    for waits in [Waits::Spinning, Waits::Asleep, Waits::Arming] {
        for serial in [false, true] {
            let times = requests(waits, serial);
            let right = LATENCY_NS..=LATENCY_NS + SEEN_NS;
            assert!(times.iter().all(|ns| right.contains(ns)), "{waits:?}, {serial}: {times:?}");
        }
    }
}
