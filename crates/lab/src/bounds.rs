//! What an analysis found, as people read it: every bound, what it is made of,
//! and what to look at where one does not hold.

use crate::quantity::exact;
use crate::table::Table;
use analysis::bounds::{Bounds, Contribution, Share, TaskBound, VcpuBound, Verdict};
use analysis::model::{Ns, Section, Server, System};
use std::fmt::Write;

/// All of it: tables of vCPUs, tasks and waits, then what does not hold.
#[must_use]
pub fn overview(name: &str, system: &System, verdict: &Verdict) -> String {
    let mut text = format!("{}\n\n{}", title(name, system, verdict), vcpus(system, verdict));
    if !verdict.tasks.is_empty() {
        let _ = write!(text, "\n{}", tasks(system, verdict));
    }
    let waits = waits(system, verdict);
    if !waits.rows.is_empty() {
        let _ = write!(text, "\n{waits}");
    }
    let misses = misses(system, verdict);
    if misses.is_empty() {
        return text + "\nEvery deadline holds.\n";
    }
    for miss in misses {
        let _ = write!(text, "\n{miss}");
    }
    text + "\n"
}

/// A sentence for each vCPU and task that fails: which, by how much at least,
/// and what takes longest.
#[must_use]
pub fn misses(system: &System, verdict: &Verdict) -> Vec<String> {
    let vcpus = verdict.vcpus.iter().enumerate().filter(|(_, bound)| !bound.schedulable());
    let tasks = verdict.tasks.iter().enumerate().filter(|(_, bound)| !bound.schedulable());
    let vcpus = vcpus.map(|(index, bound)| vcpu_miss(system, index, bound));
    vcpus.chain(tasks.map(|(index, bound)| task_miss(system, index, bound))).collect()
}

fn title(name: &str, system: &System, verdict: &Verdict) -> String {
    let server = match system.server {
        Server::Periodic => "periodic",
        Server::Deferrable => "deferrable",
    };
    let overrun = if system.overrun { "with overrun" } else { "no overrun" };
    let bounds = match verdict.bounds {
        Bounds::Published => "bounds as published",
        Bounds::Corrected => "corrected bounds",
    };
    format!("{name}: {server} servers, {overrun}, {bounds}")
}

fn vcpus(system: &System, verdict: &Verdict) -> Table {
    let head = [
        "vCPU",
        "pCPU",
        "budget",
        "overrun",
        "blocking",
        "preemption",
        "response",
        "period",
        "slack",
        "",
    ];
    let mut table = Table::new("vCPUs: until each has had its budget", head);
    for (vcpu, bound) in system.vcpus.iter().zip(&verdict.vcpus) {
        table.row([
            vcpu.id.clone(),
            vcpu.pcpu.to_string(),
            exact(bound.budget_ns),
            exact(bound.overrun_ns),
            exact(bound.blocking_ns),
            shares(&bound.preemption),
            response(bound.response_ns),
            exact(bound.period_ns),
            slack(bound.slack_ns()),
            holds(bound.schedulable()),
        ]);
    }
    table
}

fn tasks(system: &System, verdict: &Verdict) -> Table {
    let head = [
        "task",
        "vCPU",
        "execution",
        "local blocking",
        "remote blocking",
        "preemption",
        "supply gaps",
        "jitter",
        "response",
        "deadline",
        "slack",
        "",
    ];
    let mut table = Table::new("Tasks: from release to end", head);
    for (task, bound) in system.tasks.iter().zip(&verdict.tasks) {
        table.row([
            task.id.clone(),
            system.vcpus[task.vcpu].id.clone(),
            exact(bound.execution_ns),
            exact(bound.local_blocking_ns),
            response(bound.remote_blocking_ns),
            shares(&bound.preemption),
            exact(bound.supply_gaps_ns),
            exact(bound.jitter_ns),
            response(bound.response_ns),
            exact(bound.deadline_ns),
            slack(bound.slack_ns()),
            match verdict.vcpus[task.vcpu].schedulable() {
                true => holds(bound.schedulable()),
                false => "no budget".into(),
            },
        ]);
    }
    table
}

fn waits(system: &System, verdict: &Verdict) -> Table {
    let head = ["task", "segment", "resource", "wait", "of it lower vCPUs", "gcs once it has it"];
    let mut table = Table::new("Remote blocking, section by section", head);
    for (task, bound) in system.tasks.iter().zip(&verdict.tasks) {
        for section in &bound.sections {
            table.row([
                task.id.clone(),
                section.segment.to_string(),
                resource(system, &task.segments[section.segment].section).to_owned(),
                response(section.wait_ns),
                exact(section.lower_ns),
                exact(section.response_ns),
            ]);
        }
    }
    table
}

