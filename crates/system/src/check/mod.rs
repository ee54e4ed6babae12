//! Does the description make sense? Each module checks one concern over the
//! whole draft and notes every fault it finds.

mod board;
mod boosts;
mod calibration;
mod consolidation;
mod declared;
mod devices;
mod images;
mod interrupts;
mod links;
mod marks;
mod memory;
mod migration;
mod names;
mod outranked;
mod plugged;
mod requests;
mod servers;
mod shared;
mod siblings;
mod timer_advance;
mod timing;
mod trace;
mod traffic;
mod vcpus;
mod virtio;
mod watchdog;

use crate::calibration::Calibration;
use crate::code::Code;
use crate::draft::{At, Draft, DraftVm, flag};
use crate::model::{
    Consolidation, Machine, PassedInterrupt, Plugged, Protocol, Vcpu, Vm, VmSpans, paces,
};
use crate::problem::Problems;
use crate::time;
pub(crate) use declared::own_name;
use images::Images;
use std::ops::RangeInclusive;
use std::path::Path;

/// A draft without faults, not yet laid out.
pub(crate) struct Sound {
    pub(crate) machine: Machine,
    pub(crate) priority_separation: bool,
    pub(crate) off_when_done: bool,
    pub(crate) reset_on_fault: bool,
    /// 0 without a watchdog.
    pub(crate) watchdog_ns: u32,
    /// 0 without a grace.
    pub(crate) sibling_grace_ns: u64,
    pub(crate) directed_yield: bool,
    pub(crate) vms: Vec<Vm>,
    pub(crate) timing: Option<analysis::model::System>,
    pub(crate) protocol: Protocol,
    pub(crate) consolidation: Consolidation,
    /// Bytes of each pCPU's ring, 0 without a trace.
    pub(crate) trace: u32,
    pub(crate) plugged: Plugged,
    pub(crate) calibration: Option<Calibration>,
}

/// Checks a draft whose files lie relative to `directory`; `None` when an
/// error was found, here or before.
pub(crate) fn check(draft: &Draft, directory: &Path, problems: &mut Problems) -> Option<Sound> {
    let machine = board::check(&draft.board, problems);
    names::check(&draft.vms, problems);
    vcpus::check(&draft.vms, machine.as_ref(), problems);
    memory::check(&draft.vms, machine.as_ref(), problems);
    shared::check(draft, problems);
    links::check(draft, problems);
    virtio::check(draft, problems);
    if let Some(machine) = &machine {
        devices::check(&draft.vms, machine.board, problems);
        interrupts::check(draft, machine, problems);
    }
    let board = machine.as_ref().map(|machine| machine.board);
    let plugged = board.map(|board| plugged::check(draft, board, directory, problems));
    let calibration = board.and_then(|board| {
        calibration::check(draft.board.calibration.as_ref()?, board, directory, problems)
    });
    migration::check(&draft.vms, problems);
    marks::check(&draft.vms, problems);
    boosts::check(&draft.vms, problems);
    requests::check(&draft.vms, machine.as_ref().map(|machine| machine.pcpus), problems);
    timer_advance::check(&draft.vms, problems);
    consolidation::check(draft, problems);
    trace::check(draft, machine.as_ref(), problems);
    watchdog::check(draft, machine.as_ref(), problems);
    siblings::grace(draft, problems);
    let mut timing = timing::check(draft, board, problems);
    let images = images::check(&draft.vms, directory, problems);
    virtio::circles(draft, &images, problems);
    if problems.any_error() {
        return None;
    }
    let machine = machine?;
    let vms = draft.vms.iter().zip(images);
    let vms = vms.map(|(vm, images)| sound_vm(vm, images?, draft, &machine));
    let mut vms = vms.collect::<Option<Vec<_>>>()?;
    requests::assign(&draft.vms, &mut vms, problems);
    migration::assign(&mut vms, machine.pcpus, problems);
    migration::stranded(&draft.vms, &vms, problems);
    marks::among_others(&draft.vms, &vms, problems);
    boosts::among_others(&draft.vms, &vms, problems);
    if problems.any_error() {
        return None;
    }
    timer_advance::assign(&mut vms, &draft.vms);
    servers::assign(&mut vms, &draft.vms);
    let targets = consolidation::targets(&vms, machine.pcpus, problems);
    let window_ns = consolidation::window_ns(draft);
    let consolidation = Consolidation { targets: targets.clone(), window_ns };
    servers::wherever(&draft.vms, &vms, &targets, problems);
    if let Some(timing) = &mut timing {
        let admitted = servers::admit_everywhere(timing, &vms, &targets);
        let sight = traffic::Sight::new(timing, &admitted, &vms, &consolidation);
        // Under MPCP there are no bounds to warn of.
        if timing::protocol(draft) == Protocol::Vmpcp && !problems.any_error() {
            sight.warn(&draft.vms, problems);
        }
        timing.traffic = sight.traffic();
        declared::assign(&mut vms, timing);
        let paces = paces(calibration.as_ref(), machine.board);
        let el2 = (&paces, draft.watchdog.is_some());
        servers::allow_overruns(&mut vms, &draft.vms, el2, timing, problems);
    }
    siblings::check(&draft.vms, &vms, &targets, problems);
    outranked::check(&draft.vms, &vms, problems);
    migration::unlimited(&draft.vms, &vms, problems);
    vcpus::idle_pcpus(&draft.vms, &vms, machine.pcpus, problems);
    if problems.any_error() {
        return None;
    }
    Some(Sound {
        machine,
        priority_separation: flag(&draft.priority_separation, true),
        off_when_done: flag(&draft.off_when_done, true),
        reset_on_fault: flag(&draft.reset_on_fault, false),
        watchdog_ns: watchdog::time_ns(draft),
        sibling_grace_ns: siblings::grace_ns(draft),
        directed_yield: flag(&draft.directed_yield, true),
        vms,
        timing,
        protocol: timing::protocol(draft),
        trace: trace::size(draft),
        plugged: plugged.unwrap_or_default(),
        calibration,
        consolidation,
    })
}

