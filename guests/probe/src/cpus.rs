//! Secondary vCPUs: on for one job, then off again.
//!
//! An idle vCPU is off, not spinning: it takes no time from others, and every test
//! is also one of CPU_ON and CPU_OFF.

use crate::arch::boot::{Entry, secondary_entry_address};
use crate::arch::{cpu, sysreg::read};
use crate::suite::{Check, Text, text};
use crate::{calls, ensure, ensure_eq, fail, gic, platform, wait};
use abi::MAX_VCPUS_PER_VM;
use abi::service::psci;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use spin::Mutex;

/// What a secondary vCPU does.
pub type Job = fn() -> Check;

struct Slot {
    job: Mutex<Option<Job>>,
    context: AtomicU64,
    ready: AtomicBool,
    failure: Mutex<Option<Text>>,
}

static SLOTS: [Slot; MAX_VCPUS_PER_VM] = [const {
    Slot {
        job: Mutex::new(None),
        context: AtomicU64::new(0),
        ready: AtomicBool::new(false),
        failure: Mutex::new(None),
    }
}; MAX_VCPUS_PER_VM];

/// What a vCPU does that is switched on, by any other and however often; then it goes off again.
static WILD: Mutex<Option<fn()>> = Mutex::new(None);

/// From now on, vCPUs that are switched on do `job`, with interrupts masked, instead of what they
/// are launched for.
pub fn run_wild(job: fn()) {
    *WILD.lock() = Some(job);
}

/// Starts `job` on vCPU `index`, which is off, and waits until interrupts can
/// reach it.
pub fn start(index: usize, job: Job) -> Check {
    launch(index, job)?;
    wait::until("a vCPU to start", || SLOTS[index].ready.load(SeqCst))
}

/// As [`start`], without waiting.
pub fn launch(index: usize, job: Job) -> Check {
    let slot = &SLOTS[index];
    slot.ready.store(false, SeqCst);
    *slot.job.lock() = Some(job);
    let answer = switch_on(index);
    ensure_eq!(answer, psci::SUCCESS, "CPU_ON of vCPU {index}");
    Ok(())
}

/// Starts vCPU `index`, which [runs wild](run_wild), unless a sibling that does so already has.
pub fn launch_wild(index: usize) -> Check {
    let answer = switch_on(index);
    let usual = [psci::SUCCESS, psci::ALREADY_ON, psci::ON_PENDING];
    ensure!(usual.contains(&answer), "CPU_ON of vCPU {index}: {answer}");
    Ok(())
}

fn switch_on(index: usize) -> i64 {
    let slot = &SLOTS[index];
    // Every start has another context, with all 64 bits at work.
    let context = (slot.context.load(SeqCst) | 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    slot.context.store(context, SeqCst);
    let target = platform::get().vcpus[index];
    calls::hvc(psci::CPU_ON_64, &[target, secondary_entry_address(), context])
}

/// Waits until vCPU `index` is off and answers how its job ended.
pub fn join(index: usize) -> Check {
    let limit = wait::now() + wait::us(60_000_000);
    while affinity_info(index) != 1 {
        if wait::now() > limit {
            fail!("waited 60 s in vain for vCPU {index} to go off");
        }
    }
    match SLOTS[index].failure.lock().take() {
        Some(failure) => Err(failure),
        None => Ok(()),
    }
}

/// As [`join`], after this vCPU's own part had `outcome`. When that is a failure
/// the other one need not wait; when both fail, the first one is the reason.
pub fn join_after(index: usize, outcome: Check) -> Check {
    if outcome.is_err() {
        wait::give_up();
    }
    join(index).and(outcome)
}

/// Runs `job` on every secondary vCPU, and `here` meanwhile on this one.
pub fn together(job: Job, here: impl FnOnce() -> Check) -> Check {
    let others = platform::get().others();
    for index in others.clone() {
        start(index, job)?;
    }
    let mut outcome = here();
    for index in others {
        outcome = join_after(index, outcome);
    }
    outcome
}

/// PSCI AFFINITY_INFO: 0 on, 1 off, 2 on its way.
pub fn affinity_info(index: usize) -> i64 {
    calls::hvc(psci::AFFINITY_INFO_64, &[platform::get().vcpus[index], 0])
}

/// That no secondary vCPU is on.
pub fn all_off() -> Check {
    for index in platform::get().others() {
        if affinity_info(index) != 1 {
            fail!("vCPU {index} is still on");
        }
    }
    Ok(())
}

/// Where the entry code leads; never returns.
pub fn secondary(entry: &Entry) -> ! {
    let index = cpu::index();
    let wild = *WILD.lock();
    if let Some(job) = wild {
        gic::reset_vcpu();
        job();
        calls::hvc32(psci::CPU_OFF, &[]);
    }
    let outcome = check_entry(index, entry).and_then(|()| {
        gic::reset_vcpu();
        let job = SLOTS[index].job.lock().take();
        let Some(job) = job else { fail!("vCPU {index} was started without a job") };
        cpu::unmask_irq();
        SLOTS[index].ready.store(true, SeqCst);
        job()
    });
    cpu::mask_irq();
    if let Err(why) = outcome
        && wait::give_up()
    {
        *SLOTS[index].failure.lock() = Some(text(format_args!("vCPU {index}: {why}")));
    }
    SLOTS[index].ready.store(true, SeqCst);
    let answer = calls::hvc32(psci::CPU_OFF, &[]);
    crate::suite::abort(format_args!("CPU_OFF of vCPU {index} returned {answer}"))
}

/// The state PSCI promises to a vCPU that starts (DEN0022D, section 6.4.3).
fn check_entry(index: usize, entry: &Entry) -> Check {
    const MMU_AND_CACHES: u64 = 1 << 0 | 1 << 2 | 1 << 12;
    ensure_eq!(entry.context, SLOTS[index].context.load(SeqCst), "context identifier in X0");
    ensure_eq!(entry.current_el, 1 << 2, "CurrentEL at entry");
    ensure_eq!(entry.sctlr & MMU_AND_CACHES, 0, "SCTLR_EL1 (M, C, I) at entry");
    ensure_eq!(entry.daif, 0b1111 << 6, "DAIF at entry");
    ensure_eq!(entry.spsel, 1, "SPSel at entry");
    let affinity = entry.mpidr & 0xff_00ff_ffff;
    ensure_eq!(affinity, platform::get().vcpus[index], "MPIDR_EL1 affinity");
    ensure_eq!(entry.mpidr, read::mpidr_el1(), "MPIDR_EL1, read again");
    Ok(())
}
