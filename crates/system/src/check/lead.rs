//! How long before its timer fires a real-time vCPU gets its core.

use crate::code::Code;
use crate::draft::DraftVm;
use crate::model::Vm;
use crate::problem::Problems;
use abi::system::MAX_TIMER_LEAD_NS;

/// Lead of a vCPU that shares its pCPU, if nobody says: what the switch and a
/// departure take in QEMU, some 1000 instructions, four times over, as a visit
/// of the other guest to EL2 may come before.
const DEFAULT_US: u32 = 4;
/// The longest.
const MOST_US: u64 = MAX_TIMER_LEAD_NS as u64 / 1000;

pub(super) fn check(vms: &[DraftVm], problems: &mut Problems) {
    for vm in vms {
        let Some(lead) = &vm.timer_lead_us else { continue };
        if !vm.is_realtime() {
            let message = format!("{} is no real-time VM: it has no lead", vm.title());
            problems
                .add(Code::TimerLead, lead.span(), message)
                .hint("leave it out, or say `realtime = true`");
        } else if *lead.get_ref() > MOST_US {
            let message = format!("a lead of {} us is out of range", lead.get_ref());
            problems
                .add(Code::TimerLead, lead.span(), message)
                .hint(format!("0 to {MOST_US} us; 0 is none"));
        }
    }
}

/// Gives every vCPU of a real-time VM its lead, when refuges are known.
pub(super) fn assign(vms: &mut [Vm], drafts: &[DraftVm]) {
    for me in 0..vms.len() {
        if !vms[me].realtime {
            continue;
        }
        let said = drafts[me].timer_lead_us.as_ref().map(|at| *at.get_ref());
        for index in 0..vms[me].vcpus.len() {
            let default = if shares(vms, me, index) { DEFAULT_US } else { 0 };
            let lead = said.and_then(|us| u32::try_from(us).ok()).unwrap_or(default);
            vms[me].vcpus[index].timer_lead_us = lead;
        }
    }
}

/// Whether vCPUs of other VMs may come to a pCPU that this one may have.
fn shares(vms: &[Vm], me: usize, index: usize) -> bool {
    let mine = vms[me].vcpus[index];
    let others = vms.iter().enumerate().filter(|(vm, _)| *vm != me);
    others.flat_map(|(_, vm)| &vm.vcpus).any(|other| other.places() & mine.places() != 0)
}
