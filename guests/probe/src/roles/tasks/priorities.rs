//! Which task of a vCPU goes first: fixed priorities, ceilings for global critical sections, and
//! the priority ceiling protocol for local resources (RTSS 2014, Section III-A).
//!
//! The simulator has the same rules in `crates/sim/src/guest.rs`. Tasks are known by rank, 0 for
//! the highest priority, and sets of them are words. A task in a critical section holds one
//! resource only, so inheritance has no chains.

use arrayvec::ArrayVec;

/// Most tasks of a vCPU, and most local resources.
pub const MAX: usize = 16;

/// A local resource.
pub struct Local {
    pub name: &'static str,
    /// Rank of the highest task that uses it.
    pub ceiling: usize,
    holder: Option<usize>,
}

/// The tasks of a vCPU.
#[derive(Default)]
pub struct Priorities {
    ready: u32,
    in_gcs: u32,
    blocked: u32,
    /// What each task has inherited, or its own rank.
    urgency: [usize; MAX],
    locals: ArrayVec<Local, MAX>,
}

impl Priorities {
    pub fn new() -> Self {
        Self { urgency: core::array::from_fn(|rank| rank), ..Self::default() }
    }

    /// Records that a task uses a local resource; the highest comes first. Returns the number of
    /// the resource; none: there are too many.
    pub fn uses(&mut self, rank: usize, name: &'static str) -> Option<usize> {
        let known = self.locals.iter().position(|local| local.name == name);
        known.or_else(|| {
            self.locals.try_push(Local { name, ceiling: rank, holder: None }).ok()?;
            Some(self.locals.len() - 1)
        })
    }

    /// A task has something to execute.
    pub fn wake(&mut self, rank: usize) {
        self.ready |= 1 << rank;
    }

    /// A task waits for its next job or a global resource.
    pub fn sleep(&mut self, rank: usize) {
        self.ready &= !(1 << rank);
    }

    /// A task holds a global resource.
    pub fn enter_gcs(&mut self, rank: usize) {
        self.in_gcs |= 1 << rank;
    }

    /// It does not any more.
    pub fn exit_gcs(&mut self, rank: usize) {
        self.in_gcs &= !(1 << rank);
    }

    /// Returns the task that is to run.
    pub fn next(&self) -> Option<usize> {
        let raised = self.ready & self.in_gcs;
        if raised != 0 {
            return Some(raised.trailing_zeros() as usize);
        }
        let ready = (0..MAX).filter(|&rank| self.ready >> rank & 1 == 1);
        // Of two with one urgency, one has inherited it from the other, which is blocked.
        if self.ready == 0 { None } else { ready.min_by_key(|&rank| self.urgency[rank]) }
    }

    /// A task requests a local resource (local rules 1 to 3). Returns whether it has it; if not, it
    /// waits, and asks again when it runs next.
    pub fn lock(&mut self, rank: usize, resource: usize) -> bool {
        let held = self.locals.iter().filter_map(|local| Some((local.ceiling, local.holder?)));
        let highest = held.filter(|&(_, by)| by != rank).min();
        if let Some((ceiling, by)) = highest
            && ceiling <= rank
        {
            self.ready &= !(1 << rank);
            self.blocked |= 1 << rank;
            self.urgency[by] = self.urgency[by].min(rank);
            return false;
        }
        self.locals[resource].holder = Some(rank);
        true
    }

    /// A task gives a local resource back, and with it what it inherited.
    pub fn unlock(&mut self, rank: usize, resource: usize) {
        self.locals[resource].holder = None;
        self.urgency[rank] = rank;
        self.ready |= core::mem::take(&mut self.blocked);
    }
}
