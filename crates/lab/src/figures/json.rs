//! Figures for programs. Names end in their unit.

use super::summary;
use crate::observe::{
    Distribution, Observer, Reports, Snapshot, VcpuSnapshot, vcpu_state_name, vm_state_name,
};
use abi::status::EXIT_NAMES;
use serde_json::{Map, Value, json};

/// Everything the observer saw, by name.
#[must_use]
pub fn figures(observer: &Observer) -> Map<String, Value> {
    let mut figures = Map::new();
    let layout = observer.layout();
    for (vm, layout) in layout.vms.iter().enumerate() {
        if let Some(reports) = observer.reports(vm).and_then(report) {
            figures.insert(layout.name.clone(), reports);
        }
    }
    let Some(now) = observer.latest() else { return figures };
    figures.insert("time_s".into(), seconds(now, now.now));
    let host_wait = observer.host_wait().map(|wait| wait.as_secs_f64());
    figures.insert("host_wait_s".into(), host_wait.into());
    let vms = layout.vms.iter().zip(&now.vms).map(|(layout, vm)| {
        json!({ "vm": layout.name, "state": vm_state_name(vm.state), "starts": vm.starts })
    });
    figures.insert("vms".into(), vms.collect());
    let vcpus = now.vcpus.iter().enumerate();
    let vcpus = vcpus.map(|(index, vcpu)| figures_of_vcpu(observer, now, index, vcpu));
    figures.insert("vcpus".into(), vcpus.collect());
    let pcpus = now.pcpus.iter().map(|pcpu| {
        json!({
            "online": pcpu.online, "idle_s": seconds(now, pcpu.idle),
            "powered_down_s": seconds(now, pcpu.powered_down), "power_downs": pcpu.power_downs,
            "doorbells": pcpu.doorbells, "spurious": pcpu.spurious
        })
    });
    figures.insert("pcpus".into(), pcpus.collect());
    figures
}

fn figures_of_vcpu(
    observer: &Observer,
    now: &Snapshot,
    index: usize,
    vcpu: &VcpuSnapshot,
) -> Value {
    let exits: Map<_, _> =
        EXIT_NAMES.iter().zip(vcpu.exits).map(|(name, n)| ((*name).into(), n.into())).collect();
    json!({
        "vcpu": observer.layout().vcpu_label(index),
        "state": vcpu_state_name(vcpu.state),
        "pcpu": vcpu.pcpu,
        "run_s": seconds(now, vcpu.run),
        "share": now.share(index, None),
        "stolen_s": seconds(now, vcpu.stolen),
        "switches": vcpu.switches,
        "injected": vcpu.injected,
        "migrations": vcpu.migrations,
        "kernel_preemptions": vcpu.kernel_preemptions,
        "kernel_preempted_s": seconds(now, vcpu.kernel_preempted),
        "longest_el2_us": now.time(vcpu.longest_el2).as_secs_f64() * 1e6,
        "exits": exits,
    })
}

fn report(reports: &Reports) -> Option<Value> {
    let header = reports.header()?;
    let us = 1e6 / as_f64(header.counter_hz);
    Some(json!({
        "activations": header.written,
        "missed": header.missed,
        "due": reports.due(),
        "samples_lost": reports.lost(),
        "period_us": as_f64(header.period) * us,
        "load_permille": header.load_permille,
        "load_units": header.load_units,
        "response_us": latency(reports.response(), us),
        "dispatch_us": latency(reports.dispatch(), us),
    }))
}

/// Percentiles of `values` ticks of `us` microseconds each.
pub(crate) fn latency(values: &Distribution, us: f64) -> Map<String, Value> {
    let mut figures: Map<_, _> =
        summary(values).into_iter().map(|(name, t)| (name.into(), (t * us).into())).collect();
    figures.insert("samples".into(), values.count().into());
    figures
}

fn seconds(snapshot: &Snapshot, ticks: u64) -> Value {
    snapshot.time(ticks).as_secs_f64().into()
}

#[allow(clippy::cast_precision_loss)] // measured quantities
fn as_f64(value: u64) -> f64 {
    value as f64
}
