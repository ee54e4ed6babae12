//! What EL2 takes: a core owes it the time of each visit, and pays before it does anything
//! else.
//!
//! Visits that are caused at one instant follow one another. What a core pays is taken from
//! the budget of the vCPU that has it meanwhile, as at EL2, where a visit counts for the vCPU
//! that runs after it. Observers are not told of it.

use super::{NEVER, World};
use crate::observer::Observer;
use crate::system::{Costs, Displacement};
use chacha20::rand_core::Rng;

impl<O: Observer> World<O> {
    /// A core owes EL2 some time more.
    pub(super) fn charge(&mut self, core: usize, time: u64) {
        if time > 0 {
            self.cores[core].owed += time;
            self.pending |= 1 << core;
        }
    }

    /// A core pays what it owes, of the time that it has had; answers what is left of that.
    pub(super) fn pay(&mut self, core: usize, taken: u64) -> u64 {
        let owed = &mut self.cores[core].owed;
        let paid = taken.min(*owed);
        *owed -= paid;
        taken - paid
    }

    /// A core gives up one vCPU for another, or for sleep.
    pub(super) fn charge_switch(&mut self, core: usize, to: Option<usize>) {
        let from = self.cores[core].vcpu;
        if from == to {
            return;
        }
        let slept = from.is_some_and(|vcpu| self.vcpus[vcpu].guest.next().is_none());
        let Costs { switch_on_wake, switch_on_sleep, departure, .. } = self.costs;
        let switch = if slept || to.is_none() { switch_on_sleep } else { switch_on_wake };
        self.charge(core, switch + departure);
    }

    /// A vCPU has a core, or none has: others may be displaced now, or not any more.
    pub(super) fn charge_displacements(&mut self, core: usize, vcpu: Option<usize>) {
        for index in 0..self.displacements.len() {
            let Displacement { by, begins, ends } = &self.displacements[index];
            if by.first().is_none_or(|&first| self.vcpus[first].core != core) {
                continue;
            }
            let (was, bit) = (self.displaced >> index & 1 == 1, 1 << index);
            let is = vcpu.is_some_and(|vcpu| by.contains(&vcpu));
            let costs = match (was, is) {
                (false, true) => begins.clone(),
                (true, false) => ends.clone(),
                _ => continue,
            };
            self.displaced ^= bit;
            costs.into_iter().for_each(|(core, time)| self.charge(core, time));
        }
    }

    /// Other duties begin at some instant of the first [`Costs::duty_every`].
    pub(super) fn expect_duties(&mut self) {
        for core in &mut self.cores {
            core.duty = match self.costs.duty_every {
                0 => NEVER,
                every => self.chance.next_u64() % every,
            };
        }
    }

    /// What EL2's own timer, or another duty, interrupts a core for at this instant.
    pub(super) fn charge_interrupts(&mut self, core: usize) {
        if self.cores[core].until <= self.now {
            self.cores[core].until = NEVER;
            self.charge(core, self.costs.timer);
        }
        if self.cores[core].duty <= self.now {
            self.cores[core].duty += self.costs.duty_every;
            self.charge(core, self.costs.duty);
        }
    }
}
