//! `cassata check`.

use super::{analyze, description, overheads, say};
use crate::cli::Check;
use crate::messages::note;
use analysis::bounds::Bounds;
use analysis::misses::misses;
use lab::quantity::bytes;
use lab::table::Table;
use miette::{IntoDiagnostic, Result};
use serde_json::{Value, json};
use system::Checked;
use system::model::{Front, LinkEnd, Vcpu, Vm};

/// Says whether a description is sound, and what it describes.
pub fn check(arguments: &Check) -> Result<u8> {
    let checked = description::load(&arguments.system)?;
    let mut assumed = None;
    let misses = match checked.promised() {
        // The answer is relied on, so it uses the bounds that nothing exceeds.
        Some(system) => {
            let overheads = overheads::choose(&arguments.overheads, Some(&checked))?;
            assumed = Some(overheads::assumed(&arguments.overheads, &overheads));
            overheads::reservation(&arguments.overheads).into_iter().for_each(note);
            misses(system, &analyze::compute(&checked.path, system, Bounds::Corrected, overheads)?)
        }
        None => Vec::new(),
    };
    for miss in &misses {
        note(&format!("{}: {}", checked.path.display(), miss.what));
    }
    if !misses.is_empty() {
        note(&format!(
            "`cassata analyze --bounds corrected {}` shows every bound",
            checked.path.display()
        ));
        return Ok(1);
    }
    if arguments.json {
        say(&serde_json::to_string_pretty(&for_programs(&checked)).into_diagnostic()?);
    } else {
        say(overview(&checked).to_string().trim_end());
        let more = [consolidation(&checked), links(&checked), virtio(&checked), parts(&checked)];
        more.iter().flatten().for_each(|text| say(text));
        if let Some(assumed) = assumed {
            say(&format!("  every deadline holds, if {assumed}"));
        }
    }
    Ok(0)
}

/// Returns what [`overview`] says as JSON; a vCPU without a fallback has `null`.
fn for_programs(checked: &Checked) -> Value {
    let vcpu = |vcpu: &Vcpu| {
        let fallback = (vcpu.fallback != vcpu.pcpu).then_some(vcpu.fallback);
        json!({
            "pcpu": vcpu.pcpu, "priority": vcpu.priority, "fallback": fallback,
            "affinity": vcpu.affinity().collect::<Vec<_>>(),
            "rotation": vcpu.rotation().collect::<Vec<_>>(),
            "timer_advance_ns": vcpu.timer_advance_ns,
            "adapts_timer_advance": vcpu.adapts_timer_advance,
        })
    };
    let vm = |vm: &Vm| {
        json!({
            "name": vm.name, "memory": vm.ram_size, "realtime": vm.realtime,
            "migration_policy": vm.migration_policy.name(), "interrupts_to": vm.interrupts_to,
            "vcpus": vm.vcpus.iter().map(vcpu).collect::<Vec<_>>(),
        })
    };
    let link = |(vm, end): (&Vm, &LinkEnd)| {
        json!({
            "name": end.name, "between": [vm.name, end.peer], "size": end.size,
            "cached": end.cached,
        })
    };
    let virtio = |(vm, front): (&Vm, &Front)| {
        let devices: Vec<_> = front.devices.iter().map(|kind| kind.name()).collect();
        json!({ "front": vm.name, "back": front.back, "devices": devices, "memory": front.size })
    };
    json!({
        "pcpus": checked.machine.pcpus, "memory": checked.machine.memory,
        "consolidation_targets": checked.consolidation.targets,
        "vms": checked.vms.iter().map(vm).collect::<Vec<_>>(),
        "links": ends(checked).map(link).collect::<Vec<_>>(),
        "virtio": fronts(checked).map(virtio).collect::<Vec<_>>(),
        "parts": checked.parts().map(|(name, _)| name).collect::<Vec<_>>(),
    })
}

/// Names the parts that the system needs of its hypervisor, if there are any.
fn parts(checked: &Checked) -> Option<String> {
    let all: Vec<_> = checked.parts().map(|(name, _)| name).collect();
    (!all.is_empty()).then(|| format!("  parts of the hypervisor: {}", all.join(", ")))
}

