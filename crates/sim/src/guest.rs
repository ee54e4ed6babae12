//! The scheduler of a simulated guest: handlers of interrupts before everything else, fixed
//! priorities, ceilings for global critical sections, and the priority ceiling protocol for local resources
//! (RTSS 2014, Section III-A; Sha, Rajkumar, Lehoczky 1990).
//!
//! Tasks are known by rank, 0 for the highest priority, and sets of them are
//! words. A task in a critical section holds one resource only, so a task that
//! inherits a priority never waits for a local resource itself, and inheritance has no
//! chains.

use crate::world::low_bits;
use sched::Members;

/// A local resource.
#[derive(Clone, Copy, Debug)]
struct Local {
    /// Rank of the highest task that uses it.
    ceiling: u8,
    /// Rank of the task that has it.
    holder: Option<u8>,
}

/// What a guest answers to a request for a local resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The task has it.
    Taken,
    /// It waits for the task of this rank, which inherits its priority.
    BlockedBy(u8),
}

/// The tasks of one vCPU.
#[derive(Clone, Debug, Default)]
pub struct Guest {
    /// Index in the system of the task of each rank.
    pub tasks: Vec<usize>,
    ready: u64,
    /// Are handlers: the first ranks.
    handlers: u64,
    /// Hold a global resource.
    in_gcs: u64,
    /// Wait for a local resource.
    blocked: u64,
    /// Have inherited a rank, which stands in `inherited`.
    inheriting: u64,
    inherited: Vec<u8>,
    locals: Vec<Local>,
}

impl Guest {
    /// Tasks in the order of their priorities, the first `handlers` of which are handlers, with the
    /// number of local resources of the system; `users` answers whether a task (by index) uses
    /// one.
    pub fn new(
        tasks: Vec<usize>,
        handlers: usize,
        locals: usize,
        users: impl Fn(usize, usize) -> bool,
    ) -> Self {
        let ceiling = |resource| tasks.iter().position(|&task| users(task, resource));
        let locals = (0..locals)
            .map(|resource| Local { ceiling: ceiling(resource).unwrap_or(0) as u8, holder: None })
            .collect();
        let inherited = vec![u8::MAX; tasks.len()];
        Self { tasks, handlers: low_bits(handlers), locals, inherited, ..Self::default() }
    }

    /// A task has something to execute.
    pub fn wake(&mut self, rank: u8) {
        self.ready |= 1 << rank;
    }

    /// A task waits for its next job or for a global resource.
    pub fn sleep(&mut self, rank: u8) {
        self.ready &= !(1 << rank);
    }

    /// A task is at its task-level ceiling (rule 3).
    pub fn enter_gcs(&mut self, rank: u8) {
        self.in_gcs |= 1 << rank;
    }

    /// It is not any more.
    pub fn exit_gcs(&mut self, rank: u8) {
        self.in_gcs &= !(1 << rank);
    }

    /// The rank of the task that runs if the vCPU does.
    pub fn next(&self) -> Option<u8> {
        for first in [self.ready & self.handlers, self.ready & self.in_gcs] {
            if first != 0 {
                return Some(first.trailing_zeros() as u8);
            }
        }
        if self.ready == 0 {
            return None;
        }
        let mut best = self.ready.trailing_zeros() as u8;
        let mut urgency = best;
        for rank in Members(self.ready & self.inheriting) {
            if self.inherited[rank] < urgency {
                urgency = self.inherited[rank];
                best = rank as u8;
            }
        }
        Some(best)
    }

    /// A task requests a local resource (local rules 1 to 3).
    pub fn lock(&mut self, rank: u8, resource: usize) -> Answer {
        let held_by_others =
            self.locals.iter().filter_map(|local| local.holder.map(|by| (local.ceiling, by)));
        let highest = held_by_others.filter(|&(_, by)| by != rank).min_by_key(|local| local.0);
        if let Some((ceiling, by)) = highest
            && ceiling <= rank
        {
            self.ready &= !(1 << rank);
            self.blocked |= 1 << rank;
            self.inheriting |= 1 << by;
            let inherited = &mut self.inherited[usize::from(by)];
            *inherited = rank.min(*inherited);
            return Answer::BlockedBy(by);
        }
        self.locals[resource].holder = Some(rank);
        Answer::Taken
    }

    /// A task gives a local resource back, and with it what it inherited. The
    /// tasks that wait ask again, the highest first.
    pub fn unlock(&mut self, rank: u8, resource: usize) {
        self.locals[resource].holder = None;
        self.inheriting &= !(1 << rank);
        self.inherited[usize::from(rank)] = u8::MAX;
        self.ready |= self.blocked;
        self.blocked = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three tasks; resource 0 is used by the highest and the lowest, 1 by the
    /// middle one and the lowest.
    fn guest() -> Guest {
        let users = |task, resource| matches!((task, resource), (0 | 2, 0) | (1 | 2, 1));
        let mut guest = Guest::new(vec![0, 1, 2], 0, 2, users);
        (0..3).for_each(|rank| guest.wake(rank));
        guest
    }

    #[test]
    fn the_blocked_lends_its_priority() {
        let mut guest = guest();
        assert_eq!(guest.lock(2, 0), Answer::Taken);
        assert_eq!(guest.next(), Some(0));
        assert_eq!(guest.lock(0, 0), Answer::BlockedBy(2));
        assert_eq!(guest.next(), Some(2), "above the middle task");
        guest.unlock(2, 0);
        assert_eq!(guest.next(), Some(0));
        assert_eq!(guest.lock(0, 0), Answer::Taken);
    }

    #[test]
    fn the_ceiling_keeps_others_out_of_free_resources() {
        let mut guest = guest();
        guest.sleep(0);
        assert_eq!(guest.lock(2, 0), Answer::Taken);
        assert_eq!(guest.lock(1, 1), Answer::BlockedBy(2), "the ceiling of 0 is above");
        assert_eq!(guest.next(), Some(2));
        guest.wake(0);
        assert_eq!(guest.next(), Some(0), "only the middle priority was inherited");
        guest.sleep(0);
        guest.unlock(2, 0);
        assert_eq!(guest.lock(1, 1), Answer::Taken);
        guest.wake(0);
        assert_eq!(guest.lock(0, 0), Answer::Taken, "higher than the ceiling of 1");
    }

    #[test]
    fn a_handler_comes_before_a_gcs() {
        let mut guest = Guest::new(vec![0, 1, 2], 1, 0, |_, _| false);
        guest.wake(2);
        guest.enter_gcs(2);
        guest.wake(0);
        guest.wake(1);
        assert_eq!(guest.next(), Some(0));
        guest.sleep(0);
        assert_eq!(guest.next(), Some(2));
    }

    #[test]
    fn a_gcs_comes_before_all_tasks() {
        let mut guest = guest();
        guest.enter_gcs(2);
        assert_eq!(guest.next(), Some(2));
        guest.enter_gcs(1);
        assert_eq!(guest.next(), Some(1));
        guest.exit_gcs(1);
        guest.sleep(2);
        assert_eq!(guest.next(), Some(0));
    }
}
