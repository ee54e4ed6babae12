//! What EL2 takes of a core: a time for each thing that it does.
//!
//! The vMPCP equations take the hypervisor as nothing. Here each of its visits has a length,
//! and [`crate::bounds`] adds, to every window of time on a core, all visits that may fall
//! into it ([`Workload::el2_time`](crate::bounds::Workload::el2_time)). The derivation stands
//! in `docs/src/analysis.md`.

use crate::model::{Ns, Visits};
use serde::Serialize;

/// Lengths of EL2's visits, nanoseconds. Each is a whole visit, from the exception to the guest's
/// next instruction, unless it says "beyond". [`instructions`] says how they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Overheads {
    /// A timer interrupt or another one that releases a job of the vCPU that runs. Once for
    /// each job. [`Self::measured`] has a timer's, and [`Self::with_devices`] a device's.
    pub release_ns: Ns,
    /// A switch to a vCPU that wakes, or that a grant or a replenishment lets run. For each
    /// job, grant, replenishment, depletion and end of a critical section, for each may make
    /// another vCPU run; where EL2 goes to sleep instead, the longer of both switches counts.
    pub switch_on_wake_ns: Ns,
    /// A switch from a vCPU that goes to sleep. For each job, and each wait for a resource.
    pub switch_on_sleep_ns: Ns,
    /// An interrupt of EL2's own timer. For each replenishment, depletion and end of an
    /// overrun, of each period of each server.
    pub timer_ns: Ns,
    /// An interrupt by which another core tells this one to read its mailbox. Once for each
    /// global critical section: its grant may come from another core.
    pub doorbell_ns: Ns,
    /// A call by which a guest begins or ends a global critical section. Two for each.
    pub gcs_call_ns: Ns,
    /// What it takes beyond the call or the doorbell to pass a resource on. Two for each
    /// global critical section: it is granted, and passes the resource on.
    pub grant_ns: Ns,
    /// What a switch takes beyond its own length when a vCPU without a budget leaves the core
    /// for it, or comes back. With each switch; 0 where no vCPU migrates.
    pub departure_ns: Ns,
    /// How long before its timer fires a sleeping vCPU has its core. Once for each job.
    pub timer_advance_ns: Ns,
    /// A visit for what no declared task and no server asks for: half of a burst of 32 bytes of a
    /// console, an interrupt or a call of another vCPU. Once in each [`duty_every_ns`](Self::duty_every_ns).
    pub duty_ns: Ns,
    /// No two duties of that kind begin closer together; 0 if there are none.
    pub duty_every_ns: Ns,
}

/// What margins are counted in: this is a margin of 1.
pub const PER_MILLE: u64 = 1_000;
/// The margin on what was measured, thousandths, unless another is asked for.
pub const DEFAULT_MARGIN_PERMILLE: u64 = 1_200;
/// Picoseconds for an instruction at EL2 where no board is known: virtual time.
pub const VIRTUAL_INSTRUCTION_PS: u64 = 1_000;

