//! What the probe says as it measures EL2's paths (`guests/probe/src/roles/calibrate` writes it).

use super::words::{field, keep, number};
use abi::service::hash;
use std::collections::BTreeMap;

/// The version of the lines.
const FORMAT: u64 = 1;
/// What all lines begin with.
const MARK: &str = "calibrate-";

/// What is in the caches when EL2 is entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cache {
    /// EL2's code and data.
    Warm,
    /// What a guest has written.
    Cold,
}

/// What the probe has said so far.
#[derive(Clone, Debug, Default)]
pub struct CalibrationProgress {
    /// Lines that are whole, in their order.
    lines: Vec<(Kind, String)>,
    /// Lines that are not as they were sent.
    damaged: Vec<String>,
    /// What it could not measure, and why.
    failed: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Begin,
    Path,
    End,
}

/// A whole measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measurement {
    /// Name of the board for which the image was made.
    pub board: String,
    /// How many pCPUs it used.
    pub pcpus: usize,
    /// What tells the build of the hypervisor.
    pub hypervisor: String,
    /// Rate of the counter, Hz.
    pub counter_hz: u64,
    /// What other cores did: `memory` or `none`.
    pub load: String,
    /// Memory that was written before each cold repetition, KiB.
    pub sweep_kib: u64,
    /// What was measured of each path.
    pub paths: BTreeMap<(String, Cache), Times>,
}

/// What was measured of a path, in ticks of the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// How often.
    pub repetitions: u64,
    /// All together.
    pub ticks: u64,
    /// The shortest.
    pub min: u64,
    /// The median.
    pub median: u64,
    /// What 999 of 1000 do not exceed.
    pub p999: u64,
    /// The longest.
    pub max: u64,
}

impl CalibrationProgress {
    /// Takes one line of its console.
    pub fn hear(&mut self, line: &str) {
        if let Some(why) = line.strip_prefix("FAIL calibrate") {
            keep(&mut self.failed, why.trim_start_matches('.').into());
        }
        if !line.starts_with(MARK) {
            return;
        }
        let kinds = [("begin", Kind::Begin), ("path", Kind::Path), ("end", Kind::End)];
        let kind = kinds.into_iter().find(|(name, _)| {
            line[MARK.len()..].strip_prefix(name).is_some_and(|rest| rest.starts_with(' '))
        });
        let whole = line.rsplit_once(" check=").filter(|(text, check)| {
            u64::from_str_radix(check, 16).is_ok_and(|check| check == hash(text.as_bytes()))
        });
        match kind.zip(whole) {
            Some(((_, kind), (text, _))) => keep(&mut self.lines, (kind, text.into())),
            None => keep(&mut self.damaged, line.into()),
        }
    }

    /// Returns the measurement, if it was said from its beginning to its end.
    ///
    /// # Errors
    /// What is wrong with it, in a clause, and how to mend it.
    pub fn measurement(&self) -> Result<Measurement, (String, &'static str)> {
        const AGAIN: &str = "capture all that the UART sends, byte for byte, from the start of the board until \
                             `calibrate-end`";
        if let Some(why) = self.failed.first() {
            return Err((
                format!("the guest could not measure {why}"),
                "docs/src/calibrate.md says what it needs",
            ));
        }
        if let Some(line) = self.damaged.first() {
            return Err((format!("a line is damaged: `{line}`"), AGAIN));
        }
        let begins = self.lines.iter().filter(|(kind, _)| *kind == Kind::Begin).count();
        if begins > 1 {
            let one = "leave one of them, from `calibrate-begin` to `calibrate-end`";
            return Err((format!("it has {begins} measurements"), one));
        }
        let Some(((Kind::Begin, begin), rest)) = self.lines.split_first() else {
            let why = if begins == 0 {
                "there is no line `calibrate-begin`"
            } else {
                "lines are mixed up"
            };
            return Err((why.into(), AGAIN));
        };
        let Some(((Kind::End, end), paths)) = rest.split_last() else {
            return Err(("it is cut off: its last line is not `calibrate-end`".into(), AGAIN));
        };
        let told: Option<usize> = number(end, "paths");
        if told != Some(paths.len()) {
            let told = told.map_or_else(|| "an unknown number".into(), |told| told.to_string());
            return Err((format!("{} of {told} lines of paths are there", paths.len()), AGAIN));
        }
        let impossible = |line: &str| (format!("a line cannot be: `{line}`"), AGAIN);
        let mut measurement =
            measurement(begin).map_err(|why| why.unwrap_or_else(|| impossible(begin)))?;
        for (_, line) in paths {
            let (key, times) = path(line).ok_or_else(|| impossible(line))?;
            if measurement.paths.insert(key, times).is_some() {
                return Err((format!("a path is there twice: `{line}`"), AGAIN));
            }
        }
        Ok(measurement)
    }
}

/// Reads the first line. An error without a text: it cannot be.
fn measurement(line: &str) -> Result<Measurement, Option<(String, &'static str)>> {
    let format: u64 = number(line, "format").ok_or(None)?;
    if format != FORMAT {
        let hint = "make the image with this version of cassata";
        return Err(Some((format!("its format is {format}, not {FORMAT}"), hint)));
    }
    let text = |name| field(line, name).map(str::to_owned).ok_or(None);
    let positive = |name| number(line, name).filter(|&number| number > 0).ok_or(None);
    Ok(Measurement {
        board: text("board")?,
        pcpus: number(line, "pcpus").filter(|&pcpus| pcpus > 1).ok_or(None)?,
        hypervisor: text("hypervisor")?,
        counter_hz: positive("counter_hz")?,
        load: text("load")?,
        sweep_kib: number(line, "sweep_kib").ok_or(None)?,
        paths: BTreeMap::new(),
    })
}

