//! What was measured on the board.

use crate::board::Board;
use crate::calibration::Calibration;
use crate::code::Code;
use crate::draft::At;
use crate::problem::Problems;
use std::path::Path;

/// Returns what the file at `at`, relative to `directory`, has of the board.
pub(super) fn check(
    at: &At<String>,
    board: &Board,
    directory: &Path,
    problems: &mut Problems,
) -> Option<Calibration> {
    let read = Calibration::read(&directory.join(at.get_ref()), board);
    let refused = |(message, hint)| {
        problems.add(Code::Calibration, at.span(), message).hint(hint);
    };
    read.map_err(refused).ok()
}