/// Refuses a time that is not one of `allowed`: `what` it is, with its article.
fn time_in(
    allowed: RangeInclusive<u64>,
    time: Option<&At<u64>>,
    what: &str,
    code: Code,
    problems: &mut Problems,
) {
    if let Some(time) = time.filter(|at| !allowed.contains(at.get_ref())) {
        let message = format!("{what} of {} is out of range", time::text(*time.get_ref()));
        problems.add(code, time.span(), message).hint(time::range(&allowed));
    }
}

fn sound_vm(draft: &DraftVm, images: Images, system: &Draft, machine: &Machine) -> Option<Vm> {
    let spans = VmSpans {
        memory: draft.memory_span(),
        kernel: draft.kernel.as_ref()?.span(),
        initramfs: draft.initramfs.as_ref().map_or(draft.span.clone(), |at| at.span()),
        migration_policy: draft
            .migration_policy
            .as_ref()
            .map_or(draft.span.clone(), |at| at.span()),
        consolidate: draft.consolidate.as_ref().map_or(draft.span.clone(), |at| at.span()),
    };
    let claims = interrupts::claims(draft, machine.board);
    Some(Vm {
        name: draft.name.as_ref()?.get_ref().clone(),
        kernel: images.kernel,
        initramfs: images.initramfs,
        cmdline: draft.cmdline.as_ref().map_or(String::new(), |at| at.get_ref().clone()),
        ram_size: *draft.memory.size.as_ref()?.get_ref(),
        ram_ipa: draft.ram_ipa(),
        identity: draft.is_identity(),
        clear_memory: flag(&draft.memory.clear, false),
        devicetree: draft.memory.device_tree.as_ref().map(|at| *at.get_ref()).unwrap_or_default(),
        vcpus: draft.vcpus.iter().map(vcpus::sound).collect::<Option<Vec<Vcpu>>>()?,
        tasks: Vec::new(),
        console: draft.has_console(),
        realtime: draft.is_realtime(),
        report: draft.report.as_ref().map_or(0, |at| *at.get_ref()),
        shared_memory: shared::of(draft, &system.shared_memory)?,
        links: links::of(draft, &system.links)?,
        virtio: virtio::front(draft, system),
        backs: virtio::backs(draft, system)?,
        has_mutexes: draft.has_global_sections(),
        restart_on_fault: flag(&draft.restart_on_fault, false),
        seed: draft.seed.as_ref().map(|at| *at.get_ref()),
        migration_policy: draft.migration_policy(),
        other_policies: requests::others(draft),
        delay_limit_ns: migration::delay_limit_ns(draft),
        preempt_count_at: migration::preempt_count_at(draft),
        yields: migration::yields(draft),
        consolidate: flag(&draft.consolidate, false),
        devices: devices::of(draft, machine.board).map(|(_, device)| device).collect(),
        interrupts: claims
            .iter()
            .map(interrupts::Claim::sound)
            .collect::<Option<Vec<PassedInterrupt>>>()?,
        interrupts_to: interrupts::to(draft),
        spans,
    })
}
