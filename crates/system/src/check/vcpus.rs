//! vCPUs: where they run, and which goes before which.

use super::{boosts, time_in};
use crate::code::Code;
use crate::draft::{At, DraftVcpu, DraftVm};
use crate::model::{Machine, Vcpu, Vm};
use crate::problem::Problems;
use abi::MAX_VCPUS_PER_VM;
use abi::system::{MAX_QUANTUM_NS, MIN_QUANTUM_NS};

/// Quantum of a vCPU that states none: long enough that Linux's caches pay,
/// short enough that a console stays alive.
const DEFAULT_QUANTUM_NS: u64 = 5_000_000;

/// A vCPU whose pCPU and priority are known, and its VM.
struct Placed<'a> {
    owner: &'a DraftVm,
    vcpu: &'a DraftVcpu,
    pcpu: u64,
    priority: &'a At<u64>,
}

pub(super) fn check(vms: &[DraftVm], machine: Option<&Machine>, problems: &mut Problems) {
    for vm in vms {
        if let Some(surplus) = vm.vcpus.get(MAX_VCPUS_PER_VM) {
            let message = format!("{} vCPUs: a VM can have {MAX_VCPUS_PER_VM}", vm.vcpus.len());
            problems
                .add(Code::TooMany, surplus.span.clone(), message)
                .hint("leave some out, from here on");
        }
        for vcpu in &vm.vcpus {
            ranges(vcpu, machine, problems);
        }
    }
    let placed = placed(vms);
    for (i, vcpu) in placed.iter().enumerate() {
        realtime(vcpu, &placed, problems);
        quantum_unused(vcpu, i, &placed, problems);
    }
}

fn placed(vms: &[DraftVm]) -> Vec<Placed<'_>> {
    let all = vms.iter().flat_map(|owner| {
        owner.vcpus.iter().filter_map(move |vcpu| {
            let (pcpu, priority) = (*vcpu.pcpu.as_ref()?.get_ref(), vcpu.priority.as_ref()?);
            Some(Placed { owner, vcpu, pcpu, priority })
        })
    });
    all.collect()
}

/// Checks that the system has a pCPU.
pub(super) fn is_pcpu(pcpu: &At<u64>, pcpus: usize, problems: &mut Problems) {
    if *pcpu.get_ref() >= pcpus as u64 {
        let (message, last) = (format!("there is no pCPU {}", pcpu.get_ref()), pcpus - 1);
        problems
            .add(Code::UnknownPcpu, pcpu.span(), message)
            .hint(format!("the system's pCPUs are 0 to {last}; see `pcpus` of the board"));
    }
}

fn ranges(vcpu: &DraftVcpu, machine: Option<&Machine>, problems: &mut Problems) {
    if let (Some(pcpu), Some(machine)) = (&vcpu.pcpu, machine) {
        is_pcpu(pcpu, machine.pcpus, problems);
    }
    let allowed = MIN_QUANTUM_NS..=MAX_QUANTUM_NS;
    time_in(allowed, vcpu.quantum.as_ref(), "a quantum", Code::Quantum, problems);
}

/// A real-time vCPU must be above every other that is none: an equal one
/// would delay it by a quantum at each turn, a higher one without bound. One
/// that makes way goes elsewhere for a higher one
/// ([`super::migration::stranded`]), but not for an equal one.
fn realtime(me: &Placed<'_>, all: &[Placed<'_>], problems: &mut Problems) {
    if !me.owner.is_realtime() {
        return;
    }
    let makes_way = me.owner.migration_policy().needs().for_realtime;
    let rivals = all.iter().filter(|other| {
        let concerns = !makes_way || other.priority.get_ref() == me.priority.get_ref();
        concerns && !other.owner.is_realtime() && other.pcpu == me.pcpu
    });
    let highest = rivals.max_by_key(|other| *other.priority.get_ref());
    let Some(rival) = highest.filter(|rival| rival.priority.get_ref() >= me.priority.get_ref())
    else {
        return;
    };
    let message = format!(
        "real-time {} has priority {} on pCPU {}, not above {}",
        me.owner.title(),
        me.priority.get_ref(),
        me.pcpu,
        rival.owner.title(),
    );
    problems
        .add(Code::RealtimePriority, me.priority.span(), message)
        .see(rival.priority.span(), "this one would delay it")
        .hint(if makes_way {
            "they would take turns; it makes way only for a higher priority: raise one of the two"
                .into()
        } else {
            format!("give it more than {}", rival.priority.get_ref())
        });
}

fn quantum_unused(me: &Placed<'_>, i: usize, all: &[Placed<'_>], problems: &mut Problems) {
    let Some(quantum) = &me.vcpu.quantum else { return };
    if me.owner.migrates() {
        // It meets its siblings elsewhere.
        return;
    }
    let equal = |(j, other): (usize, &Placed<'_>)| {
        j != i && other.pcpu == me.pcpu && other.priority.get_ref() == me.priority.get_ref()
    };
    if !all.iter().enumerate().any(equal) {
        let message = format!(
            "no other vCPU has priority {} on pCPU {}, so nothing uses this quantum",
            me.priority.get_ref(),
            me.pcpu
        );
        problems
            .add(Code::QuantumUnused, quantum.span(), message)
            .hint("leave it out, or give another vCPU there the same priority");
    }
}

/// pCPUs where no vCPU is, nor may come, nor an interrupt.
pub(super) fn idle_pcpus(drafts: &[DraftVm], vms: &[Vm], pcpus: usize, problems: &mut Problems) {
    let used = vms.iter().flat_map(|vm| &vm.vcpus).fold(0, |set, vcpu| set | vcpu.affinity);
    let routed = |pcpu: &usize| vms.iter().any(|vm| vm.interrupts_to == Some(*pcpu));
    for pcpu in (0..pcpus).filter(|pcpu| used >> pcpu & 1 == 0 && !routed(pcpu)) {
        let span = drafts.last().map_or(0..0, |vm| vm.span.clone());
        problems
            .add(Code::IdlePcpu, span, format!("no vCPU comes to pCPU {pcpu}: it will sleep"))
            .hint("place a vCPU there, or lower `pcpus` of the board");
    }
}

/// Returns the vCPU as it is before policies place it; `None` when something is
/// missing.
pub(super) fn sound(draft: &DraftVcpu) -> Option<Vcpu> {
    let pcpu = usize::try_from(*draft.pcpu.as_ref()?.get_ref()).ok()?;
    Some(Vcpu {
        pcpu,
        priority: u16::try_from(*draft.priority.as_ref()?.get_ref()).ok()?,
        unmarked_priority: draft.unmarked.as_ref().and_then(|at| (*at.get_ref()).try_into().ok()),
        quantum_ns: draft.quantum.as_ref().map_or(DEFAULT_QUANTUM_NS, |at| *at.get_ref()),
        fallback: pcpu,
        affinity: 1 << pcpu,
        rotation: 0,
        urgent: false,
        lower: false,
        timer_advance_ns: 0,
        adapts_timer_advance: false,
        server: None,
        boost: boosts::sound(draft),
    })
}
