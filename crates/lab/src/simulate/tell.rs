//! What was seen, as datasets and as JSON.

use super::Simulation;
use crate::dataset::{Dataset, Unit};
use crate::quantity::{duration, real};
use analysis::bounds::Bounds;
use serde_json::{Value, json};
use sim::system::Protocol;
use std::time::Duration;

/// Every time is counted in nanoseconds.
const NS: Unit = Unit::Nanoseconds;

impl Simulation {
    /// Returns the responses of the tasks, beside their bounds.
    pub fn tasks(&self) -> Dataset {
        let end = duration(Duration::from_nanos(self.end));
        let title = format!("Response times in {end} of {}", self.protocol());
        let rows = self.system.tasks.iter().zip(&self.records).enumerate();
        Dataset::of("tasks", &title, rows)
            .name("task", |(_, (task, _))| task.name.clone())
            .head("")
            .name("vcpu", |(_, (task, _))| self.system.vcpus[task.vcpu].name.clone())
            .head("vCPU")
            .name("jobs", |(_, (_, record))| record.completed)
            .name("late", |(_, (_, record))| record.late)
            .column("mean", NS, |(_, (_, record))| record.mean())
            .column("longest", NS, |(task, _)| self.response(*task))
            .column("bound", NS, |(task, _)| self.bound(*task))
            .column("of_bound", Unit::Share, |(task, _)| {
                self.response(*task).zip(self.bound(*task)).and_then(|(seen, all)| share(seen, all))
            })
            .column("period", NS, |(_, (task, _))| task.period)
            .column("unfinished", NS, |(task, _)| self.unfinished[*task])
            .for_programs()
            .done()
    }

    /// Returns what vCPUs had of their budgets.
    pub fn vcpus(&self) -> Dataset {
        Dataset::of("vcpus", "vCPUs", self.system.vcpus.iter().zip(&self.usage))
            .name("vcpu", |(vcpu, _)| vcpu.name.clone())
            .head("")
            .column("executed", NS, |(_, usage)| usage.executed)
            .column("share", Unit::Share, |(_, usage)| share(usage.executed, self.end))
            .column("idled", NS, |(_, usage)| usage.idled)
            .column("budget", NS, |(vcpu, _)| vcpu.server.map(|server| server.budget.0))
            .column("most_in_a_period", NS, |(_, usage)| usage.most)
            .column("overrun", NS, |(_, usage)| usage.overrun)
            .done()
    }

    /// Returns all of it for a program.
    pub fn json(&self) -> Value {
        let names = |tasks: Vec<usize>| -> Vec<&str> {
            tasks.into_iter().map(|task| self.system.tasks[task].name.as_str()).collect()
        };
        json!({
            "protocol": self.protocol(),
            "time_ns": self.end,
            "seed": self.system.seed,
            "decisions": self.decisions,
            "schedulable": self.verdict.as_ref().map(|verdict| verdict.schedulable()),
            "late": names(self.late().collect()),
            "beyond_bounds": names(self.beyond_bounds().collect()),
            "vcpus": self.vcpus().json(),
            "tasks": self.tasks().json(),
        })
    }

    /// Returns the protocol's name.
    pub fn protocol(&self) -> &'static str {
        match self.system.protocol {
            Protocol::Vmpcp => "vMPCP",
            Protocol::Mpcp => "MPCP",
        }
    }

    /// Returns what has to be said beside the tables, a sentence each.
    pub fn remarks(&self) -> Vec<String> {
        let names = |tasks: Vec<usize>| {
            let names = tasks.iter().map(|&task| format!("`{}`", self.system.tasks[task].name));
            names.collect::<Vec<_>>().join(", ")
        };
        let (late, beyond): (Vec<_>, Vec<_>) =
            (self.late().collect(), self.beyond_bounds().collect());
        let mut remarks = Vec::new();
        if !late.is_empty() {
            remarks.push(format!("Late: jobs of {} took longer than their period.", names(late)));
        }
        if !beyond.is_empty() {
            let published = self.verdict.as_ref().is_some_and(|v| v.bounds == Bounds::Published);
            let why = if published {
                "the published equations forget a lock; compare with --bounds corrected"
            } else {
                "either the equations or the simulator are wrong"
            };
            remarks.push(format!("Bounds exceeded by {}: {why}.", names(beyond)));
        }
        match &self.verdict {
            None => remarks.push("There are no bounds for MPCP under a hypervisor.".into()),
            Some(verdict) if !verdict.schedulable() => remarks.push(
                "The analysis does not find this system schedulable, so no bound is certain."
                    .into(),
            ),
            Some(_) if self.begins_unserved => remarks.push(
                "A task arrives before the first period of some vCPU, and bounds say nothing of \
                 that time: let tasks have the larger offsets."
                    .into(),
            ),
            Some(_) => {}
        }
        remarks
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| real(part) / real(whole))
}
