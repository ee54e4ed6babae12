//! Global critical sections and mutexes, as `mutex.toml` and `mutex-abandoned.toml` describe them.

use crate::arch::{boot, cpu};
use crate::gic::{self, offset::*};
use crate::platform::{self, STOLEN};
use crate::suite::{Check, Done};
use crate::timer::{ENABLE, IMASK, Timer};
use crate::{calls, cpus, ensure, ensure_eq, irq, needs_two_vcpus, pass, println, wait};
use abi::platform::{STOLEN_BASE, ppi::GRANT};
use abi::service::{
    BUSY, FINISH_GCS, HELD, INVALID_PARAMETER, MUTEX_ABANDON, MUTEX_CLOSE, MUTEX_LOCK, MUTEX_OPEN,
    MUTEX_TRYLOCK, MUTEX_UNLOCK, NOT_SUPPORTED, OWNER_DIED, QUEUED, START_GCS, hash,
};
use abi::status::VcpuStatus;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

const TIMER: Timer = Timer::Virtual;

/// A task of this vCPU that uses a mutex.
#[derive(Clone, Copy)]
pub(super) struct Claim {
    handle: u64,
    /// Where the byte that says which claimant holds it stands in the stolen-time page.
    offset: u64,
    /// Others used it already.
    shared: bool,
}

impl Claim {
    fn open(mutex: &str, task: &str) -> Result<Self, i64> {
        let names = [hash(mutex.as_bytes()), hash(task.as_bytes())];
        let [answer, handle, address, ..] = calls::raw(calls::Conduit::Hvc, MUTEX_OPEN, &names);
        if answer > 1 {
            return Err(answer as i64);
        }
        Ok(Self { handle, offset: address - STOLEN_BASE, shared: answer == 1 })
    }

    /// Opens `mutex` for `task` of this vCPU.
    pub(super) fn named(mutex: &str, task: &str) -> Check<Self> {
        Self::open(mutex, task).map_err(|answer| {
            crate::suite::text(format_args!("MUTEX_OPEN of {mutex} by {task} answers {answer}"))
        })
    }

    /// Calls a function of mutexes.
    pub(super) fn call(self, function: u32) -> i64 {
        calls::hvc(function, &[self.handle])
    }

    /// What names the claim in calls.
    pub(super) fn handle(self) -> u64 {
        self.handle
    }

    fn rank(self) -> u64 {
        self.handle >> 8
    }

    /// What the byte says: the holder's rank, and whether the one before died.
    fn holder(self) -> Option<(u64, bool)> {
        let word = STOLEN.read64(self.offset & !7);
        let byte = word >> (self.offset % 8 * 8) & 0xff;
        Some(((byte & 0x7f).checked_sub(1)?, byte & 0x80 != 0))
    }

    /// Returns true if the task holds the mutex.
    pub(super) fn holds(self) -> bool {
        self.holder().is_some_and(|(rank, _)| rank == self.rank())
    }

    /// Locks it, and sleeps until it is granted. Returns whether it had to, and whether the
    /// holder before died.
    pub(super) fn take(self) -> Check<(bool, bool)> {
        let answer = self.call(MUTEX_LOCK);
        let queued = answer == QUEUED;
        if queued {
            wait::asleep(|| self.holds())?;
        }
        ensure!(matches!(answer, HELD | QUEUED | OWNER_DIED), "MUTEX_LOCK answers {answer}");
        ensure!(self.holds(), "the byte names {:?}, not {}", self.holder(), self.rank());
        Ok((queued, self.holder().is_some_and(|(_, died)| died)))
    }

    /// Ends the use of the mutex, which the task does not hold.
    pub(super) fn close(self) -> Check {
        ensure_eq!(self.call(MUTEX_CLOSE), 0, "MUTEX_CLOSE");
        Ok(())
    }

    pub(super) fn give_back(self) -> Check {
        self.give_back_by(MUTEX_UNLOCK)
    }

    /// Gives it back as from a task that died.
    fn abandon(self) -> Check {
        self.give_back_by(MUTEX_ABANDON)
    }

