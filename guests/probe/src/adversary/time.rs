//! Attacks by timers, sleep, and floating-point registers that change hands.

use super::actor::Actor;
use crate::arch::cpu;
use crate::arch::fp::Registers;
use crate::arch::sysreg::write;
use crate::gic::{self, offset::*};
use crate::timer::Timer;
use abi::platform::ppi;

/// Changes timers: deadlines that have passed, that are near or never come, on and off, masked or
/// not, and their interrupts in the redistributor.
pub fn timer(actor: &mut Actor) -> u64 {
    const TIMES: u64 = 8;
    for _ in 0..TIMES {
        let timer = actor.one(&Timer::ALL);
        if !timer.is_there() {
            continue;
        }
        let (value, now) = (actor.value(), timer.now());
        match actor.random.up_to(7) {
            0 => timer.set_control(value),
            1 => timer.set_control(1),
            2 => timer.set_compare(value),
            3 => timer.set_compare(now.wrapping_add(actor.random.up_to(2_000))),
            4 => timer.set_compare(now.wrapping_sub(actor.random.up_to(2_000))),
            5 => timer.set_remaining(value as i32),
            6 => write::cntkctl_el1(value),
            _ => of_redistributor(actor, timer),
        }
    }
    actor.let_interrupts_in();
    TIMES
}

fn of_redistributor(actor: &mut Actor, timer: Timer) {
    let bank = actor.one(&[ISENABLER, ICENABLER, ISPENDR, ICPENDR, ISACTIVER, ICACTIVER]);
    let intid = actor.one(&[timer.intid(), ppi::GRANT, 25, 26]);
    gic::sgi_frame(actor.index).write32(bank, 1 << intid);
}

/// Sleeps and is woken at once, by timers, siblings, events and by itself.
pub fn sleep(actor: &mut Actor) -> u64 {
    let others = (0..actor.vcpus).filter(|&index| index != actor.index);
    gic::send(1, others);
    match actor.random.up_to(3) {
        0 => cpu::wfe(),
        1 => {
            cpu::sev();
            cpu::wfe();
        }
        _ if !actor.may_sleep() => {}
        2 => {
            // An interrupt that is pending already.
            gic::send(2, [actor.index]);
            actor.set_alarm(1);
            cpu::wfi();
        }
        _ => {
            let us = actor.random.up_to(20);
            actor.set_alarm(us);
            cpu::wfi();
        }
    }
    // No handler does, and its interrupt would come for ever.
    Timer::Virtual.stop();
    actor.let_interrupts_in();
    write::icc_pmr_el1(0xff);
    1
}

/// Fills the floating-point registers, gives the core away, and looks whether they are still so.
pub fn float(actor: &mut Actor) -> u64 {
    actor.open_float();
    let pattern = Registers::pattern(actor.random.word() >> 8);
    pattern.load();
    if actor.may_sleep() {
        actor.set_alarm(1);
        cpu::wfi();
        Timer::Virtual.stop();
        actor.let_interrupts_in();
    } else {
        gic::send(1, 1..actor.vcpus);
    }
    if let Some((register, number)) = Registers::store().difference(&pattern) {
        actor.complain(format_args!("{register}{number} has changed"));
    }
    1
}
