//! A vCPU runs its tasks, each by rounds of work, and looks in between what has changed.

use super::declared::{Holds, MAX_SEGMENTS, Segment};
use super::priorities::{MAX, Priorities};
use super::work::{self, work};
use super::{Shared, TIMER};
use crate::arch::cpu;
use crate::random::Random;
use crate::roles::mutex::Claim;
use crate::suite::Check;
use crate::timer::ENABLE;
use crate::{ensure, ensure_eq, fail, wait};
use abi::report::tasks::Section;
use abi::service::{HELD, MUTEX_LOCK, MUTEX_UNLOCK, OWNER_DIED, QUEUED, hash};
use arrayvec::ArrayVec;
use core::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// The tasks of a vCPU, by rank.
pub struct Executive {
    shared: &'static Shared,
    priorities: Priorities,
    tasks: ArrayVec<Running, MAX>,
    /// When the next job is released, ticks.
    next_release: u64,
    random: Random,
    late: u64,
    jobs: u64,
}

/// A task, and how far its job has come. Times are in ticks, but for those with `ns`.
struct Running {
    /// Its number in the VM.
    number: usize,
    /// What each segment asks for.
    needs: [Need; MAX_SEGMENTS],
    arrival_ns: u64,
    arrival: u64,
    /// When the job is released; for ever: it is, or there will be none.
    release: u64,
    segment: usize,
    /// Rounds that are left of the segment; none: it has not begun.
    left: Option<u64>,
    waits: bool,
    section: Section,
}

#[derive(Clone, Copy)]
enum Need {
    Nothing,
    Local(usize),
    Global(Claim, u64),
}

impl Executive {
    /// Prepares the tasks of vCPU `index`, which is the calling one.
    pub fn new(shared: &'static Shared, index: usize) -> Check<Self> {
        let mut order: ArrayVec<usize, MAX> = ArrayVec::new();
        for (number, _) in shared.tasks.iter().enumerate().filter(|(_, t)| t.vcpu == index) {
            ensure!(order.try_push(number).is_ok(), "a vCPU has more than {MAX} tasks");
        }
        order.sort_unstable_by_key(|&number| core::cmp::Reverse(shared.tasks[number].priority));
        let mut executive = Self {
            shared,
            priorities: Priorities::new(),
            tasks: ArrayVec::new(),
            next_release: u64::MAX,
            random: Random::seeded(0x9e37_79b9_7f4a_7c15 ^ shared.begin ^ index as u64),
            late: 0,
            jobs: 0,
        };
        for (rank, &number) in order.iter().enumerate() {
            let running = executive.prepare(rank, number)?;
            executive.tasks.push(running);
            executive.expect(rank);
        }
        Ok(executive)
    }

    fn prepare(&mut self, rank: usize, number: usize) -> Check<Running> {
        let task = &self.shared.tasks[number];
        let mut needs = [Need::Nothing; MAX_SEGMENTS];
        for (place, segment) in task.segments.iter().enumerate() {
            work::check(task.name, segment.wcet, place + 1 == task.segments.len())?;
            needs[place] = match segment.holds {
                Holds::Nothing => Need::Nothing,
                Holds::Local(name) => match self.priorities.uses(rank, name) {
                    Some(local) => Need::Local(local),
                    None => fail!("a vCPU has more than {MAX} local resources"),
                },
                Holds::Global(name) => {
                    Need::Global(Claim::named(name, task.name)?, hash(name.as_bytes()))
                }
            };
        }
        let begin = self.shared.begin.max(TIMER.now());
        let begin_ns = begin * 1_000_000 / wait::us(1_000);
        let periods = begin_ns.saturating_sub(task.offset).div_ceil(task.period);
        Ok(Running {
            number,
            needs,
            arrival_ns: task.offset + periods * task.period,
            arrival: 0,
            release: 0,
            segment: 0,
            left: None,
            waits: false,
            section: Section::default(),
        })
    }

    /// Jobs that are complete, and how many of them were late.
    pub fn counts(&self) -> (u64, u64) {
        (self.jobs, self.late)
    }

    /// Runs the tasks until no job arrives any more. `granted` is set when one of them may have
    /// been granted a mutex.
    pub fn run(&mut self, granted: &AtomicBool) -> Check {
        loop {
            let now = TIMER.now();
            if now >= self.next_release {
                self.release(now);
            }
            if granted.swap(false, SeqCst) {
                self.look_at_grants();
            }
            match self.priorities.next() {
                Some(rank) => self.execute(rank, granted)?,
                None if self.next_release == u64::MAX && !self.tasks.iter().any(|t| t.waits) => {
                    return Ok(());
                }
                None => self.sleep(granted),
            }
        }
    }

