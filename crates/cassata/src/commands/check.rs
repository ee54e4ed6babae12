//! `cassata check`.

use super::{analyze, description, say};
use crate::cli::Check;
use analysis::bounds::Bounds;
use analysis::misses::misses;
use lab::quantity::bytes;
use lab::table::Table;
use miette::{IntoDiagnostic, Result};
use serde_json::{Value, json};
use system::Checked;
use system::model::{Vcpu, Vm};

/// Says whether a description is sound, and what it describes.
pub fn check(arguments: &Check) -> Result<u8> {
    let checked = description::load(&arguments.system)?;
    let misses = match &checked.timing {
        // Whoever relies on the answer gets the bounds that nothing exceeds.
        Some(system) => {
            misses(system, &analyze::compute(&checked.path, system, Bounds::Corrected)?)
        }
        None => Vec::new(),
    };
    for miss in &misses {
        eprintln!("{}: {}", checked.path.display(), miss.what);
    }
    if !misses.is_empty() {
        eprintln!(
            "`cassata analyze --bounds corrected {}` shows every bound",
            checked.path.display()
        );
        return Ok(1);
    }
    if arguments.json {
        say(&serde_json::to_string_pretty(&for_programs(&checked)).into_diagnostic()?);
    } else {
        say(overview(&checked).to_string().trim_end());
        if let Some(text) = consolidation(&checked) {
            say(&text);
        }
    }
    Ok(0)
}

/// What [`overview`] says; a vCPU without a refuge has none here either.
fn for_programs(checked: &Checked) -> Value {
    let vcpu = |vcpu: &Vcpu| {
        let refuge = (vcpu.refuge != vcpu.pcpu).then_some(vcpu.refuge);
        let havens: Vec<_> = vcpu.havens().collect();
        json!({
            "pcpu": vcpu.pcpu, "priority": vcpu.priority, "refuge": refuge, "havens": havens,
            "tour": vcpu.tour().collect::<Vec<_>>(), "timer_lead_us": vcpu.timer_lead_us,
        })
    };
    let vm = |vm: &Vm| {
        json!({
            "name": vm.name, "memory": vm.ram_size, "realtime": vm.realtime,
            "migration": vm.policy.name(), "vcpus": vm.vcpus.iter().map(vcpu).collect::<Vec<_>>(),
        })
    };
    json!({
        "pcpus": checked.machine.pcpus, "memory": checked.machine.memory,
        "shelters": checked.consolidation.shelters,
        "vms": checked.vms.iter().map(vm).collect::<Vec<_>>(),
    })
}

/// Which pCPUs may be powered down, if any.
fn consolidation(checked: &Checked) -> Option<String> {
    let one = |(pcpu, shelter)| format!("pCPU {pcpu} (its vCPUs go to pCPU {shelter})");
    let all: Vec<_> = checked.consolidation.pairs().map(one).collect();
    (!all.is_empty()).then(|| format!("  may be powered down: {}", all.join(", ")))
}

fn overview(checked: &Checked) -> Table {
    let (pcpus, memory) = (checked.machine.pcpus, bytes(checked.machine.memory));
    let path = checked.path.display();
    let title = format!("{path} is sound: {pcpus} pCPUs, {memory} of memory");
    let head = ["VM", "memory", "vCPUs on pCPU (priority)", "real-time", "may leave for pCPU"];
    let mut table = Table::new(&title, head);
    for vm in &checked.vms {
        let vcpus = vm.vcpus.iter().map(|vcpu| format!("{} ({})", vcpu.pcpu, vcpu.priority));
        let realtime = if vm.realtime { "yes" } else { "no" };
        let vcpus = vcpus.collect::<Vec<_>>().join(", ");
        table.row([vm.name.clone(), bytes(vm.ram_size), vcpus, realtime.into(), refuges(vm)]);
    }
    table
}

/// Where each vCPU goes while another one has its pCPU: its refuge, those that it goes
/// on to in turn, and others while they have nothing to run.
fn refuges(vm: &Vm) -> String {
    let refuge = |vcpu: &Vcpu| {
        let list = |word: &str, pcpus: Vec<usize>| {
            let pcpus: Vec<_> = pcpus.iter().map(usize::to_string).collect();
            (!pcpus.is_empty()).then(|| format!("{word}{}", pcpus.join(" ")))
        };
        let others = vcpu.havens().filter(|&pcpu| pcpu != vcpu.refuge);
        let (tour, idle) = others.partition(|&pcpu| vcpu.tour >> pcpu & 1 == 1);
        let goes = (vcpu.refuge != vcpu.pcpu).then(|| {
            let then = list(" then ", tour).unwrap_or_default();
            format!("{}{then}", vcpu.refuge)
        });
        match (goes, list("idle ", idle)) {
            (None, None) => "-".into(),
            (Some(goes), Some(idle)) => format!("{goes} or {idle}"),
            (goes, idle) => goes.or(idle).unwrap_or_default(),
        }
    };
    let each: Vec<String> = vm.vcpus.iter().map(refuge).collect();
    if each.iter().all(|refuge| refuge == "-") { "-".into() } else { each.join(", ") }
}
