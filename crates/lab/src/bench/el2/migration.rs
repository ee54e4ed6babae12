//! What it costs that a vCPU leaves its core when a real-time one wakes there,
//! and comes back when that sleeps.

use super::case::{Case, Seen, Trial};
use super::lines::DEPARTURE;
use super::visits::Visits;
use crate::dataset::{Dataset, Unit};
use crate::looks::Exception;
use crate::machine::VirtualTime;
use crate::observe::Distribution;
use crate::quantity::{count, real};
use crate::results::{Check, Goal, Outcome};

/// Round trips whose instructions are counted.
const TRIPS: u64 = 2_000;
/// Round trips whose times are taken.
const TIMED: u64 = 500;
/// Cores may be ahead of each other by a turn: here a short one, as what passes
/// between them is measured. Time passes ten times as slowly for that.
pub const QUANTUM_NS: u64 = 200;

/// Most instructions by which a real-time vCPU's wake may be longer for it.
pub const MOST_DEPARTURE: f64 = DEPARTURE.goal as f64;
/// Longest round trip of a vCPU that is called back at once, microseconds.
pub const MOST_TRIP_US: f64 = 3.0;

/// The core that the vCPU leaves, where the real-time one wakes.
const BASE: usize = 0;
/// The core that it goes to.
const ELSEWHERE: usize = 1;

/// Visits to EL2 of one round trip, or of what takes its place without
/// migration.
#[derive(Clone, Debug, Default)]
struct Trip {
    /// The interrupt that wakes the real-time vCPU.
    wake: Distribution,
    /// The going to sleep.
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
    /// How long the vCPU did not run until it ran elsewhere.
    departure: Distribution,
    /// How long it did not run until it ran at its base again.
    trip: Distribution,
    /// From when it ran last until it is back, if it is called back before it
    /// has arrived.
    at_once: Distribution,
}

fn trial(label: &str, edits: &[(&str, &str)], quantum_ns: Option<u64>, events: u64) -> Case {
    let edits = edits.iter().map(|(from, to)| ((*from).to_owned(), (*to).to_owned())).collect();
    Case::Probe(Trial { system: "migrate".into(), label: label.into(), edits, quantum_ns, events })
}

/// The guest looks at nothing: what is counted is what happens in each round trip.
const LOOK: (&str, &str) = ("probe.run=absence", "probe.run=spin");

fn moving(trips: u64) -> Case {
    trial("-moving", &[LOOK], None, trips)
}

fn staying(trips: u64) -> Case {
    trial("-staying", &[LOOK, ("migration_policy = \"on-demand\"", "")], None, trips)
}

fn timed() -> Case {
    trial("-timed", &[], Some(QUANTUM_NS), TIMED)
}

fn at_once() -> Case {
    trial("-at-once", &[("burn_us=20", "burn_us=0")], Some(QUANTUM_NS), TIMED)
}

pub fn cases() -> Vec<Case> {
    counted(TRIPS).into_iter().chain([timed(), at_once()]).collect()
}

/// Returns the boots that count the instructions of so many round trips.
pub fn counted(trips: u64) -> Vec<Case> {
    [trips, 2 * trips].into_iter().flat_map(|trips| [moving(trips), staying(trips)]).collect()
}

/// Returns the instructions of so many departures beyond the wake that causes each, median.
pub fn departure(seen: &[Seen], trips: u64) -> Option<f64> {
    beyond(&trip(seen, moving, trips)?.wake, &trip(seen, staying, trips)?.wake)
}

fn beyond(longer: &Distribution, shorter: &Distribution) -> Option<f64> {
    Some(median(longer)? - median(shorter)?)
}

fn trip(seen: &[Seen], case: fn(u64) -> Case, trips: u64) -> Option<Trip> {
    let counted = |trips| super::of(seen, &case(trips))?.statistics.as_ref();
    let (once, twice) = (counted(trips)?, counted(2 * trips)?);
    let beyond = |pcpu, exception| {
        Visits::on(pcpu, exception, twice).beyond(&Visits::on(pcpu, exception, once))
    };
    Some(Trip {
        wake: beyond(BASE, Exception::Irq),
        sleep: beyond(BASE, Exception::Synchronous),
        elsewhere: beyond(ELSEWHERE, Exception::Irq),
    })
}