/// Lists the pCPUs that may be powered down, if there are any.
fn consolidation(checked: &Checked) -> Option<String> {
    let one = |(pcpu, target)| format!("pCPU {pcpu} (its vCPUs go to pCPU {target})");
    let all: Vec<_> = checked.consolidation.pairs().map(one).collect();
    (!all.is_empty()).then(|| format!("  may be powered down: {}", all.join(", ")))
}

/// Returns each link by the end of its first VM.
fn ends(checked: &Checked) -> impl Iterator<Item = (&Vm, &LinkEnd)> {
    let ends = checked.vms.iter().flat_map(|vm| vm.links.iter().map(move |end| (vm, end)));
    ends.filter(|(_, end)| end.side == 0)
}

/// Lists the links between VMs, if there are any.
fn links(checked: &Checked) -> Option<String> {
    let one = |(vm, end): (&Vm, &LinkEnd)| {
        format!("{} between {} and {} ({})", end.name, vm.name, end.peer, bytes(end.size))
    };
    let all: Vec<_> = ends(checked).map(one).collect();
    (!all.is_empty()).then(|| format!("  linked: {}", all.join(", ")))
}

/// Returns each VM that gets virtio devices, with what it gets.
fn fronts(checked: &Checked) -> impl Iterator<Item = (&Vm, &Front)> {
    checked.vms.iter().filter_map(|vm| Some((vm, vm.virtio.as_ref()?)))
}

/// Lists the virtio devices that VMs get from others, if there are any.
fn virtio(checked: &Checked) -> Option<String> {
    let one = |(vm, front): (&Vm, &Front)| {
        let kinds: Vec<_> = front.devices.iter().map(|kind| kind.name()).collect();
        format!("{} has {} of {} ({})", vm.name, kinds.join(", "), front.back, bytes(front.size))
    };
    let all: Vec<_> = fronts(checked).map(one).collect();
    (!all.is_empty()).then(|| format!("  virtio devices: {}", all.join("; ")))
}

pub(super) fn overview(checked: &Checked) -> Table {
    let (pcpus, memory) = (checked.machine.pcpus, bytes(checked.machine.memory));
    let path = checked.path.display();
    let title = format!("{path} is sound: {pcpus} pCPUs, {memory} of memory");
    let head = ["VM", "memory", "vCPUs on pCPU (priority)", "real-time", "may leave for pCPU"];
    let mut table = Table::new(&title, head);
    for vm in &checked.vms {
        let vcpus = vm.vcpus.iter().map(|vcpu| format!("{} ({})", vcpu.pcpu, vcpu.priority));
        let realtime = if vm.realtime { "yes" } else { "no" };
        let vcpus = vcpus.collect::<Vec<_>>().join(", ");
        table.row([vm.name.clone(), bytes(vm.ram_size), vcpus, realtime.into(), migrations(vm)]);
    }
    table
}

/// Lists where each vCPU goes while another one has its pCPU: its fallback, the pCPUs
/// of its rotation, and others of its affinity while they are idle.
fn migrations(vm: &Vm) -> String {
    let migrations = |vcpu: &Vcpu| {
        let list = |word: &str, pcpus: Vec<usize>| {
            let pcpus: Vec<_> = pcpus.iter().map(usize::to_string).collect();
            (!pcpus.is_empty()).then(|| format!("{word}{}", pcpus.join(" ")))
        };
        let others = vcpu.affinity().filter(|&pcpu| pcpu != vcpu.pcpu && pcpu != vcpu.fallback);
        let (rotation, idle) = others.partition(|&pcpu| vcpu.rotation >> pcpu & 1 == 1);
        let goes = (vcpu.fallback != vcpu.pcpu).then(|| {
            let then = list(" then ", rotation).unwrap_or_default();
            format!("{}{then}", vcpu.fallback)
        });
        match (goes, list("idle ", idle)) {
            (None, None) => "-".into(),
            (Some(goes), Some(idle)) => format!("{goes} or {idle}"),
            (goes, idle) => goes.or(idle).unwrap_or_default(),
        }
    };
    let each: Vec<String> = vm.vcpus.iter().map(migrations).collect();
    if each.iter().all(|vcpu| vcpu == "-") { "-".into() } else { each.join(", ") }
}
