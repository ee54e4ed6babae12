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

/// PECCS, section 5.4, Figure 10, us: departure and return; on the source and on the destination.
const PAPER_US: [[f64; 2]; 2] = [[24.9, 28.0], [38.1, 12.0]];

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
    /// Tells a visit on the other core in which the vCPU leaves from one in which it arrives.
    floating: Trip,
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

/// Like [`moving`], with a vCPU whose floating-point registers the core that it leaves has to save.
fn floating(trips: u64) -> Case {
    trial("-floating", &[("probe.run=absence", "probe.run=spin.float")], None, trips)
}

fn timed() -> Case {
    trial("-timed", &[], Some(QUANTUM_NS), TIMED)
}

fn at_once() -> Case {
    trial("-at-once", &[("burn_us=20", "burn_us=0")], Some(QUANTUM_NS), TIMED)
}

pub fn cases() -> Vec<Case> {
    let floating = [floating(TRIPS), floating(2 * TRIPS)];
    counted(TRIPS).into_iter().chain(floating).chain([timed(), at_once()]).collect()
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
            floating: trip(seen, floating, TRIPS).unwrap_or_default(),
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

    /// Returns the instructions of the two visits on the other core in each round trip: the vCPU is
    /// received, and it is sent back. One is as long as the other in all trips; the one that is longer
    /// where floating-point registers are saved is the second.
    fn arrival_and_recall(&self) -> Option<[f64; 2]> {
        let halves = |trip: &Trip| {
            let of = |permille| trip.elsewhere.percentile(permille).map(f64::from);
            Some([of(250)?, of(750)?])
        };
        let ([short, long], [saved_short, saved_long]) =
            (halves(&self.moving)?, halves(&self.floating)?);
        match (saved_short > short, saved_long > long) {
            (false, true) => Some([short, long]),
            // The shorter one became the longer one, or did not change its place.
            (true, _) if saved_short == long || saved_long == long => Some([long, short]),
            _ => None,
        }
    }

    /// Returns the cells of PECCS, Figure 10, row by row: departure, return; source, destination.
    fn cells(&self) -> Option<[f64; 4]> {
        let [arrival, recall] = self.arrival_and_recall()?;
        Some([self.departure()?, arrival, recall, self.homecoming()?])
    }

    /// Returns how long the vCPU does not run when it departs, and when it returns, us: medians.
    fn absences(&self) -> Option<[f64; 2]> {
        let departure = us(&self.departure)?;
        Some([departure, us(&self.trip)? - departure])
    }

    /// Returns a row for each direction, beside the paper's.
    pub fn cells_data(&self) -> Dataset {
        let cells = self.cells();
        let rows = ["departure", "return"].into_iter().enumerate().map(|(row, name)| {
            let ours = |end: usize| cells.map(|cells| cells[2 * row + end]);
            (name, [ours(0), ours(1)], PAPER_US[row], self.absences().map(|all| all[row]))
        });
        Dataset::of("migration-cells", "Migration, by direction and end, medians", rows)
            .name("direction", |row| row.0)
            .head("")
            .column("source", Unit::Instructions, |row| row.1[0])
            .digits(0)
            .column("destination", Unit::Instructions, |row| row.1[1])
            .digits(0)
            .column("not_running", Unit::Microseconds, |row| row.3)
            .head("does not run")
            .digits(2)
            .column("paper_source", Unit::Microseconds, |row| row.2[0])
            .head("paper, source")
            .column("paper_destination", Unit::Microseconds, |row| row.2[1])
            .head("paper, destination")
            .done()
    }

    /// Checks the paper's order of the cells, the longest first: each with the next.
    fn judge_order(&self, outcome: &mut Outcome) {
        const NAMES: [&str; 4] = [
            "departure on the source",
            "departure on the destination",
            "return on the source",
            "return on the destination",
        ];
        let mut order = [0, 1, 2, 3];
        order.sort_by(|&a, &b| PAPER_US.as_flattened()[b].total_cmp(&PAPER_US.as_flattened()[a]));
        for pair in order.windows(2) {
            let name = format!("{}, {} being 1", NAMES[pair[0]], NAMES[pair[1]]);
            let ratio = self.cells().map(|cells| cells[pair[0]] / cells[pair[1]]);
            outcome.check(Check::new(&name, ratio, "", Goal::AtLeast(1.0)).as_statement());
        }
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
        self.judge_order(outcome);
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
        let mut floating = visits(700 + departure, TRIPS);
        floating.elsewhere.record_many(760, TRIPS);
        Self {
            moving: visits(700 + departure, 2 * TRIPS),
            floating,
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
    fn the_visit_that_saves_registers_is_the_one_in_which_the_vcpu_leaves() {
        let of = |first, second| {
            let mut trip = Trip::default();
            trip.elsewhere.record_many(first, TRIPS);
            trip.elsewhere.record_many(second, TRIPS);
            trip
        };
        let told = |moving: Trip, floating: Trip| {
            Migration { moving, floating, ..Migration::example(200, 3_000) }.arrival_and_recall()
        };
        assert_eq!(told(of(769, 870), of(769, 930)), Some([769.0, 870.0]));
        assert_eq!(told(of(769, 870), of(829, 870)), Some([870.0, 769.0]));
        assert_eq!(told(of(769, 870), of(870, 930)), Some([870.0, 769.0]), "they changed places");
        assert_eq!(told(of(769, 870), of(769, 870)), None, "nothing tells them apart");
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
