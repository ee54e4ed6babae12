//! What the instrument is told on QEMU's command line.

use crate::coverage::{Coverage, INSTRUCTION};
use crate::marks::{Kind, Marks};
use crate::rate::ClockRate;
use crate::stall::Stall;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;
use thiserror::Error;

/// The instrument's options, `key=value` each after `-plugin file=...`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// `quantum-ns`: how far a core may run ahead of the others, in virtual
    /// ns. Bounds the error of what cores do to each other; timers are exact
    /// whatever it is.
    pub quantum_ns: u64,
    /// `serial`: `on` lets one core run at a time, in a fixed order. Runs then
    /// repeat exactly, and take longer if several cores are busy.
    pub serial: bool,
    /// `mhz`: the cores' clock rate, one instruction per tick.
    pub rate: ClockRate,
    /// `statistics`: the file to keep statistics in.
    pub statistics: Option<PathBuf>,
    /// `statistics-ms`: real time between two states of that file.
    pub period: Duration,
    /// `summary`: `on` writes the statistics to standard error in a few lines
    /// when QEMU ends.
    pub summary: bool,
    /// `range`: physical addresses whose instructions and visits are counted,
    /// `START-END` in hexadecimal, END exclusive. Must be RAM, and its first
    /// instruction must run with the MMU off or mapped one to one.
    pub range: Option<Range<u64>>,
    /// `coverage`, `coverage-range`: the file to record in which instructions of a range of
    /// physical addresses were executed, and that range. What `range` says of addresses goes for
    /// these too; both ends must be multiples of four.
    pub coverage: Option<Coverage>,
    /// `wfe-traps`: `on` has a WFE of a guest taken to EL2 where HCR_EL2.TWE says so, which QEMU does
    /// not do by itself.
    pub wfe_traps: bool,
    /// `stall`, as often as there are any: stretches in which a core executes nothing.
    pub stalls: Vec<Stall>,
    /// `marks`, `mark`, `mark-vector`, `mark-end`: the file for what cores note at marks, and the marks,
    /// as often as there are any. What `range` says of addresses goes for these too.
    pub marks: Option<Marks>,
    /// `watchdog-ms`: real time without progress after which the state of
    /// every core is reported.
    pub watchdog: Duration,
    /// `control-in`, `control-out`: the pipes through which another program
    /// holds the machine; see [`crate::hold`].
    pub control: Option<Pipes>,
}

/// Two pipes, as files that can be opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pipes {
    /// [`crate::hold::Order`]s come through this one.
    pub orders: PathBuf,
    /// [`crate::hold::Held`] goes through this one.
    pub holds: PathBuf,
}

impl Options {
    /// The quantum unless another is asked for. See the measurement in
    /// `docs/`.
    pub const DEFAULT_QUANTUM_NS: u64 = 2_000;
    /// The longest quantum accepted: a millisecond.
    pub const MAX_QUANTUM_NS: u64 = 1_000_000;
}

impl Default for Options {
    fn default() -> Self {
        Self {
            quantum_ns: Self::DEFAULT_QUANTUM_NS,
            serial: false,
            rate: ClockRate::DEFAULT,
            statistics: None,
            period: Duration::from_secs(1),
            summary: false,
            range: None,
            coverage: None,
            wfe_traps: false,
            stalls: Vec::new(),
            marks: None,
            watchdog: Duration::from_secs(10),
            control: None,
        }
    }
}

/// An option that cannot be.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("virtual time: option `{option}`: {mend}")]
pub struct OptionError {
    /// The option as given.
    pub option: String,
    /// What is wrong and what would be right.
    pub mend: String,
}

impl Options {
    /// Reads `key=value` arguments.
    ///
    /// # Errors
    /// For the first argument that is unknown, malformed or out of range.
    pub fn parse<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Result<Self, OptionError> {
        let (mut options, mut last) = (Self::default(), "");
        for argument in arguments {
            let error = |mend: String| OptionError { option: argument.into(), mend };
            let (key, value) =
                argument.split_once('=').ok_or_else(|| error("write key=value".into()))?;
            options.set(key, value).map_err(error)?;
            last = argument;
        }
        options.is_complete().map_err(|mend| OptionError { option: last.into(), mend })?;
        Ok(options)
    }

