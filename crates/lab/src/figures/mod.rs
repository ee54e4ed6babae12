//! What an observer saw, as figures for programs and as tables for people.

mod instrument;
mod json;
mod tables;

pub use instrument::{instructions, virtual_time};
pub use json::figures;
pub(crate) use json::latency;
pub use tables::{causes, checks, latencies, pcpus, vcpus};
pub(crate) use tables::{latency_row, latency_table};

use crate::observe::{Distribution, Observer};
use crate::report::{Report, Series, figure, histogram, shares};
use crate::table::Table;

/// Every table there is something to put in.
#[must_use]
pub fn tables(observer: &Observer) -> Vec<Table> {
    let tables = [latencies(observer), vcpus(observer), causes(observer), pcpus(observer)];
    tables.into_iter().filter(|table| !table.rows.is_empty()).collect()
}

/// Adds drawings and tables to a report.
pub fn illustrate(report: &mut Report, observer: &Observer) {
    for (vm, name) in observer.layout().vms.iter().map(|vm| &vm.name).enumerate() {
        let Some(reports) = observer.reports(vm) else { continue };
        let Some(header) = reports.header() else { continue };
        let series = [
            Series { name: "interrupt response time", values: reports.response() },
            Series { name: "dispatch latency", values: reports.dispatch() },
        ];
        let caption = "From the instant the timer interrupt was due to the first instruction of \
                       the guest's handler (response) and of the task it wakes (dispatch). \
                       Dashed: median, 99th percentile and maximum of each. Rest the pointer \
                       on a bar for its numbers.";
        let drawing = histogram(&series, header.counter_hz);
        report.section(&format!("How late was {name}?"), figure(&drawing, caption));
    }
    report.section("Who had which core?", core_shares(observer));
    for table in tables(observer) {
        report.table(&table);
    }
}

fn core_shares(observer: &Observer) -> maud::Markup {
    let spans: Vec<_> = observer.timeline().spans().collect();
    let drawing = |pcpu| shares(&spans, observer.layout(), pcpu);
    let caption = |pcpu| {
        format!(
            "What each vCPU had of pCPU {pcpu}; what is left blank, the core rested or was at EL2."
        )
    };
    maud::html! {
        @for pcpu in 0..observer.layout().pcpus { (figure(&drawing(pcpu), &caption(pcpu))) }
    }
}

/// The percentiles we report, with their names: thousandths of all values.
pub const PERCENTILES: [(&str, u64); 3] = [("p50", 500), ("p99", 990), ("p99.9", 999)];

/// Minimum, mean, [`PERCENTILES`], maximum, in ticks; empty when there are no
/// values.
fn summary(values: &Distribution) -> Vec<(&'static str, f64)> {
    let at = |name, ticks: Option<u32>| ticks.map(|ticks| (name, f64::from(ticks)));
    let mut summary: Vec<_> = at("min", values.min()).into_iter().collect();
    summary.extend(values.mean().map(|mean| ("mean", mean)));
    summary.extend(PERCENTILES.iter().filter_map(|&(name, p)| at(name, values.percentile(p))));
    summary.extend(at("max", values.max()));
    summary
}

#[cfg(test)]
mod tests;
