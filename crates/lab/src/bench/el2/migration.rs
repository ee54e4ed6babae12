//! What it costs that a vCPU leaves its core when a real-time one wakes there,
//! and comes back when that sleeps.

use super::as_f64;
use super::events::Trial;
use super::visits::{Exception, Visits};
use crate::machine::VirtualTime;
use crate::observe::{Distribution, Observer};
use crate::progress::Progress;
use crate::quantity::count;
use crate::results::{Check, Goal, Outcome};
use crate::suite::Bench;
use crate::table::Table;
use miette::{Result, miette};
use serde_json::json;

/// Round trips whose instructions are counted.
const TRIPS: u64 = 2_000;
/// Round trips whose times are taken.
const TIMED: u64 = 500;
/// Cores may be ahead of each other by a turn: here a short one, as what passes
/// between them is measured. Time passes ten times as slowly for that.
const QUANTUM_NS: u64 = 200;

/// Most instructions by which a real-time vCPU's wake may be longer for it.
const DEPARTURE: f64 = 200.0;
/// Longest round trip of a vCPU that is called back at once, microseconds.
const TRIP_US: f64 = 3.0;

/// The core that the vCPU leaves, where the real-time one wakes.
const HOME: usize = 0;
/// The core that it goes to.
const ELSEWHERE: usize = 1;
/// The VM that migrates.
const MIGRANT: usize = 1;

/// Visits to EL2 of one round trip, or of what takes its place without
/// migration.
#[derive(Clone, Debug)]
struct Trip {
    /// The interrupt that wakes the real-time vCPU.
    wake: Distribution,
    /// Its going to sleep.
    sleep: Distribution,
    /// On the other core.
    elsewhere: Distribution,
}

/// Everything about migration that was measured. Times are ticks of
/// [`VirtualTime::COUNTER_HZ`].
#[derive(Clone, Debug)]
pub struct Migration {
    moving: Trip,
    staying: Trip,
    /// How long it did not run until it ran elsewhere.
    departure: Distribution,
    /// The same, and until it ran at home again.
    trip: Distribution,
    /// From when it ran last until it is back, if it is called back before it
    /// has arrived.
    at_once: Distribution,
}

/// Measures.
pub fn measure(bench: &Bench, progress: &mut Progress) -> Result<Migration> {
    const LOOK: (&str, &str) = ("probe.run=absence", "probe.run=spin");
    const STAY: (&str, &str) = ("migration = \"on-demand\"", "");
    const AT_ONCE: (&str, &str) = ("burn_us=20", "burn_us=0");
    let trial = |label, edits, quantum_ns| Trial { system: "migrate", label, edits, quantum_ns };
    let moving = trial("-moving", &[LOOK], None);
    let staying = trial("-staying", &[LOOK, STAY], None);
    let (moving, staying) = (visits(&moving, bench, progress)?, visits(&staying, bench, progress)?);
    let timed = trial("-timed", &[], Some(QUANTUM_NS));
    let at_once = trial("-at-once", &[AT_ONCE], Some(QUANTUM_NS));
    let (departure, trip) = absences(&timed.run(TIMED, bench, progress)?.1)?;
    let (_, at_once) = absences(&at_once.run(TIMED, bench, progress)?.1)?;
    Ok(Migration { moving, staying, departure, trip, at_once })
}

fn visits(trial: &Trial, bench: &Bench, progress: &mut Progress) -> Result<Trip> {
    let (once, _) = trial.run(TRIPS, bench, progress)?;
    let (twice, _) = trial.run(2 * TRIPS, bench, progress)?;
    let beyond = |pcpu, exception| {
        Visits::on(pcpu, exception, &twice).beyond(&Visits::on(pcpu, exception, &once))
    };
    Ok(Trip {
        wake: beyond(HOME, Exception::Irq),
        sleep: beyond(HOME, Exception::Synchronous),
        elsewhere: beyond(ELSEWHERE, Exception::Irq),
    })
}

/// What the migrating guest saw: absences until it ran elsewhere, and of whole
/// round trips.
fn absences(observer: &Observer) -> Result<(Distribution, Distribution)> {
    let reports = observer.reports(MIGRANT);
    let seen = reports.map(|reports| (reports.response().clone(), reports.dispatch().clone()));
    seen.ok_or_else(|| miette!("the migrating guest reported nothing"))
}

fn median(values: &Distribution) -> Option<f64> {
    values.percentile(500).map(f64::from)
}

fn us(values: &Distribution) -> Option<f64> {
    median(values).map(|ticks| ticks * 1e6 / as_f64(VirtualTime::COUNTER_HZ))
}

impl Migration {
    /// Instructions by which the wake is longer than without migration: before
    /// the real-time guest runs.
    fn departure(&self) -> Option<f64> {
        Some(median(&self.moving.wake)? - median(&self.staying.wake)?)
    }

