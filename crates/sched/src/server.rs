//! Servers: how long a vCPU may run in each period.
//!
//! A server gives its vCPU a budget in every period. Both policies replenish at
//! exact multiples of the period, to the full budget; they differ in what an idle
//! vCPU keeps (Kim, Wang, Rajkumar, RTSS 2014, Section II-A):
//!
//! - *periodic*: nothing. Without work it idles its budget away, and has the core
//!   meanwhile: the analysis (Equation 2) assumes that vCPUs of lower priority do
//!   not run.
//! - *deferrable*: everything, until the end of the period.
//!
//! A vCPU in a global critical section (gcs) may *overrun*: go on without budget
//! up to a limit for each period (Section III-B). A periodic server may do so
//! only while it has not stopped: once suspended, it stays suspended until its
//! period ends. A deferrable one may begin whenever a gcs is granted to it.
//!
//! A gcs raises the vCPU to its ceiling. How long it may be there in each period can be
//! limited as well: the bounds of all other vCPUs rest on that. One that uses the limit up is
//! *lowered*, and stays so until its gcs is over.

use crate::{Duration, Instant, Refusal};

/// The kinds of servers. They differ in what happens to budget that a vCPU does not use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ServerKind {
    /// Unused budget is idled away.
    Periodic,
    /// Unused budget is kept until the period ends.
    Deferrable,
}

/// Parameters of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Server {
    /// The kind of server.
    pub kind: ServerKind,
    /// Execution time in each period; not zero, not above the period.
    pub budget: Duration,
    /// From one replenishment to the next; not zero.
    pub period: Duration,
    /// Execution time beyond the budget that critical sections may take in one
    /// period; zero: none. Budget and overrun are not above the period.
    pub overrun: Duration,
}

impl ServerKind {
    /// Both kinds.
    pub const ALL: [Self; 2] = [Self::Periodic, Self::Deferrable];

    /// Returns what descriptions and reports call this kind.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Periodic => "periodic",
            Self::Deferrable => "deferrable",
        }
    }
}

impl Server {
    fn check(&self) -> Result<(), Refusal> {
        if self.budget.0 == 0 {
            Err(Refusal::ZeroBudget)
        } else if self.period.0 == 0 {
            Err(Refusal::ZeroPeriod)
        } else if self.budget > self.period {
            Err(Refusal::BudgetBeyondPeriod)
        } else if self.overrun.0 > self.period.0 - self.budget.0 {
            Err(Refusal::OverrunBeyondPeriod)
        } else {
            Ok(())
        }
    }
}

/// What happened to an account so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Periods that have begun, but for those that began without a decision
    /// ([`Scheduler::renew`](crate::Scheduler::renew)).
    pub replenished: u64,
    /// Periods in which it overran its budget.
    pub overruns: u64,
    /// Times it was stopped in a gcs, without budget or overrun.
    pub overrun_stops: u64,
    /// Times it was lowered in a gcs: it was raised for too long.
    pub lowered: u64,
}

/// A server and what is left in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    server: Server,
    /// How long the vCPU may be raised in each period.
    gcs_limit: Duration,
    /// The rest of this period's budget.
    left: Duration,
    /// The rest of this period's overrun.
    overrun_left: Duration,
    /// What it ran beyond that, because it was stopped late.
    debt: Duration,
    /// The rest of this period's time at the ceiling.
    gcs_left: Duration,
    /// Since when it is raised, or [`Instant::NEVER`].
    raised_since: Instant,
    counts: Counts,
    /// When the next period begins.
    next: Instant,
    /// It must not begin to overrun in this period any more.
    stopped: bool,
}

impl Account {
    /// Opens an account whose first period begins at `begin`; it is empty before.
    ///
    /// # Errors
    /// Refuses inconsistent parameters.
    pub fn open(server: Server, begin: Instant) -> Result<Self, Refusal> {
        server.check()?;
        Ok(Self {
            server,
            gcs_limit: Duration(u64::MAX),
            left: Duration(0),
            overrun_left: Duration(0),
            debt: Duration(0),
            gcs_left: Duration(u64::MAX),
            raised_since: Instant::NEVER,
            counts: Counts::default(),
            next: begin,
            stopped: true,
        })
    }

    /// Limits how long the vCPU may be raised in each period; without this, nothing does but
    /// budget and overrun.
    #[must_use]
    pub const fn raised_for_at_most(self, limit: Duration) -> Self {
        Self { gcs_limit: limit, gcs_left: limit, ..self }
    }

    /// Returns what happened so far, as of the latest look.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns the parameters of the server.
    #[must_use]
    pub const fn server(&self) -> Server {
        self.server
    }

    /// Returns the account as it is on another core, where no section raises the vCPU. Field by
    /// field: as a whole it would be copied by a call of `memcpy`, which takes several times as long.
    #[inline(always)]
    pub(crate) const fn moved(&self) -> Self {
        Self {
            server: self.server,
            gcs_limit: self.gcs_limit,
            left: self.left,
            overrun_left: self.overrun_left,
            debt: self.debt,
            gcs_left: self.gcs_left,
            raised_since: Instant::NEVER,
            counts: self.counts,
            next: self.next,
            stopped: self.stopped,
        }
    }

