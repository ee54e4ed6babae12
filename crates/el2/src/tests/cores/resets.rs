//! A VM is reset while one of its vCPUs is being switched off, and an interrupt comes at each look: both
//! go on in pieces, by messages of their own. What one of them has finished the other does not begin anew:
//! the two could do that for ever.

use super::program::{self, loaded, trap};
use crate::arch::fake::machine;
use crate::arch::sysreg::ec;
use crate::pcpu::Pcpu;
use crate::shared::VMS;
use abi::service::psci;
use sched::VcpuId;
use std::cell::Cell;
use std::sync::atomic::Ordering;

/// The vCPU that goes off, and its sibling.
const FIRST: VcpuId = VcpuId(0);
const SECOND: VcpuId = VcpuId(1);

thread_local! {
    /// The first is off whole before the reset.
    static IS_OFF_BEFORE: Cell<bool> = const { Cell::new(false) };
    static LOOKS: Cell<u32> = const { Cell::new(0) };
}

fn call(core: &mut Pcpu, function: u32, argument: u64) {
    let entry = core.system().vms[0].entry_ipa;
    let general = core.loaded_mut().expect("a guest runs").general();
    general.x[..3].copy_from_slice(&[function.into(), argument, entry]);
    trap(core, ec::HVC64 << 26);
}

/// From now on an interrupt comes at each look.
fn interrupt() {
    LOOKS.set(0);
    machine::with(|machine| {
        machine.withdraws = || {
            LOOKS.set(LOOKS.get() + 1);
            true
        };
    });
}

fn switch_off_and_reset(core: &mut Pcpu) {
    assert_eq!(loaded(core), Some(FIRST));
    call(core, psci::CPU_ON_64, SECOND.0.into());
    if !IS_OFF_BEFORE.get() {
        interrupt();
    }
    call(core, psci::CPU_OFF, 0);
    assert_eq!((loaded(core), core.is_going_off(FIRST)), (Some(SECOND), !IS_OFF_BEFORE.get()));
    interrupt();
    let epoch = VMS[0].epoch.load(Ordering::Relaxed);
    call(core, psci::SYSTEM_RESET, 0);
    assert_eq!(VMS[0].epoch.load(Ordering::Relaxed), epoch + 1);
    assert_eq!(loaded(core), Some(FIRST), "it is started anew");
}

/// Looks for interrupts during the reset.
fn looks(is_off_before: bool) -> u32 {
    IS_OFF_BEFORE.set(is_off_before);
    program::run("unequal-2.realtime", switch_off_and_reset);
    LOOKS.get()
}

#[test]
fn a_reset_goes_on_with_what_is_being_switched_off() {
    let (whole, rest) = (looks(true), looks(false));
    println!("{whole} looks after it was off, {rest} amid that");
    assert!(rest <= whole, "{rest} looks, and {whole} where it is switched off before");
}
