//! What an observer saw, as figures for programs and as tables and plots for people.

mod data;
mod instrument;
pub mod promises;

pub use instrument::virtual_time;

use crate::answer::Answer;
use crate::dataset::{Dataset, Unit};
use crate::observe::{Distribution, Observer, RefusedDma, Reports, Snapshot, vm_state_name};
use crate::quantity::real;
use crate::report::Plot;
use crate::results::{Check, Goal, Outcome};
use crate::session::Run;
use maud::html;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// Returns the outcome called `name` of `run`, in which nothing is demanded yet.
#[must_use]
pub fn outcome(name: &str, run: &Run) -> Outcome {
    let mut outcome = Outcome::new(name);
    record(&mut outcome, run);
    outcome
}

/// Adds the figures of `run`, and what it took of the host.
fn record(outcome: &mut Outcome, run: &Run) {
    outcome.figures.extend(figures(&run.observer));
    outcome.host = host(run);
    if let Some(counts) = &run.instrument {
        outcome.figure("virtual_time", virtual_time(counts));
    }
}

/// Returns what `run` took of the host: the only part of a result that another run in virtual
/// time does not repeat.
fn host(run: &Run) -> Map<String, Value> {
    let mut host = Map::new();
    host.insert("real_time_s".into(), run.elapsed.as_secs_f64().into());
    host.insert("host_wait_s".into(), run.host.map(|used| used.waited.as_secs_f64()).into());
    if let Some(counts) = &run.instrument {
        let real_s = Duration::from_nanos(counts.real_ns).as_secs_f64();
        let virtual_time = json!({ "real_s": real_s, "slowdown": counts.slowdown });
        host.insert("virtual_time".into(), virtual_time);
    }
    host
}

/// Adds a check that fails if the hypervisor counted cases of what cannot happen: then it
/// has a bug, even if it went on and every VM did its work.
pub fn check_bugs(outcome: &mut Outcome, observer: &Observer) {
    let bugs = observer.bugs();
    if bugs > 0 {
        let goal = Goal::Exactly(0.0);
        outcome.check(Check::new("bugs that the hypervisor met", real(bugs), "", goal));
    }
}

/// Returns everything the observer saw, by name, for programs.
#[must_use]
pub fn figures(observer: &Observer) -> Map<String, Value> {
    let mut figures = Map::new();
    let layout = &observer.layout;
    for (vm, layout) in layout.vms.iter().enumerate() {
        if let Some(reports) = observer.reports(vm).and_then(report) {
            figures.insert(layout.name.clone(), reports);
        }
    }
    let Some(now) = observer.latest() else { return figures };
    figures.insert("time_s".into(), seconds(now, now.now));
    if now.bugs > 0 {
        figures.insert("hypervisor_bugs".into(), now.bugs.into());
    }
    let refused = observer.refused_dma();
    if !refused.is_empty() {
        figures.insert("refused_dma".into(), refused.iter().map(RefusedDma::json).collect());
    }
    let vms = layout.vms.iter().zip(&now.vms).map(|(layout, vm)| {
        json!({ "vm": layout.name, "state": vm_state_name(vm.state), "starts": vm.starts })
    });
    figures.insert("vms".into(), vms.collect());
    for data in [data::vcpus(observer), data::causes(observer), data::pcpus(observer)] {
        figures.insert(data.name().into(), data.json());
    }
    figures
}

fn report(reports: &Reports) -> Option<Value> {
    let header = reports.header?;
    let us = 1e6 / real(header.counter_hz);
    let latency = |name: &str, values: &Distribution| {
        let data = Dataset::of(name, "", [values]);
        data.summary(Unit::None, |_| us, |values| Some(*values)).done().json()[0].clone()
    };
    Some(json!({
        "activations": header.written,
        "missed": header.missed,
        "due": reports.due(),
        "samples_lost": reports.lost(),
        "period_us": real(header.period) * us,
        "load_permille": header.load_permille,
        "load_units": header.load_units,
        "response_us": latency("response", &reports.response),
        "dispatch_us": latency("dispatch", &reports.dispatch),
    }))
}

fn seconds(snapshot: &Snapshot, ticks: u64) -> Value {
    snapshot.time(ticks).as_secs_f64().into()
}

/// Adds everything that was seen of `run`: figures, plots and tables.
pub fn tell(answer: &mut Answer, run: &Run) {
    record(&mut answer.outcome, run);
    promises::tell(answer, run);
    run.stretches().iter().for_each(|stretch| answer.outcome.check(stretch.check()));
    illustrate(answer, &run.observer);
    for of in [data::latencies, data::vcpus, data::causes, data::pcpus] {
        answer.show(&of(&run.observer));
    }
    run.instrument.iter().for_each(|counts| answer.show(&instrument::data(counts)));
}

/// Adds a histogram for each guest that reports, and the shares of each core over time.
fn illustrate(answer: &mut Answer, observer: &Observer) {
    for (vm, name) in observer.layout.vms.iter().map(|vm| &vm.name).enumerate() {
        let Some(reports) = observer.reports(vm) else { continue };
        let Some(header) = reports.header else { continue };
        let caption = "From the instant the timer interrupt was due to the first instruction of \
                       the guest's handler (response) and of the task it wakes (dispatch). \
                       Dashed: median, 99th percentile and maximum of each. Rest the pointer \
                       on a bar for its numbers.";
        let data = data::histogram(reports, header.counter_hz);
        let plot = Plot::histogram(&data, "latency_ns", "activations").by("of");
        let plot = answer.plot(&format!("latency-{name}"), &plot, caption);
        answer.section(&format!("How late was {name}?"), plot);
    }
    let core = |pcpu: usize| {
        let caption = format!(
            "What each vCPU had of pCPU {pcpu}; what is left blank, the core rested or was at EL2."
        );
        let plot = Plot::areas(&data::shares(observer, pcpu), "begin_s", "end_s", "share");
        answer.plot(&format!("shares-{pcpu}"), &plot.by("vcpu").colored("vm"), &caption)
    };
    let cores: Vec<_> = (0..observer.layout.pcpus).map(core).collect();
    answer.section("Which vCPU had which core?", html! { @for core in cores { (core) } });
}

/// Returns how often which latency occurred, of each named distribution of ticks of a counter
/// that runs at `counter_hz`.
pub(crate) fn histogram_data<'a>(
    name: &str,
    all: impl IntoIterator<Item = (&'a str, &'a Distribution)>,
    counter_hz: u64,
) -> Dataset {
    let ns = 1e9 / real(counter_hz);
    let values = |(of, all): (&'a str, &'a Distribution)| {
        all.iter().map(move |(ticks, count)| (of, f64::from(ticks) * ns, count))
    };
    Dataset::of(name, "", all.into_iter().flat_map(values))
        .name("of", |row| row.0)
        .column("latency", Unit::Nanoseconds, |row| row.1)
        .name("activations", |row| row.2)
        .done()
}

#[cfg(test)]
mod tests;
