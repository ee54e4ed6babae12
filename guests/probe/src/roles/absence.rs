//! What migration costs the vCPU that migrates: the time it does not run.

use crate::roles::report::Report;
use crate::suite::{Check, Done};
use crate::timer::Timer;
use crate::{calls, fail, needs_cassata};
use abi::status::VcpuStatus;
use core::mem::offset_of;

/// Ticks between two looks at the counter that are no gap: the loop takes a
/// tenth of that, and going to EL2 and back is not in it.
const LOOP: u64 = 300;

/// Looks at the counter for ever. Each round trip of this vCPU to another core
/// is a sample in its report area: as `response` the ticks that it did not run
/// until it ran elsewhere, as `dispatch` these and those until it ran at its base
/// again. When it was called back before it ran elsewhere both are the same.
pub fn absence() -> Check<Done> {
    needs_cassata!();
    let Some(report) = Report::open(0) else { fail!("there is no report area") };
    let (mut trips, mut departure) = (0, None);
    let (mut moves, mut last) = (migrations()?, Timer::Virtual.now());
    loop {
        let now = Timer::Virtual.now();
        let (gap, left) = (now.wrapping_sub(last), last);
        if (LOOP..1 << 63).contains(&gap) {
            let (before, after) = (moves, migrations()?);
            moves = after;
            match (before % 2 == 0, after - before) {
                (true, 1) => departure = Some(gap),
                (false, 1) => {
                    if let Some(departure) = departure.take() {
                        report.sample(trips, 0, left, departure, departure + gap);
                        trips += 1;
                    }
                }
                (true, 2) => {
                    report.sample(trips, 0, left, gap, gap);
                    trips += 1;
                }
                _ => {}
            }
            last = Timer::Virtual.now();
        } else {
            last = now;
        }
    }
}

fn migrations() -> Check<u64> {
    let word = offset_of!(VcpuStatus, migrations) as u64 / 8;
    match calls::counter(0, word) {
        Ok(value) => Ok(value),
        Err(code) => fail!("COUNTER of the migrations answers {code}"),
    }
}
