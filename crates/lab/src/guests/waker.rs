//! What the bare-metal guest that wakes and calls says: lines that begin with `waker: `
//! (`guests/waker/src/main.c` writes them). Xen prints other words before them.

use crate::observe::Distribution;
use std::collections::BTreeMap;

/// What the waker has said so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WakerProgress {
    /// The first period is about to begin.
    pub has_begun: bool,
    /// It has told all that it measured.
    pub is_done: bool,
    /// It took an exception that it cannot handle.
    pub has_faulted: bool,
    /// Periods in which it did not wake in time.
    pub missed: Option<u64>,
    /// What it measured, nanoseconds: `wake`, or `call`, `read`, `sgi` and `timer`.
    pub values_ns: BTreeMap<String, Distribution>,
}

impl WakerProgress {
    /// Takes one line of its console.
    pub fn hear(&mut self, line: &str) {
        let Some((_, said)) = line.split_once("waker: ") else { return };
        match said.trim_end().split_once(' ') {
            None => self.hear_word(said.trim_end()),
            Some(("missed", count)) => self.missed = count.parse().ok(),
            // They precede `fault`.
            Some(("esr" | "elr", _)) => {}
            Some((name, value)) => {
                if let Ok(value) = value.parse() {
                    self.values_ns.entry(name.to_owned()).or_default().record(value);
                }
            }
        }
    }

    fn hear_word(&mut self, word: &str) {
        match word {
            "begin" => self.has_begun = true,
            "done" => self.is_done = true,
            "fault" => self.has_faulted = true,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_told_one_a_line_whatever_xen_prints_before_them() {
        let mut said = WakerProgress::default();
        for line in [
            "waker: begin",
            "waker: wake 213",
            "(XEN) DOM1: waker: wake 4101\r",
            "something else 7",
            "waker: missed 3",
        ] {
            said.hear(line);
        }
        assert!(said.has_begun && !said.is_done && !said.has_faulted);
        let wakes = &said.values_ns["wake"];
        assert_eq!((wakes.min(), wakes.max(), said.missed), (Some(213), Some(4101), Some(3)));
        said.hear("waker: done");
        assert!(said.is_done && said.values_ns.len() == 1);
        said.hear("waker: esr 2516582400");
        said.hear("waker: fault");
        assert!(said.has_faulted && said.values_ns.len() == 1);
    }
}
