//! Equal priorities, one core: each vCPU gets the same.

use crate::suite::{Check, Done};
use crate::{calls, cpus, ensure, needs_cassata, needs_two_vcpus, pass, platform, wait};
use abi::MAX_VCPUS_PER_VM;
use abi::status::VcpuStatus;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Turns that the average vCPU gets while it is watched.
const TURNS: u64 = 40;

/// All vCPUs of the VM spin on one pCPU until each was switched to many times;
/// then their shares are compared. Neither depends on how long that took.
pub fn round_robin() -> Check<Done> {
    needs_cassata!();
    needs_two_vcpus!();
    static ENOUGH: AtomicU64 = AtomicU64::new(0);
    fn job() -> Check {
        while ENOUGH.load(SeqCst) == 0 {
            core::hint::spin_loop();
        }
        Ok(())
    }
    const RUN: u64 = offset_of!(VcpuStatus, run) as u64 / 8;
    const SWITCHES: u64 = offset_of!(VcpuStatus, switches) as u64 / 8;
    let count = platform::get().vcpus.len();
    let all = |word| -> [u64; MAX_VCPUS_PER_VM] {
        core::array::from_fn(|vcpu| calls::counter(vcpu as u64, word).unwrap_or(0))
    };
    for index in platform::get().others() {
        cpus::start(index, job)?;
    }
    let (runs, switches) = (all(RUN), all(SWITCHES));
    let since = |before: &[u64], word| -> [u64; MAX_VCPUS_PER_VM] {
        let now = all(word);
        core::array::from_fn(|vcpu| now[vcpu] - before[vcpu])
    };
    let waited = wait::until("turns for each vCPU", || {
        since(&switches, SWITCHES)[..count].iter().all(|&turns| turns >= TURNS)
    });
    let shares = since(&runs, RUN);
    ENOUGH.store(1, SeqCst);
    for index in platform::get().others() {
        cpus::join(index)?;
    }
    waited?;
    let shares = &shares[..count];
    let average = shares.iter().sum::<u64>() / count as u64;
    for (vcpu, &share) in shares.iter().enumerate() {
        // A turn more or less, and a busy machine's noise in each.
        let permille = share * 1000 / average;
        ensure!((750..=1250).contains(&permille), "vCPU {vcpu} has {permille} per mille of fair");
    }
    pass!("{count} vCPUs, at least {TURNS} turns each")
}