    /// Returns what is left of the budget, as of the latest charge.
    #[must_use]
    pub const fn left(&self) -> Duration {
        self.left
    }

    /// Returns what is left of the overrun, as of the latest charge.
    #[must_use]
    pub const fn overrun_left(&self) -> Duration {
        self.overrun_left
    }

    /// Returns when the account is replenished next, as of the latest look.
    #[must_use]
    pub const fn replenished_at(&self) -> Instant {
        self.next
    }

    /// Begins the period that `now` is in, if it has not begun.
    pub(crate) fn replenish(&mut self, now: Instant) {
        if now < self.next {
            return;
        }
        let missed = now.since(self.next).0.checked_div(self.server.period.0).unwrap_or(0);
        self.next = Instant(self.next.0 + missed * self.server.period.0).after(self.server.period);
        self.counts.replenished += missed + 1;
        let debt = core::mem::take(&mut self.debt);
        let debt = if missed == 0 { debt } else { Duration(0) };
        self.refill(debt);
        self.stopped = false;
    }

    /// Fills everything that a period has, but for what is `taken` of the budget already.
    #[inline(always)]
    fn refill(&mut self, taken: Duration) {
        self.left = Duration(self.server.budget.0.saturating_sub(taken.0));
        self.overrun_left = self.server.overrun;
        self.gcs_left = self.gcs_limit;
    }

    /// Begins the period that `now` is in, if it has not begun; the vCPU has run since the last
    /// one ended, and is in no section. Returns what is left of the budget.
    #[inline(always)]
    pub(crate) fn renew(&mut self, now: Instant) -> Option<Duration> {
        let late = now.0.checked_sub(self.next.0)?;
        if late >= self.server.budget.0 {
            return None;
        }
        self.next = self.next.after(self.server.period);
        self.refill(Duration(late));
        Some(self.left)
    }

    /// Takes the time from `from` to `now`. Time in a period that is over has no effect any
    /// more. Time beyond what the vCPU may run, when it is charged late, is taken from its next
    /// budget.
    pub(crate) fn charge(&mut self, from: Instant, now: Instant) {
        self.replenish(now);
        let begin = Instant(self.next.0.saturating_sub(self.server.period.0));
        let taken = now.since(from.max(begin)).0;
        let beyond = taken.saturating_sub(self.left.0);
        self.left.0 = self.left.0.saturating_sub(taken);
        let overrun = if self.is_raised() { beyond.min(self.overrun_left.0) } else { 0 };
        if overrun > 0 {
            self.counts.overruns += u64::from(self.overrun_left == self.server.overrun);
            self.overrun_left.0 -= overrun;
        }
        self.debt.0 += beyond - overrun;
        if self.is_raised() {
            let raised = now.since(from.max(begin).max(self.raised_since));
            self.gcs_left.0 = self.gcs_left.0.saturating_sub(raised.0);
            if self.gcs_left.0 == 0 {
                self.counts.lowered += 1;
                self.lower();
            }
        }
    }

    /// Returns how long the vCPU may still be raised in this period.
    pub(crate) const fn gcs_left(&self) -> Duration {
        self.gcs_left
    }

    /// Records how long the vCPU may still be raised in this period.
    pub(crate) fn set_gcs_left(&mut self, left: Duration) {
        self.gcs_left = left;
    }

    /// Begins a gcs: the vCPU is raised if it may be in this period.
    pub(crate) fn raise(&mut self, now: Instant) {
        if self.gcs_left.0 > 0 {
            self.raised_since = now;
        }
    }

    /// Ends what a gcs has raised.
    pub(crate) fn lower(&mut self) {
        self.raised_since = Instant::NEVER;
    }

    /// Returns true if the vCPU is raised.
    #[must_use]
    pub fn is_raised(&self) -> bool {
        self.raised_since != Instant::NEVER
    }

    /// Returns true if the vCPU may run.
    pub(crate) fn may_run(&self) -> bool {
        self.left.0 > 0 || (self.is_raised() && self.overrun_left.0 > 0 && !self.stopped)
    }

    /// Returns how long the vCPU may run as it is if nothing changes.
    pub(crate) fn allowance(&self) -> Duration {
        if !self.is_raised() {
            return self.left;
        }
        Duration(self.left.0.saturating_add(self.overrun_left.0).min(self.gcs_left.0))
    }

    /// Records that the vCPU may not run on.
    pub(crate) fn stop(&mut self) {
        self.counts.overrun_stops += u64::from(self.is_raised());
        self.stopped = matches!(self.server.kind, ServerKind::Periodic);
    }

    /// Returns true if the vCPU has the core even without work.
    pub(crate) const fn idles(&self) -> bool {
        matches!(self.server.kind, ServerKind::Periodic)
    }
}
