//! What the tests of Linux's own authors say, by lines that begin with `selftests: `
//! (`guests/others/run` writes them). Single tests are told as testanything.org has it.

use super::verdicts::{Verdict, Verdicts};
use super::words::number;

/// What a Linux that is tested has said so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SelftestsProgress {
    /// How many CPUs it found.
    pub cpus: Option<u32>,
    /// How the tests ended so far.
    pub verdicts: Verdicts,
    /// It came to its end.
    pub ended: bool,
}

impl SelftestsProgress {
    /// Takes one line of its console.
    pub fn hear(&mut self, line: &str) {
        let Some((_, said)) = line.split_once("selftests: ") else { return };
        if let Some(words) = said.strip_prefix("begin ") {
            self.cpus = number(words, "cpus");
        } else if said == "end" {
            self.ended = true;
        } else if let Some((program, one)) = said.split_once(": ") {
            if let Some((name, verdict)) = single(one) {
                self.verdicts.hear(&format!("{program}: {name}"), verdict);
            }
        } else if let Some((program, words)) = said.split_once(' ') {
            let word = words.split(' ').next().unwrap_or_default();
            Verdict::of(word).into_iter().for_each(|verdict| self.verdicts.hear(program, verdict));
        }
    }
}

/// Returns the name and the verdict in `ok 1 NAME`, `not ok 2 NAME`, `ok 3 # SKIP NAME` or
/// `ok 4 NAME # SKIP why`.
fn single(line: &str) -> Option<(&str, Verdict)> {
    let (numbered, verdict) = match line.strip_prefix("not ") {
        Some(rest) => (rest, Verdict::Failed),
        None => (line, Verdict::Passed),
    };
    let (_, name) = numbered.strip_prefix("ok ")?.split_once(' ')?;
    let Some((before, behind)) = name.split_once("# SKIP") else { return Some((name, verdict)) };
    let name = if before.is_empty() { behind } else { before };
    Some((name.trim(), Verdict::Skipped))
}

#[cfg(test)]
mod tests {
    use super::Verdict::{Failed, Passed, Skipped};
    use super::*;

    #[test]
    fn programs_and_what_they_count_are_told() {
        let mut said = SelftestsProgress::default();
        for line in [
            "selftests: begin kernel=6.1.0-56-arm64 cpus=2",
            "selftests: fp-stress: ok 1 FPSIMD-0-0",
            "selftests: fp-stress: not ok 2 FPSIMD-0-1",
            "selftests: fp-stress failed with 1",
            "| Totals: pass:1 fail:1",
            "selftests: hwcap: ok 22 # SKIP sigill_SVE2 F32MM",
            "selftests: hwcap: ok 23 tpidr # SKIP no SME",
            "[    9.1] crng doneselftests: hwcap passed",
            "selftests: cpu-hotplug skipped",
        ] {
            said.hear(line);
        }
        let all = [
            ("fp-stress: FPSIMD-0-0", Passed),
            ("fp-stress: FPSIMD-0-1", Failed),
            ("fp-stress", Failed),
            ("hwcap: sigill_SVE2 F32MM", Skipped),
            ("hwcap: tpidr", Skipped),
            ("hwcap", Passed),
            ("cpu-hotplug", Skipped),
        ];
        assert_eq!(said.verdicts, all.into_iter().collect());
        assert_eq!((said.cpus, said.ended), (Some(2), false));
        said.hear("selftests: end");
        assert!(said.ended);
    }
}
