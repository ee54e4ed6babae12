//! A vCPU is switched off in pieces if interrupts come meanwhile. Here one comes at each look for
//! them in turn, and then a sibling on the same core wants the vCPU on again. The sibling executes
//! its calls before the core takes the doorbell with which it tells itself to go on: on hardware
//! that takes a while to come, and the guest may execute some instructions until then.

use super::program::{self, loaded, trap};
use crate::arch::fake::machine;
use crate::arch::sysreg::ec;
use crate::arch::vectors::Vector;
use crate::exits;
use crate::pcpu::Pcpu;
use abi::service::psci;
use sched::VcpuId;
use std::cell::Cell;

/// The vCPU that goes off, and its sibling.
const FIRST: VcpuId = VcpuId(0);
const SECOND: VcpuId = VcpuId(1);
/// More interrupts than come in this.
const ENOUGH: usize = 20;

thread_local! {
    /// Looks until one sees an interrupt; 0: it has.
    static LOOKS: Cell<u32> = const { Cell::new(0) };
    /// The vCPU was off in part when the sibling ran.
    static IS_PARTLY_OFF: Cell<bool> = const { Cell::new(false) };
}

/// Calls EL2 as the guest that is loaded. The answer is for that guest if it goes on.
fn call(core: &mut Pcpu, function: u32, arguments: [u64; 2]) -> i64 {
    let general = core.loaded_mut().expect("a guest runs").general();
    general.x[0] = function.into();
    general.x[1..3].copy_from_slice(&arguments);
    trap(core, ec::HVC64 << 26);
    core.loaded_mut().expect("a guest runs").register(0) as i64
}

fn switch_on(core: &mut Pcpu, index: u64) -> i64 {
    let entry = core.system().vms[0].entry_ipa;
    call(core, psci::CPU_ON_64, [index, entry])
}

fn is_on(core: &mut Pcpu) -> bool {
    call(core, psci::AFFINITY_INFO_64, [0, 0]) == 0
}

fn is_signalled() -> bool {
    machine::with(|machine| machine.signalled(machine.current)).is_some()
}

fn switch_off_and_on(core: &mut Pcpu) {
    assert_eq!((loaded(core), switch_on(core, 1)), (Some(FIRST), psci::SUCCESS));
    machine::with(|machine| {
        machine.withdraws = || {
            let left = LOOKS.get();
            LOOKS.set(left.saturating_sub(1));
            left == 1
        };
    });
    call(core, psci::CPU_OFF, [0; 2]);
    machine::with(|machine| machine.withdraws = || false);
    assert_eq!(loaded(core), Some(SECOND));

    let partly = core.is_going_off(FIRST);
    IS_PARTLY_OFF.set(partly);
    assert_eq!(is_on(core), partly, "it is off in part: {partly}");
    let answer = if partly { psci::ALREADY_ON } else { psci::SUCCESS };
    assert_eq!(switch_on(core, 0), answer, "it is off in part: {partly}");
    let interrupts = (0..ENOUGH).take_while(|_| is_signalled());
    interrupts.for_each(|_| exits::take(core, Vector::Interrupt));
    assert!(!core.is_going_off(FIRST));
    assert_eq!(is_on(core), !partly);
    if partly {
        assert_eq!(switch_on(core, 0), psci::SUCCESS);
        assert!(is_on(core));
    }
}

#[test]
fn a_vcpu_passes_for_on_until_all_of_it_is_off() {
    let mut often = 0;
    for look in 1.. {
        LOOKS.set(look);
        program::run("turns", switch_off_and_on);
        if LOOKS.get() > 0 {
            // So many looks there are not.
            break;
        }
        often += u32::from(IS_PARTLY_OFF.get());
    }
    println!("{often} looks at which it was off in part");
    assert!(often > 2, "no interrupt came while it was being switched off");
}