    /// Sleeps until a job is released or a mutex granted.
    fn sleep(&self, granted: &AtomicBool) {
        cpu::mask_irq();
        if self.next_release < u64::MAX {
            TIMER.set_compare(self.next_release);
            TIMER.set_control(ENABLE);
        }
        while !granted.load(SeqCst) && TIMER.now() < self.next_release {
            cpu::wfi();
            cpu::unmask_irq();
            cpu::mask_irq();
        }
        TIMER.stop();
        cpu::unmask_irq();
    }

    fn release(&mut self, now: u64) {
        self.next_release = u64::MAX;
        for (rank, task) in self.tasks.iter_mut().enumerate() {
            if task.release <= now {
                task.release = u64::MAX;
                self.priorities.wake(rank);
            }
            self.next_release = self.next_release.min(task.release);
        }
    }

    fn look_at_grants(&mut self) {
        for (rank, task) in self.tasks.iter_mut().enumerate().filter(|(_, task)| task.waits) {
            if let Need::Global(claim, _) = task.needs[task.segment]
                && claim.holds()
            {
                task.waits = false;
                task.section.had = TIMER.now();
                self.priorities.enter_gcs(rank);
                self.priorities.wake(rank);
            }
        }
    }

    /// Lets the task of this rank go on.
    fn execute(&mut self, rank: usize, granted: &AtomicBool) -> Check {
        let Some(left) = self.tasks[rank].left else { return self.begin_segment(rank, granted) };
        let left = work(left, self.next_release, granted);
        self.tasks[rank].left = Some(left);
        if left == 0 { self.end_segment(rank) } else { Ok(()) }
    }

    fn begin_segment(&mut self, rank: usize, granted: &AtomicBool) -> Check {
        let task = &mut self.tasks[rank];
        match task.needs[task.segment] {
            Need::Nothing => {}
            Need::Local(local) => {
                if !self.priorities.lock(rank, local) {
                    return Ok(());
                }
            }
            Need::Global(claim, mutex) => {
                // With the grant comes the call's answer; the rounds begin when it is looked at.
                let asked = TIMER.now();
                let answer = claim.call(MUTEX_LOCK);
                let had = TIMER.now();
                task.section = Section { mutex, asked, had, ..Section::default() };
                match answer {
                    HELD | OWNER_DIED => self.priorities.enter_gcs(rank),
                    QUEUED => {
                        (task.section.queued, task.waits) = (had, true);
                        self.priorities.sleep(rank);
                        granted.store(true, SeqCst);
                    }
                    _ => fail!("MUTEX_LOCK answers {answer}"),
                }
            }
        }
        let (segment, is_last) = self.segment_of(rank);
        let percent = self.shared.least + self.random.up_to(100 - self.shared.least);
        self.tasks[rank].left = Some(self.shared.work.rounds(segment.wcet, is_last, percent));
        Ok(())
    }

    fn segment_of(&self, rank: usize) -> (Segment, bool) {
        let task = &self.tasks[rank];
        let segments = &self.shared.tasks[task.number].segments;
        (segments[task.segment], task.segment + 1 == segments.len())
    }

    fn end_segment(&mut self, rank: usize) -> Check {
        let (_, is_last) = self.segment_of(rank);
        let task = &mut self.tasks[rank];
        match task.needs[task.segment] {
            Need::Nothing => {}
            Need::Local(local) => self.priorities.unlock(rank, local),
            Need::Global(claim, _) => {
                task.section.gives = TIMER.now();
                ensure_eq!(claim.call(MUTEX_UNLOCK), 0, "MUTEX_UNLOCK");
                task.section.gave = TIMER.now();
                self.priorities.exit_gcs(rank);
                self.shared.record.section(task.number as u64, &task.section);
            }
        }
        task.left = None;
        task.segment += 1;
        if is_last {
            self.complete(rank);
        }
        Ok(())
    }

    fn complete(&mut self, rank: usize) {
        let task = &mut self.tasks[rank];
        let period = self.shared.tasks[task.number].period;
        let response = TIMER.now() - task.arrival;
        let is_late = response > wait::ns(period);
        self.shared.record.job(task.number as u64, response, is_late);
        self.jobs += 1;
        self.late += u64::from(is_late);
        task.segment = 0;
        task.arrival_ns += period;
        self.priorities.sleep(rank);
        self.expect(rank);
    }

    /// Sets when the next job of a task is released, whose period begins at `arrival_ns`.
    fn expect(&mut self, rank: usize) {
        let number = self.tasks[rank].number;
        let late = self.random.up_to(wait::ns(self.shared.tasks[number].jitter));
        let task = &mut self.tasks[rank];
        task.arrival = wait::ns(task.arrival_ns);
        let ends = task.arrival >= self.shared.end;
        task.release = if ends { u64::MAX } else { task.arrival + late };
        self.next_release = self.next_release.min(task.release);
        self.shared.record.arrives(number as u64, if ends { 0 } else { task.arrival });
    }
}
