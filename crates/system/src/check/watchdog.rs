//! The watchdog: how long a pCPU may take no interrupt before another one reports it.

use super::time_in;
use crate::code::Code;
use crate::draft::Draft;
use crate::model::Machine;
use crate::problem::Problems;
use abi::system::{MAX_WATCHDOG_NS, MIN_WATCHDOG_NS};

pub(super) fn check(draft: &Draft, machine: Option<&Machine>, problems: &mut Problems) {
    let Some(watchdog) = &draft.watchdog else { return };
    let allowed = u64::from(MIN_WATCHDOG_NS)..=u64::from(MAX_WATCHDOG_NS);
    time_in(allowed, Some(watchdog), "a watchdog", Code::Watchdog, problems);
    if machine.is_some_and(|machine| machine.pcpus == 1) {
        problems
            .add(Code::Watchdog, watchdog.span(), "no other pCPU could watch the only one")
            .hint("leave it out, or use another pCPU of the board, which may be one without vCPUs");
    }
}

/// Returns the time that is stated, nanoseconds; 0 if none is.
pub(super) fn time_ns(draft: &Draft) -> u32 {
    let stated = draft.watchdog.as_ref().map_or(0, |at| *at.get_ref());
    u32::try_from(stated).unwrap_or(0)
}