/// Instructions of the visits. Each is at least the longest of its kind that `cassata bench el2` has
/// seen, or the median where that has no more; a test compares them with the rows of
/// `docs/src/measuring.md`. Four have no row of their own and are estimates: a doorbell and a device's
/// interrupt by the long way through the virtual GIC, what a grant takes beyond a doorbell and a switch
/// (the page has the sum), and the watchdog's interrupt.
pub mod instructions {
    /// An interrupt that needs no switch.
    pub const INTERRUPT: u64 = 159;
    /// A replenishment where the scheduler decides anew.
    pub const TIMER: u64 = 882;
    /// An interrupt, and the switch to the vCPU that it wakes.
    pub const SWITCH_ON_WAKE: u64 = 740;
    /// A switch from a vCPU that goes to sleep.
    pub const SWITCH_ON_SLEEP: u64 = 600;
    /// At least the longer one of departure and return, medians.
    pub const DEPARTURE: u64 = 640;
    /// Another core's interrupt, after which the vCPU that runs takes one of its own: by the long way
    /// through the virtual GIC, which that page has no row for. It took some 1,000 when each doorbell
    /// went that way; now one for a vCPU that has no interrupt listed takes less.
    pub const DOORBELL: u64 = 1_050;
    /// A lock or unlock that is followed by a decision, or passes the mutex on; a call without a
    /// mutex is shorter.
    pub const GCS_CALL: u64 = 1_361;
    /// By which a doorbell that brings a mutex is longer than another one and a switch: an estimate, as
    /// the page has the sum of the three only.
    pub const GRANT: u64 = 200;
    /// The interrupt of a device that is passed through, for the vCPU that runs. It takes more than a
    /// timer's: it goes through the VM's distributor, which has all of its vCPUs. The page has the short
    /// way, for a vCPU that has no interrupt listed; the long way took 1,047 when each went that way.
    pub const DEVICE_INTERRUPT: u64 = 1_050;
    /// What another duty takes. An access to the distributor took 866 at most, a device's interrupt 725,
    /// or more by [the long way](DEVICE_INTERRUPT). A burst of 32 bytes of a console takes longest, 5,372 in
    /// one to three visits, and counts as two duties: they may come together, which the next
    /// 200 us make up for.
    ///
    /// It is also at least the computed bound of a piece of work for each of these, from one look
    /// for interrupts to the next, in a system such as `systems/sharing.toml`: the machine test
    /// `el2-instructions` compares them. That no two bursts, or others of these, are closer together
    /// than [`DUTY_EVERY_NS`](super::DUTY_EVERY_NS) is assumed: a guest that writes to its console all
    /// the time, or does nothing but access its interrupt controller, causes more.
    pub const DUTY: u64 = 3_000;
    /// An interrupt of the watchdog on a board of eight cores, none of which hangs: an estimate from
    /// above, as no bench counts it.
    pub const WATCHDOG: u64 = 400;
}

/// No two other duties are assumed to begin closer together.
pub const DUTY_EVERY_NS: Ns = 100_000;

/// How fast a core is in visits of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// Picoseconds for an instruction, at most.
    pub instruction_ps: u64,
    /// Instructions that such a visit was counted to take on this board, where it was; 0: not known.
    /// Where that is more than [`instructions`] has, it counts.
    pub instructions: u64,
}

impl Pace {
    /// A pace at which no visit was counted.
    #[must_use]
    pub const fn of(instruction_ps: u64) -> Self {
        Self { instruction_ps, instructions: 0 }
    }

    /// Returns how long a visit of `instructions` takes with a margin, ns, rounded up.
    fn time(self, instructions: u64, margin_permille: u64) -> Ns {
        let instructions = instructions.max(self.instructions);
        let ps = instructions.saturating_mul(self.instruction_ps).saturating_mul(margin_permille);
        ps.div_ceil(1_000 * PER_MILLE)
    }
}

/// How fast a board is at EL2: a pace for each of the lengths that [`Overheads`] has. One for all where
/// nothing was measured; else what was measured on the board (`docs/src/calibrate.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paces {
    /// See [`Overheads::release_ns`].
    pub release: Pace,
    /// See [`Overheads::switch_on_wake_ns`].
    pub switch_on_wake: Pace,
    /// See [`Overheads::switch_on_sleep_ns`].
    pub switch_on_sleep: Pace,
    /// See [`Overheads::timer_ns`].
    pub timer: Pace,
    /// See [`Overheads::doorbell_ns`].
    pub doorbell: Pace,
    /// See [`Overheads::gcs_call_ns`].
    pub gcs_call: Pace,
    /// See [`Overheads::grant_ns`].
    pub grant: Pace,
    /// See [`Overheads::departure_ns`].
    pub departure: Pace,
    /// See [`Overheads::duty_ns`].
    pub duty: Pace,
    /// What no pace is known of: the watchdog's interrupts, and those of devices.
    pub other: Pace,
}

impl Paces {
    /// Returns the same pace for all: an instruction takes `instruction_ps` picoseconds at most.
    #[must_use]
    pub const fn all(instruction_ps: u64) -> Self {
        let pace = Pace::of(instruction_ps);
        Self {
            release: pace,
            switch_on_wake: pace,
            switch_on_sleep: pace,
            timer: pace,
            doorbell: pace,
            gcs_call: pace,
            grant: pace,
            departure: pace,
            duty: pace,
            other: pace,
        }
    }
}

impl Overheads {
    /// EL2 takes no time, as in the paper.
    pub const NONE: Self = Self {
        release_ns: 0,
        switch_on_wake_ns: 0,
        switch_on_sleep_ns: 0,
        timer_ns: 0,
        doorbell_ns: 0,
        gcs_call_ns: 0,
        grant_ns: 0,
        departure_ns: 0,
        timer_advance_ns: 0,
        duty_ns: 0,
        duty_every_ns: 0,
    };

