//! What the probe's console says: `PASS`, `FAIL`, `SKIP` and `DONE` lines, and those of its roles
//! that say more (`guests/probe/src/roles`, `guests/probe/src/adversary`).

use super::words::{keep, number};
use std::collections::{BTreeMap, BTreeSet};

/// What one run of the probe has said so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbeProgress {
    /// Tests that passed, with the figures behind their names.
    pub passed: BTreeMap<String, String>,
    /// Tests that failed, with the reason; unexpected exceptions, too.
    pub failed: Vec<String>,
    /// Tests that were left out, with the reason.
    pub skipped: Vec<(String, String)>,
    /// The test that began last.
    pub running: Option<String>,
    /// The probe's own sum, once it has come to its end.
    pub done: Option<Sum>,
    /// As one that can be typed to: it listens.
    pub listens: bool,
    /// The lines that were typed to it.
    pub heard: Vec<String>,
    /// Places in which it found what another VM had left.
    pub leaks: BTreeSet<String>,
    /// Lines of a neighbour that numbers them.
    pub beats: Vec<Beat>,
}

/// A line of a neighbour that loses nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beat {
    /// The one of this number, whole.
    Whole(u64),
    /// What is left of one.
    Damaged,
}

impl Beat {
    /// Returns how many bytes the line of this number has, with its end.
    #[must_use]
    pub fn length(number: u64) -> u64 {
        beat(number).len() as u64 + 1
    }

    /// Reads what stands behind `beat `.
    fn of(said: &str) -> Self {
        let number = said.split(' ').next().and_then(|number| number.parse().ok());
        let whole = number.filter(|&number| beat(number).strip_prefix("beat ") == Some(said));
        whole.map_or(Self::Damaged, Self::Whole)
    }
}

/// The line of this number.
fn beat(number: u64) -> String {
    format!("beat {number} of a neighbour that loses nothing")
}

/// The probe's own sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sum {
    /// Tests that passed.
    pub passed: usize,
    /// Tests that failed.
    pub failed: usize,
    /// Tests that were left out.
    pub skipped: usize,
}

impl ProbeProgress {
    /// Takes one line of its console.
    pub fn hear(&mut self, line: &str) {
        let Some((word, rest)) = line.split_once(' ') else {
            self.listens |= line == "listening";
            return;
        };
        match word {
            "RUN" => self.running = Some(rest.into()),
            "PASS" => {
                let (name, detail) = rest.split_once(' ').unwrap_or((rest, ""));
                self.passed.insert(name.into(), detail.into());
            }
            "FAIL" | "EXCEPTION" => keep(&mut self.failed, rest.into()),
            "SKIP" => {
                let (name, why) = rest.split_once(": ").unwrap_or((rest, ""));
                self.skipped.push((name.into(), why.into()));
            }
            "DONE" => self.done = sum(rest),
            "heard" => keep(&mut self.heard, rest.into()),
            "LEAK" => drop(self.leaks.insert(rest.into())),
            "beat" => keep(&mut self.beats, Beat::of(rest)),
            _ => {}
        }
    }

    /// Returns why this is not a run in which every test passed, if it is not; tests
    /// may be left out for one of the `excuses`.
    #[must_use]
    pub fn objection(&self, excuses: &[&str]) -> Option<String> {
        if !self.failed.is_empty() {
            return Some(self.failed.join("\n"));
        }
        let Some(sum) = self.done else {
            let running = self.running.as_deref().unwrap_or("nothing");
            return Some(format!("it did not come to its end; the last test begun is {running}"));
        };
        let excused = |(_, why): &&(String, String)| excuses.contains(&why.as_str());
        if let Some((name, why)) = self.skipped.iter().find(|skipped| !excused(skipped)) {
            return Some(format!("{name} was left out: {why}"));
        }
        let heard = Sum { passed: self.passed.len(), failed: 0, skipped: self.skipped.len() };
        if sum != heard {
            return Some(format!("it counted {sum:?}, but its lines say {heard:?}"));
        }
        (sum.passed == 0).then(|| "no test ran".into())
    }

    /// Returns the number behind `key=` behind the name of test `name`.
    #[must_use]
    pub fn figure(&self, name: &str, key: &str) -> Option<u64> {
        number(self.passed.get(name)?, key)
    }
}

/// `passed=3 failed=0 skipped=1`
fn sum(text: &str) -> Option<Sum> {
    let [passed, failed, skipped] = ["passed", "failed", "skipped"].map(|key| number(text, key));
    Some(Sum { passed: passed?, failed: failed?, skipped: skipped? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(text: &str) -> ProbeProgress {
        let mut progress = ProbeProgress::default();
        text.lines().for_each(|line| progress.hear(line));
        progress
    }

    const GOOD: &str = "probe on Cassata, 1 vCPUs\nRUN a.b\nPASS a.b \nRUN c\nPASS c n=7 late=12\n\
                        RUN d\nSKIP d: needs two vCPUs\nDONE passed=2 failed=0 skipped=1";

    #[test]
    fn a_good_run_has_no_objection() {
        let good = progress(GOOD);
        assert_eq!(good.objection(&["needs two vCPUs"]), None);
        assert_eq!(good.figure("c", "late"), Some(12));
        assert_eq!(good.figure("c", "early"), None);
    }

    #[test]
    fn every_defect_is_an_objection() {
        let objection = |text: &str| progress(text).objection(&["needs two vCPUs"]).unwrap();
        let no_end = GOOD.rsplit_once('\n').unwrap().0;
        assert!(objection(no_end).contains("last test begun is d"));
        assert!(objection(&GOOD.replace("PASS c", "FAIL c: late by")).contains("c: late by"));
        assert!(objection(&GOOD.replace("two vCPUs", "a holiday")).contains("d was left out"));
        assert!(objection(&GOOD.replace("passed=2", "passed=3")).contains("counted"));
        assert!(objection("DONE passed=0 failed=0 skipped=0").contains("no test ran"));
        assert!(objection("EXCEPTION at once\nDONE passed=0 failed=0 skipped=0").contains("once"));
        assert!(objection("").contains("nothing"));
    }

    #[test]
    fn roles_say_more() {
        let said = progress(
            "listening\nheard one 0\nheard one 1\nLEAK GICR+0x100\nLEAK FP3\nLEAK FP3\n\
             beat 7 of a neighbour that loses nothing\nbeat 8 of a neigh\n\
             beat 08 of a neighbour that loses nothing",
        );
        assert!(said.listens && !progress("it is listening").listens);
        assert_eq!(said.heard, ["one 0", "one 1"]);
        assert_eq!(Vec::from_iter(said.leaks), ["FP3", "GICR+0x100"]);
        assert_eq!(said.beats, [Beat::Whole(7), Beat::Damaged, Beat::Damaged]);
        assert_eq!(Beat::length(7), 41);
    }
}
