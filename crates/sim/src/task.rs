//! Jobs, their segments and how long those take.

use crate::record::Record;
use crate::system::{Execution, Need, Segment, Task};
use chacha20::ChaCha8Rng;
use chacha20::rand_core::Rng;

/// Chance.
pub type Chance = ChaCha8Rng;

/// A task in the world.
#[derive(Debug)]
pub struct Active {
    segments: Vec<Segment>,
    /// Index of its vCPU.
    pub vcpu: usize,
    /// The place among the tasks of its vCPU.
    pub rank: u8,
    /// The place as a claimant of global resources.
    pub claim: u8,
    /// ns.
    pub period: u64,
    /// ns; handlers have none.
    pub deadline: Option<u64>,
    /// ns.
    pub jitter: u64,
    /// When its next job arrives, ns.
    pub next_arrival: u64,
    /// How many jobs are released and not complete, the current one included.
    jobs: u64,
    /// Which segment of the current job it is in.
    segment: usize,
    /// True if it has what that segment needs, and its time runs.
    pub begun: bool,
    /// What is left of the segment, if it has begun, ns.
    pub remaining: u64,
    /// What became of its jobs.
    pub record: Record,
}

impl Active {
    pub fn new(task: &Task, rank: u8, claim: u8) -> Self {
        Self {
            segments: task.segments.clone(),
            vcpu: task.vcpu,
            rank,
            claim,
            period: task.period,
            deadline: (!task.handler).then_some(task.period),
            jitter: task.jitter,
            next_arrival: task.offset,
            jobs: 0,
            segment: 0,
            begun: false,
            remaining: 0,
            record: Record::new(),
        }
    }

    /// What the current segment needs.
    pub fn need(&self) -> Need {
        self.segments[self.segment].need
    }

    /// The job that is due is released. Answers whether it is the only one, and
    /// the task becomes ready.
    pub fn release(&mut self) -> bool {
        self.jobs += 1;
        self.next_arrival += self.period;
        self.record.arrived += 1;
        self.jobs == 1
    }

    /// When the next job is released, if chance has a say.
    pub fn next_release(&self, chance: &mut Chance) -> u64 {
        let late = if self.jitter == 0 { 0 } else { up_to(self.jitter, chance) };
        self.next_arrival.saturating_add(late)
    }

    /// The segment has what it needs.
    pub fn begin(&mut self, execution: Execution, chance: &mut Chance) {
        let wcet = self.segments[self.segment].wcet;
        self.begun = true;
        self.remaining = match execution {
            Execution::Worst => wcet,
            Execution::Random { least } => {
                let shortest =
                    u64::try_from(u128::from(wcet) * u128::from(least) / 100).unwrap_or(wcet);
                let shortest = shortest.max(1);
                if chance.next_u32().is_multiple_of(4) {
                    wcet
                } else {
                    shortest + up_to(wcet - shortest, chance)
                }
            }
        };
    }

    /// The segment is over. Answers the arrival of the job if it was the last.
    pub fn end_segment(&mut self) -> Option<u64> {
        self.begun = false;
        self.segment += 1;
        if self.segment < self.segments.len() {
            return None;
        }
        self.segment = 0;
        let arrival = self.oldest();
        self.jobs -= 1;
        arrival
    }

    /// Returns true if there is a job that is not complete.
    pub fn has_job(&self) -> bool {
        self.jobs > 0
    }

    /// Arrival of the oldest job that is not complete: jobs arrive a period
    /// apart, so their arrivals need not be stored.
    pub fn oldest(&self) -> Option<u64> {
        self.has_job().then(|| self.next_arrival - self.jobs * self.period)
    }
}

/// A number from 0 to `most`. Multiplication spreads 64 random bits over it;
/// what that favours is below 1 in 2^30 for times below 2^34 ns.
fn up_to(most: u64, chance: &mut Chance) -> u64 {
    ((u128::from(chance.next_u64()) * (u128::from(most) + 1)) >> 64) as u64
}
