//! What is measured, and what the paper measured (RTSS 2014, Table II).

use crate::guests::TimedCall;
use analysis::overheads::VIRTUAL_INSTRUCTION_PS;

/// A call, and what it took the paper's hypervisor.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// What the guest calls it.
    pub key: &'static str,
    /// What the paper calls it.
    pub name: &'static str,
    /// True if EL2 has to do something for it.
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

impl TimedCall {
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
}

/// Returns how many instructions a core executes in `ns` of virtual time.
const fn instructions(ns: u64) -> u64 {
    ns * 1_000 / VIRTUAL_INSTRUCTION_PS
}