    /// What was measured, on a core that has these paces, times `margin_permille` thousandths. Without a
    /// timer advance.
    #[must_use]
    pub fn measured(paces: &Paces, margin_permille: u64) -> Self {
        let time = |pace: Pace, instructions| pace.time(instructions, margin_permille);
        Self {
            release_ns: time(paces.release, instructions::INTERRUPT),
            switch_on_wake_ns: time(paces.switch_on_wake, instructions::SWITCH_ON_WAKE),
            switch_on_sleep_ns: time(paces.switch_on_sleep, instructions::SWITCH_ON_SLEEP),
            timer_ns: time(paces.timer, instructions::TIMER),
            doorbell_ns: time(paces.doorbell, instructions::DOORBELL),
            gcs_call_ns: time(paces.gcs_call, instructions::GCS_CALL),
            grant_ns: time(paces.grant, instructions::GRANT),
            departure_ns: time(paces.departure, instructions::DEPARTURE),
            timer_advance_ns: 0,
            duty_ns: time(paces.duty, instructions::DUTY),
            duty_every_ns: DUTY_EVERY_NS,
        }
    }

    /// Has each job released by the interrupt of a device, measured as by [`Self::measured`]: some VM
    /// of the system has one.
    #[must_use]
    pub fn with_devices(self, paces: &Paces, margin_permille: u64) -> Self {
        let release_ns = paces.other.time(instructions::DEVICE_INTERRUPT, margin_permille);
        Self { release_ns: self.release_ns.max(release_ns), ..self }
    }

    /// Adds the interrupts of a watchdog, measured as by [`Self::measured`]: one to each other duty. They
    /// are farther apart than those.
    #[must_use]
    pub fn watched(self, paces: &Paces, margin_permille: u64) -> Self {
        let watchdog = paces.other.time(instructions::WATCHDOG, margin_permille);
        let duty_ns = self.duty_ns.saturating_add(watchdog);
        Self { duty_ns, ..self }
    }

