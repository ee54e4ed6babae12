//! Which line stands where.

use super::{Lane, TOP};
use sim::System;
use std::cmp::Reverse;

/// What a row is about, by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Core(usize),
    Vcpu(usize),
    Task(usize),
    Lane(usize),
}

/// A horizontal stripe.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub kind: Kind,
    pub top: f64,
    pub height: f64,
}

impl Row {
    pub fn middle(&self) -> f64 {
        self.top + self.height / 2.0
    }

    pub fn bottom(&self) -> f64 {
        self.top + self.height
    }
}

/// Cores by number, their vCPUs and those's tasks by priority, highest first, then those's lanes.
pub(super) fn rows(system: &System, lanes: &[Lane]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut top = TOP;
    let mut add = |kind, before: f64, height| {
        top += before;
        rows.push(Row { kind, top, height });
        top += height;
    };
    let vcpus = system.vcpus_by_priority();
    for core in 0..system.cores() {
        add(Kind::Core(core), 14.0, 14.0);
        for &vcpu in vcpus.iter().filter(|&&vcpu| system.vcpus[vcpu].core == core) {
            add(Kind::Vcpu(vcpu), 7.0, 24.0);
            let mut tasks: Vec<_> =
                (0..system.tasks.len()).filter(|&t| system.tasks[t].vcpu == vcpu).collect();
            tasks.sort_by_key(|&task| {
                Reverse((system.tasks[task].handler, system.tasks[task].priority))
            });
            for task in tasks {
                add(Kind::Task(task), 5.0, 20.0);
            }
            for (lane, _) in lanes.iter().enumerate().filter(|(_, lane)| lane.vcpu == vcpu) {
                add(Kind::Lane(lane), 5.0, 16.0);
            }
        }
    }
    rows
}
