//! An observer that counts what vCPUs have of their cores.

use crate::observer::{Doing, Observer};
use crate::system::System;
use sched::server::Server;

/// Of one vCPU, all in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// How long its tasks executed.
    pub executed: u64,
    /// How long it idled its budget away.
    pub idled: u64,
    /// The most that it had in one of its periods, idling included.
    pub most: u64,
    /// The most beyond its budget in one of them.
    pub overrun: u64,
}

/// Counts.
#[derive(Clone, Debug)]
pub struct Meter {
    servers: Vec<(Option<Server>, u64)>,
    /// By vCPU: its latest period and what it had in it.
    current: Vec<(u64, u64)>,
    usage: Vec<Usage>,
}

impl Meter {
    /// Watches a world made of this system.
    #[must_use]
    pub fn new(system: &System) -> Self {
        let count = system.vcpus.len();
        Self {
            servers: system.vcpus.iter().map(|vcpu| (vcpu.server, vcpu.offset)).collect(),
            current: vec![(0, 0); count],
            usage: vec![Usage::default(); count],
        }
    }

    /// What has been counted, by vCPU.
    #[must_use]
    pub fn usage(&self) -> &[Usage] {
        &self.usage
    }
}

impl Observer for Meter {
    fn ran(&mut self, vcpu: usize, doing: Doing, mut from: u64, to: u64) {
        let usage = &mut self.usage[vcpu];
        match doing {
            Doing::Idling => usage.idled += to - from,
            Doing::Task { .. } => usage.executed += to - from,
        }
        let (Some(server), offset) = self.servers[vcpu] else { return };
        while from < to {
            let period = from.saturating_sub(offset) / server.period.0;
            let end = to.min(offset + (period + 1) * server.period.0);
            let (latest, had) = &mut self.current[vcpu];
            if *latest != period {
                (*latest, *had) = (period, 0);
            }
            *had += end - from;
            usage.most = usage.most.max(*had);
            usage.overrun = usage.overrun.max(had.saturating_sub(server.budget.0));
            from = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case_study::{Scheme, system};

    #[test]
    fn counts_by_period() {
        let system = system(Scheme::DeferrableWithOverrun);
        let mut meter = Meter::new(&system);
        let ms = 1_000_000;
        meter.ran(1, Doing::Idling, ms, 2 * ms);
        let doing = Doing::Task { task: 1, need: crate::system::Need::Nothing };
        // One in the first period, four in the second.
        meter.ran(1, doing, 9 * ms, 14 * ms);
        let expected = Usage { executed: 5 * ms, idled: ms, most: 4 * ms, overrun: ms };
        assert_eq!(meter.usage()[1], expected);
        assert_eq!(meter.usage()[0], Usage::default());
    }
}