    fn give_back_by(self, function: u32) -> Check {
        ensure_eq!(self.call(function), 0, "giving a mutex back by {function:#x}");
        ensure!(!self.holds(), "the byte names a holder that has given the mutex back");
        Ok(())
    }
}

fn sections() -> Check {
    const DEEPEST: u64 = 255;
    let siblings = || platform::get().others().map(|index| index as u64);
    let none = 1 + siblings().count() as u64;
    for function in [START_GCS, FINISH_GCS] {
        ensure_eq!(calls::hvc(function, &[none]), INVALID_PARAMETER, "a vCPU that is none");
    }
    ensure_eq!(calls::hvc(FINISH_GCS, &[0]), INVALID_PARAMETER, "FINISH_GCS of what began not");
    for depth in 1..=DEEPEST {
        ensure_eq!(calls::hvc(START_GCS, &[0]), 0, "START_GCS, {depth} deep");
    }
    ensure_eq!(calls::hvc(START_GCS, &[0]), INVALID_PARAMETER, "START_GCS, too deep");
    for depth in 1..=DEEPEST {
        ensure_eq!(calls::hvc(FINISH_GCS, &[0]), 0, "FINISH_GCS, number {depth}");
    }
    // A sibling on another core: each time is an interrupt there. And one on this core, whose
    // section another one could end.
    for sibling in siblings() {
        let mut refused = 0;
        for _ in 0..100 {
            match calls::hvc(START_GCS, &[sibling]) {
                0 => ensure_eq!(calls::hvc(FINISH_GCS, &[sibling]), 0, "FINISH_GCS of a sibling"),
                BUSY => refused += 1,
                answer => crate::fail!("START_GCS of a sibling answers {answer}"),
            }
        }
        ensure!(refused > 50, "vCPU {sibling} was raised {} of 100 times", 100 - refused);
    }
    Ok(())
}

fn misuse() -> Check {
    for (mutex, task) in [("none", "high"), ("own", "none"), ("own", "other"), ("shared", "dies")] {
        let answer = Claim::open(mutex, task).err();
        ensure_eq!(answer, Some(NOT_SUPPORTED), "MUTEX_OPEN of {mutex} by {task}");
    }
    let before = misuses()?;
    let (mut refused, handles) = (0, [0, 1, 2, 0xff, 0x100, 0x3f00, 1 << 63, u64::MAX]);
    for handle in handles {
        for function in [MUTEX_LOCK, MUTEX_TRYLOCK, MUTEX_UNLOCK, MUTEX_ABANDON, MUTEX_CLOSE] {
            let answer = calls::hvc(function, &[handle]);
            ensure_eq!(answer, INVALID_PARAMETER, "{function:#x} of {handle:#x}, not open");
            refused += 1;
        }
    }
    ensure_eq!(misuses()? - before, refused, "misuses that EL2 has counted");
    Ok(())
}

/// How often EL2 has refused a call of the first vCPU.
fn misuses() -> Check<u64> {
    const WORD: u64 = (offset_of!(VcpuStatus, misuses) / size_of::<u64>()) as u64;
    calls::counter(0, WORD)
        .map_err(|answer| crate::suite::text(format_args!("COUNTER answers {answer}")))
}

