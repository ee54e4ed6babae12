//! A real-time vCPU whose guest waits for a timer that fires within its advance keeps its core: it would have to come back
//! at once.

use super::program::{self, enable_timer, loaded, sleep};
use sched::VcpuId;

/// The real-time vCPU.
const HIGHEST: VcpuId = VcpuId(2);

#[test]
fn a_realtime_vcpu_that_waits_for_a_timer_within_its_advance_keeps_its_core() {
    program::run("turns-of-vms.below", |core| {
        assert_eq!(loaded(core), Some(HIGHEST));
        enable_timer(core);
        let advance = core.loaded_mut().expect("it is loaded").timer_advance();
        assert!(advance > 0);
        sleep(core, advance / 2);
        assert_eq!(loaded(core), Some(HIGHEST));
        assert!(core.loaded_has_interrupt(), "its wait has ended before its timer fired");
    });
}

#[test]
fn one_whose_timer_fires_later_leaves_its_core() {
    program::run("turns-of-vms.below", |core| {
        enable_timer(core);
        let advance = core.loaded_mut().expect("it is loaded").timer_advance();
        sleep(core, 2 * advance);
        assert_ne!(loaded(core), Some(HIGHEST));
    });
}

/// Nothing comes then.
#[test]
fn one_whose_timer_is_masked_leaves_its_core() {
    program::run("turns-of-vms.below", |core| {
        let advance = core.loaded_mut().expect("it is loaded").timer_advance();
        // It has not enabled the interrupt.
        sleep(core, advance / 2);
        assert_ne!(loaded(core), Some(HIGHEST));
    });
}
