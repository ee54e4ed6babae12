//! What is measured, and what the paper measured (RTSS 2014, Table II).

use analysis::overheads::VIRTUAL_INSTRUCTION_PS;
use serde::{Deserialize, Serialize};

/// A call, and what it took the paper's hypervisor.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// What the guest calls it.
    pub key: &'static str,
    /// What the paper calls it.
    pub name: &'static str,
    /// Whether EL2 has to do something for it.
    pub is_served: bool,
    /// The mean and the longest, microseconds.
    pub paper_us: [f64; 2],
}

/// The rows of the table, in its order: first what concerns one VM.
pub const ROWS: [Row; 14] = [
    row("intra_open_create", "intra-VM open (create)", false, [4.16, 7.14]),
    row("intra_open_existing", "intra-VM open (existing)", false, [1.87, 3.64]),
    row("intra_destroy", "intra-VM destroy", false, [1.83, 3.50]),
    row("intra_lock", "intra-VM lock", true, [3.51, 5.69]),
    row("intra_trylock", "intra-VM trylock", true, [2.75, 5.15]),
    row("intra_unlock", "intra-VM unlock", true, [2.26, 2.68]),
    row("start_gcs", "vmpcp_start_gcs", true, [2.05, 2.88]),
    row("finish_gcs", "vmpcp_finish_gcs", true, [1.40, 1.60]),
    row("inter_open_create", "inter-VM open (create)", true, [1.79, 3.48]),
    row("inter_open_existing", "inter-VM open (existing)", true, [1.76, 3.35]),
    row("inter_destroy", "inter-VM destroy", true, [1.49, 1.78]),
    row("inter_lock", "inter-VM lock", true, [3.09, 5.31]),
    row("inter_trylock", "inter-VM trylock", true, [2.80, 5.29]),
    row("inter_unlock", "inter-VM unlock", true, [1.93, 2.57]),
];

const fn row(key: &'static str, name: &'static str, is_served: bool, paper_us: [f64; 2]) -> Row {
    Row { key, name, is_served, paper_us }
}

/// Returns the paper's mean of a call, microseconds.
pub fn paper_mean_us(key: &str) -> Option<f64> {
    ROWS.iter().find(|row| row.key == key).map(|row| row.paper_us[0])
}

/// How long a call took, nanoseconds of virtual time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken {
    /// The call, see [`Row::key`].
    pub key: String,
    /// How often it was made.
    pub count: u64,
    /// The shortest.
    pub min_ns: u64,
    /// The mean.
    pub mean_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

impl Taken {
    /// Returns the instructions of the shortest: each takes a nanosecond, at any exception level.
    /// The core that makes the calls does not sleep in one.
    pub fn min_instructions(&self) -> u64 {
        instructions(self.min_ns)
    }

    /// Returns the instructions of one in the mean.
    pub fn mean_instructions(&self) -> u64 {
        instructions(self.mean_ns)
    }

    /// Returns the instructions of the longest.
    pub fn max_instructions(&self) -> u64 {
        instructions(self.max_ns)
    }

    /// Reads a line of the guest's console; none if it is about something else.
    pub fn of(line: &str) -> Option<Self> {
        let mut prefixes = ["freertos: vmpcp ", "cassata: vmpcp "].into_iter();
        let words = prefixes.find_map(|prefix| line.strip_prefix(prefix))?;
        let (key, figures) = words.split_once(' ')?;
        let figure = |name: &str| {
            let value = |word: &str| word.strip_prefix(name)?.strip_prefix('=')?.parse().ok();
            figures.split_whitespace().find_map(value)
        };
        Some(Self {
            key: key.into(),
            count: figure("count")?,
            min_ns: figure("min")?,
            mean_ns: figure("mean")?,
            max_ns: figure("max")?,
        })
    }
}

/// Returns how many instructions a core executes in `ns` of virtual time.
const fn instructions(ns: u64) -> u64 {
    ns * 1_000 / VIRTUAL_INSTRUCTION_PS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_guest_are_read() {
        let line = "freertos: vmpcp intra_lock count=10000 call_ns min=120 mean=123 max=4567";
        let taken = Taken {
            key: "intra_lock".into(),
            count: 10_000,
            min_ns: 120,
            mean_ns: 123,
            max_ns: 4_567,
        };
        assert_eq!(Taken::of(line), Some(taken.clone()));
        assert_eq!(Taken::of(&line.replace("freertos", "cassata")), Some(taken));
        for line in [
            "freertos: period 1 us",
            "freertos: vmpcp x",
            "freertos: vmpcp x count=1 min=2",
            "cassata: vmpcp service=1.0 interrupt=12",
        ] {
            assert_eq!(Taken::of(line), None, "{line}");
        }
    }
}