fn path(line: &str) -> Option<((String, Cache), Times)> {
    let of = |name| number::<u64>(line, name);
    let times = Times {
        repetitions: of("repetitions")?,
        ticks: of("ticks")?,
        min: of("min")?,
        median: of("median")?,
        p999: of("p999")?,
        max: of("max")?,
    };
    let Times { repetitions, ticks, min, median, p999, max } = times;
    let is_ordered = min <= median && median <= p999 && p999 <= max;
    let sums = min.checked_mul(repetitions)?..=max.checked_mul(repetitions)?;
    let cache = match field(line, "cache")? {
        "warm" => Cache::Warm,
        "cold" => Cache::Cold,
        _ => return None,
    };
    let can_be = repetitions > 0 && ticks > 0 && is_ordered && sums.contains(&ticks);
    can_be.then_some(((field(line, "name")?.to_owned(), cache), times))
}

/// Adds the sum that the probe adds.
pub(crate) fn summed(line: &str) -> String {
    format!("{line} check={:016x}", hash(line.as_bytes()))
}

#[cfg(test)]
pub mod tests {
    use super::*;

    const BEGIN: &str = "calibrate-begin format=1 board=zcu102 pcpus=4 hypervisor=00ff counter_hz=100000000 \
                         load=memory sweep_kib=2048";
    const PATHS: [&str; 2] = [
        "calibrate-path name=null cache=warm repetitions=10 ticks=100 min=9 median=10 p999=12 max=12",
        "calibrate-path name=null cache=cold repetitions=2 ticks=70 min=30 median=30 p999=40 max=40",
    ];
    const END: &str = "calibrate-end paths=2";

    /// A measurement of one path.
    pub fn lines() -> [String; 3] {
        [BEGIN, PATHS[0], "calibrate-end paths=1"].map(summed)
    }

    fn both() -> Vec<String> {
        [BEGIN, PATHS[0], PATHS[1], END].map(summed).into()
    }

    fn read(lines: &[String]) -> Result<Measurement, String> {
        let mut said = CalibrationProgress::default();
        said.hear("probe on Cassata, 5 vCPUs, 64 MiB");
        lines.iter().for_each(|line| said.hear(line));
        said.measurement().map_err(|(why, _)| why)
    }

    #[test]
    fn a_whole_measurement_is_understood() {
        let read = read(&both()).unwrap();
        assert_eq!((&*read.board, read.pcpus, &*read.hypervisor), ("zcu102", 4, "00ff"));
        assert_eq!((read.counter_hz, &*read.load, read.sweep_kib), (100_000_000, "memory", 2048));
        let cold = read.paths[&("null".to_owned(), Cache::Cold)];
        assert_eq!((read.paths.len(), cold.repetitions, cold.max), (2, 2, 40));
    }

    /// What is captured on a wire loses bytes and lines, and what is kept of several runs is mixed up.
    #[test]
    fn what_is_not_whole_is_refused() {
        let refused = |change: &dyn Fn(&mut Vec<String>)| {
            let mut lines = both();
            change(&mut lines);
            read(&lines).unwrap_err()
        };
        assert_eq!(read(&[]).unwrap_err(), "there is no line `calibrate-begin`");
        let cut = refused(&|lines| lines.truncate(3));
        assert_eq!(cut, "it is cut off: its last line is not `calibrate-end`");
        assert_eq!(refused(&|lines| drop(lines.remove(2))), "1 of 2 lines of paths are there");
        assert_eq!(refused(&|lines| lines.extend(both())), "it has 2 measurements");
        assert_eq!(refused(&|lines| lines.swap(0, 1)), "lines are mixed up");
        let flipped = refused(&|lines| lines[1] = lines[1].replace("max=12", "max=13"));
        assert!(flipped.starts_with("a line is damaged: `calibrate-path name=null"), "{flipped}");
        let short = refused(&|lines| lines[1].truncate(40));
        assert!(short.starts_with("a line is damaged"), "{short}");
        let twice = refused(&|lines| lines[2] = lines[1].clone());
        assert!(twice.starts_with("a path is there twice"), "{twice}");
        let failed = refused(&|lines| lines.push("FAIL calibrate.wake: 3 of 100".into()));
        assert_eq!(failed, "the guest could not measure wake: 3 of 100");
        let newer = refused(&|lines| lines[0] = summed(&BEGIN.replace("format=1", "format=2")));
        assert_eq!(newer, "its format is 2, not 1");
    }

    #[test]
    fn figures_that_cannot_be_are_refused() {
        let refused = |line: &str, at: usize| {
            let mut lines = both();
            lines[at] = summed(line);
            read(&lines).unwrap_err()
        };
        for (from, to) in [
            ("repetitions=10", "repetitions=0"),
            ("ticks=100", "ticks=0"),
            ("ticks=100", "ticks=1000"),
            ("min=9", "min=99"),
            ("max=12", "max=-12"),
            ("max=12", "max=18446744073709551615"),
            ("cache=warm", "cache=hot"),
            ("median=10 ", ""),
        ] {
            let line = PATHS[0].replace(from, to);
            assert_eq!(refused(&line, 1), format!("a line cannot be: `{line}`"));
        }
        for (from, to) in [
            ("counter_hz=100000000", "counter_hz=0"),
            ("pcpus=4", "pcpus=1"),
            ("board=zcu102 ", ""),
        ] {
            let line = BEGIN.replace(from, to);
            assert_eq!(refused(&line, 0), format!("a line cannot be: `{line}`"));
        }
    }
}