    /// The arguments that [`Options::parse`] reads back.
    #[must_use]
    pub fn arguments(&self) -> Vec<String> {
        let mut arguments = vec![
            format!("quantum-ns={}", self.quantum_ns),
            format!("serial={}", on_or_off(self.serial)),
            format!("mhz={}", self.rate.mhz()),
            format!("statistics-ms={}", self.period.as_millis()),
            format!("summary={}", on_or_off(self.summary)),
            format!("watchdog-ms={}", self.watchdog.as_millis()),
        ];
        arguments.extend(self.wfe_traps.then(|| "wfe-traps=on".into()));
        arguments.extend(self.stalls.iter().map(|stall| format!("stall={stall}")));
        arguments.extend(self.statistics.iter().map(|p| format!("statistics={}", p.display())));
        if let Some(Pipes { orders, holds }) = &self.control {
            arguments.push(format!("control-in={}", orders.display()));
            arguments.push(format!("control-out={}", holds.display()));
        }
        let text = |range: &Range<u64>| format!("{:#x}-{:#x}", range.start, range.end);
        arguments.extend(self.range.iter().map(|range| format!("range={}", text(range))));
        if let Some(Coverage { range, file }) = &self.coverage {
            arguments.push(format!("coverage={}", file.display()));
            arguments.push(format!("coverage-range={}", text(range)));
        }
        if let Some(Marks { file, all }) = &self.marks {
            arguments.push(format!("marks={}", file.display()));
            arguments.extend(all.iter().map(|(kind, mark)| format!("{}={mark}", kind.option())));
        }
        arguments
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "quantum-ns" => self.quantum_ns = number(value, 1..=Self::MAX_QUANTUM_NS)?,
            "serial" => self.serial = switch(value)?,
            "mhz" => {
                let mhz = number(value, 1..=ClockRate::MAX_MHZ.into())?;
                self.rate =
                    u32::try_from(mhz).ok().and_then(ClockRate::from_mhz).unwrap_or_default();
            }
            "statistics" if value.is_empty() => return Err("name a file".into()),
            "statistics" => self.statistics = Some(value.into()),
            "statistics-ms" => self.period = milliseconds(value)?,
            "summary" => self.summary = switch(value)?,
            "range" => self.range = Some(range(value)?),
            "coverage" if value.is_empty() => return Err("name a file".into()),
            "coverage" => self.coverage.get_or_insert_default().file = value.into(),
            "coverage-range" => {
                self.coverage.get_or_insert_default().range = instructions(value)?;
            }
            "wfe-traps" => self.wfe_traps = switch(value)?,
            "stall" => self.stalls.push(value.parse()?),
            "marks" if value.is_empty() => return Err("name a file".into()),
            "marks" => self.marks.get_or_insert_default().file = value.into(),
            _ if let Some(kind) = Kind::of_option(key) => {
                let marks = self.marks.get_or_insert_default();
                if marks.all.len() > usize::from(u8::MAX) {
                    return Err("there may be 256 marks".into());
                }
                marks.all.push((kind, value.parse()?));
            }
            "watchdog-ms" => self.watchdog = milliseconds(value)?,
            "control-in" => self.control.get_or_insert_default().orders = value.into(),
            "control-out" => self.control.get_or_insert_default().holds = value.into(),
            _ => return Err(format!("known are {KEYS}")),
        }
        Ok(())
    }

    /// Says what is missing beside an option that is nothing alone.
    fn is_complete(&self) -> Result<(), String> {
        match &self.coverage {
            Some(coverage) if coverage.range.is_empty() => Err("add coverage-range".into()),
            Some(coverage) if coverage.file.as_os_str().is_empty() => Err("add coverage".into()),
            _ => match &self.marks {
                Some(marks) if marks.all.is_empty() => Err("add mark".into()),
                Some(marks) if marks.file.as_os_str().is_empty() => Err("add marks".into()),
                _ => Ok(()),
            },
        }
    }
}

const KEYS: &str = "quantum-ns, serial, mhz, statistics, statistics-ms, summary, range, coverage, \
                    coverage-range, wfe-traps, stall, marks, \
                    mark, mark-vector, mark-end, watchdog-ms, control-in, control-out";

fn on_or_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

fn switch(value: &str) -> Result<bool, String> {
    match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("say on or off".into()),
    }
}

