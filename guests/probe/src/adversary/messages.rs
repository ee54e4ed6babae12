//! Attacks by what cores tell each other: a vCPU that sleeps or is off on another core can only be
//! reached by a message to that core.

use super::actor::Actor;
use crate::arch::cpu;
use crate::arch::sysreg::write;
use crate::gic::offset::ISENABLER;
use crate::timer::Timer;
use crate::{calls, cpus, gic, wait};

/// pCPUs that a request names, at most: the descriptions of this guest have no more.
const PCPUS: u64 = 4;
/// After so long a vCPU that sleeps wakes without a message, microseconds.
const ALARM_US: u64 = 200;

/// Brings the vCPU into a known state in which its timer wakes it, too.
pub fn prepare(actor: &mut Actor) {
    actor.calm_down();
    gic::sgi_frame(actor.index).write32(ISENABLER, 1 << Timer::Virtual.intid());
}

/// Returns true for vCPUs that tell the others: those with odd numbers, or the only one.
fn sends(actor: &Actor) -> bool {
    actor.vcpus == 1 || actor.index % 2 == 1
}

/// The vCPUs with odd numbers wake those with even ones, switch them on, and ask that they migrate; those
/// sleep again at once, or switch themselves off.
pub fn messages(actor: &mut Actor) -> u64 {
    if sends(actor) { send(actor) } else { receive(actor) }
}

fn send(actor: &mut Actor) -> u64 {
    const TIMES: u64 = 8;
    for _ in 0..TIMES {
        gic::send(1, (0..actor.vcpus).step_by(2));
        let receiver = actor.some_vcpu() & !1;
        match actor.random.up_to(7) {
            // It may be on.
            0 => drop(cpus::launch_wild(receiver)),
            1 => {
                let pcpu = actor.random.up_to(PCPUS - 1);
                calls::migrate(receiver, pcpu);
            }
            _ => {}
        }
    }
    actor.let_interrupts_in();
    TIMES
}

fn receive(actor: &mut Actor) -> u64 {
    Timer::Virtual.arm(wait::us(ALARM_US));
    cpu::wfi();
    Timer::Virtual.stop();
    actor.let_interrupts_in();
    write::icc_pmr_el1(0xff);
    if actor.once_in(16) {
        actor.go_off();
    }
    1
}
