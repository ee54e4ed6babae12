//! Runs the tasks that the description declares for this VM, and reports how long each took.
//!
//! | module | story |
//! | --- | --- |
//! | `declared` | what the device tree says of tasks |
//! | `priorities` | which task of a vCPU goes first: priorities, ceilings, local resources |
//! | `executive` | a vCPU runs its tasks |
//! | `work` | executing for a given time, and how long everything else takes |
//! | `record` | the report area |

mod declared;
mod executive;
mod priorities;
mod record;
mod work;

use crate::arch::cpu;
use crate::suite::{Check, Done};
use crate::timer::{ENABLE, IMASK, Timer};
use crate::{cpus, ensure, gic, irq, pass, platform, wait};
use abi::platform::ppi::GRANT;
use arrayvec::ArrayVec;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use declared::{MAX_TASKS, Task};
use executive::Executive;
use gic::offset::ISENABLER;
use record::Record;
use spin::Once;
use work::Work;

/// The timer by which a vCPU sleeps until its next release.
const TIMER: Timer = Timer::Virtual;
/// A vCPU that waits for its siblings looks so often.
const LOOK_US: u64 = 5_000;

/// What all vCPUs of the VM share.
struct Shared {
    tasks: ArrayVec<Task, MAX_TASKS>,
    record: Record,
    work: Work,
    /// The counter when the first task may arrive, and when none arrives any more.
    begin: u64,
    end: u64,
    /// The least that a job executes, percent of what is declared.
    least: u64,
}

static SHARED: Once<Shared> = Once::new();
/// vCPUs that have ended, and jobs that they have completed, and those that were late.
static ENDED: AtomicUsize = AtomicUsize::new(0);
static JOBS: AtomicU64 = AtomicU64::new(0);
static LATE: AtomicU64 = AtomicU64::new(0);
/// Some mutex may have been granted to a task of this vCPU.
static GRANTED: [AtomicBool; abi::MAX_VCPUS_PER_VM] =
    [const { AtomicBool::new(false) }; abi::MAX_VCPUS_PER_VM];

/// Runs the tasks, for `probe.for_ms` or without end. None arrives before the counter has
/// reached `probe.begin_ms` (100): until then all VMs have booted, whose start no bound contains.
/// With `probe.least_percent` (100) below 100, each execution is a random part of what is
/// declared, of so many percent at least.
pub fn tasks() -> Check<Done> {
    let platform = platform::get();
    let tasks = declared::tasks()?;
    ensure!(!tasks.is_empty(), "the device tree declares no tasks");
    let record = Record::open(&tasks)?;
    let begin = wait::us(platform.number("begin_ms", 100) * 1_000);
    let length = platform.number("for_ms", 0).saturating_mul(1_000);
    let end = if length == 0 { u64::MAX } else { begin.max(wait::now()) + wait::us(length) };
    let least = platform.number("least_percent", 100).min(100);
    let work = Work::calibrate();
    SHARED.call_once(|| Shared { tasks, record, work, begin, end, least });
    let others = platform.others().filter(|&index| has_tasks(index));
    let mut count = 0;
    for index in others.clone() {
        cpus::launch(index, run)?;
        count += 1;
    }
    let outcome = if has_tasks(0) { run() } else { Ok(()) };
    let _ = irq_on();
    while outcome.is_ok() && ENDED.load(SeqCst) < count + usize::from(has_tasks(0)) {
        TIMER.arm(wait::us(LOOK_US));
        let due = TIMER.compare();
        wait::asleep(|| TIMER.now() >= due)?;
    }
    TIMER.stop();
    for index in others {
        cpus::join_after(index, outcome)?;
    }
    outcome?;
    pass!("jobs={} late={}", JOBS.load(SeqCst), LATE.load(SeqCst))
}

fn has_tasks(vcpu: usize) -> bool {
    SHARED.get().is_some_and(|shared| shared.tasks.iter().any(|task| task.vcpu == vcpu))
}

/// Lets the interrupts of the timer and of grants in.
fn irq_on() -> usize {
    irq::hook(|intid| {
        if intid == GRANT {
            GRANTED[cpu::index()].store(true, SeqCst);
        } else {
            TIMER.set_control(ENABLE | IMASK);
        }
    });
    gic::set(ISENABLER, TIMER.intid());
    gic::set(ISENABLER, GRANT);
    cpu::index()
}

/// Runs the tasks of the calling vCPU.
fn run() -> Check {
    let index = irq_on();
    let shared = SHARED.get().expect("the first vCPU sets it");
    let mut executive = Executive::new(shared, index)?;
    let outcome = executive.run(&GRANTED[index]);
    let (jobs, late) = executive.counts();
    JOBS.fetch_add(jobs, SeqCst);
    LATE.fetch_add(late, SeqCst);
    ENDED.fetch_add(1, SeqCst);
    outcome
}
