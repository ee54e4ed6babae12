//! What costs instructions at EL2, and which system provokes it.

use super::case::{Case, PARTS, Seen, TRACED, Trial};
use super::lines::{self, Line};
use super::visits::Visits;
use crate::looks::Exception;
use crate::observe::Distribution;
use crate::quantity::real;
use crate::results::{Check, Goal};

/// How often each event is counted.
pub const EVENTS: u64 = super::case::DESCRIBED;

/// A kind of visit to EL2.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// The system that provokes it, in `systems/bench`.
    pub system: &'static str,
    pub name: &'static str,
    pub key: &'static str,
    /// The exception by which EL2 is entered.
    exception: Exception,
    /// The core where it is; any, if not said.
    pcpu: Option<usize>,
    /// Visits that are made each time; the dearest of them is judged. None: as many as the phases of both
    /// cores have it, and they are judged together.
    each_time: Option<u64>,
    /// Records of such a visit, where they are asked for ([`super::records`]); 0: what they cost is not
    /// told, as a visit that is longer shares its work otherwise with the next one.
    pub records: u32,
    /// What [the typical one](Self::typical) may be.
    pub line: Line,
    /// The figure of the [longest paths](super::longest) that no visit may exceed.
    pub figure: Option<&'static str>,
}

/// All kinds. A vCPU that its timer wakes takes an interrupt and a switch in one visit.
pub const KINDS: [Kind; 14] = [
    Kind {
        system: "timer",
        name: "virtual timer interrupt, no switch",
        key: "timer_interrupt",
        exception: Exception::Irq,
        pcpu: None,
        each_time: Some(1),
        records: 2,
        line: lines::TIMER,
        figure: Some("interrupt: virtual timer"),
    },
    Kind {
        system: "null-call",
        name: "null hypercall",
        key: "null_call",
        exception: Exception::Synchronous,
        pcpu: None,
        each_time: Some(1),
        records: 1,
        line: lines::NULL_CALL,
        figure: Some("synchronous: null call"),
    },
    Kind {
        system: "switch",
        name: "switch to a vCPU that its timer wakes",
        key: "switch_at_wake",
        exception: Exception::Irq,
        pcpu: None,
        each_time: Some(1),
        records: 5,
        line: lines::WAKE,
        figure: None,
    },
    Kind {
        system: "switch",
        name: "switch from a vCPU that goes to sleep",
        key: "switch_at_sleep",
        exception: Exception::Synchronous,
        pcpu: None,
        each_time: Some(1),
        records: 4,
        line: lines::SLEEP,
        figure: None,
    },
    Kind {
        system: "gcs",
        name: "START_GCS or FINISH_GCS, own vCPU",
        key: "gcs_call",
        exception: Exception::Synchronous,
        pcpu: None,
        each_time: Some(2),
        records: 2,
        line: lines::GCS,
        figure: Some("synchronous: critical section call"),
    },
    Kind {
        system: "mutex",
        name: "lock or unlock of a mutex, uncontended",
        key: "mutex_call",
        exception: Exception::Synchronous,
        pcpu: None,
        each_time: Some(2),
        records: 3,
        line: lines::MUTEX,
        figure: None,
    },
    Kind {
        system: "replenish",
        name: "replenishment, no switch",
        key: "replenishment",
        exception: Exception::Irq,
        pcpu: None,
        each_time: Some(1),
        records: 2,
        line: lines::REPLENISHMENT,
        figure: None,
    },
    Kind {
        system: "doorbell",
        name: "doorbell for a vCPU that runs, no switch",
        key: "doorbell",
        exception: Exception::Irq,
        pcpu: Some(1),
        each_time: Some(1),
        records: 2,
        line: lines::DOORBELL,
        figure: None,
    },
    Kind {
        system: "grant",
        name: "unlock of a mutex for which a vCPU waits on another core",
        key: "pass_on",
        exception: Exception::Synchronous,
        pcpu: Some(0),
        each_time: Some(2),
        records: 4,
        line: lines::PASS_ON,
        figure: None,
    },
    Kind {
        system: "grant",
        name: "grant of a mutex to a vCPU that sleeps, with the switch",
        key: "grant",
        exception: Exception::Irq,
        pcpu: Some(1),
        each_time: Some(1),
        records: 7,
        line: lines::GRANT,
        figure: None,
    },
    Kind {
        system: "gic-read",
        name: "read of a distributor register",
        key: "gic_read",
        exception: Exception::Synchronous,
        pcpu: None,
        each_time: Some(1),
        records: 1,
        line: lines::GIC_READ,
        figure: None,
    },
    Kind {
        system: "gic-write",
        name: "write of GICD_ISENABLER or GICD_ICENABLER",
        key: "gic_write",
        exception: Exception::Synchronous,
        pcpu: None,
        each_time: Some(2),
        records: 1,
        line: lines::GIC_WRITE,
        figure: None,
    },
    Kind {
        system: "device",
        name: "interrupt of a device that is passed through, no switch",
        key: "device_interrupt",
        exception: Exception::Irq,
        pcpu: None,
        each_time: Some(1),
        records: 2,
        line: lines::DEVICE,
        figure: None,
    },
    CONSOLE_BURST,
];

