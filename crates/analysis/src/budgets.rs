//! The design question that the paper leaves open: which budgets, and which
//! periods, of vCPUs?
//!
//! More budget never makes a task later (a test says so for random systems), so
//! budgets shrink from whole periods down, by steps that halve, as long as all
//! tasks hold. Under deferrable servers with overrun no budget matters
//! to another vCPU's tasks, and the result has the least total bandwidth there
//! is, to the grain. Under the others a budget also shortens others' waits: the
//! order in which budgets shrink matters, several are tried, and the result is
//! one from which no single budget can shrink.

use crate::bounds::{AnalysisError, Bounds, Computed, Workload};
use crate::model::{Ns, Server, System};

/// Periods that are tried for each vCPU. Shorter ones always need less budget
/// until switching costs more; there is no cost of switching in the model.
const PERIODS_NS: [Ns; 7] =
    [1_000_000, 2_000_000, 5_000_000, 10_000_000, 20_000_000, 50_000_000, 100_000_000];
/// Less than this share of bandwidth is no reason for a shorter period.
const WORTH: f64 = 0.001;
/// So many orders of vCPUs are tried, at most.
const ORDERS: usize = 32;
/// So many rounds over all vCPUs are made when periods are chosen, at most.
const ROUNDS: usize = 4;

/// What a search for budgets ends with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Search {
    /// The system with other budgets, and everything holds.
    Found(System),
    /// This task has no bound within its period even when every vCPU always
    /// has budget.
    TaskCannotBeHelped(usize),
    /// What the tasks of this vCPU need does not fit beside what others need.
    VcpuDoesNotFit {
        /// Which.
        vcpu: usize,
        /// The least budget, with which its tasks would hold.
        needs_ns: Ns,
    },
}

/// The least budgets, and on request periods, with which all of `system` holds;
/// budgets are multiples of 1 µs where periods are 1 ms or longer.
///
/// # Errors
/// When a time overflows, or when iterating takes for ever.
pub fn find(system: &System, bounds: Bounds, periods: bool) -> Result<Search, AnalysisError> {
    let compute = || {
        let workload = Workload::new(system, bounds)?;
        let servers = system.vcpus.iter().map(|vcpu| (vcpu.budget_ns, vcpu.period_ns)).collect();
        let mut budgets = Budgets { workload, servers, responses: vec![None; system.tasks.len()] };
        let found = budgets.least(system)?;
        if periods { budgets.choose_periods(system, found) } else { Ok(found) }
    };
    let found = compute().map_err(|cause| AnalysisError { of: "budgets".into(), cause })?;
    Ok(match found {
        Least::Fits { servers, .. } => Search::Found(with_servers(system, &servers)),
        Least::Late(task) => Search::TaskCannotBeHelped(task),
        Least::TooMuch { vcpu, needs_ns } => Search::VcpuDoesNotFit { vcpu, needs_ns },
    })
}

/// Total bandwidth, the sum of budgets over periods.
#[must_use]
#[allow(clippy::cast_precision_loss)] // a share
pub fn bandwidth(system: &System) -> f64 {
    system.vcpus.iter().map(|vcpu| vcpu.budget_ns as f64 / vcpu.period_ns as f64).sum()
}

struct Budgets {
    workload: Workload,
    /// Budget and period of each vCPU.
    servers: Vec<(Ns, Ns)>,
    responses: Vec<Option<Ns>>,
}

enum Least {
    Fits { servers: Vec<(Ns, Ns)>, bandwidth: f64 },
    Late(usize),
    TooMuch { vcpu: usize, needs_ns: Ns },
}

impl Budgets {
    /// The least budgets for the periods that there are.
    fn least(&mut self, system: &System) -> Computed<Least> {
        let count = self.servers.len();
        let independent = system.overrun && system.server == Server::Deferrable;
        let mut best: Option<(f64, Vec<(Ns, Ns)>)> = None;
        let mut too_much = None;
        let orders = if independent { 1 } else { (2 * count).min(ORDERS) };
        for order in 0..orders {
            if let Some(late) = self.shrink(order)? {
                return Ok(Least::Late(late));
            }
            let total = self.bandwidth();
            match self.first_that_does_not_fit()? {
                Some(vcpu) if too_much.is_none() => {
                    too_much = Some(Least::TooMuch { vcpu, needs_ns: self.servers[vcpu].0 });
                }
                Some(_) => {}
                None if best.as_ref().is_none_or(|(least, _)| total < *least) => {
                    best = Some((total, self.servers.clone()));
                }
                None => {}
            }
        }
        let fits = best.map(|(bandwidth, servers)| Least::Fits { servers, bandwidth });
        Ok(fits.or(too_much).unwrap_or(Least::Fits { servers: Vec::new(), bandwidth: 0.0 }))
    }

    /// From whole periods, shrinks all budgets in turn by steps that halve, so
    /// that none shrinks at the others' cost; beginning with another vCPU for
    /// each `order`, forwards or backwards. Answers a task that is late even with
    /// whole periods.
    fn shrink(&mut self, order: usize) -> Computed<Option<usize>> {
        let count = self.servers.len();
        for vcpu in 0..count {
            self.set(vcpu, self.servers[vcpu].1);
        }
        if !self.tasks_hold()? {
            let order: Vec<_> = self.workload.tasks_in_order().collect();
            return Ok(order.into_iter().find(|&task| self.responses[task].is_none()));
        }
        let place = |step: usize| {
            let place = (order / 2 + step) % count;
            if order.is_multiple_of(2) { place } else { count - 1 - place }
        };
        let longest = self.servers.iter().map(|&(_, period)| period).max().unwrap_or(0);
        let mut step = longest.next_power_of_two();
        loop {
            let mut shrunk = false;
            for vcpu in (0..count).map(place) {
                shrunk |= self.shrink_by(vcpu, step)?;
            }
            // At the grain, again and again until nothing gives way.
            match step / 2 {
                0 if !shrunk => return Ok(None),
                0 => {}
                half => step = half,
            }
        }
    }

