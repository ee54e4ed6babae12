//! The least budgets for periods that are given.

use super::{Budgets, Least, independent};
use crate::bounds::Computed;
use crate::model::{Ns, System};

/// So many orders of vCPUs are tried, at most.
const ORDERS: usize = 64;

impl Budgets {
    /// The least budgets for the periods that there are.
    pub(super) fn least(&mut self, system: &System) -> Computed<Least> {
        let count = self.servers.len();
        let mut best: Option<(f64, Vec<(Ns, Ns)>)> = None;
        let mut too_much = None;
        let orders = if independent(system) { 1 } else { (4 * count).min(ORDERS) };
        for order in 0..orders {
            if let Some(late) = self.shrink(order)? {
                return Ok(Least::Late(late));
            }
            let total = self.bandwidth();
            match self.first_that_does_not_fit()? {
                Some(vcpu) if too_much.is_none() => {
                    too_much = Some(Least::TooMuch { vcpu, servers: self.servers.clone() });
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

    /// From whole periods, shrinks all budgets; beginning with another vCPU for
    /// each `order`, forwards or backwards; all in turn by steps that halve, so that
    /// none shrinks at the others' cost, or each as far as it goes before the next.
    /// Answers a task that is late even with whole periods.
    pub(super) fn shrink(&mut self, order: usize) -> Computed<Option<usize>> {
        let count = self.servers.len();
        for vcpu in 0..count {
            self.set(vcpu, self.servers[vcpu].1)?;
        }
        if !self.tasks_hold()? {
            let order: Vec<_> = self.workload.tasks_in_order().collect();
            return Ok(order.into_iter().find(|&task| self.responses[task].is_none()));
        }
        let place = |step: usize| {
            let place = (order / 4 + step) % count;
            if order.is_multiple_of(2) { place } else { count - 1 - place }
        };
        let places: Vec<_> = (0..count).map(place).collect();
        if order % 4 < 2 {
            self.settle(&places)?;
        } else {
            for place in places {
                self.settle(&[place])?;
            }
        }
        Ok(None)
    }

    /// Shrinks the budgets of these vCPUs in turn, by steps that halve, until none
    /// of them gives way any more.
    pub(super) fn settle(&mut self, vcpus: &[usize]) -> Computed<()> {
        let longest = vcpus.iter().map(|&vcpu| self.servers[vcpu].0).max().unwrap_or(0);
        let mut step = longest.next_power_of_two();
        loop {
            let mut shrunk = false;
            for &vcpu in vcpus {
                shrunk |= self.shrink_by(vcpu, step)?;
            }
            // At the grain, again and again until nothing gives way.
            match step / 2 {
                0 if !shrunk => return Ok(()),
                0 => {}
                half => step = half,
            }
        }
    }

    /// Takes `step`, rounded to the grain, off a budget if all tasks still hold.
    fn shrink_by(&mut self, vcpu: usize, step: Ns) -> Computed<bool> {
        let (budget, period) = self.servers[vcpu];
        let grain = grain(period);
        let less = budget.saturating_sub(step).div_ceil(grain) * grain;
        let less = if step < grain { budget.saturating_sub(1) / grain * grain } else { less };
        if less == 0 || less >= budget {
            return Ok(false);
        }
        self.set(vcpu, less)?;
        let holds = self.tasks_hold()?;
        if !holds {
            self.set(vcpu, budget)?;
        }
        Ok(holds)
    }
}

/// What budgets are multiples of, ns.
pub(super) fn grain(period: Ns) -> Ns {
    if period >= 1_000_000 { 1_000 } else { 1 }
}