/// The interrupts by which the core that drives the UART learns of 32 bytes that a vCPU of another core
/// has written in a row, and sends them.
const CONSOLE_BURST: Kind = Kind {
    system: CONSOLE,
    name: "burst of 32 bytes of a console, its visits together",
    key: "console_burst",
    exception: Exception::Irq,
    pcpu: Some(0),
    each_time: None,
    records: 0,
    line: lines::CONSOLE,
    figure: None,
};

/// Visits that a burst has at most.
const MOST_OF_BURST: u64 = 3;

/// The system in which a vCPU writes to its console.
const CONSOLE: &str = "console";
/// A core's turn there: long enough that all bytes of a burst are written before the core that drives
/// the UART runs.
const LONG_TURN_NS: u64 = 100_000;

impl Kind {
    /// Returns the median of the dearest of the visits that are made each time; or what those of an event take
    /// together, on average of so many `events`.
    pub fn typical(&self, visits: &Distribution, events: u64) -> Option<u32> {
        match self.each_time {
            Some(each_time) => visits.largest_of(each_time),
            None => visits
                .mean()
                .map(|mean| (mean * real(visits.count()) / real(events)).round() as u32),
        }
    }

    /// Returns what [`Self::typical`] is called.
    pub const fn typical_name(&self) -> &'static str {
        if self.each_time.is_some() { "median" } else { "mean" }
    }

    /// Returns how many visits so many `events` have, at least and at most. More would be of something else.
    pub fn counted(&self, events: u64) -> [u64; 2] {
        match self.each_time.map(|each_time| each_time * events) {
            Some(all) => [all, all + all / 100],
            None => [events, MOST_OF_BURST * events],
        }
    }

    /// Returns the check that `visits` are those of so many `events`: else something that happens as often was
    /// counted with them, or an event takes another visit that is cheaper, of which [`Self::typical`] tells nothing.
    pub fn check_count(&self, visits: &Distribution, events: u64, build: Build) -> Check {
        let [least, most] = self.counted(events).map(real);
        let name = format!("{}, visits counted{}", self.name, build.about());
        Check::new(&name, real(visits.count()), "visits", Goal::Between(least, most))
    }
}

/// Which build of the hypervisor runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Build {
    /// The one without parts.
    Plain,
    /// The one that has the parts of the tracing one, but records nothing.
    Parts,
    /// The one that records what it does.
    Tracing,
}

impl Build {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Plain, Self::Parts, Self::Tracing];

    /// Returns what its trials are called besides their systems.
    const fn label(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Parts => PARTS,
            Self::Tracing => TRACED,
        }
    }

    /// Returns how a figure of it is told from that of the first.
    const fn about(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Parts => " with all parts",
            Self::Tracing => " while they are recorded",
        }
    }

    /// Returns true if it has such visits: those of the tracing build, and of the one that differs by the trace
    /// alone, are of kinds whose records are counted.
    pub const fn has(self, kind: &Kind) -> bool {
        matches!(self, Self::Plain) || kind.records > 0
    }
}

/// Returns the boots: each system once with so many `events` and once with twice as many.
pub fn cases(events: u64, build: Build) -> Vec<Case> {
    let asked = KINDS.iter().filter(|kind| build.has(kind));
    let mut systems: Vec<&str> = asked.map(|kind| kind.system).collect();
    systems.dedup();
    let both = |system: &&str| [events, 2 * events].map(|events| boot(system, events, build));
    systems.iter().flat_map(both).collect()
}

fn boot(system: &str, events: u64, build: Build) -> Case {
    let edits = if build == Build::Tracing {
        let asked = "[hypervisor]\ntrace = \"64K\"\n\n[board]";
        vec![("[board]".to_owned(), asked.to_owned())]
    } else {
        Vec::new()
    };
    let quantum_ns = (system == CONSOLE).then_some(LONG_TURN_NS);
    let (system, label) = (system.into(), build.label().into());
    Case::Probe(Trial { system, label, edits, quantum_ns, events })
}

/// Returns the instructions of so many visits of this kind; none if a boot is missing.
pub fn visits(kind: &Kind, seen: &[Seen], events: u64, build: Build) -> Distribution {
    let by = |events| {
        let seen = super::of(seen, &boot(kind.system, events, build))?;
        let counts = seen.statistics.as_ref()?;
        Some(match kind.pcpu {
            Some(pcpu) => Visits::on(pcpu, kind.exception, counts),
            None => Visits::by(kind.exception, counts),
        })
    };
    let both = by(events).zip(by(2 * events));
    both.map(|(once, twice)| twice.beyond(&once)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visits_are_judged_together_where_their_number_is_not_known() {
        let mut visits = Distribution::default();
        assert_eq!(CONSOLE_BURST.typical(&visits, 10), None, "nothing was measured");
        visits.record_many(848, 20);
        visits.record_many(3_225, 10);
        assert_eq!(CONSOLE_BURST.typical(&visits, 10), Some(4_921));
        let dearer = Kind { each_time: Some(3), ..CONSOLE_BURST };
        assert_eq!(dearer.typical(&visits, 10), Some(3_225));
    }
}
