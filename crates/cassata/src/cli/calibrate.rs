//! Arguments of `cassata calibrate`.

use super::build::Format;
use super::overheads::margin;
use clap::{Args, ValueEnum};
use lab::calibrate::{Load, Plan};
use std::path::PathBuf;

/// Measure how long EL2 takes on a board
///
/// Bounds on response times contain what EL2 takes: instructions that were counted, times what an
/// instruction takes on the board. This measures the second.
///
/// First, --board BOARD -o IMAGE packs a system whose guest measures each path of EL2 that it can
/// provoke, again and again, with warm and with cold caches, while other cores write memory. Flash it,
/// and capture what the board's UART sends, byte for byte, until `calibrate-end`.
///
/// Then --console FILE reads that, counts the instructions of the same paths in QEMU's model of the
/// board, and writes BOARD.calibration.toml. A description names it: calibration = "FILE" under
/// `[board]`; then `check`, `analyze`, `simulate` and `build` compute with it.
///
/// Without either, --board BOARD does all of it in QEMU in virtual time, where an instruction is a
/// nanosecond: it shows that the way works, and says nothing of the board.
///
/// The longest that was measured is no worst case. docs/src/calibrate.md says what it is worth.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  cassata calibrate --board zcu102 -o calibrate.fit --format fit     an image for the board
  cat /dev/ttyUSB0 > uart.log                                        what it says
  cassata calibrate --console uart.log --write zcu102.calibration.toml
  cassata calibrate --board qemu-virt                                in QEMU

Writes results/calibrate/result.json, report.html, paths.csv, paths.svg and
BOARD.calibration.toml.")]
pub struct Calibrate {
    /// The board, as descriptions name it; a captured log says it itself
    #[arg(long, value_name = "BOARD", required_unless_present = "console")]
    pub board: Option<String>,
    /// Write the image to flash, and measure nothing
    #[arg(short, long, value_name = "IMAGE", conflicts_with_all = ["console", "write", "json", "margin"])]
    pub output: Option<PathBuf>,
    /// Which kind of file that is
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t, requires = "output")]
    pub format: Format,
    /// Write a script for U-Boot too, which loads and starts the image
    #[arg(long, value_name = "SCRIPT", requires = "output")]
    pub boot_script: Option<PathBuf>,
    /// Read what the board's UART sent
    #[arg(long, value_name = "FILE", conflicts_with_all = ["load", "repetitions", "cold", "sweep"])]
    pub console: Option<PathBuf>,
    /// Write the calibration to this file too
    #[arg(long, value_name = "FILE")]
    pub write: Option<PathBuf>,
    /// What the cores do that measure nothing [default: memory; in QEMU: none]
    #[arg(long, value_enum, value_name = "LOAD")]
    pub load: Option<LoadKind>,
    /// Measure each path so often with warm caches [default: 2000; in QEMU: 200]
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..=Plan::MOST_REPETITIONS))]
    pub repetitions: Option<u64>,
    /// Measure each path so often with cold caches; 0: not at all [default: 500; in QEMU: 20]
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u64).range(..=Plan::MOST_REPETITIONS))]
    pub cold: Option<u64>,
    /// Memory that is written before each cold repetition: more than the caches hold
    /// [default: 2M; in QEMU: 64K]
    #[arg(long, value_name = "SIZE", value_parser = sweep)]
    pub sweep: Option<u64>,
    /// By how much an instruction takes longer than in the worst path, for `--overheads computed`
    /// [default: 1.2]
    #[arg(long, value_name = "FACTOR", value_parser = margin)]
    pub margin: Option<u64>,
    /// Write the results to this file too
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// What cores do that measure nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LoadKind {
    /// Write memory without rest
    Memory,
    /// Nothing
    None,
}

impl From<LoadKind> for Load {
    fn from(kind: LoadKind) -> Self {
        match kind {
            LoadKind::Memory => Self::Memory,
            LoadKind::None => Self::None,
        }
    }
}

/// A size, in KiB.
fn sweep(text: &str) -> Result<u64, String> {
    let kib = system::size::parse(text)? >> 10;
    let most = Plan::MOST_SWEEP_KIB;
    let wrong = || format!("must be from 4K to {}M", most >> 10);
    (4..=most).contains(&kib).then_some(kib).ok_or_else(wrong)
}
