//! How often each kind of record occurs, as EL2's counters have it.

use super::file::{Events, Trace};
use super::guests::Guests;
use crate::dataset::{Dataset, Unit};
use abi::status::EXIT_CAUSES;
use abi::trace::{Claim, Kind, Outcome};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// What the records of a trace say of one vCPU, in the words of the status area
/// ([`abi::status::VcpuStatus`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Ticks on its core, finished turns only.
    pub run: u64,
    /// Times it was given the core.
    pub switches: u64,
    /// Times it arrived on another pCPU.
    pub migrations: u64,
    /// Times it used its budget up while it had work.
    pub throttled: u64,
    /// Periods of its server that have begun.
    pub replenished: u64,
    /// Reasons by which it was raised.
    pub raised: u64,
    /// Reasons that have ended.
    pub ended: u64,
    /// Periods in which it overran its budget.
    pub overruns: u64,
    /// Times it was stopped in a section, without budget or overrun.
    pub overrun_stops: u64,
    /// Times it was lowered in a section that had raised it for too long.
    pub lowered: u64,
    /// Virtual interrupts placed in list registers.
    pub injected: u64,
    /// Visits to EL2, by cause.
    pub exits: [u64; EXIT_CAUSES],
    /// Mutexes that its tasks had to wait for.
    pub waits: u64,
    /// Mutexes that were granted to it.
    pub grants: u64,
}

/// What a guest recorded of itself on one vCPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GuestTally {
    /// Index of the vCPU in the system.
    #[serde(skip)]
    pub vcpu: usize,
    /// Switches from one task to another.
    pub switches: u64,
    /// Marks.
    pub markers: u64,
    /// Events that were overwritten before they were read.
    pub lost: u64,
}

impl Trace {
    /// Returns what was recorded of each vCPU; `guests` is what that says of guests' own events.
    #[must_use]
    pub fn data(&self, guests: &Guests) -> Vec<Dataset> {
        let all = Tally::of(self);
        let rows = || all.iter().enumerate();
        let name = |(id, _): &(usize, &Tally)| self.subject.label(*id);
        let turns = Dataset::of("trace", "What was recorded", rows())
            .name("vcpu", name)
            .head("")
            .column("run", Unit::Nanoseconds, |(_, of)| {
                self.subject.ns(self.subject.boot.saturating_add(of.run))
            })
            .name("switches", |(_, of)| of.switches)
            .name("migrations", |(_, of)| of.migrations)
            .name("replenished", |(_, of)| of.replenished)
            .name("throttled", |(_, of)| of.throttled)
            .name("overruns", |(_, of)| of.overruns)
            .name("overrun_stops", |(_, of)| of.overrun_stops)
            .head("stopped in overrun")
            .name("raised", |(_, of)| of.raised)
            .name("lowered", |(_, of)| of.lowered)
            .name("waits", |(_, of)| of.waits)
            .name("grants", |(_, of)| of.grants)
            .name("injected", |(_, of)| of.injected)
            .name("exits", |(_, of)| of.exits.iter().sum::<u64>())
            .done();
        let tallies = self.guest_tallies(guests);
        if tallies.is_empty() {
            return vec![turns];
        }
        let guests = Dataset::of("guests", "What guests recorded of themselves", tallies)
            .name("vcpu", |of| self.subject.label(of.vcpu))
            .head("")
            .name("task_switches", |of| of.switches)
            .name("markers", |of| of.markers)
            .name("lost", |of| of.lost)
            .done();
        vec![turns, guests]
    }

    /// Returns what guests recorded of themselves, by vCPU.
    #[must_use]
    pub fn guest_tallies(&self, guests: &Guests) -> Vec<GuestTally> {
        let tally = |of: &Events| GuestTally {
            vcpu: of.vcpu,
            switches: guests.turns.iter().filter(|turn| turn.vcpu == of.vcpu).count() as u64,
            markers: guests.markers.iter().filter(|mark| mark.vcpu == of.vcpu).count() as u64,
            lost: of.lost,
        };
        self.events.iter().map(tally).collect()
    }

    /// Returns what was recorded, for a program.
    #[must_use]
    pub fn json(&self, guests: &Guests) -> Value {
        let all = Tally::of(self);
        let named = all.iter().enumerate().map(|(id, of)| (self.subject.label(id), json!(of)));
        let tallies = self.guest_tallies(guests);
        let own = tallies.iter().map(|of| (self.subject.label(of.vcpu), json!(of)));
        json!({
            "records": self.records.iter().map(Vec::len).collect::<Vec<_>>(),
            "lost": self.lost,
            "vcpus": named.collect::<Map<_, _>>(),
            "guests": own.collect::<Map<_, _>>(),
            "guests_refused": guests.refused,
        })
    }

    /// Returns how many records and guests' events were lost or refused, in words, if any were.
    #[must_use]
    pub fn loss(&self, guests: &Guests) -> Option<String> {
        let told = |lost: u64, what: &str, key: &str| {
            (lost > 0).then(|| {
                format!(
                    "{lost} {what} were overwritten before they were read: counts and times are \
                     of the others. A larger `{key}` helps."
                )
            })
        };
        let events = self.events.iter().map(|of| of.lost).fold(0, u64::saturating_add);
        let refused = guests.refused;
        let refused = (refused > 0).then(|| {
            format!(
                "{refused} events of guests are refused: they are of no known kind, or of a time \
                 that cannot be."
            )
        });
        let all = [
            told(self.lost.iter().copied().fold(0, u64::saturating_add), "records", "trace"),
            told(events, "events of guests", "report"),
            refused,
        ];
        let all: Vec<String> = all.into_iter().flatten().collect();
        (!all.is_empty()).then(|| all.join(" "))
    }
}

impl Tally {
    /// Counts the records of each vCPU.
    #[must_use]
    pub fn of(trace: &Trace) -> Vec<Self> {
        let mut all = vec![Self::default(); trace.subject.vcpus.len()];
        for records in &trace.records {
            let mut turn = None;
            for record in records {
                let (Some(kind), Some(own)) = (record.kind(), all.get_mut(record.vcpu())) else {
                    continue;
                };
                match kind {
                    Kind::Run => turn = Some((record.vcpu(), record.time)),
                    Kind::Stop => {
                        let begun = turn.take().filter(|(vcpu, _)| *vcpu == record.vcpu());
                        let ran = begun.map_or(0, |(_, since)| record.time - since);
                        own.run = own.run.saturating_add(ran);
                    }
                    _ => {}
                }
                own.count(kind, record.argument());
            }
        }
        all
    }

    fn count(&mut self, kind: Kind, argument: u32) {
        let times = u64::from(argument);
        match kind {
            Kind::Run => self.switches += u64::from(argument == 0),
            Kind::Arrive => self.migrations += 1,
            Kind::Throttle => self.throttled += 1,
            Kind::Replenish => self.replenished += times,
            Kind::Raise => self.raised += 1,
            Kind::Lower => self.ended += 1,
            Kind::Overrun => self.overruns += times,
            Kind::OverrunStop => self.overrun_stops += times,
            Kind::Lowered => self.lowered += times,
            Kind::Inject => self.injected += times,
            Kind::Grant => self.grants += 1,
            Kind::Lock if Claim::of(argument).outcome == Outcome::Waits => self.waits += 1,
            Kind::Exit => {
                if let Some(count) = self.exits.get_mut(argument as usize) {
                    *count += 1;
                }
            }
            _ => {}
        }
    }
}