fn median(values: &Distribution) -> Option<f64> {
    values.percentile(500).map(f64::from)
}

fn us(values: &Distribution) -> Option<f64> {
    median(values).map(|ticks| ticks * 1e6 / real(VirtualTime::COUNTER_HZ))
}

impl Migration {
    /// Returns what the boots tell of it.
    pub fn of(seen: &[Seen]) -> Self {
        let (timed, at_once) = (super::of(seen, &timed()), super::of(seen, &at_once()));
        let dispatch = |seen: Option<&Seen>| seen.map(|s| s.dispatch.clone()).unwrap_or_default();
        Self {
            moving: trip(seen, moving, TRIPS).unwrap_or_default(),
            staying: trip(seen, staying, TRIPS).unwrap_or_default(),
            departure: timed.map(|seen| seen.response.clone()).unwrap_or_default(),
            trip: dispatch(timed),
            at_once: dispatch(at_once),
        }
    }

    /// Returns the instructions by which the wake is longer than without migration: before
    /// the real-time guest runs.
    fn departure(&self) -> Option<f64> {
        beyond(&self.moving.wake, &self.staying.wake)
    }

    /// Returns the instructions by which the sleep is longer: the vCPU is called back and
    /// received.
    fn homecoming(&self) -> Option<f64> {
        beyond(&self.moving.sleep, &self.staying.sleep)
    }

    /// Returns the instructions on the other core, in each round trip: the vCPU is received
    /// and sent back.
    fn elsewhere(&self) -> Option<f64> {
        let visits = &self.moving.elsewhere;
        Some(visits.mean()? * real(visits.count()) / real(TRIPS))
    }

    fn trip(&self) -> Option<f64> {
        Some(self.departure()? + self.homecoming()? + self.elsewhere()?)
    }

    /// Returns each part: instructions, and time where it was taken.
    pub fn data(&self) -> Dataset {
        // Figures from before are those of commit c375a69, as `Line::before`.
        let parts = [
            ("departure, beyond the wake", self.departure(), DEPARTURE.before, None, None),
            ("return, beyond the sleep", self.homecoming(), Some(452), None, None),
            ("both, on the other core", self.elsewhere(), Some(1_464), None, None),
            ("round trip, all of these", self.trip(), Some(2_074), us(&self.trip), Some(2.80)),
            ("until it runs elsewhere", None, None, us(&self.departure), Some(1.70)),
            ("away, if called back at once", None, None, us(&self.at_once), Some(2.79)),
        ];
        Dataset::of("migration", "Migration of a vCPU, medians", parts)
            .name("part", |part| part.0)
            .head("")
            .column("at_el2", Unit::Instructions, |part| part.1)
            .head("instructions at EL2")
            .digits(0)
            .column("at_el2_before", Unit::Instructions, |part| part.2)
            .head("before budgets")
            .digits(0)
            .column("time", Unit::Microseconds, |part| part.3)
            .digits(2)
            .column("time_before", Unit::Microseconds, |part| part.4)
            .head("before budgets")
            .digits(2)
            .done()
    }

    pub fn judge(&self, outcome: &mut Outcome) {
        let most = Goal::AtMost(MOST_DEPARTURE);
        let name = "departure of a vCPU, beyond the wake, median";
        outcome.check(Check::new(name, self.departure(), "instructions", most));
        let most = Goal::AtMost(MOST_TRIP_US);
        let name = "round trip of a vCPU called back at once, median";
        outcome.check(Check::new(name, us(&self.at_once), "us", most));
        // Else it did not leave at some, or left for other reasons.
        for (what, seen, all) in [
            ("departures", self.moving.wake.count(), TRIPS),
            ("timed round trips", self.trip.count(), TIMED),
            ("timed round trips at once", self.at_once.count(), TIMED),
        ] {
            let (name, all) = (format!("{what} counted"), real(all));
            let nearly = Goal::Between(all * 0.9, all * 1.01);
            outcome.check(Check::new(&name, real(seen), "times", nearly));
        }
    }

    /// Says it in a sentence, for the page.
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
