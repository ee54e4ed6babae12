//! Global resources: one holder, and a two-level priority queue of waiters.
//!
//! The queue of vMPCP (Kim, Wang, Rajkumar, RTSS 2014, Figure 2) is ordered by
//! vCPU priority first and task priority second, so that priorities of tasks in
//! different VMs are never compared. Both levels are bit sets over *ranks*, the
//! places of vCPUs and of a vCPU's tasks in the order of their priorities: every
//! operation takes the same few instructions however many wait, and no queue can
//! be full.
//!
//! MPCP, which knows of tasks only, is the same queue with the levels exchanged:
//! [`Order::TaskFirst`].

use core::fmt;

/// Most ranks in each level.
pub const RANKS: usize = 64;

/// A task that asks for a resource, and its vCPU, each by its rank. Rank 0 is the highest
/// priority; no two tasks have the same two ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Claimant {
    /// Rank of its vCPU among all vCPUs of the system.
    pub vcpu: u8,
    /// Rank of the task: among its vCPU's under [`Order::VcpuFirst`], among
    /// all priorities that tasks have under [`Order::TaskFirst`].
    pub task: u8,
}

/// What the queue is ordered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// By vCPU, then by task: vMPCP.
    VcpuFirst,
    /// By task, then by vCPU: MPCP.
    TaskFirst,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misuse {
    /// A rank is not below [`RANKS`].
    UnknownRank,
    /// The task holds the resource or waits for it already.
    AskedTwice,
    /// The task that gives it back does not hold it.
    NotTheHolder,
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownRank => "a rank is 64 or more",
            Self::AskedTwice => "the task holds the resource or waits for it already",
            Self::NotTheHolder => "the task does not hold the resource",
        })
    }
}

/// A mutex of a global resource. Suspension-based: a task that does not get it sleeps.
#[derive(Clone, Debug)]
pub struct Mutex {
    order: Order,
    holder: Option<Claimant>,
    /// Ranks of the first level that have a task waiting.
    first: u64,
    /// For each of them, ranks of the second level that wait.
    second: [u64; RANKS],
}

impl Mutex {
    /// Makes a mutex that no task holds.
    #[must_use]
    pub const fn new(order: Order) -> Self {
        Self { order, holder: None, first: 0, second: [0; RANKS] }
    }

    /// Returns the task that holds it.
    #[must_use]
    pub const fn holder(&self) -> Option<Claimant> {
        self.holder
    }

