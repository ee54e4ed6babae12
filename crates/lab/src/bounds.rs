//! What an analysis found, as people read it: every bound, what it is made of,
//! and what to look at where one does not hold.

use crate::dataset::Dataset;
use crate::table::Table;
use analysis::bounds::{Bounds, Share, Verdict};
use analysis::budgets::{Search, bandwidth, independent};
use analysis::misses::{exact, misses};
use analysis::model::{Ns, Section, System};
use std::fmt::Write;

/// All of it: tables of vCPUs, tasks and waits, then what does not hold.
pub fn overview(name: &str, system: &System, verdict: &Verdict) -> String {
    let mut text = format!("{}\n\n{}", title(name, system, verdict), vcpus(system, verdict));
    if !verdict.tasks.is_empty() {
        let _ = write!(text, "\n{}", tasks(system, verdict));
    }
    text += &el2(verdict);
    let waits = waits(system, verdict);
    if !waits.rows.is_empty() {
        let _ = write!(text, "\n{waits}");
    }
    let misses = misses(system, verdict);
    if misses.is_empty() {
        return text + "\nEvery deadline holds.\n";
    }
    for miss in misses {
        let _ = write!(text, "\n{}", miss.what);
    }
    text + "\n"
}

/// Budgets and periods before and after a search for the least.
pub fn servers(before: &System, after: &System) -> Table {
    let total = |system: &System| format!("{:.2} %", 100.0 * bandwidth(system));
    let title = "Least budgets with which everything holds";
    let head = ["vCPU", "budget", "period", "of the pCPU", "budget before", "period before"];
    let mut table = Table::new(title, head);
    for (old, new) in before.vcpus.iter().zip(&after.vcpus) {
        let share = 100.0 * new.budget_ns as f64 / new.period_ns as f64;
        table.row([
            new.id.clone(),
            exact(new.budget_ns),
            exact(new.period_ns),
            format!("{share:.2} %"),
            exact(old.budget_ns),
            exact(old.period_ns),
        ]);
    }
    let (old, new) = (total(before), total(after));
    table.row(["together".into(), String::new(), String::new(), new, old, String::new()]);
    table
}

/// Why no budgets help.
pub fn cannot(system: &System, search: &Search) -> String {
    match *search {
        Search::Found(_) => "budgets were found".into(),
        Search::TaskCannotBeHelped(task) => format!(
            "no budgets help task `{}`: it misses its deadline of {} even when every vCPU always \
             has budget",
            system.tasks[task].id,
            exact(system.tasks[task].period_ns)
        ),
        Search::VcpuDoesNotFit { vcpu, needs_ns } => {
            let tasks = system.tasks.iter().filter(|task| task.vcpu == vcpu);
            let tasks: Vec<_> = tasks.map(|task| format!("`{}`", task.id)).collect();
            // Elsewhere than under deferrable servers with overrun, budgets depend on
            // each other, and not all of them are tried.
            let help = if independent(system) {
                "no budgets help"
            } else {
                "no budgets were found that help"
            };
            format!(
                "{help} the tasks of vCPU `{}` ({}): they need {} in each {}, which does \
                 not fit on pCPU {} beside what the others need",
                system.vcpus[vcpu].id,
                tasks.join(", "),
                exact(needs_ns),
                exact(system.vcpus[vcpu].period_ns),
                system.vcpus[vcpu].pcpu
            )
        }
    }
}

fn title(name: &str, system: &System, verdict: &Verdict) -> String {
    let servers = if system.serves_all_alike() {
        let overrun = if system.overrun { "with overrun" } else { "no overrun" };
        format!("{} servers, {overrun}", system.server.name())
    } else {
        "servers of several kinds".to_owned()
    };
    let bounds = match verdict.bounds {
        Bounds::Published => "bounds as published",
        Bounds::Corrected => "corrected bounds",
    };
    format!("{name}: {servers}, {bounds}")
}

/// Says what EL2 takes in the bounds.
fn el2(verdict: &Verdict) -> String {
    if verdict.overheads.is_none() {
        return "\nEL2 takes no time in these bounds.\n".to_owned();
    }
    let named = verdict.overheads.named().into_iter().filter(|(_, time)| *time > 0);
    let times: Vec<_> = named.map(|(name, time)| format!("{name} {}", exact(time))).collect();
    format!("\nWhat EL2 takes in these bounds: {}.\n", times.join(", "))
}

fn vcpus(system: &System, verdict: &Verdict) -> Table {
    let rows = system.vcpus.iter().zip(&verdict.vcpus);
    let mut table = Dataset::of("vcpus", "vCPUs: until each has had its budget", rows)
        .name("vCPU", |(vcpu, _)| vcpu.id.clone())
        .name("pCPU", |(vcpu, _)| vcpu.pcpu)
        .name("budget", |(_, bound)| exact(bound.budget_ns))
        .name("overrun", |(_, bound)| exact(bound.overrun_ns))
        .name("EL2", |(_, bound)| exact(bound.el2_ns));
    if !system.handlers.is_empty() {
        table = table
            .name("own handlers", |(_, bound)| exact(bound.own_handlers_ns))
            .name("handlers below", |(_, bound)| exact(bound.handlers_ns));
    }
    table
        .name("blocking", |(_, bound)| exact(bound.blocking_ns))
        .name("preemption", |(_, bound)| shares(&bound.preemption))
        .name("response", |(_, bound)| response(bound.response_ns))
        .name("period", |(_, bound)| exact(bound.period_ns))
        .name("slack", |(_, bound)| bound.slack_ns().map(exact))
        .name("", |(_, bound)| holds(bound.schedulable()))
        .done()
        .table()
}

