//! What was seen, as tables and as JSON.

use super::Simulation;
use crate::quantity::{count, duration, percent};
use crate::table::Table;
use analysis::bounds::Bounds;
use serde_json::{Value, json};
use sim::system::Protocol;
use std::time::Duration;

impl Simulation {
    /// Responses beside their bounds, and what vCPUs had of their budgets.
    #[must_use]
    pub fn tables(&self) -> Vec<Table> {
        vec![self.task_table(), self.vcpu_table()]
    }

    fn task_table(&self) -> Table {
        let head = ["", "vCPU", "jobs", "late", "mean", "longest", "bound", "of bound", "period"];
        let title = format!("Response times in {} of {}", time(self.end), self.protocol());
        let mut table = Table::new(&title, head);
        for (index, (task, record)) in self.system.tasks.iter().zip(&self.records).enumerate() {
            let (seen, bound) = (self.response(index), self.bound(index));
            let mean = record.mean().map(|ns| Duration::from_secs_f64(ns / 1e9));
            table.row([
                task.name.clone(),
                self.system.vcpus[task.vcpu].name.clone(),
                count(record.completed),
                count(record.late),
                mean.map_or_else(|| "none".into(), duration),
                seen.map_or_else(|| "none".into(), time),
                bound.map_or_else(|| "none".into(), time),
                seen.zip(bound).map_or_else(|| "-".into(), |(seen, bound)| share(seen, bound)),
                time(task.period),
            ]);
        }
        table
    }

    fn vcpu_table(&self) -> Table {
        let head = ["", "executed", "share", "idled", "budget", "most in a period", "overrun"];
        let mut table = Table::new("vCPUs", head);
        for (vcpu, usage) in self.system.vcpus.iter().zip(&self.usage) {
            let budget = vcpu.server.map_or_else(|| "none".into(), |s| time(s.budget.0));
            table.row([
                vcpu.name.clone(),
                time(usage.executed),
                share(usage.executed, self.end),
                time(usage.idled),
                budget,
                time(usage.most),
                time(usage.overrun),
            ]);
        }
        table
    }

    /// The same for a program, integers in ns.
    #[must_use]
    pub fn json(&self) -> Value {
        let task = |(index, task): (usize, &sim::system::Task)| {
            let record = &self.records[index];
            json!({
                "id": task.name,
                "jobs": record.completed,
                "late": record.late,
                "response": self.response(index),
                "mean": record.mean(),
                "bound": self.bound(index),
                "unfinished": self.unfinished[index],
            })
        };
        let vcpu = |(vcpu, usage): (&sim::system::Vcpu, &sim::usage::Usage)| {
            json!({
                "id": vcpu.name,
                "executed": usage.executed,
                "idled": usage.idled,
                "most_in_a_period": usage.most,
                "overrun": usage.overrun,
            })
        };
        let names = |tasks: Vec<usize>| -> Vec<&str> {
            tasks.into_iter().map(|task| self.system.tasks[task].name.as_str()).collect()
        };
        json!({
            "protocol": self.protocol(),
            "time": self.end,
            "seed": self.system.seed,
            "decisions": self.decisions,
            "schedulable": self.verdict.as_ref().map(|verdict| verdict.schedulable()),
            "late": names(self.late().collect()),
            "beyond_bounds": names(self.beyond_bounds().collect()),
            "vcpus": self.system.vcpus.iter().zip(&self.usage).map(vcpu).collect::<Vec<_>>(),
            "tasks": self.system.tasks.iter().enumerate().map(task).collect::<Vec<_>>(),
        })
    }

    /// The protocol's name.
    #[must_use]
    pub fn protocol(&self) -> &'static str {
        match self.system.protocol {
            Protocol::Vmpcp => "vMPCP",
            Protocol::Mpcp => "MPCP",
        }
    }

    /// What has to be said beside the tables, a sentence each.
    #[must_use]
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

fn time(ns: u64) -> String {
    duration(Duration::from_nanos(ns))
}

#[allow(clippy::cast_precision_loss)] // rounded anyway
fn share(part: u64, whole: u64) -> String {
    if whole == 0 { "-".into() } else { percent(part as f64 / whole as f64) }
}