    /// Returns how many tasks wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.second.iter().map(|set| set.count_ones() as usize).sum()
    }

    /// Requests the resource for a task. Returns true when it is granted at once (rule 2);
    /// else the task waits in the queue (rule 5).
    ///
    /// # Errors
    /// When the request is refused; then nothing has changed.
    pub fn lock(&mut self, claimant: Claimant) -> Result<bool, Misuse> {
        if usize::from(claimant.vcpu.max(claimant.task)) >= RANKS {
            return Err(Misuse::UnknownRank);
        }
        let (first, second) = self.levels(claimant);
        if self.holder == Some(claimant) || self.second[first] >> second & 1 == 1 {
            return Err(Misuse::AskedTwice);
        }
        if self.holder.is_none() {
            self.holder = Some(claimant);
            return Ok(true);
        }
        self.first |= 1 << first;
        self.second[first] |= 1 << second;
        Ok(false)
    }

    /// Takes the resource back from its holder. Returns the task that holds it now, the first
    /// of the queue (rule 6), or none.
    ///
    /// # Errors
    /// When another task holds it, or none; then nothing has changed.
    pub fn unlock(&mut self, claimant: Claimant) -> Result<Option<Claimant>, Misuse> {
        if self.holder != Some(claimant) {
            return Err(Misuse::NotTheHolder);
        }
        self.holder = self.dequeue();
        Ok(self.holder)
    }

    fn dequeue(&mut self) -> Option<Claimant> {
        if self.first == 0 {
            return None;
        }
        let first = self.first.trailing_zeros() as usize;
        let second = self.second[first].trailing_zeros() as usize;
        self.second[first] &= self.second[first] - 1;
        if self.second[first] == 0 {
            self.first &= self.first - 1;
        }
        let (vcpu, task) = match self.order {
            Order::VcpuFirst => (first, second),
            Order::TaskFirst => (second, first),
        };
        Some(Claimant { vcpu: vcpu as u8, task: task as u8 })
    }

    fn levels(&self, claimant: Claimant) -> (usize, usize) {
        let (vcpu, task) = (usize::from(claimant.vcpu), usize::from(claimant.task));
        match self.order {
            Order::VcpuFirst => (vcpu, task),
            Order::TaskFirst => (task, vcpu),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn task(vcpu: u8, task: u8) -> Claimant {
        Claimant { vcpu, task }
    }

    #[test]
    fn the_highest_task_of_the_highest_vcpu_is_next() {
        let mut mutex = Mutex::new(Order::VcpuFirst);
        assert_eq!(mutex.lock(task(3, 0)), Ok(true));
        for waiter in [task(2, 0), task(1, 5), task(1, 4), task(63, 63)] {
            assert_eq!(mutex.lock(waiter), Ok(false));
        }
        let order: Vec<_> = core::iter::from_fn(|| {
            let holder = mutex.holder()?;
            mutex.unlock(holder).unwrap()
        })
        .collect();
        assert_eq!(order, [task(1, 4), task(1, 5), task(2, 0), task(63, 63)]);
        assert_eq!(mutex.holder(), None);
    }

    #[test]
    fn mpcp_looks_at_tasks_first() {
        let mut mutex = Mutex::new(Order::TaskFirst);
        mutex.lock(task(9, 9)).unwrap();
        for waiter in [task(1, 7), task(2, 3), task(0, 3)] {
            mutex.lock(waiter).unwrap();
        }
        assert_eq!(mutex.unlock(task(9, 9)), Ok(Some(task(0, 3))));
        assert_eq!(mutex.unlock(task(0, 3)), Ok(Some(task(2, 3))));
        assert_eq!(mutex.unlock(task(2, 3)), Ok(Some(task(1, 7))));
    }

    #[test]
    fn misuse_changes_nothing() {
        let mut mutex = Mutex::new(Order::VcpuFirst);
        assert_eq!(mutex.unlock(task(0, 0)), Err(Misuse::NotTheHolder));
        assert_eq!(mutex.lock(task(64, 0)), Err(Misuse::UnknownRank));
        mutex.lock(task(0, 0)).unwrap();
        mutex.lock(task(0, 1)).unwrap();
        assert_eq!(mutex.lock(task(0, 0)), Err(Misuse::AskedTwice));
        assert_eq!(mutex.lock(task(0, 1)), Err(Misuse::AskedTwice));
        assert_eq!(mutex.unlock(task(0, 1)), Err(Misuse::NotTheHolder));
        assert_eq!((mutex.holder(), mutex.waiting()), (Some(task(0, 0)), 1));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        /// Against a list that is searched for its best member.
        #[test]
        fn grants_as_a_sorted_list_does(
            order in prop_oneof![Just(Order::VcpuFirst), Just(Order::TaskFirst)],
            steps in prop::collection::vec((any::<bool>(), 0u8..64, 0u8..64), 1..200),
        ) {
            let (mut mutex, mut holder, mut list) = (Mutex::new(order), None, Vec::new());
            for (lock, a, b) in steps {
                let claimant = task(a, b);
                if lock {
                    let known = holder == Some(claimant) || list.contains(&claimant);
                    let expected = if known {
                        Err(Misuse::AskedTwice)
                    } else if holder.is_none() {
                        holder = Some(claimant);
                        Ok(true)
                    } else {
                        list.push(claimant);
                        Ok(false)
                    };
                    prop_assert_eq!(mutex.lock(claimant), expected);
                } else if let Some(current) = holder {
                    let key = |c: &Claimant| match order {
                        Order::VcpuFirst => (c.vcpu, c.task),
                        Order::TaskFirst => (c.task, c.vcpu),
                    };
                    holder = list.iter().copied().min_by_key(key);
                    list.retain(|waiter| Some(*waiter) != holder);
                    prop_assert_eq!(mutex.unlock(current), Ok(holder));
                }
                prop_assert_eq!((mutex.holder(), mutex.waiting()), (holder, list.len()));
            }
        }
    }
}
