//! The trace: how large each pCPU's ring is.

use super::memory::available;
use crate::code::Code;
use crate::draft::Draft;
use crate::model::Machine;
use crate::problem::Problems;
use crate::size::show;
use abi::trace::{self, MAX_SIZE, MIN_SIZE};

pub(super) fn check(draft: &Draft, machine: Option<&Machine>, problems: &mut Problems) {
    let Some(trace) = &draft.trace else { return };
    let (size, span) = (*trace.get_ref(), trace.span());
    if !size.is_power_of_two() || !(MIN_SIZE..=MAX_SIZE).contains(&size) {
        problems
            .add(Code::TraceSize, span, format!("a trace of {} is impossible", show(size)))
            .hint(format!("a power of two, from {} to {}", show(MIN_SIZE), show(MAX_SIZE)));
        return;
    }
    let Some(machine) = machine else { return };
    let sizes = draft.vms.iter().filter_map(|vm| vm.memory.size.as_ref());
    let guests: u128 = sizes.map(|at| u128::from(*at.get_ref())).sum();
    let available = u128::from(available(machine).size);
    let rings = u128::from(trace::size(size, machine.pcpus as u64));
    // Without the trace they would fit: else that is reported, and this is no help.
    if guests <= available && guests + rings > available {
        let message = format!(
            "the VMs leave {} KiB of the board's memory, and {} pCPUs with rings of {} need {} KiB",
            (available - guests) >> 10,
            machine.pcpus,
            show(size),
            rings >> 10
        );
        problems
            .add(Code::TraceSize, span, message)
            .hint("lower this, or raise `memory` of the board");
    }
}

/// Returns how large each ring is, in bytes; 0 if nothing is to be traced.
pub(super) fn size(draft: &Draft) -> u32 {
    let stated = draft.trace.as_ref().map_or(0, |at| *at.get_ref());
    u32::try_from(stated).unwrap_or(0)
}
