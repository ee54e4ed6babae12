//! What `cassata calibrate` has measured on a board: how long EL2 takes there, path by path.
//!
//! A description names such a file by `calibration` under `[board]`; then bounds are computed with it.

use crate::board::Board;
use crate::image::Bytes;
use crate::input_file;
use crate::nearest::did_you_mean;
use analysis::overheads::{Pace, Paces, instructions};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

/// The version of the file.
pub const FORMAT: u32 = 1;
/// Most picoseconds for an instruction that are believed: a millisecond is no instruction.
pub const MOST_INSTRUCTION_PS: u64 = 1_000_000_000;

/// A kind of visit to EL2, of which bounds have a length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Visit {
    /// See [`Paces::release`].
    Release,
    /// See [`Paces::switch_on_wake`].
    SwitchOnWake,
    /// See [`Paces::switch_on_sleep`].
    SwitchOnSleep,
    /// See [`Paces::timer`].
    Timer,
    /// See [`Paces::doorbell`].
    Doorbell,
    /// See [`Paces::gcs_call`].
    GcsCall,
    /// See [`Paces::grant`].
    Grant,
    /// See [`Paces::departure`].
    Departure,
    /// See [`Paces::duty`].
    Duty,
    /// None: it only counts for what is not measured.
    Other,
}

/// Every path that is measured, with what it is in bounds.
pub const PATHS: [(&str, Visit); 16] = [
    ("null", Visit::Other),
    ("gic-read", Visit::Duty),
    ("gic-write", Visit::Duty),
    ("sgi-self", Visit::Duty),
    ("sgi-core", Visit::Other),
    ("sgi-other", Visit::Duty),
    ("doorbell", Visit::Doorbell),
    ("timer", Visit::Release),
    ("wake", Visit::SwitchOnWake),
    ("sleep", Visit::SwitchOnSleep),
    ("departure", Visit::Departure),
    ("gcs", Visit::GcsCall),
    ("mutex", Visit::GcsCall),
    ("pass-on", Visit::GcsCall),
    ("replenish", Visit::Timer),
    ("grant", Visit::Grant),
];

/// What was measured on a board.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// [`FORMAT`].
    pub format: u32,
    /// The board.
    pub board: String,
    /// What tells the build of the hypervisor: see `lab::calibrate::identity`.
    pub hypervisor: String,
    /// The version of Cassata.
    pub cassata: String,
    /// The rate of the counter by which it was measured, Hz.
    pub counter_hz: u64,
    /// What other cores did meanwhile: `memory`, or `none`.
    pub load: String,
    /// Memory that was written before each cold repetition, KiB.
    pub sweep_kib: u64,
    /// By how much [`instruction_ps`](Self::instruction_ps) is more than the worst of all paths, thousandths.
    pub margin_permille: u64,
    /// Picoseconds for an instruction at EL2: for `--overheads computed`, which has no margin of its own.
    pub instruction_ps: u64,
    /// The paths.
    #[serde(rename = "path")]
    pub paths: Vec<Measured>,
    /// The bytes of the file that it was read from.
    #[serde(skip)]
    pub(crate) file: Bytes,
}

/// What was measured of a path. Times are without what the guest itself needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// One of [`PATHS`].
    pub name: String,
    /// How often it was measured, warm and cold.
    pub repetitions: u64,
    /// What it takes in virtual time on QEMU's model of the board.
    pub instructions: u64,
    /// Mean of the warm repetitions, picoseconds.
    pub mean_ps: u64,
    /// The longest of all, picoseconds.
    pub longest_ps: u64,
    /// The longest one by the instructions, rounded up, picoseconds.
    pub instruction_ps: u64,
}

impl Calibration {
    /// Makes one of what was measured with the counter at `counter_hz`: the load and the memory that was swept, KiB;
    /// the margin, thousandths, and the worst path with it, picoseconds for an instruction.
    #[must_use]
    pub fn new(
        board: String,
        hypervisor: String,
        counter_hz: u64,
        (load, sweep_kib): (String, u64),
        (margin_permille, instruction_ps): (u64, u64),
        paths: Vec<Measured>,
    ) -> Self {
        let (format, cassata) = (FORMAT, env!("CARGO_PKG_VERSION").into());
        let file = Bytes::default();
        Self {
            format,
            board,
            hypervisor,
            cassata,
            counter_hz,
            load,
            sweep_kib,
            margin_permille,
            instruction_ps,
            paths,
            file,
        }
    }

