//! What an observer saw, as datasets.

use super::histogram_data;
use crate::dataset::{Cell, Dataset, Unit};
use crate::observe::{Distribution, Observer, Reports, vcpu_state_name};
use crate::quantity::real;
use abi::status::{EXIT_NAMES, VcpuStatus};

/// Returns every guest that reports, with its name and microseconds of a tick.
fn reporting(observer: &Observer) -> impl Iterator<Item = (&str, &Reports, f64)> {
    let named = observer.layout.vms.iter().enumerate();
    named.filter_map(|(vm, layout)| {
        let reports = observer.reports(vm)?;
        Some((layout.name.as_str(), reports, 1e6 / real(reports.header?.counter_hz)))
    })
}

/// Response and dispatch of every guest that reports and was activated.
pub(super) fn latencies(observer: &Observer) -> Dataset {
    let mut rows: Vec<(String, &Distribution, f64)> = Vec::new();
    for (name, reports, us) in reporting(observer) {
        rows.push((format!("{name} interrupt response time"), &reports.response, us));
        rows.push((format!("{name} dispatch latency"), &reports.dispatch, us));
    }
    rows.retain(|(_, values, _)| values.count() > 0);
    Dataset::of("latencies", "Latencies", rows)
        .name("latency", |row| row.0.clone())
        .head("")
        .summary(Unit::Microseconds, |row| row.2, |row| Some(row.1))
        .done()
}

/// How often which latency of one guest occurred.
pub(super) fn histogram(reports: &Reports, counter_hz: u64) -> Dataset {
    let both =
        [("interrupt response time", &reports.response), ("dispatch latency", &reports.dispatch)];
    histogram_data("latency-histogram", both, counter_hz)
}

fn seen(observer: &Observer) -> Vec<(String, &VcpuStatus, usize)> {
    let vcpus = observer.latest().map_or(&[][..], |now| &now.vcpus).iter().enumerate();
    vcpus.map(|(index, vcpu)| (observer.layout.vcpu_label(index), vcpu, index)).collect()
}

/// What each vCPU did.
pub(super) fn vcpus(observer: &Observer) -> Dataset {
    let time = |ticks| observer.latest().map(|now| now.time(ticks).as_secs_f64());
    let any_throttled =
        observer.latest().is_some_and(|now| now.vcpus.iter().any(|v| v.throttled > 0));
    let all = Dataset::of("vcpus", "vCPUs", seen(observer))
        .name("vcpu", |(name, ..)| name.clone())
        .head("vCPU")
        .name("state", |(_, vcpu, _)| vcpu_state_name(vcpu.state))
        .for_programs()
        .name("pcpu", |(_, vcpu, _)| vcpu.pcpu)
        .head("pCPU")
        .column("run", Unit::Seconds, |(_, vcpu, _)| time(vcpu.run))
        .head("run time")
        .column("share", Unit::Share, |(.., i)| observer.latest().map(|now| now.share(*i, None)))
        .column("stolen", Unit::Seconds, |(_, vcpu, _)| time(vcpu.stolen))
        .name("switches", |(_, vcpu, _)| vcpu.switches)
        .name("injected", |(_, vcpu, _)| vcpu.injected)
        .name("migrations", |(_, vcpu, _)| vcpu.migrations)
        .name("kernel_preemptions", |(_, vcpu, _)| vcpu.kernel_preemptions)
        .head("preempted in kernel")
        .column("kernel_preempted", Unit::Seconds, |(_, vcpu, _)| time(vcpu.kernel_preempted))
        .head("for")
        .column("longest_el2", Unit::Microseconds, |(_, v, _)| time(v.longest_el2).map(|s| s * 1e6))
        .head("longest at EL2")
        .name("throttled", |(_, vcpu, _)| vcpu.throttled);
    if any_throttled { all.done() } else { all.for_programs().done() }
}

/// Why each vCPU left its guest.
pub(super) fn causes(observer: &Observer) -> Dataset {
    let vcpus = Dataset::of("exits", "Exits to EL2 by cause", seen(observer));
    let mut all = vcpus.name("vcpu", |(name, ..)| name.clone()).head("vCPU");
    for (cause, name) in EXIT_NAMES.iter().enumerate() {
        all = all.name(name, |(_, vcpu, _)| vcpu.exits[cause]);
    }
    all.done()
}

/// What each pCPU did.
pub(super) fn pcpus(observer: &Observer) -> Dataset {
    let time = |ticks| observer.latest().map(|now| now.time(ticks).as_secs_f64());
    let all = observer.latest().map_or(&[][..], |now| &now.pcpus).iter().enumerate();
    Dataset::of("pcpus", "pCPUs", all)
        .name("pcpu", |(index, _)| *index)
        .head("pCPU")
        .name("online", |(_, pcpu)| Cell::Flag(pcpu.online != 0))
        .for_programs()
        .column("idle", Unit::Seconds, |(_, pcpu)| time(pcpu.idle))
        .for_programs()
        .column("idle", Unit::Seconds, |(_, pcpu)| match pcpu.online != 0 || pcpu.power_downs > 0 {
            true => Cell::from(time(pcpu.idle)),
            false => Cell::from("never started"),
        })
        .for_people()
        .column("powered_down", Unit::Seconds, |(_, pcpu)| time(pcpu.powered_down))
        .head("of that off")
        .name("power_downs", |(_, pcpu)| pcpu.power_downs)
        .head("times off")
        .name("doorbells", |(_, pcpu)| pcpu.doorbells)
        .name("spurious", |(_, pcpu)| pcpu.spurious)
        .head("spurious interrupts")
        .done()
}

/// What each vCPU had of `pcpu`, look by look, if it ever was there.
pub(super) fn shares(observer: &Observer, pcpu: usize) -> Dataset {
    let spans: Vec<_> = observer.timeline.spans().collect();
    let layout = &observer.layout;
    let mut rows = Vec::new();
    for (vcpu, name) in layout.vcpus.iter().enumerate() {
        if spans.iter().any(|span| span.shares[vcpu].0 == pcpu) {
            rows.extend(spans.iter().map(|span| (vcpu, name.vm, span)));
        }
    }
    Dataset::of("shares", "Shares of a pCPU", rows)
        .column("begin", Unit::Seconds, |(.., span)| span.begin_s)
        .head("time")
        .column("end", Unit::Seconds, |(.., span)| span.end_s)
        .name("vcpu", |(vcpu, ..)| layout.vcpu_label(*vcpu))
        .name("vm", |(_, vm, _)| *vm)
        .column("share", Unit::Share, |(vcpu, _, span)| match span.shares[*vcpu] {
            (owner, share) if owner == pcpu => share,
            _ => 0.0,
        })
        .head(&format!("pCPU {pcpu}"))
        .done()
}
