//! How long EL2's paths take, measured by a guest: `cassata calibrate` describes the system and reads what is
//! said here.
//!
//! | module | story |
//! | --- | --- |
//! | `series` | what was measured of one path, and its line |
//! | `cache` | what is in the caches before EL2 is entered; a neighbour that empties them |
//! | `watcher` | a vCPU that notes when it did not run |
//! | `entries` | calls, and accesses that trap |
//! | `sgis` | interrupts for vCPUs |
//! | `timers` | EL2's timer and the guest's |
//! | `switches` | a vCPU that wakes, sleeps, and displaces another one |
//! | `grants` | a mutex for which another core waits |
//!
//! The vCPUs of the VM: 0 on the first core measures; 1 is on the second core; 2 and 3 are as these two, above
//! them, and have servers and tasks; 4 is on the first core, above vCPU 0. Those that are not needed are off.
//!
//! Each test is an act: it measures a path or two that happen together, and prints a line for each. Before it,
//! the first core rests until the UART has sent what was printed, as EL2 drives that there.

mod cache;
mod entries;
mod grants;
mod series;
mod sgis;
mod switches;
mod timers;
mod watcher;

use crate::arch::{cpu, timed};
use crate::gic::{self, offset::*};
use crate::suite::{Check, Done, Test};
use crate::timer::Timer;
use crate::{ensure, needs_cassata, pass, platform, wait};
use cache::Cache;
use series::say;
use timed::Span;
use watcher::Slot;

/// The timer that vCPUs use.
const TIMER: Timer = Timer::Virtual;
/// vCPUs of the VM, by what they are for.
const SECOND_CORE: usize = 1;
const SERVED: usize = 2;
const SERVED_ON_SECOND_CORE: usize = 3;
const ABOVE: usize = 4;
/// The version of the lines.
const FORMAT: u64 = 1;

/// The acts in their order, and the roles of neighbours.
pub const ALL: &[Test] = &[
    Test { name: "calibrate.begin", body: begin },
    // The vCPU that migrates goes off when it has been measured.
    Test { name: "calibrate.departure", body: switches::departure },
    Test { name: "calibrate.own", body: entries::own },
    Test { name: "calibrate.null", body: entries::null },
    Test { name: "calibrate.gic-read", body: entries::gic_read },
    Test { name: "calibrate.gic-write", body: entries::gic_write },
    Test { name: "calibrate.sgi-self", body: sgis::own },
    Test { name: "calibrate.sgi-core", body: sgis::same_core },
    Test { name: "calibrate.doorbell", body: sgis::other_core },
    Test { name: "calibrate.timer", body: timers::timer },
    Test { name: "calibrate.switch", body: switches::switch },
    Test { name: "calibrate.gcs", body: entries::gcs },
    Test { name: "calibrate.mutex", body: entries::mutex },
    Test { name: "calibrate.replenish", body: timers::replenish },
    Test { name: "calibrate.grant", body: grants::grant },
    Test { name: "calibrate.end", body: end },
    Test { name: "calibrate-neighbour", body: watcher::neighbour },
    Test { name: "calibrate-migrant", body: watcher::migrant },
    Test { name: "calibrate-load", body: cache::load },
];

/// A number of the command line.
fn number(name: &str, default: u64) -> u64 {
    platform::get().number(name, default)
}

/// A word of the command line, `-` if there is none.
fn word(name: &str) -> &'static str {
    platform::get().argument(name).unwrap_or("-")
}

fn begin() -> Check<Done> {
    needs_cassata!();
    meet()?;
    say(format_args!(
        "calibrate-begin format={FORMAT} board={} pcpus={} hypervisor={} counter_hz={} load={} sweep_kib={}",
        word("board"),
        number("pcpus", 0),
        word("hypervisor"),
        crate::arch::sysreg::read::cntfrq_el0(),
        word("load"),
        number("sweep_kib", 0),
    ));
    pass!("")
}

fn end() -> Check<Done> {
    say(format_args!("calibrate-end paths={}", series::told()));
    pass!("")
}

/// Lets the UART send what was printed.
fn rest() {
    gic::set(ISENABLER, TIMER.intid());
    nap(wait::us(1_000 * number("rest_ms", 30)));
}

/// Rests until neighbours watch their cores.
fn meet() -> Check {
    rest();
    for core in [Slot::FIRST_CORE, Slot::SECOND_CORE] {
        let limit = wait::now() + wait::us(10_000_000);
        while !core.watches() {
            ensure!(wait::now() < limit, "no neighbour watches its core");
            nap(wait::us(1_000));
        }
    }
    timers::find_phase()
}

/// Does so, once the vCPU that migrates has gone.
fn prepare() -> Check {
    Slot::end_migrant();
    rest();
    meet()
}

/// Sleeps for so many ticks, or somewhat longer. Interrupts are masked when it sleeps and when it goes on, so
/// nothing of this guest is between the two reads of the counter and EL2.
fn nap(ticks: u64) -> Span {
    timers::keep_clear();
    cpu::mask_irq();
    let now = wait::now();
    TIMER.arm(timers::clear(now + ticks) - now);
    let span = timed::sleep();
    TIMER.stop();
    cpu::unmask_irq();
    span
}

/// Reads the counter without rest up to `end`, and returns the longest time between two reads, ticks.
fn longest_gap(end: u64) -> u64 {
    let (mut last, mut longest) = (wait::now(), 0);
    while last < end {
        let now = wait::now();
        longest = longest.max(now - last);
        last = now;
    }
    longest
}

/// The kinds of repetitions that are asked for.
fn caches() -> impl Iterator<Item = Cache> {
    [Cache::Warm, Cache::Cold].into_iter().filter(|cache| cache.repetitions() > 0)
}
