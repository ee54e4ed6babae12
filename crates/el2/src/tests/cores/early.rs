//! A vCPU that was woken early waits for its timer, and no sibling waits for it meanwhile, as for one in its kernel:
//! its guest would go on behind a WFI that nothing has ended.

use super::program::{
    self, enable_timer, enable_timer_of, loaded, open_interface, sleep, switch_on,
};
use crate::arch::fake::machine;
use crate::arch::vectors::Vector;
use crate::exits;
use sched::VcpuId;

/// Two siblings, the second of which is above the first, and one of another VM below both.
const LOWER: VcpuId = VcpuId(0);
const UPPER: VcpuId = VcpuId(1);
const OTHER: VcpuId = VcpuId(2);

/// When the timer of the second fires, ticks from the beginning on; that of the first, half an advance earlier.
const SOON: u64 = 1_000_000;

fn now() -> u64 {
    machine::with(|machine| machine.now)
}

#[test]
fn a_sibling_displaces_one_that_waits_for_its_timer() {
    program::run("unequal-2.realtime", |core| {
        assert_eq!(loaded(core), Some(LOWER));
        enable_timer(core);
        enable_timer_of(core, 1);
        let advance = core.loaded_mut().expect("it is loaded").timer_advance();
        // The one that calls is in its kernel, so it has the core until it sleeps.
        switch_on(core, 1);
        let begin = now();
        sleep(core, SOON - advance / 2);
        assert_eq!(loaded(core), Some(UPPER));
        open_interface();
        sleep(core, begin + SOON - now());
        assert_eq!(loaded(core), Some(OTHER));
        // The first waits for its timer when the second is woken early.
        machine::with(|machine| machine.now = begin + SOON - advance - advance / 2);
        exits::take(core, Vector::Interrupt);
        core.check();
        assert_eq!(loaded(core), Some(UPPER));
        assert!(core.loaded_has_interrupt(), "its wait has ended before its timer fired");
    });
}
