//! What the probe's console says: `PASS`, `FAIL`, `SKIP` and `DONE` lines.

use super::words::number;
use std::collections::BTreeMap;

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
        let Some((word, rest)) = line.split_once(' ') else { return };
        match word {
            "RUN" => self.running = Some(rest.into()),
            "PASS" => {
                let (name, detail) = rest.split_once(' ').unwrap_or((rest, ""));
                self.passed.insert(name.into(), detail.into());
            }
            "FAIL" | "EXCEPTION" => self.failed.push(rest.into()),
            "SKIP" => {
                let (name, why) = rest.split_once(": ").unwrap_or((rest, ""));
                self.skipped.push((name.into(), why.into()));
            }
            "DONE" => self.done = sum(rest),
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
}