fn tasks(system: &System, verdict: &Verdict) -> Table {
    let rows = system.tasks.iter().zip(&verdict.tasks);
    let mut table = Dataset::of("tasks", "Tasks: from release to end", rows)
        .name("task", |(task, _)| task.id.clone())
        .name("vCPU", |(task, _)| system.vcpus[task.vcpu].id.clone())
        .name("execution", |(_, bound)| exact(bound.execution_ns))
        .name("local blocking", |(_, bound)| exact(bound.local_blocking_ns))
        .name("remote blocking", |(_, bound)| response(bound.remote_blocking_ns))
        .name("preemption", |(_, bound)| shares(&bound.preemption))
        .name("supply gaps", |(_, bound)| exact(bound.supply_gaps_ns))
        .name("EL2", |(_, bound)| exact(bound.el2_ns));
    if !system.handlers.is_empty() {
        table = table.name("handlers", |(_, bound)| exact(bound.handlers_ns));
    }
    table
        .name("jitter", |(_, bound)| exact(bound.jitter_ns))
        .name("response", |(_, bound)| response(bound.response_ns))
        .name("deadline", |(_, bound)| exact(bound.deadline_ns))
        .name("slack", |(_, bound)| bound.slack_ns().map(exact))
        .name("", |(task, bound)| match verdict.vcpus[task.vcpu].schedulable() {
            true => holds(bound.schedulable()),
            false => "no budget",
        })
        .done()
        .table()
}

fn waits(system: &System, verdict: &Verdict) -> Table {
    let tasks = system.tasks.iter().zip(&verdict.tasks);
    let rows = tasks.flat_map(|(task, bound)| bound.sections.iter().map(move |one| (task, one)));
    Dataset::of("waits", "Remote blocking, section by section", rows)
        .name("task", |(task, _)| task.id.clone())
        .name("segment", |(_, one)| one.segment)
        .name("resource", |(task, one)| resource(system, &task.segments[one.segment].section))
        .name("wait", |(_, one)| response(one.wait_ns))
        .name("of it lower vCPUs", |(_, one)| exact(one.lower_ns))
        .name("gcs once it has it", |(_, one)| exact(one.response_ns))
        .done()
        .table()
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

fn holds(holds: bool) -> &'static str {
    if holds { "holds" } else { "FAILS" }
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

    fn overview_of(text: &str) -> String {
        let system = System::from_json(text).unwrap();
        overview("x.json", &system, &analyze(&system, Bounds::Published).unwrap())
    }

    #[test]
    fn names_what_fails_and_what_takes_longest() {
        let text = overview_of(TEXT);
        let expected = "task `t2` may miss its deadline of 12 ms: the bound is 25 ms. Largest part \
                        of the time until the deadline: while vCPU `v2` does not run, 14 ms.";
        assert!(text.contains(expected), "{text}");
        assert!(text.contains("x.json: deferrable servers, with overrun, bounds as published"));
    }

    #[test]
    fn handlers_have_columns_where_there_are_any() {
        assert!(!overview_of(TEXT).contains("handlers"));
        let with = TEXT.replacen(
            r#""tasks""#,
            r#""handlers": [{"id": "tick", "vcpu": "v2", "period": 1000000, "wcet": 900000}],
               "tasks""#,
            1,
        );
        let text = overview_of(&with);
        assert!(text.contains("own handlers") && text.contains("handlers below"), "{text}");
        let expected = "interrupts of vCPU `v2` may come faster than it is done with them: in two of \
                        its periods their handlers, and EL2, take 36.9 ms, and its budget for one is \
                        3 ms.";
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn budgets_are_told_before_and_after() {
        use analysis::budgets::find;
        use analysis::overheads::Overheads;
        let system = System::from_json(&TEXT.replace("12000000", "32000000")).unwrap();
        let Search::Found(found) =
            find(&system, Bounds::Published, Overheads::NONE, false).unwrap()
        else {
            panic!()
        };
        let text = servers(&system, &found).to_string();
        assert!(text.contains("3 ms") && text.contains("60.00 %"), "{text}");
        let late = System::from_json(&TEXT.replace("12000000", "3000001")).unwrap();
        let search = find(&late, Bounds::Published, Overheads::NONE, false).unwrap();
        assert!(cannot(&late, &search).contains("task `t2`"), "{search:?}");
    }

    #[test]
    fn says_so_when_all_is_well() {
        let text = overview_of(&TEXT.replace("12000000", "32000000"));
        assert!(text.ends_with("Every deadline holds.\n"), "{text}");
        let row = text.lines().find(|line| line.trim_start().starts_with("t1")).unwrap();
        assert!(row.contains("2 ms") && row.contains("holds"), "{row}");
    }
}
