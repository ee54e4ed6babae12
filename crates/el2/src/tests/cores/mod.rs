//! Cores on the host: the code that ships, N cores of it, over fake registers,
//! and chance decides what happens next.
//!
//! | module | what it is |
//! | --- | --- |
//! | `systems` | the descriptions of the probe's machines, packed |
//! | `drive` | one history: which core goes on, when time passes and devices signal |
//! | `guests` | what guests execute, and what they find out about themselves |
//! | `lost` | what must hold whenever no core is at EL2 |
//! | `quiet` | what must hold when nothing happens any more |
//! | `supply` | no vCPU has more than its budget, on all cores together |
//! | `reached` | what EL2 did in all that |
//! | `program` | a guest that a test executes itself, trap by trap |
//! | `every` | every trap of some kinds, one after the other |
//! | `hang` | a core that hangs, and what others report |
//! | `off` | an interrupt at each look while a vCPU is switched off |
//! | `unheard` | an interrupt for a vCPU that is off |
//! | `stays` | a vCPU that waits for a timer that is near |
//! | `woken` | a doorbell that comes when a timer wakes a vCPU |
//!
//! A seed is a history. One that fails is printed and replays:
//!
//! ```text
//! CASSATA_SEED=1234 cargo test -p cassata-el2 --lib cores -- --nocapture
//! CASSATA_HISTORIES=100000 cargo test -p cassata-el2 --lib cores
//! ```

mod drive;
mod early;
mod every;
mod guests;
mod hang;
mod lost;
mod off;
mod program;
mod quiet;
mod reached;
mod silent;
mod stays;
mod supply;
mod systems;
mod unheard;
mod woken;

use reached::Reached;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Histories that are run if nothing else is said, and the steps of each.
const HISTORIES: u64 = 10_000;
const STEPS: u32 = 1_000;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

#[test]
fn nothing_that_happens_breaks_an_invariant() {
    if let Some(seed) = number("CASSATA_SEED") {
        drive::history(seed, STEPS, /* tell */ true);
        return;
    }
    let histories = number("CASSATA_HISTORIES").unwrap_or(HISTORIES);
    let (next, failed) = (AtomicU64::new(0), AtomicU64::new(u64::MAX));
    let reached = Mutex::new(Reached::default());
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while failed.load(Ordering::Relaxed) == u64::MAX {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= histories {
                        return;
                    }
                    let history = AssertUnwindSafe(|| drive::history(seed, STEPS, false));
                    match catch_unwind(history) {
                        Ok(one) => reached.lock().expect("nothing panics with it").add(&one),
                        Err(_) => {
                            failed.fetch_min(seed, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
    });
    let seed = failed.into_inner();
    assert_eq!(seed, u64::MAX, "CASSATA_SEED={seed} replays the history that failed");
    let reached = reached.into_inner().expect("nothing panicked with it");
    for (name, count) in reached.named() {
        println!("{name}: {count}");
        assert!(count >= histories / 100, "{histories} histories reach {name} {count} times");
    }
}