/// A year at most, so that no arithmetic overflows.
fn milliseconds(value: &str) -> Result<Duration, String> {
    number(value, 1..=365 * 24 * 3_600_000).map(Duration::from_millis)
}

fn number(value: &str, allowed: std::ops::RangeInclusive<u64>) -> Result<u64, String> {
    value
        .parse()
        .ok()
        .filter(|n| allowed.contains(n))
        .ok_or_else(|| format!("give a whole number from {} to {}", allowed.start(), allowed.end()))
}

/// Reads `START-END`, both hexadecimal with `0x`.
///
/// # Errors
/// If it is malformed or empty.
pub fn range(value: &str) -> Result<Range<u64>, String> {
    let address = |text: &str| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
    value
        .split_once('-')
        .and_then(|(start, end)| Some(address(start)?..address(end)?))
        .filter(|range| !range.is_empty())
        .ok_or_else(|| "give START-END, for example 0x40200000-0x40400000".into())
}

/// Reads the range of whole instructions that is to be recorded.
fn instructions(value: &str) -> Result<Range<u64>, String> {
    let range = range(value)?;
    let whole = [range.start, range.end].iter().all(|end| end % INSTRUCTION == 0);
    if !whole || range.end - range.start > Coverage::MAX_BYTES {
        return Err(format!(
            "both ends must be multiples of {INSTRUCTION}, and {} MiB apart at most",
            Coverage::MAX_BYTES >> 20
        ));
    }
    Ok(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let options = Options {
            quantum_ns: 2_500,
            serial: true,
            rate: ClockRate::from_mhz(1500).unwrap(),
            statistics: Some("a,b/c=d.json".into()),
            period: Duration::from_millis(77),
            summary: true,
            range: Some(0x4020_0000..0x4040_0000),
            coverage: Some(Coverage { range: 0x4020_0000..0x4021_c544, file: "c,d".into() }),
            wfe_traps: true,
            stalls: ["1@200000000:500000", "0@7:1000"].map(|text| text.parse().unwrap()).into(),
            marks: Some(Marks {
                file: "marks.json".into(),
                all: [(Kind::Plain, "a@0x4"), (Kind::Vector, "b@0x480"), (Kind::End, "a@0x8")]
                    .map(|(kind, mark)| (kind, mark.parse().unwrap()))
                    .into(),
            }),
            watchdog: Duration::from_millis(1234),
            control: Some(Pipes { orders: "/proc/1/fd/3".into(), holds: "/proc/1/fd/4".into() }),
        };
        let arguments = options.arguments();
        assert_eq!(Options::parse(arguments.iter().map(String::as_str)), Ok(options));
        assert_eq!(Options::parse([]), Ok(Options::default()));
    }

    #[test]
    fn says_what_is_wrong() {
        for (argument, mend) in [
            ("quantum-ns", "write key=value"),
            ("quantum=5", &format!("known are {KEYS}")),
            ("quantum-ns=0", "give a whole number from 1 to 1000000"),
            ("serial=1", "say on or off"),
            ("summary=yes", "say on or off"),
            ("wfe-traps=", "say on or off"),
            ("stall=1@5:10", "a stall lasts from 1 us to 3600 s"),
            ("marks=", "name a file"),
            ("marks=a", "add mark"),
            ("mark-end=a@0x4", "add marks"),
            ("mark=a@0x5", "give NAME@ADDRESS of an instruction, for example entry@0x40200480"),
            ("mhz=10001", "give a whole number from 1 to 10000"),
            ("statistics=", "name a file"),
            ("range=0x2-0x1", "give START-END, for example 0x40200000-0x40400000"),
            ("coverage=", "name a file"),
            ("coverage=a", "add coverage-range"),
            ("coverage-range=0x0-0x4", "add coverage"),
            ("coverage-range=0x2-0x4", "both ends must be multiples of 4, and 4 MiB apart at most"),
            (
                "coverage-range=0x0-0x400004",
                "both ends must be multiples of 4, and 4 MiB apart at most",
            ),
            ("range=5", "give START-END, for example 0x40200000-0x40400000"),
        ] {
            let error = Options::parse([argument]).unwrap_err();
            assert_eq!((error.option.as_str(), error.mend.as_str()), (argument, mend));
        }
    }
}