fn vcpu_miss(system: &System, index: usize, bound: &VcpuBound) -> String {
    let id = &system.vcpus[index].id;
    let mut parts = vec![
        ("its own budget", bound.budget_ns),
        ("its overrun", bound.overrun_ns),
        ("gcs's of vCPUs of lower priority", bound.blocking_ns),
    ];
    let preemption = bound.preemption.iter().max_by_key(|share| share.time_ns);
    let name = preemption.map(|share| format!("vCPU `{}`", system.vcpus[share.of].id));
    if let (Some(share), Some(name)) = (preemption, &name) {
        parts.push((name, share.time_ns));
    }
    let largest = parts.into_iter().max_by_key(|(_, time)| *time);
    let (what, time) = largest.unwrap_or(("its own budget", bound.budget_ns));
    let (period, time) = (exact(bound.period_ns), exact(time));
    format!(
        "vCPU `{id}` may not get its budget within its period of {period}. Largest part of a \
         period: {what}, {time}."
    )
}

fn task_miss(system: &System, index: usize, bound: &TaskBound) -> String {
    let id = &system.tasks[index].id;
    let deadline = exact(bound.deadline_ns);
    if let Some(above) = bound.unbounded_because_of {
        let above = &system.tasks[above].id;
        return format!(
            "task `{id}` has no bound within its deadline of {deadline}, because task `{above}` \
             above it has none."
        );
    }
    let (largest, time) = bound.largest();
    let what = contribution(system, index, largest);
    let time = time.map_or_else(|| "more than the deadline".to_owned(), exact);
    format!(
        "task `{id}` may miss its deadline of {deadline}. Largest part of the time until then: \
         {what}, {time}."
    )
}

fn contribution(system: &System, task: usize, contribution: Contribution) -> String {
    let vcpu = &system.vcpus[system.tasks[task].vcpu].id;
    match contribution {
        Contribution::Execution => "its own execution".into(),
        Contribution::LocalBlocking => {
            format!("critical sections of tasks below it on vCPU `{vcpu}`")
        }
        Contribution::SupplyGaps => format!("while vCPU `{vcpu}` does not run"),
        Contribution::Preemption(of) => format!("task `{}` above it", system.tasks[of].id),
        Contribution::RemoteWait(segment) => {
            let section = &system.tasks[task].segments[segment].section;
            format!("waiting for `{}` in segment {segment}", resource(system, section))
        }
    }
}

fn resource<'a>(system: &'a System, section: &Section) -> &'a str {
    match *section {
        Section::Normal => "nothing",
        Section::Global(index) | Section::Local(index) => &system.resources[index],
    }
}

fn shares(shares: &[Share]) -> String {
    exact(shares.iter().map(|share| share.time_ns).fold(0, Ns::saturating_add))
}

fn response(time: Option<Ns>) -> String {
    time.map_or_else(|| "none".into(), exact)
}

fn slack(time: Option<Ns>) -> String {
    time.map_or_else(|| "-".into(), exact)
}

fn holds(holds: bool) -> String {
    if holds { "holds".into() } else { "FAILS".into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::bounds::analyze;

    const TEXT: &str = r#"{"server": "deferrable", "overrun": true,
      "vcpus": [{"id": "v1", "pcpu": 0, "budget": 3000000, "period": 10000000, "priority": 1},
                {"id": "v2", "pcpu": 1, "budget": 3000000, "period": 10000000, "priority": 2}],
      "tasks": [{"id": "t1", "vcpu": "v1", "period": 200000000, "priority": 1,
                 "segments": [{"wcet": 2000000}, {"wcet": 1000000, "gcs": "R0"}]},
                {"id": "t2", "vcpu": "v2", "period": 12000000, "priority": 1,
                 "segments": [{"wcet": 2000000}, {"wcet": 1000000, "gcs": "R0"}]}]}"#;

    fn overview_of(text: &str) -> (String, Vec<String>) {
        let system = System::from_json(text).unwrap();
        let verdict = analyze(&system, Bounds::Published).unwrap();
        (overview("x.json", &system, &verdict), misses(&system, &verdict))
    }

    #[test]
    fn names_who_fails_and_what_takes_longest() {
        let (text, misses) = overview_of(TEXT);
        let expected = "task `t2` may miss its deadline of 12 ms. Largest part of the time until \
                        then: while vCPU `v2` does not run, 14 ms.";
        assert_eq!(misses, [expected]);
        assert!(text.contains(expected), "{text}");
        assert!(text.contains("x.json: deferrable servers, with overrun, bounds as published"));
    }

    #[test]
    fn says_so_when_all_is_well() {
        let (text, misses) = overview_of(&TEXT.replace("12000000", "32000000"));
        assert!(misses.is_empty(), "{misses:?}");
        assert!(text.ends_with("Every deadline holds.\n"), "{text}");
        // t1: 3 + 2 + two gaps: 5 + 14 + 7; t2 once and again.
        let row = text.lines().find(|line| line.trim_start().starts_with("t1")).unwrap();
        assert!(row.contains("2 ms") && row.contains("holds"), "{row}");
    }
}
