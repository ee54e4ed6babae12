//! Traffic as JSON: `by` or `every` says when it happens.

use super::{is_zero, objects};
use crate::model::{Cause, Ns, Problem, System, Traffic, Visits};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TrafficJson {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    every: Option<Ns>,
    #[serde(deserialize_with = "objects")]
    visits: Vec<VisitsJson>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct VisitsJson {
    pcpu: u32,
    #[serde(default, skip_serializing_if = "is_zero")]
    doorbells: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    timers: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    departures: u64,
}

impl TrafficJson {
    /// Names become indices.
    pub(super) fn resolve(
        self,
        index: usize,
        vcpus: &HashMap<&str, usize>,
    ) -> Result<Traffic, Problem> {
        let place = |key: &str| format!("traffic[{index}]{key}");
        let cause = match (self.by, self.every) {
            (Some(by), None) => {
                let known = |id: String| {
                    let what = format!("there is no vCPU `{id}`");
                    let unknown = || Problem::new(place(".by"), what, "name vCPUs by their `id`");
                    vcpus.get(id.as_str()).copied().ok_or_else(unknown)
                };
                Cause::Displacement { by: by.into_iter().map(known).collect::<Result<_, _>>()? }
            }
            (None, Some(every)) => Cause::Every(every),
            _ => {
                let what = "it has not one cause";
                let mend = "say `by` which vCPUs it is caused, or after how long it comes again \
                            at the earliest, `every`";
                return Err(Problem::new(place(""), what, mend));
            }
        };
        let visits = self.visits.into_iter().map(|one| {
            let VisitsJson { pcpu, doorbells, timers, departures } = one;
            Visits { pcpu, doorbells, timers, departures }
        });
        Ok(Traffic { cause, visits: visits.collect() })
    }

    /// Indices become names.
    pub(super) fn describe(system: &System, traffic: &Traffic) -> Self {
        let (by, every) = match &traffic.cause {
            Cause::Displacement { by } => {
                (Some(by.iter().map(|&vcpu| system.vcpus[vcpu].id.clone()).collect()), None)
            }
            Cause::Every(every) => (None, Some(*every)),
        };
        let visits = traffic.visits.iter().map(|one| {
            let Visits { pcpu, doorbells, timers, departures } = *one;
            VisitsJson { pcpu, doorbells, timers, departures }
        });
        Self { by, every, visits: visits.collect() }
    }
}
