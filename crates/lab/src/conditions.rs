//! Under which conditions something was measured: the parameters every result
//! has in common.

use crate::bundle::Bundle;
use crate::machine::Time;
use crate::qemu::Qemu;
use crate::quantity::bytes;
use crate::results::Outcome;

/// Records the conditions of a run of `bundle`, packed from the description
/// `text`, on `qemu`, with time as `time` says.
pub fn record(outcome: &mut Outcome, qemu: &Qemu, time: &Time, bundle: &Bundle, text: &str) {
    let board = &bundle.tables.board;
    outcome.parameter("qemu", qemu.version().to_string());
    outcome.parameter("time", time.about());
    outcome.parameter("host_cores", std::thread::available_parallelism().map_or(0, usize::from));
    outcome.parameter("pcpus", board.pcpu_count);
    outcome.parameter("memory", bytes(board.ram_size));
    outcome.parameter("system", text);
}
