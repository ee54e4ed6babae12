//! What cargo's test runner says, counted.

/// How tests ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many passed.
    pub passed: u64,
    /// How many failed.
    pub failed: u64,
    /// How many could not run here.
    pub skipped: u64,
}

/// One line of the output of `cargo test`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said<'a> {
    /// A test came to its end.
    Test {
        /// The name.
        name: &'a str,
        /// True if it passed; `None` when it was left out.
        passed: Option<bool>,
    },
    /// A test program came to its end.
    Program(Tally),
    /// A crate is being compiled, or a test program started.
    Step(&'a str),
    /// Anything else.
    Other,
}

impl Tally {
    /// Counts one test.
    pub fn count(&mut self, passed: bool) {
        if passed { self.passed += 1 } else { self.failed += 1 }
    }
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        if self.skipped > 0 { write!(f, ", {} skipped", self.skipped) } else { Ok(()) }
    }
}

/// Understands one line.
#[must_use]
pub fn understand(line: &str) -> Said<'_> {
    let line = line.trim();
    if let Some(rest) = line.strip_prefix("test result: ") {
        return program(rest).map_or(Said::Other, Said::Program);
    }
    if let Some(rest) = line.strip_prefix("test ") {
        return test(rest).unwrap_or(Said::Other);
    }
    let steps = [
        "Compiling ",
        "Checking ",
        "Documenting ",
        "Running ",
        "Doc-tests ",
        "Downloading ",
        "Blocking ",
    ];
    if steps.iter().any(|step| line.starts_with(step)) { Said::Step(line) } else { Said::Other }
}

/// `sched::tests::x ... ok`, with notes such as ` - should panic` in the name.
fn test(rest: &str) -> Option<Said<'_>> {
    let (name, end) = rest.rsplit_once(" ... ")?;
    let passed = match end.split([' ', ',']).next()? {
        "ok" => Some(true),
        "FAILED" => Some(false),
        "ignored" => None,
        _ => return None,
    };
    Some(Said::Test { name, passed })
}

/// `ok. 13 passed; 0 failed; 0 ignored; ...`
fn program(rest: &str) -> Option<Tally> {
    let number = |word: &str| {
        let before = rest.split(&['.', ';']).map(str::trim).find_map(|p| p.strip_suffix(word))?;
        before.trim().parse().ok()
    };
    Some(Tally { passed: number("passed")?, failed: number("failed")?, ..Tally::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn understands_a_test_run() {
        let test = |name, passed| Said::Test { name, passed };
        assert_eq!(understand("test a::b ... ok"), test("a::b", Some(true)));
        assert_eq!(
            understand("test a::b - should panic ... ok"),
            test("a::b - should panic", Some(true))
        );
        assert_eq!(understand("test a::b ... FAILED"), test("a::b", Some(false)));
        assert_eq!(understand("test slow ... ignored, takes an hour"), test("slow", None));
        assert_eq!(understand("test slow has been running for over 60 seconds"), Said::Other);
        assert_eq!(understand("   Compiling lab v0.1.0"), Said::Step("Compiling lab v0.1.0"));
        assert_eq!(understand("failures:"), Said::Other);
    }

    #[test]
    fn counts_a_program() {
        let ok = "test result: ok. 13 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.02s";
        let bad = "test result: FAILED. 1 passed; 12 failed; 0 ignored; 0 measured; 0 filtered out";
        assert_eq!(understand(ok), Said::Program(Tally { passed: 13, failed: 0, skipped: 0 }));
        assert_eq!(understand(bad), Said::Program(Tally { passed: 1, failed: 12, skipped: 0 }));
    }

    #[test]
    fn tallies_add_up() {
        let mut tally = Tally { passed: 3, failed: 0, skipped: 0 };
        tally += Tally { passed: 1, failed: 1, skipped: 0 };
        tally.count(true);
        assert_eq!(tally.to_string(), "5 passed, 1 failed");
        tally += Tally { passed: 0, failed: 0, skipped: 2 };
        assert_eq!(tally.to_string(), "5 passed, 1 failed, 2 skipped");
    }
}