    /// Reads the file at `path`, which has to be of this board.
    ///
    /// # Errors
    /// When it cannot be read, or is none, or is of another board: what is wrong, and how to mend it.
    pub fn read(path: &Path, board: &Board) -> Result<Self, (String, String)> {
        let shown = path.display();
        let again = || {
            let kind = &board.kind;
            format!("let `cassata calibrate --board {kind}` write it (docs/src/calibrate.md)")
        };
        let text = input_file::read_text(path).map_err(|unread| {
            let hint =
                unread.hint.unwrap_or("paths are relative to the description's own directory");
            (format!("cannot read {shown}: {unread}"), hint.to_owned())
        })?;
        let mut calibration: Self = toml::from_str(&text).map_err(|error| {
            let why = error.message().lines().next().unwrap_or_default().to_owned();
            (format!("{shown} is no calibration: {why}"), again())
        })?;
        if calibration.board != board.kind {
            let message =
                format!("{shown} was measured on `{}`, not on `{}`", calibration.board, board.kind);
            return Err((message, again()));
        }
        calibration
            .check()
            .map_err(|why| (format!("{shown} is no calibration: {why}"), again()))?;
        calibration.file = Bytes::new(text.into());
        Ok(calibration)
    }

    /// Checks that each path is there once, and that no figure is impossible.
    ///
    /// # Errors
    /// What is wrong, in a clause.
    pub fn check(&self) -> Result<(), String> {
        if self.format != FORMAT {
            return Err(format!("its format is {}, not {FORMAT}", self.format));
        }
        let mut missing: BTreeSet<&str> = PATHS.iter().map(|(name, _)| *name).collect();
        for path in &self.paths {
            let name = path.name.as_str();
            if !missing.remove(name) {
                let known = PATHS.iter().any(|(known, _)| *known == name);
                return Err(match known {
                    true => format!("path `{name}` is there twice"),
                    false => {
                        let names = PATHS.iter().map(|(known, _)| *known);
                        format!("there is no path `{name}`: {}", did_you_mean(name, names))
                    }
                });
            }
            let believed = 1..=MOST_INSTRUCTION_PS;
            if path.instructions == 0
                || path.repetitions == 0
                || !believed.contains(&path.instruction_ps)
                || path.instruction_ps.saturating_mul(path.instructions) < path.longest_ps
            {
                return Err(format!("the figures of path `{name}` cannot be"));
            }
        }
        if let Some(name) = missing.first() {
            return Err(format!("path `{name}` is missing"));
        }
        let most = MOST_INSTRUCTION_PS.saturating_mul(1_000);
        if !(self.worst_ps()..=most).contains(&self.instruction_ps) {
            return Err("`instruction_ps` is less than that of a path, or too much".into());
        }
        Ok(())
    }

    /// Returns the worst of all paths, picoseconds for an instruction.
    #[must_use]
    pub fn worst_ps(&self) -> u64 {
        self.paths.iter().map(|path| path.instruction_ps).max().unwrap_or(0)
    }

    /// Returns the longest path of this kind of visit.
    fn pace(&self, visit: Visit) -> Pace {
        let is = |path: &&Measured| {
            PATHS.iter().any(|(name, what)| *name == path.name && *what == visit)
        };
        let paths = || self.paths.iter().filter(is);
        Pace {
            instruction_ps: paths()
                .map(|path| path.instruction_ps)
                .max()
                .unwrap_or(self.worst_ps()),
            instructions: paths().map(|path| path.instructions).max().unwrap_or(0),
        }
    }

    /// Returns how fast the board is in each kind of visit.
    ///
    /// vCPUs migrate in the system that measures: so a switch there contains what bounds have as a departure
    /// of its own, and a grant contains a doorbell and a switch.
    #[must_use]
    pub fn paces(&self) -> Paces {
        use instructions::{DEPARTURE, DOORBELL, SWITCH_ON_WAKE};
        let beyond = |visit, part: u64| {
            let pace = self.pace(visit);
            Pace { instructions: pace.instructions.saturating_sub(part), ..pace }
        };
        Paces {
            release: self.pace(Visit::Release),
            switch_on_wake: beyond(Visit::SwitchOnWake, DEPARTURE),
            switch_on_sleep: beyond(Visit::SwitchOnSleep, DEPARTURE),
            timer: self.pace(Visit::Timer),
            doorbell: self.pace(Visit::Doorbell),
            gcs_call: self.pace(Visit::GcsCall),
            grant: beyond(Visit::Grant, DOORBELL + SWITCH_ON_WAKE + DEPARTURE),
            departure: beyond(Visit::Departure, SWITCH_ON_WAKE),
            duty: self.pace(Visit::Duty),
            other: Pace::of(self.worst_ps()),
        }
    }
}

/// The file.
impl fmt::Display for Calibration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body = toml::to_string(self).map_err(|_| fmt::Error)?;
        write!(
            f,
            "# How long EL2 takes on a board, measured there. Written by `cassata calibrate`; a description\n\
             # names this file by `calibration` under `[board]`. docs/src/calibrate.md says what it is worth.\n\n\
             {body}"
        )
    }
}