    /// Takes `step`, rounded to the grain, off a budget if all tasks still hold.
    fn shrink_by(&mut self, vcpu: usize, step: Ns) -> Computed<bool> {
        let (budget, period) = self.servers[vcpu];
        let grain = if period >= 1_000_000 { 1_000 } else { 1 };
        let less = budget.saturating_sub(step).div_ceil(grain) * grain;
        let less = if step < grain { budget.saturating_sub(1) / grain * grain } else { less };
        if less == 0 || less >= budget {
            return Ok(false);
        }
        self.set(vcpu, less);
        let holds = self.tasks_hold()?;
        if !holds {
            self.set(vcpu, budget);
        }
        Ok(holds)
    }

    fn choose_periods(&mut self, system: &System, start: Least) -> Computed<Least> {
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

    fn first_that_does_not_fit(&self) -> Computed<Option<usize>> {
        for vcpu in 0..self.servers.len() {
            if self.workload.vcpu_response(vcpu)?.is_none() {
                return Ok(Some(vcpu));
            }
        }
        Ok(None)
    }

    fn set(&mut self, vcpu: usize, budget: Ns) {
        self.servers[vcpu].0 = budget;
        self.workload.set_server_of(vcpu, budget, self.servers[vcpu].1);
    }

    fn tasks_hold(&mut self) -> Computed<bool> {
        self.responses.fill(None);
        self.workload.tasks_schedulable(&mut self.responses)
    }

    #[allow(clippy::cast_precision_loss)] // a share
    fn bandwidth(&self) -> f64 {
        self.servers.iter().map(|&(budget, period)| budget as f64 / period as f64).sum()
    }
}

/// Whether `new` is worth a change to a `longer` or shorter period.
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

fn with_servers(system: &System, servers: &[(Ns, Ns)]) -> System {
    let mut system = system.clone();
    for (vcpu, &(budget, period)) in system.vcpus.iter_mut().zip(servers) {
        (vcpu.budget_ns, vcpu.period_ns) = (budget, period);
    }
    system
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::analyze;

    /// Two vCPUs that share R on one pCPU; budgets are much too small.
    fn system(server: &str, overrun: bool) -> System {
        let text = format!(
            r#"{{"server": "{server}", "overrun": {overrun},
            "vcpus": [{{"id": "a", "pcpu": 0, "budget": 1000, "period": 10000000, "priority": 1}},
                      {{"id": "b", "pcpu": 0, "budget": 1000, "period": 10000000, "priority": 2}}],
            "tasks": [{{"id": "t", "vcpu": "a", "period": 200000000, "priority": 1,
                       "segments": [{{"wcet": 20000000}}, {{"wcet": 10000, "gcs": "R"}}]}},
                      {{"id": "u", "vcpu": "b", "period": 100000000, "priority": 1,
                       "segments": [{{"wcet": 10000000}}, {{"wcet": 10000, "gcs": "R"}}]}}]}}"#
        );
        System::from_json(&text).unwrap()
    }

    fn found(system: &System, periods: bool) -> System {
        match find(system, Bounds::Published, periods).unwrap() {
            Search::Found(found) => found,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_found_holds_and_nothing_less_does() {
        for (server, overrun) in
            [("deferrable", true), ("deferrable", false), ("periodic", true), ("periodic", false)]
        {
            let found = found(&system(server, overrun), false);
            assert!(analyze(&found, Bounds::Published).unwrap().schedulable());
            for vcpu in 0..2 {
                let mut less = found.clone();
                less.vcpus[vcpu].budget_ns -= 1_000;
                assert!(!analyze(&less, Bounds::Published).unwrap().schedulable(), "{server}");
            }
        }
    }

    /// u: 10.01 of its own and one wait of 0.02 in 100 ms. With budget C: the
    /// supply of 10 periods less the last gap, ceil(10.03 / C) + 1 gaps.
    #[test]
    fn least_is_least() {
        let found = found(&system("deferrable", true), false);
        // 9 gaps: 8 C >= 10.01 and wait + gaps 9 (10 - C) <= 100: C = 1.256 or so.
        let budget = found.vcpus[1].budget_ns;
        let holds = |budget| {
            let mut other = found.clone();
            other.vcpus[1].budget_ns = budget;
            analyze(&other, Bounds::Published).unwrap().tasks[1].schedulable()
        };
        let least = (1_000..=10_000_000).step_by(1_000).find(|&budget| holds(budget));
        assert_eq!(least, Some(budget));
    }

    #[test]
    fn other_periods_need_no_more() {
        let system = system("periodic", true);
        let (fixed, chosen) = (found(&system, false), found(&system, true));
        assert!(analyze(&chosen, Bounds::Published).unwrap().schedulable());
        assert!(bandwidth(&chosen) < bandwidth(&fixed), "{chosen:?}");
    }

    #[test]
    fn who_cannot_be_helped_is_named() {
        let mut late = system("deferrable", true);
        late.tasks[1].period_ns = 10_015_000; // the wait alone is 20 µs
        let search = find(&late, Bounds::Published, false).unwrap();
        assert_eq!(search, Search::TaskCannotBeHelped(1));
        let mut full = system("deferrable", true);
        full.tasks[0].segments[0].wcet_ns = 180_000_000;
        full.tasks[1].segments[0].wcet_ns = 80_000_000;
        let search = find(&full, Bounds::Published, false).unwrap();
        assert!(matches!(search, Search::VcpuDoesNotFit { vcpu: 0, .. }), "{search:?}");
    }
}
