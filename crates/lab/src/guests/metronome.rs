//! What the metronome says: lines that begin with `metronome:`, which the instrument's own crate
//! can read.

use super::words::keep;
use vtime::metronome::{Report, ReportError};

/// What the metronome has said so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetronomeProgress(Vec<String>);

impl MetronomeProgress {
    /// Takes one line of its console.
    pub fn hear(&mut self, line: &str) {
        if line.starts_with("metronome:") {
            keep(&mut self.0, line.to_owned());
        }
    }

    /// Returns what it found.
    ///
    /// # Errors
    /// If it did not come to its end, or a line is malformed.
    pub fn report(&self) -> Result<Report, ReportError> {
        Report::read(self.0.iter().map(String::as_str))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_others_are_left_out() {
        let mut said = MetronomeProgress::default();
        said.hear("metronome: farthest_behind_ns=118");
        said.hear("something else");
        assert!(said.report().unwrap_err().to_string().ends_with("farthest_behind_ns=118"));
        said.hear("metronome: done");
        assert_eq!(said.report().unwrap().farthest_behind_ns, 118);
    }
}
