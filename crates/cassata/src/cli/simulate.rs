//! Arguments of `cassata simulate`.

use super::BoundsKind;
use super::overheads::{OverheadSource, margin};
use clap::{Args, ValueEnum};
use sim::system::MAX_TIME;
use std::path::PathBuf;
use system::model::Protocol as Described;

/// Simulate vCPUs and tasks, and compare with their bounds
///
/// Drives the hypervisor's own scheduler in a world of discrete events:
/// vCPUs with budgets, guests with tasks and critical sections. Prints the
/// longest response time that was seen of each task beside its bound. Exits
/// with 1 if a job was late or a bound exceeded, with 2 if the description
/// makes no sense.
///
/// Under vMPCP a gcs raises its task and its vCPU, and may overrun the
/// budget by what Equation 1 allows; MPCP is the baseline that raises the
/// task only (Kim, Wang, Rajkumar, RTSS 2014).
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  cassata simulate tasks.json
  cassata simulate tasks.json --for 2s --trace schedule.svg
  cassata simulate tasks.json --execution 50 --seed 7 --json

The file is what `cassata analyze` reads; `offset` and `jitter` of tasks and
`offset` of vCPUs say when things begin.")]
pub struct Simulate {
    /// vCPUs and tasks
    pub system: PathBuf,
    /// Simulated time, such as 2s, 500ms or 10us; a number alone is seconds [default: 100 times the
    /// longest period]
    #[arg(long = "for", value_name = "TIME", value_parser = nanoseconds)]
    pub limit: Option<u64>,
    /// Print what a program reads
    #[arg(long)]
    pub json: bool,
    /// Draw the beginning of the schedule into this SVG file
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// How global resources are accessed [default: as described]
    #[arg(long, value_enum)]
    pub protocol: Option<Protocol>,
    /// Execution times by chance, from so many percent of the worst case on
    #[arg(long, value_name = "PERCENT", default_value_t = 100,
          value_parser = clap::value_parser!(u8).range(1..=100))]
    pub execution: u8,
    /// What chance begins with
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Which equations the bounds are from
    #[arg(long, value_enum, default_value_t = BoundsKind::Published)]
    pub bounds: BoundsKind,
    /// Let EL2 take time, in the simulation and in the bounds: as much as it was measured to take,
    /// or as `cassata bound` computes
    #[arg(long, value_enum, value_name = "SOURCE", num_args = 0..=1, require_equals = true,
          default_missing_value = "measured")]
    pub overheads: Option<OverheadSource>,
    /// Multiply what EL2 was measured to take by this [default: 1.2]
    #[arg(long, value_name = "FACTOR", value_parser = margin, requires = "overheads")]
    pub margin: Option<u64>,
}

/// How global resources are accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Protocol {
    /// By task and vCPU, with ceilings for both
    Vmpcp,
    /// By task only: the hypervisor knows nothing of it
    Mpcp,
}

impl Simulate {
    /// As the simulator calls it; `described` if none was asked for.
    pub const fn protocol(&self, described: Described) -> sim::system::Protocol {
        match (self.protocol, described) {
            (Some(Protocol::Vmpcp), _) | (None, Described::Vmpcp) => sim::system::Protocol::Vmpcp,
            (Some(Protocol::Mpcp), _) | (None, Described::Mpcp) => sim::system::Protocol::Mpcp,
        }
    }

    /// As the simulator calls it.
    pub const fn execution(&self) -> sim::system::Execution {
        match self.execution {
            100 => sim::system::Execution::Worst,
            least => sim::system::Execution::Random { least },
        }
    }
}

/// A positive time in whole nanoseconds, with a unit or in seconds.
fn nanoseconds(text: &str) -> Result<u64, String> {
    let units: [(&str, u32); 5] =
        [("ns", 1), ("us", 1_000), ("µs", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
    let found = units.into_iter().find_map(|(unit, ns)| Some((text.strip_suffix(unit)?, ns)));
    let (number, ns) = found.unwrap_or((text, 1_000_000_000));
    let (whole, part) = number.trim().split_once('.').unwrap_or((number.trim(), ""));
    let wrong = || format!("`{text}` is no time such as 2s, 1.5ms, 10us or 300ns");
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || part.len() > 9 || !digits(whole) || !digits(part) {
        return Err(wrong());
    }
    let whole: u64 = whole.parse().map_err(|_| wrong())?;
    let part: u64 = format!("{part:0<9}").parse().map_err(|_| wrong())?;
    let total =
        u128::from(whole) * u128::from(ns) + u128::from(part) * u128::from(ns) / 1_000_000_000;
    match u64::try_from(total) {
        Ok(0) => Err("must be at least 1 ns".into()),
        Ok(total) if total <= MAX_TIME => Ok(total),
        _ => Err(format!("`{text}` is longer than 146 years")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_exactly() {
        let times = ["2", "0.5s", "1.000000001s", "20ms", "7us", "7µs", "3ns"];
        let ns = [2_000_000_000, 500_000_000, 1_000_000_001, 20_000_000, 7_000, 7_000, 3];
        assert_eq!(times.map(|text| nanoseconds(text).unwrap()), ns);
        assert_eq!(nanoseconds("4611686018427387904ns"), Ok(MAX_TIME));
        for wrong in [
            "",
            "s",
            ".5s",
            "1e3s",
            "1.2.3s",
            "1.0000000001s",
            "+2s",
            "0s",
            "4611686018427387905ns",
        ] {
            assert!(nanoseconds(wrong).is_err(), "{wrong}");
        }
    }
}
