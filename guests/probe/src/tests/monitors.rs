//! The cycle counter: a vCPU counts its own cycles, and neither those of the hypervisor nor those of
//! other guests on its core.

use crate::arch::encodings::Encoding;
use crate::arch::sysreg::read;
use crate::suite::{Check, Done, Test};
use crate::tests::stolen::stolen_ns;
use crate::tests::{get, set};
use crate::{cpus, ensure, ensure_eq, needs_cassata, pass, wait};

/// The tests of this file.
pub const TESTS: &[Test] = &[Test { name: "monitors.own", body: own }];

const PMCR: Encoding = Encoding::new(3, 3, 9, 12, 0);
const PMCNTENSET: Encoding = Encoding::new(3, 3, 9, 12, 1);
const PMCNTENCLR: Encoding = Encoding::new(3, 3, 9, 12, 2);
const PMCCNTR: Encoding = Encoding::new(3, 3, 9, 13, 0);
const PMUSERENR: Encoding = Encoding::new(3, 3, 9, 14, 0);
const PMCCFILTR: Encoding = Encoding::new(3, 3, 14, 15, 7);
/// PMCR_EL0.E and C.
const ENABLE: u64 = 1 << 0;
const CLEAR: u64 = 1 << 2;
/// PMCNTENSET_EL0.C.
const CYCLES: u64 = 1 << 31;

fn own() -> Check<Done> {
    needs_cassata!();
    if read::id_aa64dfr0_el1() >> 8 & 0xf == 0 {
        return pass!("this core has none");
    }
    cpus::together(job, job)?;
    pass!("{} us on each vCPU", ROUNDS * ROUND_US)
}

const ROUNDS: u64 = 10;
const ROUND_US: u64 = 5_000;

fn job() -> Check {
    ensure_eq!(get(PMCCNTR)?, 0, "{PMCCNTR} after reset");
    ensure_eq!(get(PMCR)? & ENABLE, 0, "{PMCR} after reset");
    set(PMCCFILTR, 0)?;
    // Programs cannot be let in.
    set(PMUSERENR, u64::MAX)?;
    ensure_eq!(get(PMUSERENR)?, 0, "{PMUSERENR}");
    set(PMCNTENSET, CYCLES)?;
    set(PMCR, ENABLE)?;
    for round in 0..ROUNDS {
        count(round)?;
    }
    set(PMCNTENCLR, CYCLES)?;
    let stopped = get(PMCCNTR)?;
    wait::spin(wait::us(10));
    ensure_eq!(get(PMCCNTR)?, stopped, "{PMCCNTR} while it does not count");
    set(PMCR, CLEAR)?;
    ensure_eq!(get(PMCCNTR)?, 0, "{PMCCNTR} after it was cleared");
    Ok(())
}

/// Counts for a while, and compares with the time that it was not stolen: a cycle of QEMU's cores takes
/// a nanosecond. What is counted is less by what the hypervisor takes.
fn count(round: u64) -> Check {
    let now = || -> Check<(u64, u64, u64)> { Ok((get(PMCCNTR)?, stolen_ns()?, wait::now())) };
    let before = now()?;
    wait::spin(wait::us(ROUND_US));
    let after = now()?;
    let cycles = after.0 - before.0;
    let own = wait::nanoseconds(after.2 - before.2).saturating_sub(after.1 - before.1);
    let (least, most) = (own / 2, own + own / 100 + 1_000);
    ensure!(
        (least..=most).contains(&cycles),
        "{cycles} cycles in {own} ns of its own in round {round}"
    );
    Ok(())
}
