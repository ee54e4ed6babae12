//! SGIs from every vCPU to every other: which vCPU gets them, and how often.

use crate::arch::{cpu, sysreg::write};
use crate::gic::{self, offset::*};
use crate::suite::{Check, Done, Test};
use crate::{cpus, ensure, ensure_eq, irq, needs_two_vcpus, pass, platform, wait};
use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    Test { name: "sgi.self", body: to_self },
    Test { name: "sgi.pairs", body: pairs },
    Test { name: "sgi.broadcast", body: broadcast },
    Test { name: "sgi.target_list", body: target_list },
    Test { name: "sgi.other_groups", body: other_groups },
    Test { name: "sgi.remote_registers", body: remote_registers },
    Test { name: "sgi.wakes_masked", body: wakes_masked },
];

fn to_self() -> Check<Done> {
    let seen = irq::seen(cpu::index());
    for intid in 0..16 {
        gic::send(intid, [cpu::index()]);
        gic::expect_total(intid as usize + 1)?;
        ensure_eq!(seen.count(intid), 1, "SGI {intid} taken");
    }
    ensure_eq!(seen.spurious(), 0, "spurious interrupts");
    pass!("")
}

/// A meeting point for all vCPUs of the VM.
struct Meeting(AtomicU64);

impl Meeting {
    /// Waits until all have come `phase` times (counted from 1).
    fn come(&self, phase: u64) -> Check {
        self.0.fetch_add(1, SeqCst);
        let all = phase * platform::get().vcpus.len() as u64;
        wait::until("the other vCPUs", || self.0.load(SeqCst) >= all)
    }
}

static MEETING: Meeting = Meeting(AtomicU64::new(0));

/// SGI n comes from vCPU n: each vCPU gets exactly one from each other.
fn each_vcpu_sends(send: fn(u32)) -> Check {
    let me = cpu::index() as u32;
    let count = platform::get().vcpus.len();
    MEETING.come(1)?;
    send(me);
    let seen = irq::seen(me as usize);
    gic::expect_total(count - 1)?;
    for sender in 0..count as u32 {
        ensure_eq!(seen.count(sender), u32::from(sender != me), "SGIs from vCPU {sender}");
    }
    // No vCPU goes off while others may still have something under way to it.
    MEETING.come(2)?;
    gic::expect_total(count - 1)
}

fn pairs() -> Check<Done> {
    fn job() -> Check {
        each_vcpu_sends(|intid| platform::get().others().for_each(|to| gic::send(intid, [to])))
    }
    MEETING.0.store(0, SeqCst);
    cpus::together(job, job)?;
    let count = platform::get().vcpus.len();
    pass!("{} pairs", count * (count - 1))
}

fn broadcast() -> Check<Done> {
    fn job() -> Check {
        each_vcpu_sends(gic::broadcast)
    }
    MEETING.0.store(0, SeqCst);
    cpus::together(job, job)?;
    pass!("")
}

fn target_list() -> Check<Done> {
    fn job() -> Check {
        each_vcpu_sends(|intid| gic::send(intid, platform::get().others()))
    }
    MEETING.0.store(0, SeqCst);
    cpus::together(job, job)?;
    // Targets that do not exist are ignored; so are other clusters.
    let seen = irq::seen(cpu::index());
    let total = seen.total();
    gic::send(1, platform::get().vcpus.len()..16);
    write::icc_sgi1r_el1(1 << 16 | 1 << 24 | 0xffff);
    write::icc_sgi1r_el1(1 << 32 | 1 << 24 | 0xffff);
    gic::expect_total(total)?;
    pass!("")
}

/// ICC_SGI0R_EL1 makes group 0 SGIs, of which this guest has none; the write
/// must do no harm. ICC_ASGI1R_EL1 is for another security state.
fn other_groups() -> Check<Done> {
    write::icc_sgi0r_el1(2 << 24 | 0b1);
    gic::expect_total(0)?;
    write::icc_asgi1r_el1(2 << 24 | 0b1);
    gic::let_in();
    let taken = irq::seen(cpu::index()).total();
    ensure!(taken <= 1, "one ICC_ASGI1R_EL1 write made {taken} interrupts");
    pass!("ICC_ASGI1R_EL1 made {taken} interrupts")
}

/// A vCPU's redistributor as others see it: priority, enable and pending bits
/// of its SGIs are theirs to set, too.
fn remote_registers() -> Check<Done> {
    needs_two_vcpus!();
    static READY: AtomicU64 = AtomicU64::new(0);
    fn job() -> Check {
        READY.store(1, SeqCst);
        wait::until("an SGI pended from afar", || irq::seen(1).count(11) == 1)?;
        ensure_eq!(gic::priority(11), 0x30, "priority set from afar");
        READY.store(2, SeqCst);
        wait::until("an SGI enabled from afar", || irq::seen(1).count(12) == 1)?;
        gic::let_in();
        ensure_eq!(irq::seen(1).total(), 2, "interrupts taken");
        Ok(())
    }
    READY.store(0, SeqCst);
    let remote = gic::sgi_frame(1);
    cpus::start(1, job)?;
    let drive = || {
        wait::until("vCPU 1", || READY.load(SeqCst) == 1)?;
        remote.write8(IPRIORITYR + 11, 0x30);
        remote.write32(ICENABLER, 1 << 12);
        gic::settle();
        ensure_eq!(remote.read32(ISENABLER) & 1 << 12, 0, "ISENABLER0 of vCPU 1");
        gic::send(12, [1]);
        remote.write32(ISPENDR, 1 << 11);
        wait::until("vCPU 1", || READY.load(SeqCst) == 2)?;
        ensure_eq!(irq::seen(1).count(12), 0, "a disabled SGI taken by vCPU 1");
        ensure!(remote.read32(ISPENDR) & 1 << 12 != 0, "SGI 12 of vCPU 1 is not pending");
        remote.write32(ISENABLER, 1 << 12);
        Ok(())
    };
    let outcome = drive();
    cpus::join_after(1, outcome)?;
    pass!("")
}

/// A masked SGI ends WFI without being taken.
fn wakes_masked() -> Check<Done> {
    needs_two_vcpus!();
    static ROUND: AtomicU64 = AtomicU64::new(0);
    const ROUNDS: u64 = 200;
    fn job() -> Check {
        cpu::mask_irq();
        let seen = irq::seen(cpu::index());
        for round in 1..=ROUNDS {
            ROUND.store(round, SeqCst);
            while !cpu::irq_pending() {
                cpu::wfi();
            }
            ensure_eq!(seen.total() as u64, round - 1, "interrupts taken while masked");
            cpu::unmask_irq();
            gic::expect_total(round as usize)?;
            cpu::mask_irq();
        }
        Ok(())
    }
    ROUND.store(0, SeqCst);
    cpus::start(1, job)?;
    let drive = || {
        for round in 1..=ROUNDS {
            wait::until("vCPU 1 to sleep", || ROUND.load(SeqCst) >= round)?;
            gic::send(13, [1]);
        }
        Ok(())
    };
    let outcome: Check = drive();
    cpus::join_after(1, outcome)?;
    pass!("{ROUNDS} rounds")
}
