//! What `guests/metronome` reports.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use thiserror::Error;

/// The metronome's findings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// One for each phase and core, in the order of the guest's lines.
    pub records: Vec<Record>,
    /// How far a core's counter was behind what another had read before, in
    /// ns, at most.
    pub farthest_behind_ns: u64,
}

/// What one core found in one phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// `busy`, `idle`, `mixed`, or `ipi`.
    pub phase: String,
    /// The core's index.
    pub core: u64,
    /// Timer interrupts taken.
    pub interrupts: u64,
    /// Those that came before their time.
    pub early: u64,
    /// How late the latest was, in ns, as read by the third instruction of the
    /// vector.
    pub latest_ns: u64,
    /// The sum of all latenesses in ns.
    pub late_sum_ns: u64,
    /// Loops of known length between interrupts.
    pub loops: u64,
    /// The most nanoseconds a loop took beyond its instructions.
    pub most_missing: u64,
    /// The most instructions a loop had beyond its nanoseconds.
    pub most_surplus: u64,
    /// Interrupts from other cores.
    pub sgis: u64,
    /// Interrupts by lateness: on time, 1 ns, 2 to 3 ns, 4 to 7 ns, and so on.
    pub bins: Vec<u64>,
}

/// A console that is not the metronome's, or of one that failed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ReportError {
    /// A line lacks a field or has something else than a number in it.
    #[error("metronome: no number `{field}` in: {line}")]
    Field {
        /// The field.
        field: &'static str,
        /// The line.
        line: String,
    },
    /// The last line is missing.
    #[error("metronome: did not come to its end; its last line: {last}")]
    Unfinished {
        /// What there was instead.
        last: String,
    },
}

impl Report {
    /// Reads the guest's console.
    ///
    /// # Errors
    /// If it is incomplete or malformed.
    pub fn read<'a>(console: impl IntoIterator<Item = &'a str>) -> Result<Self, ReportError> {
        let mut report = Self::default();
        let mut last = "";
        for line in console {
            last = line.trim_end();
            let Some(rest) = last.strip_prefix("metronome:") else { continue };
            let fields: BTreeMap<&str, &str> =
                rest.split_whitespace().filter_map(|word| word.split_once('=')).collect();
            let fields = Fields { fields, line: last };
            if fields.fields.contains_key("phase") {
                report.records.push(fields.record()?);
            } else if fields.fields.contains_key("farthest_behind_ns") {
                report.farthest_behind_ns = fields.number("farthest_behind_ns")?;
            } else if rest.trim() == "done" {
                return Ok(report);
            }
        }
        Err(ReportError::Unfinished { last: last.into() })
    }

    /// The records of a phase, by core.
    pub fn phase<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Record> {
        self.records.iter().filter(move |r| r.phase == name)
    }
}

struct Fields<'a> {
    fields: BTreeMap<&'a str, &'a str>,
    line: &'a str,
}

impl Fields<'_> {
    fn number(&self, field: &'static str) -> Result<u64, ReportError> {
        let number = self.fields.get(field).and_then(|value| value.parse().ok());
        number.ok_or_else(|| ReportError::Field { field, line: self.line.into() })
    }

    fn record(&self) -> Result<Record, ReportError> {
        let bins = self
            .fields
            .get("bins")
            .and_then(|bins| bins.split(',').map(|n| n.parse().ok()).collect());
        Ok(Record {
            phase: self.fields["phase"].into(),
            core: self.number("core")?,
            interrupts: self.number("interrupts")?,
            early: self.number("early")?,
            latest_ns: self.number("latest_ns")?,
            late_sum_ns: self.number("late_sum_ns")?,
            loops: self.number("loops")?,
            most_missing: self.number("most_missing")?,
            most_surplus: self.number("most_surplus")?,
            sgis: self.number("sgis")?,
            bins: bins
                .ok_or_else(|| ReportError::Field { field: "bins", line: self.line.into() })?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "metronome: phase=busy core=1 interrupts=200 early=0 latest_ns=5 late_sum_ns=703 \
                        loops=200 most_missing=3 most_surplus=0 sgis=0 bins=0,0,91,109";

    #[test]
    fn reads_a_console() {
        let report =
            Report::read([LINE, "metronome: farthest_behind_ns=118", "metronome: done"]).unwrap();
        assert_eq!(report.farthest_behind_ns, 118);
        let record = report.phase("busy").next().unwrap();
        assert_eq!((record.core, record.latest_ns, &record.bins[..]), (1, 5, &[0, 0, 91, 109][..]));
        assert_eq!(report.phase("idle").count(), 0);
    }

    #[test]
    fn refuses_what_is_not_whole() {
        assert!(matches!(Report::read([LINE]), Err(ReportError::Unfinished { .. })));
        let bad = LINE.replace("early=0", "early=x");
        assert!(matches!(
            Report::read([bad.as_str()]),
            Err(ReportError::Field { field: "early", .. })
        ));
        assert!(matches!(Report::read([]), Err(ReportError::Unfinished { .. })));
    }
}