/// Two tasks of one vCPU.
fn on_one_vcpu() -> Check {
    let (high, low) = (Claim::named("own", "high")?, Claim::named("own", "low")?);
    ensure!(!high.shared && low.shared, "others use it: {}, {}", high.shared, low.shared);
    ensure_eq!(low.call(MUTEX_LOCK), HELD, "MUTEX_LOCK");
    ensure_eq!(low.holder(), Some((low.rank(), false)), "the byte");
    ensure_eq!(low.call(MUTEX_LOCK), INVALID_PARAMETER, "MUTEX_LOCK of what one holds");
    ensure_eq!(low.call(MUTEX_CLOSE), INVALID_PARAMETER, "MUTEX_CLOSE of what one holds");
    ensure_eq!(high.call(MUTEX_UNLOCK), INVALID_PARAMETER, "MUTEX_UNLOCK by another");
    ensure_eq!(high.call(MUTEX_TRYLOCK), BUSY, "MUTEX_TRYLOCK");
    ensure_eq!(high.call(MUTEX_LOCK), QUEUED, "MUTEX_LOCK by another");
    for function in [MUTEX_LOCK, MUTEX_TRYLOCK, MUTEX_CLOSE] {
        ensure_eq!(high.call(function), INVALID_PARAMETER, "{function:#x} of a task that waits");
    }
    let before = irq::seen(0).count(GRANT);
    ensure_eq!(low.call(MUTEX_UNLOCK), 0, "MUTEX_UNLOCK");
    wait::until("the grant", || irq::seen(0).count(GRANT) > before)?;
    ensure!(high.holds(), "the byte names {:?}", high.holder());
    high.give_back()?;
    ensure_eq!(high.call(MUTEX_UNLOCK), INVALID_PARAMETER, "MUTEX_UNLOCK of what one holds not");
    ensure_eq!(low.call(MUTEX_TRYLOCK), HELD, "MUTEX_TRYLOCK");
    low.give_back()?;
    ensure_eq!(low.call(MUTEX_CLOSE), 0, "MUTEX_CLOSE");
    ensure_eq!(low.call(MUTEX_LOCK), INVALID_PARAMETER, "MUTEX_LOCK of what is closed");
    Ok(())
}

/// A task dies with a mutex, and its vCPU goes on: the next holder is told, and none after it.
fn abandoned() -> Check {
    let (high, low) = (Claim::named("own", "high")?, Claim::named("own", "low")?);
    ensure_eq!(low.call(MUTEX_ABANDON), INVALID_PARAMETER, "MUTEX_ABANDON of what one holds not");
    ensure_eq!(low.call(MUTEX_LOCK), HELD, "MUTEX_LOCK");
    ensure_eq!(high.call(MUTEX_LOCK), QUEUED, "MUTEX_LOCK by another");
    ensure_eq!(high.call(MUTEX_ABANDON), INVALID_PARAMETER, "MUTEX_ABANDON by one that waits");
    let before = irq::seen(0).count(GRANT);
    low.abandon()?;
    wait::until("the grant", || irq::seen(0).count(GRANT) > before)?;
    ensure_eq!(high.holder(), Some((high.rank(), true)), "the byte of one that waited");
    high.give_back()?;
    ensure_eq!(low.take()?, (false, false), "the one after it");
    low.abandon()?;
    ensure_eq!(low.holder(), None, "the byte of a mutex that is free");
    ensure_eq!(low.call(MUTEX_ABANDON), INVALID_PARAMETER, "MUTEX_ABANDON again");
    ensure_eq!(high.call(MUTEX_TRYLOCK), OWNER_DIED, "MUTEX_TRYLOCK by the next one");
    high.abandon()?;
    ensure_eq!(low.take()?, (false, true), "one after another that was told and died, too");
    low.give_back()?;
    ensure_eq!(high.take()?, (false, false), "the last one");
    high.give_back()
}

/// What the sibling does: 1, it waits; 2, it has the mutex; 3, likewise, and the holder before died.
static SIBLING: AtomicU64 = AtomicU64::new(0);

/// Tasks of two vCPUs: that of the higher vCPU comes first, and the other is interrupted. The lower
/// one of the higher vCPU gives the mutex back by `function`, after which the other finds `then`.
fn on_two_vcpus(function: u32, then: u64) -> Check {
    fn sibling() -> Check {
        gic::set(ISENABLER, GRANT);
        let other = Claim::named("own", "other")?;
        ensure_eq!(other.call(MUTEX_LOCK), QUEUED, "MUTEX_LOCK by the sibling");
        SIBLING.store(1, SeqCst);
        wait::asleep(|| other.holds())?;
        let died = other.holder().is_some_and(|(_, died)| died);
        SIBLING.store(2 + u64::from(died), SeqCst);
        other.give_back()
    }
    let (high, low) = (Claim::named("own", "high")?, Claim::named("own", "low")?);
    high.take()?;
    SIBLING.store(0, SeqCst);
    cpus::start(1, sibling)?;
    wait::until("the sibling", || SIBLING.load(SeqCst) == 1)?;
    ensure_eq!(low.call(MUTEX_LOCK), QUEUED, "MUTEX_LOCK by the lower task");
    high.give_back()?;
    ensure!(low.holds(), "the higher vCPU's task does not come first");
    ensure_eq!(SIBLING.load(SeqCst), 1, "the sibling's place in the queue");
    low.give_back_by(function)?;
    cpus::join(1)?;
    ensure_eq!(SIBLING.load(SeqCst), then, "what the sibling has");
    Ok(())
}

