//! What a column counts, and how people read it.

use super::Cell;
use crate::quantity::{count, duration, number, percent};
use std::time::Duration;

/// A unit of measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A name, a plain count, a ratio.
    None,
    /// Time.
    Nanoseconds,
    /// Time.
    Microseconds,
    /// Time.
    Milliseconds,
    /// Time.
    Seconds,
    /// Hundredths.
    Percent,
    /// Hundredths by which something is more, or with a minus less.
    Change,
    /// A part of a whole, 0 to 1; people read hundredths.
    Share,
    /// Instructions that were executed.
    Instructions,
}

impl Unit {
    /// Returns what the names of such columns end in.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::None | Self::Share => "",
            Self::Nanoseconds => "_ns",
            Self::Microseconds => "_us",
            Self::Milliseconds => "_ms",
            Self::Seconds => "_s",
            Self::Percent | Self::Change => "_percent",
            Self::Instructions => "_instructions",
        }
    }

    /// Returns the unit's sign behind a number; empty if it has none.
    pub const fn sign(self) -> &'static str {
        match self {
            Self::None | Self::Instructions => "",
            Self::Nanoseconds => "ns",
            Self::Microseconds => "µs",
            Self::Milliseconds => "ms",
            Self::Seconds => "s",
            Self::Percent | Self::Change | Self::Share => "%",
        }
    }

    /// Returns how many seconds a time of 1 has.
    pub(crate) const fn seconds(self) -> Option<f64> {
        match self {
            Self::Nanoseconds => Some(1e-9),
            Self::Microseconds => Some(1e-6),
            Self::Milliseconds => Some(1e-3),
            Self::Seconds => Some(1.0),
            _ => None,
        }
    }

    /// Returns the value as people read it, with so many digits behind the point; without,
    /// times have three significant ones and the unit that fits.
    pub fn text(self, cell: &Cell, digits: Option<usize>) -> String {
        match (cell, cell.number()) {
            (Cell::Text(text), _) => text.clone(),
            (_, Some(value)) => self.number_text(cell, value, digits),
            _ => "-".into(),
        }
    }

    fn number_text(self, cell: &Cell, value: f64, digits: Option<usize>) -> String {
        let fixed = digits.unwrap_or(1);
        match (self, self.seconds(), digits) {
            (_, Some(scale), None) if value >= 0.0 => {
                duration(Duration::from_secs_f64(value * scale))
            }
            (Self::Share, ..) => percent(value),
            (Self::Change, ..) => format!("{value:+.fixed$} %"),
            (Self::Percent, ..) => format!("{value:.fixed$} %"),
            (Self::None | Self::Instructions, _, None) => match cell {
                Cell::Count(whole) => count(*whole),
                _ => number(value),
            },
            (Self::None | Self::Instructions, _, Some(_)) => format!("{value:.fixed$}"),
            _ => format!("{value:.fixed$} {}", self.sign()),
        }
    }
}
