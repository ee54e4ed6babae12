//! A vCPU that its timer wakes has the core before a doorbell that comes meanwhile is taken, unless
//! timers of others are due, too. Where a timer wakes none and there is a real-time vCPU, the doorbell is
//! taken first: it may be for that.

use super::program::{self, enable_timer, loaded, sleep, trap};
use crate::arch::fake::machine;
use crate::arch::gic::Doorbell;
use crate::arch::sysreg::ec;
use crate::arch::vectors::Vector;
use crate::exits;
use crate::pcpu::Pcpu;
use sched::VcpuId;

/// Two of one priority, and one below or above them.
const FIRST: VcpuId = VcpuId(0);
const SECOND: VcpuId = VcpuId(1);
const THIRD: VcpuId = VcpuId(2);
/// When timers fire, ticks from now on.
const SOON: u64 = 1_000_000;

fn ring() {
    machine::with(|machine| {
        machine.core_mut().private.latched |= 1 << Doorbell::Ordinary as u32;
    });
}

fn is_rung() -> bool {
    let doorbell = Doorbell::Ordinary as u32;
    machine::with(|machine| machine.core().private.latched & 1 << doorbell != 0)
}

/// Lets time pass until EL2's timer fires.
fn pass(core: &mut Pcpu) {
    machine::with(|machine| machine.now += SOON);
    exits::take(core, Vector::Interrupt);
    core.check();
}

/// The timer of the first fires, and that of the second so many ticks later. Returns true if a doorbell that comes
/// with the former is taken before the first has the core.
fn is_taken_first(core: &mut Pcpu, later: u64) -> bool {
    assert_eq!(loaded(core), Some(FIRST));
    enable_timer(core);
    sleep(core, SOON);
    assert_eq!(loaded(core), Some(SECOND));
    sleep(core, SOON + later);
    assert_eq!(loaded(core), Some(THIRD));
    ring();
    pass(core);
    assert_eq!(loaded(core), Some(FIRST));
    !is_rung()
}

#[test]
fn no_doorbell_is_taken_before_a_vcpu_that_its_timer_wakes_has_the_core() {
    program::run("turns-of-vms", |core| assert!(!is_taken_first(core, SOON)));
}

#[test]
fn a_doorbell_is_taken_between_two_vcpus_that_their_timers_wake() {
    program::run("turns-of-vms", |core| assert!(is_taken_first(core, 0)));
}

/// Whatever EL2 has to book for budgets.
#[test]
fn no_doorbell_is_taken_before_a_realtime_vcpu_that_its_timer_wakes_where_there_are_budgets() {
    program::run("turns-of-vms.served", |core| {
        assert_eq!(loaded(core), Some(THIRD));
        enable_timer(core);
        sleep(core, SOON);
        assert!([Some(FIRST), Some(SECOND)].contains(&loaded(core)));
        ring();
        pass(core);
        assert_eq!((loaded(core), is_rung()), (Some(THIRD), true));
    });
}

#[test]
fn a_doorbell_is_taken_before_equals_below_a_realtime_vcpu_take_turns() {
    program::run("turns-of-vms.below", |core| {
        assert_eq!(loaded(core), Some(THIRD));
        trap(core, ec::WFX << 26);
        // That is longer than a quantum. Each runs once, so that none has to be filled yet.
        for next in [SECOND, FIRST] {
            pass(core);
            assert_eq!(loaded(core), Some(next));
        }
        ring();
        pass(core);
        assert_eq!((loaded(core), is_rung()), (Some(SECOND), false));
    });
}
