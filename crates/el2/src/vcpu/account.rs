//! How long a vCPU ran, and how long it waited for its core.

use crate::arch::timer::{self, NEVER};
use abi::status::{Exit, VcpuStatus, vcpu_state};
use core::mem;
use sched::server::Counts;
use sched::{Duration, Instant};

/// A vCPU's account. Each tick in which the vCPU could have run and did not is booked once,
/// as stolen time.
///
/// The counts are also written into the status area for the host. EL2 decides nothing by what it
/// reads there.
pub struct Account {
    /// How long it ran in all, finished turns only.
    run: Duration,
    /// Since when it could run and did not; never: it runs or sleeps.
    waits_since: Instant,
    /// All ones if it was preempted in kernel mode then, else 0.
    preempted_in_kernel: u64,
    /// Periods that [`Self::show`] has counted.
    shown_replenished: u64,
    status: &'static mut VcpuStatus,
    /// Stolen time in nanoseconds, as its guest reads it.
    stolen_ns: &'static mut u64,
}

impl Account {
    /// Makes an account with nothing booked. Only the vCPU's owner writes these words.
    pub fn new(status: &'static mut VcpuStatus, stolen_ns: &'static mut u64) -> Self {
        Self {
            run: Duration(0),
            waits_since: NEVER,
            preempted_in_kernel: 0,
            shown_replenished: 0,
            status,
            stolen_ns,
        }
    }

    /// Returns how long it ran in all, finished turns only.
    pub fn ran(&self) -> Duration {
        self.run
    }

    /// Records what its guest has said of what it runs.
    pub fn count_report(&mut self, report: u64, refused: bool) {
        self.status.report = report;
        self.status.boosts += u64::from(report != 0);
        self.status.boosts_refused += u64::from(refused);
    }

    /// Books a turn that is over.
    #[inline(always)]
    pub fn book(&mut self, turn: Duration) {
        self.run.0 += turn.0;
        self.status.run = self.run.0;
    }

    /// Begins a turn: it has the core.
    #[inline(always)]
    pub fn begin_turn(&mut self, now: Instant) {
        let status = self.end_waiting(now);
        status.state = vcpu_state::RUNNING;
        status.switches += 1;
    }

    /// Begins its wait for the core, unless it waits already.
    pub fn can_run(&mut self, now: Instant) {
        if self.waits_since == NEVER {
            self.begin_waiting(now);
        }
    }

    /// Begins its wait for the core: it can run and does not.
    #[inline(always)]
    pub fn begin_waiting(&mut self, now: Instant) {
        self.status.state = vcpu_state::SUSPENDED;
        self.waits_since = now;
        self.preempted_in_kernel = 0;
    }

    /// Begins its wait for the core, which it has lost; `in_kernel` is all ones if its guest was
    /// in kernel mode, else 0.
    #[inline(always)]
    pub fn preempt(&mut self, in_kernel: u64, now: Instant) {
        self.waits_since = now;
        self.preempted_in_kernel = in_kernel;
        let status = &mut *self.status;
        status.state = vcpu_state::SUSPENDED;
        status.kernel_preemptions += in_kernel & 1;
    }

    /// Begins its wait for its next budget, unless it waits already: it has used this one up.
    /// Returns true if that begins now.
    #[inline]
    pub fn throttle(&mut self, now: Instant) -> bool {
        let begins = self.waits_since == NEVER;
        if begins {
            self.status.throttled += 1;
            self.begin_waiting(now);
        }
        begins
    }

    /// Records that it sleeps, and ran until now.
    #[inline(always)]
    pub fn sleeps(&mut self) {
        self.status.state = vcpu_state::SLEEPING;
    }

    /// Ends its wait for the core, if it waited: it sleeps, or is off.
    pub fn stops_waiting(&mut self, state: u64, now: Instant) {
        self.end_waiting(now).state = state;
    }

    /// Books the time it waited for the core, if it did, as stolen time (Arm DEN0057A,
    /// section 3.2.2). Returns what the host reads.
    #[inline(always)]
    fn end_waiting(&mut self, now: Instant) -> &mut VcpuStatus {
        let waited = now.since(mem::replace(&mut self.waits_since, NEVER)).0;
        let status = &mut *self.status;
        status.stolen += waited;
        status.kernel_preempted += waited & self.preempted_in_kernel;
        *self.stolen_ns = timer::ticks_to_ns(status.stolen);
        status
    }

    /// Records the core that owns it.
    pub fn is_at(&mut self, core: usize) {
        self.status.pcpu = core as u64;
    }

    /// Counts an arrival on another core.
    #[inline(always)]
    pub fn count_migration(&mut self, core: usize) {
        self.is_at(core);
        self.status.migrations += 1;
    }

    /// Counts a global critical section that raises it.
    #[inline(always)]
    pub fn count_raise(&mut self) {
        self.status.raised += 1;
    }

    /// Counts a call of sections or mutexes that was refused.
    pub fn count_misuse(&mut self) {
        self.status.misuses += 1;
    }

    /// Counts a new period of its server that began without a decision.
    #[inline(always)]
    pub fn count_replenishment(&mut self) {
        self.status.replenished += 1;
    }

    /// Shows what happened to its budget. Returns what happened since it was shown last.
    #[inline(always)]
    pub fn show(&mut self, counts: Counts) -> Counts {
        let status = &mut *self.status;
        let replenished = counts.replenished - self.shown_replenished;
        status.replenished += replenished;
        self.shown_replenished = counts.replenished;
        let new = |shown: &mut u64, count: u64| count.wrapping_sub(mem::replace(shown, count));
        Counts {
            replenished,
            overruns: new(&mut status.overruns, counts.overruns),
            overrun_stops: new(&mut status.overrun_stops, counts.overrun_stops),
            lowered: new(&mut status.lowered, counts.lowered),
        }
    }

    /// Counts a visit to EL2.
    #[inline(always)]
    pub fn count_exit(&mut self, cause: Exit) {
        self.status.exits[cause as usize] += 1;
    }

    /// Counts interrupts that were put into list registers.
    #[inline(always)]
    pub fn count_injected(&mut self, count: usize) {
        self.status.injected += count as u64;
    }

    /// Notes how long a visit to EL2 took.
    #[inline(always)]
    pub fn note_stay(&mut self, stay: Duration) {
        if stay.0 > self.status.longest_el2 {
            self.status.longest_el2 = stay.0;
        }
    }
}