/// Sleeps for a time that differs from round to round, under a millisecond: budgets and what other VMs
/// do repeat, and could meet in the same way for ever.
fn pause(round: u64) -> Check {
    TIMER.arm(wait::us(round * 37 % 1_000));
    let due = TIMER.compare();
    wait::asleep(|| TIMER.now() >= due)
}

/// Everything, on the way to a mutex that other VMs take and die with.
pub fn mutex() -> Check<Done> {
    const DEATHS: u64 = 3;
    const GRANTS: u64 = 20;
    needs_two_vcpus!();
    gic::set(ISENABLER, GRANT);
    misuse()?;
    sections()?;
    on_one_vcpu()?;
    abandoned()?;
    on_two_vcpus(MUTEX_UNLOCK, 2)?;
    on_two_vcpus(MUTEX_ABANDON, 3)?;
    let shared = Claim::named("shared", "high")?;
    irq::hook(|intid| {
        if intid == TIMER.intid() {
            TIMER.set_control(ENABLE | IMASK);
        }
    });
    gic::set(ISENABLER, TIMER.intid());
    let (mut rounds, mut grants, mut deaths) = (0, 0, 0);
    while grants < GRANTS || deaths < DEATHS {
        pause(rounds)?;
        let (queued, died) = shared.take()?;
        grants += u64::from(queued);
        deaths += u64::from(died);
        rounds += 1;
        ensure_eq!(shared.call(MUTEX_LOCK), INVALID_PARAMETER, "MUTEX_LOCK of what one holds");
        shared.give_back()?;
    }
    pass!("{rounds} rounds, {grants} grants, {deaths} holders died")
}

/// Takes the mutex and gives it back for ever.
pub fn busy() -> Check<Done> {
    const UNITS: u64 = offset_of!(abi::report::Header, load_units) as u64;
    gic::set(ISENABLER, GRANT);
    let shared = Claim::named("shared", "busy")?;
    let size = calls::report_area().map_or(0, |(_, size)| size);
    println!("busy");
    for units in 1.. {
        shared.take()?;
        if size > 0 {
            platform::report_window(size).write64(UNITS, units);
        }
        cpu::isb();
        shared.give_back()?;
    }
    pass!("")
}

/// Takes the mutex, and cannot go on.
pub fn dies() -> Check<Done> {
    gic::set(ISENABLER, GRANT);
    Claim::named("shared", "dies")?.take()?;
    println!("crashing");
    boot::crash()
}

/// Tasks of this VM die with the mutex for ever, and its vCPU goes on. The other VM's do not.
pub fn abandons() -> Check<Done> {
    gic::set(ISENABLER, GRANT);
    let shared = Claim::named("shared", "abandons")?;
    println!("abandoning");
    loop {
        let (queued, died) = shared.take()?;
        ensure!(!queued || !died, "told of a holder that has given the mutex back");
        ensure_eq!(shared.call(MUTEX_LOCK), INVALID_PARAMETER, "MUTEX_LOCK of what one holds");
        shared.abandon()?;
    }
}

/// Takes what tasks of the other VM have died with, and is told so each time.
pub fn told() -> Check<Done> {
    const GRANTS: u64 = 200;
    gic::set(ISENABLER, GRANT);
    let shared = Claim::named("shared", "told")?;
    let (mut rounds, mut grants, mut deaths) = (0, 0, 0);
    while grants < GRANTS {
        let (queued, died) = shared.take()?;
        // It waited for the other VM's task, which held the mutex before it.
        ensure!(!queued || died, "not told of a task that died");
        rounds += 1;
        grants += u64::from(queued);
        deaths += u64::from(died);
        shared.give_back()?;
    }
    pass!("{rounds} rounds, {grants} grants, {deaths} tasks died")
}