    /// Returns true if EL2 takes no time.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::NONE
    }

    /// Returns the longer one of both switches, a departure or return included.
    #[must_use]
    pub fn switch_ns(&self) -> Ns {
        self.switch_on_wake_ns.max(self.switch_on_sleep_ns).saturating_add(self.departure_ns)
    }

    /// Returns what a global critical section takes: it is begun and ended, granted from
    /// another core and passed on, with so many switches.
    #[must_use]
    pub fn section_ns(&self, switches: u64) -> Ns {
        let twice = self.gcs_call_ns.saturating_add(self.grant_ns).saturating_mul(2);
        let switched = self.switch_ns().saturating_mul(switches);
        twice.saturating_add(self.doorbell_ns).saturating_add(switched)
    }

    /// Returns what the visits take that vCPUs cause which migrate, or stop together.
    #[must_use]
    pub fn visits_ns(&self, visits: &Visits) -> Ns {
        let switch = self.switch_ns();
        let each = [
            (visits.doorbells, self.doorbell_ns.saturating_add(switch)),
            (visits.timers, self.timer_ns.saturating_add(switch)),
            (visits.departures, self.departure_ns),
        ];
        let times = each.into_iter().map(|(count, time)| time.saturating_mul(count));
        times.fold(0, Ns::saturating_add)
    }

    /// Returns each with its name, as tables and JSON call it.
    #[must_use]
    pub const fn named(&self) -> [(&'static str, Ns); 11] {
        [
            ("release", self.release_ns),
            ("switch on wake", self.switch_on_wake_ns),
            ("switch on sleep", self.switch_on_sleep_ns),
            ("timer interrupt", self.timer_ns),
            ("doorbell", self.doorbell_ns),
            ("gcs call", self.gcs_call_ns),
            ("grant", self.grant_ns),
            ("departure", self.departure_ns),
            ("timer advance", self.timer_advance_ns),
            ("other duty", self.duty_ns),
            ("other duties every", self.duty_every_ns),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_margin_lengthens_what_was_measured() {
        let virtual_time = Paces::all(1_000);
        let plain = Overheads::measured(&virtual_time, 1_000);
        assert_eq!((plain.release_ns, plain.switch_ns()), (159, 740 + 640));
        let more = Overheads::measured(&virtual_time, 1_200);
        assert_eq!((more.release_ns, more.switch_on_wake_ns), (191, 888), "rounded up");
        assert_eq!(Overheads::measured(&Paces::all(500), 1_000).switch_on_sleep_ns, 300);
        assert!(Overheads::NONE.is_none() && !plain.is_none());
        let watched = more.watched(&virtual_time, 1_200);
        assert_eq!(watched, Overheads { duty_ns: 3_600 + 480, ..more });
        let interrupted = more.with_devices(&virtual_time, 1_200);
        assert_eq!(interrupted, Overheads { release_ns: 1_260, ..more });
        let longer = Overheads { release_ns: 2_000, ..more };
        assert_eq!(longer.with_devices(&virtual_time, 1_200), longer);
    }

    #[test]
    fn each_kind_of_visit_has_a_pace_of_its_own() {
        let plain = Overheads::measured(&Paces::all(1_000), 1_000);
        // Counted to be shorter and longer than elsewhere: no bound is below what was measured.
        let release = Pace { instruction_ps: 2_000, instructions: 100 };
        let doorbell = Pace { instruction_ps: 3_000, instructions: 2_000 };
        let paces = Paces { release, doorbell, ..Paces::all(1_000) };
        let expected = Overheads { release_ns: 2 * 159, doorbell_ns: 6_000, ..plain };
        assert_eq!(Overheads::measured(&paces, 1_000), expected);
        let other = Paces { other: Pace::of(4_000), ..Paces::all(1_000) };
        assert_eq!(Overheads::measured(&other, 1_000), plain);
        assert_eq!(plain.watched(&other, 1_000).duty_ns, plain.duty_ns + 1_600);
        assert_eq!(plain.with_devices(&other, 1_000).release_ns, 4_200);
    }

    /// Two columns of a row of the page: what stands first, and the one named `max`.
    #[test]
    fn what_was_measured_is_what_the_page_says() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src/measuring.md");
        let page = std::fs::read_to_string(page).unwrap();
        let cells = |line: &str| line.split('|').map(|cell| cell.trim().to_owned()).collect();
        let rows: Vec<Vec<String>> = page.lines().map(cells).collect();
        let longest = |kind: &str| -> u64 {
            let row = rows.iter().find(|row| row.get(1).is_some_and(|cell| cell == kind)).unwrap();
            let head = rows.iter().find(|row| row.iter().any(|cell| cell == "max")).unwrap();
            let column = if row.len() == head.len() {
                head.iter().position(|cell| cell == "max").unwrap()
            } else {
                2
            };
            row[column].replace(',', "").parse().unwrap()
        };
        // What is counted where a vCPU comes to, or is sent away: a doorbell and a switch.
        let come_or_go = Overheads::measured(&Paces::all(VIRTUAL_INSTRUCTION_PS), PER_MILLE)
            .visits_ns(&Visits { doorbells: 1, ..Visits::default() });
        let measured = [
            (longest("virtual timer interrupt, no switch"), instructions::INTERRUPT),
            (longest("switch to a vCPU that its timer wakes"), instructions::SWITCH_ON_WAKE),
            (longest("switch from a vCPU that goes to sleep"), instructions::SWITCH_ON_SLEEP),
            (longest("replenishment, no switch"), instructions::TIMER),
            (longest("START_GCS or FINISH_GCS, own vCPU"), instructions::GCS_CALL),
            (longest("lock or unlock of a mutex, uncontended"), instructions::GCS_CALL),
            (longest("doorbell for a vCPU that runs, no switch"), instructions::DOORBELL),
            (
                longest("unlock of a mutex for which a vCPU waits on another core"),
                instructions::GCS_CALL,
            ),
            (
                longest("grant of a mutex to a vCPU that sleeps, with the switch"),
                instructions::DOORBELL + instructions::GRANT + instructions::SWITCH_ON_WAKE,
            ),
            (longest("departure, beyond the wake"), instructions::DEPARTURE),
            (longest("return, beyond the sleep"), instructions::DEPARTURE),
            (longest("both, on the other core"), 2 * come_or_go),
        ];
        for (page, here) in measured {
            assert!(page <= here, "bench el2 saw {page} instructions, the bounds have {here}");
        }
    }
}
