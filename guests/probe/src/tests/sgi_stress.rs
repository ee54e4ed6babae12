//! SGIs in great number: none lost, none twice.

use crate::arch::cpu;
use crate::suite::{Check, Done, Test};
use crate::{cpus, ensure_eq, gic, irq, needs_two_vcpus, pass, platform, wait};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    Test { name: "sgi.ping_pong_asleep", body: ping_pong_asleep },
    Test { name: "sgi.ring_asleep", body: ring_asleep },
    Test { name: "sgi.ping_pong_running", body: ping_pong_running },
    Test { name: "sgi.storm", body: storm },
];

/// SGI of the tests here.
const TOKEN: u32 = 10;

static LAPS: AtomicU64 = AtomicU64::new(0);
static MEMBERS: AtomicU64 = AtomicU64::new(0);

/// A token goes round vCPUs 0, 1, .. members - 1 as an SGI; each sends one only
/// after having taken one, so the counts tell every loss and every duplicate.
fn pass_token(wait_for: fn(u32) -> Check) -> Check {
    let me = cpu::index();
    let next = (me + 1) % MEMBERS.load(SeqCst) as usize;
    for lap in 1..=LAPS.load(SeqCst) as u32 {
        if me == 0 {
            gic::send(TOKEN, [next]);
        }
        wait_for(lap)?;
        ensure_eq!(irq::seen(me).count(TOKEN), lap, "tokens taken in lap {lap}");
        if me != 0 {
            gic::send(TOKEN, [next]);
        }
    }
    Ok(())
}

fn sleep_for_token(lap: u32) -> Check {
    let seen = irq::seen(cpu::index());
    wait::asleep(|| seen.count(TOKEN) >= lap)
}

fn spin_for_token(lap: u32) -> Check {
    let seen = irq::seen(cpu::index());
    wait::until("the token", || seen.count(TOKEN) >= lap)
}

fn ring(members: usize, laps: u64, job: cpus::Job) -> Check {
    LAPS.store(laps, SeqCst);
    MEMBERS.store(members as u64, SeqCst);
    for index in 1..members {
        cpus::start(index, job)?;
    }
    let mut outcome = job();
    for index in 1..members {
        outcome = cpus::join_after(index, outcome);
    }
    outcome
}

/// 0: asleep, 1: running.
static MANNER: AtomicU32 = AtomicU32::new(0);

fn pass_token_as_told() -> Check {
    pass_token(if MANNER.load(SeqCst) == 0 { sleep_for_token } else { spin_for_token })
}

fn ping_pong_asleep() -> Check<Done> {
    needs_two_vcpus!();
    let laps = platform::get().number("rounds.ping_pong", 25_000);
    MANNER.store(0, SeqCst);
    ring(2, laps, pass_token_as_told)?;
    pass!("{laps} laps")
}

fn ring_asleep() -> Check<Done> {
    needs_two_vcpus!();
    let members = platform::get().vcpus.len();
    let laps = platform::get().number("rounds.ring", 10_000);
    MANNER.store(0, SeqCst);
    ring(members, laps, pass_token_as_told)?;
    pass!("{laps} laps of {members} vCPUs")
}

fn ping_pong_running() -> Check<Done> {
    needs_two_vcpus!();
    let laps = platform::get().number("rounds.running", 200);
    MANNER.store(1, SeqCst);
    ring(2, laps, pass_token_as_told)?;
    pass!("{laps} laps")
}

/// Acknowledged per (receiver, sender), so that a sender sends again only when
/// its last one has been taken.
static TAKEN: [[AtomicU32; 8]; 8] = [const { [const { AtomicU32::new(0) }; 8] }; 8];
static READY: AtomicU64 = AtomicU64::new(0);
static FINISHED: AtomicU64 = AtomicU64::new(0);

/// Each vCPU sends to each at once; SGI n comes from vCPU n.
fn storm() -> Check<Done> {
    needs_two_vcpus!();
    TAKEN.iter().flatten().for_each(|count| count.store(0, SeqCst));
    READY.store(0, SeqCst);
    FINISHED.store(0, SeqCst);
    cpus::together(storm_job, storm_job)?;
    let count = platform::get().vcpus.len() as u64;
    pass!("{} SGIs", storm_rounds() as u64 * count * (count - 1))
}

fn storm_rounds() -> u32 {
    platform::get().number("rounds.storm", 500) as u32
}

fn storm_job() -> Check {
    let me = cpu::index();
    let count = platform::get().vcpus.len();
    irq::hook(|intid| {
        if let Some(taken) = TAKEN[cpu::index()].get(intid as usize) {
            taken.fetch_add(1, SeqCst);
        }
    });
    READY.fetch_add(1, SeqCst);
    wait::until("the other vCPUs", || READY.load(SeqCst) as usize == count)?;
    for round in 1..=storm_rounds() {
        for to in platform::get().others() {
            gic::send(me as u32, [to]);
        }
        for to in platform::get().others() {
            wait::until("an SGI to be taken", || TAKEN[to][me].load(SeqCst) >= round)?;
        }
    }
    FINISHED.fetch_add(1, SeqCst);
    wait::until("the other vCPUs to finish", || FINISHED.load(SeqCst) as usize == count)?;
    gic::let_in();
    for from in platform::get().others() {
        let taken = TAKEN[me][from].load(SeqCst);
        ensure_eq!(taken, storm_rounds(), "SGIs from vCPU {from}");
    }
    Ok(())
}
