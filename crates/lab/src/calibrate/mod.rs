//! How long EL2 takes on a board: `cassata calibrate`.
//!
//! A guest measures each path that it can provoke, by the counter (`guests/probe/src/roles/calibrate`); the
//! instrument of virtual time counts the instructions of the same path, with the same build of the hypervisor on
//! QEMU's model of the board. The quotient is what an instruction takes, and bounds are computed with it.
//!
//! | module | story |
//! | --- | --- |
//! | `paths` | each path: which act provokes it, and which visit it is |
//! | `described` | the system that measures |
//! | `counted` | the same system in virtual time: what it says, and the instructions of each path |
//! | `judged` | both together: a file for bounds, and a page for people |

mod counted;
mod described;
mod judged;
mod paths;

pub use counted::{Counts, count, measure};
pub use described::{Load, Plan, identity};
pub use judged::{Judged, judge};

use crate::console::{Cursor, Lines};
use crate::guests::{CalibrationProgress, Measurement};
use abi::console::Demux;
use miette::{Result, miette};
use std::path::Path;
use system::input_file;

/// Bytes that a log may have: a measurement needs some thousand.
const LONGEST_LOG: u64 = 64 << 20;

/// Reads what a board's UART sent, all consoles in one stream.
///
/// # Errors
/// When it cannot be read, or does not have one whole measurement.
pub fn read_log(path: &Path) -> Result<Measurement> {
    let shown = path.display();
    let bytes = input_file::read(path, LONGEST_LOG).map_err(|unread| {
        let hint = unread.hint.unwrap_or("name the file into which the UART was captured");
        miette!(help = hint, "cannot read {shown}: {unread}")
    })?;
    let (mut demux, mut lines) = (Demux::default(), Lines::default());
    let mut said = CalibrationProgress::default();
    let mut cursor = Cursor::default();
    for (channel, byte) in bytes.into_iter().filter_map(|byte| demux.push(byte)) {
        lines.push(channel, byte);
        if byte == b'\n' {
            lines.since(&mut cursor).iter().for_each(|line| said.hear(&line.text));
        }
    }
    lines.end();
    lines.since(&mut cursor).iter().for_each(|line| said.hear(&line.text));
    said.measurement().map_err(|(why, hint)| miette!(help = hint, "{shown}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guests::calibration_lines;

    /// The UART has all consoles in one stream: bytes of another guest in the middle of a line change nothing.
    #[test]
    fn a_log_is_taken_apart_before_it_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("uart.log");
        let [begin, path, end] = calibration_lines();
        let (half, rest) = path.split_at(20);
        let text = format!(
            "U-Boot 2025.01\r\n\x1f0cassata: 0.1.0\n\x1f1{begin}\r\n{half}\x1f2RUN x\n\x1f1{rest}\r\n{end}\r\n"
        );
        std::fs::write(&file, &text).unwrap();
        assert_eq!(read_log(&file).unwrap().paths.len(), 1);
        std::fs::write(&file, text.replace("\x1f2RUN x\n\x1f1", "RUN x\n")).unwrap();
        let error = read_log(&file).unwrap_err().to_string();
        assert!(error.contains("uart.log: a line is damaged"), "{error}");
        let error = read_log(directory.path()).unwrap_err().to_string();
        assert!(error.ends_with("a directory, not a file"), "{error}");
    }
}
