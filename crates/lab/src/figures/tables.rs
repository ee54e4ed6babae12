//! Tables for people.

use super::{PERCENTILES, summary};
use crate::observe::{Distribution, Observer};
use crate::quantity::{count, duration, percent};
use crate::results::Outcome;
use crate::table::Table;
use abi::status::EXIT_NAMES;
use std::time::Duration;

/// Goals, and whether they are met.
#[must_use]
pub fn checks(outcome: &Outcome) -> Table {
    let mut table = Table::new("Checks", ["", "value", "goal", ""]);
    for check in outcome.checks() {
        let mark = if check.holds() { "holds" } else { "FAILS" };
        table.row([check.name.clone(), check.value_text(), check.goal.to_string(), mark.into()]);
    }
    table
}

/// An empty table of latencies.
pub(crate) fn latency_table(title: &str) -> Table {
    let middle = PERCENTILES.map(|(name, _)| name);
    Table::new(title, ["", "samples", "min", "mean"].into_iter().chain(middle).chain(["max"]))
}

/// Its row of `values`, ticks of a counter that runs at `counter_hz`; nothing
/// if there are none.
pub(crate) fn latency_row(
    name: &str,
    values: &Distribution,
    counter_hz: u64,
) -> Option<Vec<String>> {
    #[allow(clippy::cast_precision_loss)] // a frequency
    let time = |ticks: f64| Duration::from_secs_f64(ticks / counter_hz as f64);
    let cells = summary(values).into_iter().map(|(_, ticks)| duration(time(ticks)));
    let row = || [name.to_owned(), count(values.count())].into_iter().chain(cells).collect();
    (values.count() > 0).then(row)
}

/// Response and dispatch of every guest that reports.
#[must_use]
pub fn latencies(observer: &Observer) -> Table {
    let mut table = latency_table("Latencies");
    for (vm, name) in observer.layout().vms.iter().map(|vm| &vm.name).enumerate() {
        let Some(reports) = observer.reports(vm) else { continue };
        let Some(header) = reports.header() else { continue };
        for (what, values) in [
            ("interrupt response time", reports.response()),
            ("dispatch latency", reports.dispatch()),
        ] {
            table.rows.extend(latency_row(&format!("{name} {what}"), values, header.counter_hz));
        }
    }
    table
}

/// What each vCPU did.
#[must_use]
pub fn vcpus(observer: &Observer) -> Table {
    let head = [
        "vCPU",
        "pCPU",
        "run time",
        "share",
        "stolen",
        "switches",
        "injected",
        "migrations",
        "preempted in kernel",
        "for",
        "longest at EL2",
    ];
    let mut table = Table::new("vCPUs", head);
    let Some(now) = observer.latest() else { return table };
    for (index, vcpu) in now.vcpus.iter().enumerate() {
        table.row([
            observer.layout().vcpu_label(index),
            vcpu.pcpu.to_string(),
            duration(now.time(vcpu.run)),
            percent(now.share(index, None)),
            duration(now.time(vcpu.stolen)),
            count(vcpu.switches),
            count(vcpu.injected),
            count(vcpu.migrations),
            count(vcpu.kernel_preemptions),
            duration(now.time(vcpu.kernel_preempted)),
            duration(now.time(vcpu.longest_el2)),
        ]);
    }
    table
}

/// Why each vCPU left its guest.
#[must_use]
pub fn causes(observer: &Observer) -> Table {
    let names = EXIT_NAMES.map(|name| name.replace('_', " "));
    let head = std::iter::once("vCPU").chain(names.iter().map(String::as_str));
    let mut table = Table::new("Exits to EL2 by cause", head);
    let Some(now) = observer.latest() else { return table };
    for (index, vcpu) in now.vcpus.iter().enumerate() {
        let label = observer.layout().vcpu_label(index);
        table.row(std::iter::once(label).chain(vcpu.exits.map(count)));
    }
    table
}

/// What each pCPU did.
#[must_use]
pub fn pcpus(observer: &Observer) -> Table {
    let head = ["pCPU", "idle", "of that off", "times off", "doorbells", "spurious interrupts"];
    let mut table = Table::new("pCPUs", head);
    let Some(now) = observer.latest() else { return table };
    for (index, pcpu) in now.pcpus.iter().enumerate() {
        let started = pcpu.online || pcpu.power_downs > 0;
        let idle = if started { duration(now.time(pcpu.idle)) } else { "never started".into() };
        table.row([
            index.to_string(),
            idle,
            duration(now.time(pcpu.powered_down)),
            count(pcpu.power_downs),
            count(pcpu.doorbells),
            count(pcpu.spurious),
        ]);
    }
    table
}
