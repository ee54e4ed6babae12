//! What U-Boot says: that it starts, its version, and how the tests of its EFI interface end
//! (U-Boot, `lib/efi_selftest/efi_selftest.c`).

use super::verdicts::{Verdict, Verdicts};

/// What U-Boot has said so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UBootProgress {
    /// How often it came to the point where it counts down to booting something, which a key
    /// stops.
    pub countdowns: u32,
    /// What it answered to the command `version`.
    pub version: Option<String>,
    /// How the tests of its EFI interface ended so far.
    pub verdicts: Verdicts,
    /// The own sum of those that failed, once all have ended.
    pub failures: Option<usize>,
    /// It waits for a key, behind which it resets the machine.
    pub asks_to_reset: bool,
    /// The last line was the command `version`, as its prompt shows it.
    is_asked: bool,
}

impl UBootProgress {
    /// Takes one line of its console.
    pub fn hear(&mut self, line: &str) {
        if std::mem::take(&mut self.is_asked) {
            self.version = Some(line.into());
        }
        self.is_asked = line == "=> version";
        // The last line before the countdown, which stays unfinished.
        self.countdowns += u32::from(line.starts_with("Net: "));
        self.asks_to_reset |= line.starts_with("Preparing for reset");
        if let Some((name, verdict)) = verdict(line) {
            self.verdicts.hear(name, verdict);
        }
        let sum = line.strip_prefix("Summary: ").and_then(|sum| sum.strip_suffix(" failures"));
        self.failures = sum.and_then(|sum| sum.parse().ok()).or(self.failures);
    }
}

/// Returns the name and the verdict in `Executing 'NAME' succeeded` and the like. A test that
/// cannot be set up is not executed.
fn verdict(line: &str) -> Option<(&str, Verdict)> {
    let behind = |what: &str| line.split_once(what).map(|(_, rest)| rest);
    let executed = behind("Executing '");
    let (name, how) = executed.or_else(|| behind("Setting up '"))?.rsplit_once("' ")?;
    match how {
        "succeeded" if executed.is_some() => Some((name, Verdict::Passed)),
        "failed" => Some((name, Verdict::Failed)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::Verdict::{Failed, Passed};
    use super::*;

    #[test]
    fn its_version_and_its_tests_are_told() {
        let mut said = UBootProgress::default();
        for line in [
            "U-Boot 2023.01+dfsg-2 (Jun 22 2026 - 08:38:07 +0000)",
            "Net:   No ethernet found.",
            "Hit any key to stop autoboot:  2  0",
            "=> version",
            "U-Boot 2023.01+dfsg-2 (Jun 22 2026 - 08:38:07 +0000)",
            "aarch64-linux-gnu-gcc (Debian 12.2.0-14) 12.2.0",
            "=> bootefi selftest",
            "Setting up 'mem'",
            "Setting up 'mem' succeeded",
            "Executing 'mem'",
            "Executing 'mem' succeeded",
            "Tearing down 'mem' succeeded",
            "Executing 'random number generator'",
            "ERROR: Executing 'random number generator' failed",
            "ERROR: Setting up 'simple network protocol' failed",
            "Tearing down 'simple network protocol' succeeded",
            "Executing 'exit",
        ] {
            said.hear(line);
        }
        let all = [
            ("mem", Passed),
            ("random number generator", Failed),
            ("simple network protocol", Failed),
        ];
        assert_eq!(said.verdicts, all.into_iter().collect());
        let version = "U-Boot 2023.01+dfsg-2 (Jun 22 2026 - 08:38:07 +0000)";
        assert_eq!((said.version.as_deref(), said.countdowns), (Some(version), 1));
        assert_eq!((said.failures, said.asks_to_reset), (None, false));
        said.hear("Summary: 2 failures");
        said.hear("Preparing for reset. Press any key...");
        assert_eq!((said.failures, said.asks_to_reset), (Some(2), true));
    }
}
