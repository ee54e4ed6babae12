//! Where a budget shortens others' waits, one that grows may let the others shrink
//! by more.

use super::shrink::grain;
use super::{Budgets, Least, independent};
use crate::bounds::Computed;
use crate::model::{Ns, System};

/// So many rounds over all vCPUs are made, at most.
const ROUNDS: usize = 8;
/// Where nothing fits, trades begin with so many orders in which budgets shrink.
const STARTS: usize = 8;
/// Less total bandwidth than this is no reason for a trade: sums are rounded.
const WORTH: f64 = 1e-9;

/// Fits or does not, and the total bandwidth: the less the better.
type Rank = (bool, f64);

impl Budgets {
    /// From `start` on, as long as a trade makes something fit or saves bandwidth.
    pub(super) fn trade(&mut self, system: &System, start: Least) -> Computed<Least> {
        let servers = match &start {
            Least::Fits { servers, .. } | Least::TooMuch { servers, .. } => servers,
            Least::Late(_) => return Ok(start),
        };
        if independent(system) {
            return Ok(start);
        }
        self.restore(servers)?;
        for order in 0..STARTS {
            self.trade_on()?;
            if self.first_that_does_not_fit()?.is_none() {
                let (servers, bandwidth) = (self.servers.clone(), self.bandwidth());
                return Ok(Least::Fits { servers, bandwidth });
            }
            self.shrink(order)?;
        }
        Ok(start)
    }

    /// From the budgets that there are, until no trade is left.
    fn trade_on(&mut self) -> Computed<()> {
        for _ in 0..ROUNDS {
            let mut traded = false;
            for vcpu in 0..self.servers.len() {
                traded |= self.grow(vcpu)?;
            }
            if !traded {
                break;
            }
        }
        Ok(())
    }

    /// Lets one budget grow, by steps of several sizes, and all others shrink;
    /// keeps the best of that. Answers whether it is better than what there was.
    fn grow(&mut self, vcpu: usize) -> Computed<bool> {
        let before = self.servers.clone();
        let (budget, period) = before[vcpu];
        let others: Vec<_> = (0..before.len()).filter(|&other| other != vcpu).collect();
        let all: Vec<_> = (0..before.len()).collect();
        let (mut best, mut traded) = (self.rank()?, false);
        let mut kept = before.clone();
        let mut more: Ns = grain(period);
        while more < period.saturating_mul(2) && budget < period {
            self.restore(&before)?;
            self.set(vcpu, period.min(budget.saturating_add(more)))?;
            // The others first: it would only take back what it was given.
            self.settle(&others)?;
            self.settle(&all)?;
            let rank = self.rank()?;
            if better(rank, best) {
                (best, traded) = (rank, true);
                kept.clone_from(&self.servers);
            }
            more = more.saturating_mul(2);
        }
        self.restore(&kept)?;
        Ok(traded)
    }

    fn rank(&self) -> Computed<Rank> {
        Ok((self.first_that_does_not_fit()?.is_some(), self.bandwidth()))
    }
}

fn better(new: Rank, old: Rank) -> bool {
    if new.0 == old.0 { new.1 < old.1 - WORTH } else { old.0 }
}
