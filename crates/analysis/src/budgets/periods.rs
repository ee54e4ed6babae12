//! Other periods: one vCPU's after the other, as long as bandwidth is saved.

use super::{Budgets, Least};
use crate::bounds::Computed;
use crate::model::{Ns, System};

/// Periods that are tried for each vCPU. Shorter ones always need less budget until
/// switching costs more, which it does only where EL2 takes time.
const PERIODS_NS: [Ns; 7] =
    [1_000_000, 2_000_000, 5_000_000, 10_000_000, 20_000_000, 50_000_000, 100_000_000];
/// Less than this share of bandwidth is no reason for a shorter period.
const WORTH: f64 = 0.001;
/// So many rounds over all vCPUs are made when periods are chosen, at most.
const ROUNDS: usize = 4;

impl Budgets {
    /// From `start` on.
    pub(super) fn choose_periods(&mut self, system: &System, start: Least) -> Computed<Least> {
        let mut best = start;
        for _ in 0..ROUNDS {
            let mut changed = false;
            for vcpu in 0..self.servers.len() {
                for period in candidates(system, vcpu) {
                    let before = self.periods_of(&best);
                    self.servers.clone_from(&before);
                    self.servers[vcpu] = (period, period);
                    let found = self.least(system)?;
                    if better(&found, &best, period > before[vcpu].1) {
                        (best, changed) = (found, true);
                    } else {
                        self.servers = before;
                    }
                }
            }
            if !changed {
                break;
            }
        }
        Ok(best)
    }

    fn periods_of(&self, least: &Least) -> Vec<(Ns, Ns)> {
        match least {
            Least::Fits { servers, .. } => servers.clone(),
            Least::Late(_) | Least::TooMuch { .. } => self.servers.clone(),
        }
    }
}

/// Returns true if `new` is worth a change to a `longer` or shorter period.
fn better(new: &Least, old: &Least, longer: bool) -> bool {
    match (new, old) {
        (Least::Fits { bandwidth: new, .. }, Least::Fits { bandwidth: old, .. }) => {
            if longer {
                new <= old
            } else {
                *new < *old - WORTH
            }
        }
        (Least::Fits { .. }, _) => true,
        _ => false,
    }
}

/// Periods to try: not longer than the shortest period of a task there.
fn candidates(system: &System, vcpu: usize) -> impl Iterator<Item = Ns> + use<> {
    let tasks = system.tasks.iter().filter(|task| task.vcpu == vcpu);
    let shortest = tasks.map(|task| task.period_ns).min().unwrap_or(system.vcpus[vcpu].period_ns);
    PERIODS_NS.into_iter().filter(move |&period| period <= shortest)
}
