//! What does not hold, in words: of which vCPU or task, by how much, and what to look at.

use crate::bounds::{Contribution, TaskBound, VcpuBound, Verdict, Workload};
use crate::model::{Ns, Section, System};

/// How many periods are looked at for a bound that is beyond its deadline.
const REACH: u64 = 64;

/// Something that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Miss {
    /// The vCPU or task that fails.
    pub of: Subject,
    /// A sentence or two.
    pub what: String,
}

/// A vCPU or a task, by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// It may not get its budget.
    Vcpu(usize),
    /// It may miss its deadline.
    Task(usize),
}

/// A sentence for each vCPU and task that fails: its bound, if there is one
/// beyond the deadline, and what takes longest.
#[must_use]
pub fn misses(system: &System, verdict: &Verdict) -> Vec<Miss> {
    let beyond = beyond(system, verdict);
    let vcpus = verdict.vcpus.iter().enumerate().filter(|(_, bound)| !bound.schedulable());
    let vcpus = vcpus.map(|(index, bound)| Miss {
        of: Subject::Vcpu(index),
        what: vcpu_miss(system, index, bound),
    });
    let tasks = verdict.tasks.iter().enumerate().filter(|(_, bound)| !bound.schedulable());
    let tasks = tasks.map(|(index, bound)| Miss {
        of: Subject::Task(index),
        what: task_miss(system, index, bound, beyond[index]),
    });
    vcpus.chain(tasks).collect()
}

/// Equation 6 beyond deadlines.
fn beyond(system: &System, verdict: &Verdict) -> Vec<Option<Ns>> {
    let mut responses = vec![None; system.tasks.len()];
    let workload = Workload::with_overheads(system, verdict.bounds, verdict.overheads);
    if let Ok(mut workload) = workload {
        workload.set_reach(REACH);
        for task in workload.tasks_in_order().collect::<Vec<_>>() {
            responses[task] = workload.task_response(task, &responses).ok().flatten();
        }
    }
    responses
}

fn vcpu_miss(system: &System, index: usize, bound: &VcpuBound) -> String {
    let id = &system.vcpus[index].id;
    if !bound.handlers_end() {
        return format!(
            "interrupts of vCPU `{id}` may come faster than it is done with them: in two of its \
             periods their handlers, and EL2, take {}, and its budget for one is {}.",
            exact(bound.own_handlers_ns),
            exact(bound.budget_ns)
        );
    }
    let own = [
        ("its own budget".to_owned(), bound.budget_ns),
        ("its overrun".to_owned(), bound.overrun_ns),
        ("gcs's of vCPUs of lower priority".to_owned(), bound.blocking_ns),
        ("EL2".to_owned(), bound.el2_ns),
        ("handlers of vCPUs of lower priority".to_owned(), bound.handlers_ns),
    ];
    let others = bound.preemption.iter();
    let others = others.map(|s| (format!("vCPU `{}`", system.vcpus[s.of].id), s.time_ns));
    let largest = own.into_iter().chain(others).max_by_key(|(_, time)| *time);
    let (what, time) = largest.unwrap_or_default();
    let (period, time) = (exact(bound.period_ns), exact(time));
    format!(
        "vCPU `{id}` may not get its budget within its period of {period}. Largest part of a \
         period: {what}, {time}."
    )
}

fn task_miss(system: &System, index: usize, bound: &TaskBound, beyond: Option<Ns>) -> String {
    let id = &system.tasks[index].id;
    let deadline = exact(bound.deadline_ns);
    let found = beyond.and_then(|beyond| beyond.checked_add(bound.jitter_ns));
    let found = match found {
        Some(beyond) => format!("the bound is {}", exact(beyond)),
        None => format!("there is no bound within {REACH} periods"),
    };
    let (largest, time) = bound.largest();
    let what = contribution(system, index, largest);
    let time = time.map_or_else(|| "more than the deadline".to_owned(), exact);
    format!(
        "task `{id}` may miss its deadline of {deadline}: {found}. Largest part of the time until \
         the deadline: {what}, {time}."
    )
}

fn contribution(system: &System, task: usize, contribution: Contribution) -> String {
    let vcpu = &system.vcpus[system.tasks[task].vcpu].id;
    match contribution {
        Contribution::Execution => "its own execution".into(),
        Contribution::LocalBlocking => {
            format!("critical sections of tasks below it on vCPU `{vcpu}`")
        }
        Contribution::El2 => "EL2".into(),
        Contribution::Handlers => format!("handlers of interrupts on vCPU `{vcpu}`"),
        Contribution::SupplyGaps => format!("while vCPU `{vcpu}` does not run"),
        Contribution::Preemption(of) => format!("task `{}` above it", system.tasks[of].id),
        Contribution::RemoteWait(segment) => {
            let resource = match system.tasks[task].segments[segment].section {
                Section::Normal => "nothing",
                Section::Global(index) | Section::Local(index) => &system.resources[index],
            };
            format!("waiting for `{resource}` in segment {segment}")
        }
    }
}

/// Nanoseconds to the last digit, in the largest unit not above them:
/// `3.100001 ms`.
#[must_use]
pub fn exact(ns: Ns) -> String {
    let units = [(1_000_000_000, 9, "s"), (1_000_000, 6, "ms"), (1_000, 3, "µs")];
    let Some((one, digits, unit)) = units.into_iter().find(|(one, ..)| ns >= *one) else {
        return format!("{ns} ns");
    };
    let text = format!("{}.{:0digits$}", ns / one, ns % one);
    format!("{} {unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::{Bounds, analyze};

    #[test]
    fn exact_times_lose_nothing() {
        let times = [0, 999, 1_000, 1_001, 3_100_000, 10_000_000, 200_000_001, u64::MAX];
        let expected = [
            "0 ns",
            "999 ns",
            "1 µs",
            "1.001 µs",
            "3.1 ms",
            "10 ms",
            "200.000001 ms",
            "18446744073.709551615 s",
        ];
        assert_eq!(times.map(exact), expected);
    }

    #[test]
    fn each_miss_names_its_subject_its_size_and_its_cause() {
        let text = r#"{"server": "periodic", "overrun": false,
          "vcpus": [{"id": "v", "pcpu": 0, "budget": 3, "period": 10, "priority": 1},
                    {"id": "w", "pcpu": 0, "budget": 8, "period": 10, "priority": 2}],
          "tasks": [{"id": "t", "vcpu": "v", "period": 17, "priority": 1, "segments": [{"wcet": 4}]},
                    {"id": "u", "vcpu": "w", "period": 50, "priority": 1, "segments": [{"wcet": 20}]},
                    {"id": "x", "vcpu": "w", "period": 50, "priority": 2, "segments": [{"wcet": 25}]}]}"#;
        let system = System::from_json(text).unwrap();
        let verdict = analyze(&system, Bounds::Published).unwrap();
        let misses = misses(&system, &verdict);
        let subjects: Vec<_> = misses.iter().map(|miss| miss.of).collect();
        assert_eq!(subjects, [Subject::Vcpu(0), Subject::Task(0), Subject::Task(1)]);
        assert!(misses[0].what.ends_with("Largest part of a period: vCPU `w`, 8 ns."));
        // 4 and three gaps of 7; 20, x twice and ten gaps of 2.
        assert!(misses[1].what.contains("deadline of 17 ns: the bound is 25 ns"), "{misses:?}");
        assert!(misses[1].what.ends_with("while vCPU `v` does not run, 14 ns."), "{misses:?}");
        assert!(misses[2].what.contains("task `x` above it, 50 ns"), "{misses:?}");
    }
}