    /// The same of the sleep: the vCPU is called back and taken in.
    fn homecoming(&self) -> Option<f64> {
        Some(median(&self.moving.sleep)? - median(&self.staying.sleep)?)
    }

    /// Instructions on the other core, in each round trip: it is taken in and
    /// sent back.
    fn elsewhere(&self) -> Option<f64> {
        let visits = &self.moving.elsewhere;
        Some(visits.mean()? * as_f64(visits.count()) / as_f64(TRIPS))
    }

    fn trip(&self) -> Option<f64> {
        Some(self.departure()? + self.homecoming()? + self.elsewhere()?)
    }

    /// Adds figures and checks.
    pub fn judge(&self, outcome: &mut Outcome) {
        outcome.figure(
            "migration",
            json!({
                "departure_instructions": self.departure(),
                "return_instructions": self.homecoming(),
                "other_core_instructions": self.elsewhere(),
                "round_trip_instructions": self.trip(),
                "departure_us": us(&self.departure),
                "round_trip_us": us(&self.trip),
                "round_trip_at_once_us": us(&self.at_once),
            }),
        );
        let most = Goal::AtMost(DEPARTURE);
        outcome.check(Check::new(
            "departure of a vCPU, beyond the wake, median",
            self.departure(),
            "instructions",
            most,
        ));
        let most = Goal::AtMost(TRIP_US);
        let name = "round trip of a vCPU called back at once, median";
        outcome.check(Check::new(name, us(&self.at_once), "us", most));
        // Else it did not leave at some, or left for other reasons.
        for (what, seen, all) in [
            ("departures", self.moving.wake.count(), TRIPS),
            ("timed round trips", self.trip.count(), TIMED),
            ("timed round trips at once", self.at_once.count(), TIMED),
        ] {
            let (name, all) = (format!("{what} counted"), as_f64(all));
            let nearly = Goal::Between(all * 0.9, all * 1.01);
            outcome.check(Check::new(&name, as_f64(seen), "times", nearly));
        }
    }

    /// For people.
    pub fn table(&self) -> Table {
        let mut table =
            Table::new("Migration of a vCPU, medians", ["", "instructions at EL2", "time"]);
        let number = |n: Option<f64>| n.map_or_else(|| "-".into(), |n| format!("{n:.0}"));
        let time = |values| us(values).map_or_else(|| "-".into(), |us| format!("{us:.2} µs"));
        let none = String::new;
        table.row(["departure, beyond the wake".into(), number(self.departure()), none()]);
        table.row(["return, beyond the sleep".into(), number(self.homecoming()), none()]);
        table.row(["both, on the other core".into(), number(self.elsewhere()), none()]);
        table.row(["round trip, all of these".into(), number(self.trip()), time(&self.trip)]);
        table.row(["until it runs elsewhere".into(), none(), time(&self.departure)]);
        table.row(["away, if called back at once".into(), none(), time(&self.at_once)]);
        table
    }

    /// In a sentence, for the report.
    pub fn caption() -> String {
        format!(
            "A vCPU leaves when a real-time one wakes on its core and comes back when that \
             sleeps: {} times, compared with as many wakes and sleeps without migration. Times \
             are what it did not run, as it sees it itself ({TIMED} times); called back at once, \
             the activation that drove it away is in it.",
            count(TRIPS)
        )
    }

    #[cfg(test)]
    pub fn example(departure: u32, trip: u32) -> Self {
        let of = |value, count| {
            let mut values = Distribution::default();
            values.record_many(value, count);
            values
        };
        let visits = |wake, elsewhere| Trip {
            wake: of(wake, TRIPS),
            sleep: of(600, TRIPS),
            elsewhere: of(700, elsewhere),
        };
        Self {
            moving: visits(700 + departure, 2 * TRIPS),
            staying: visits(700, 0),
            departure: of(trip / 2, TIMED),
            trip: of(trip, TIMED),
            at_once: of(trip, TIMED),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_is_the_sum_of_its_visits() {
        let migration = Migration::example(180, 2_500);
        assert_eq!((migration.departure(), migration.homecoming()), (Some(180.0), Some(0.0)));
        assert_eq!((migration.elsewhere(), migration.trip()), (Some(1_400.0), Some(1_580.0)));
        assert_eq!(us(&migration.at_once), Some(2.5));
    }

    #[test]
    fn trips_that_did_not_happen_are_noticed() {
        let failing = |migration: &Migration| {
            let mut outcome = Outcome::new("el2");
            migration.judge(&mut outcome);
            outcome.checks().iter().filter(|check| !check.holds()).count()
        };
        let mut migration = Migration::example(200, 3_000);
        assert_eq!(failing(&migration), 0);
        assert_eq!(failing(&Migration::example(201, 3_001)), 2);
        migration.trip = Distribution::default();
        assert_eq!(failing(&migration), 1);
    }
}
