//! What the probe says as a detector of gaps (`guests/probe/src/roles/gaps.rs` writes it).

use super::words::{keep, number};
use std::collections::BTreeMap;

/// What a detector has said so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GapsProgress {
    /// Each vCPU, by its index.
    pub vcpus: BTreeMap<usize, Watched>,
    /// How often it has told of all vCPUs.
    pub told: u64,
}

/// What one vCPU has seen, as it told last. Times are in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watched {
    /// How long it watched.
    pub watched_ns: u64,
    /// How often it read the counter.
    pub looks: u64,
    /// Gaps above the threshold that EL2 does not explain.
    pub gaps: u64,
    /// The longest of them.
    pub longest_ns: u64,
    /// All of them together.
    pub lost_ns: u64,
    /// Gaps above the threshold in which EL2 took an interrupt, no longer than its longest stay.
    pub explained: u64,
    /// The longest of those.
    pub explained_longest_ns: u64,
    /// The longest stay at EL2 for this vCPU, whatever for.
    pub el2_longest_ns: u64,
    /// Pairs of a length in microseconds and how many gaps were as long, but not twice as long.
    pub bins: Vec<(u64, u64)>,
    /// The first gaps: when, by the counter, and how long.
    pub first: Vec<(u64, u64)>,
}

impl GapsProgress {
    /// Takes one line of its console.
    pub fn hear(&mut self, line: &str) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        if word == "gaps-told" {
            self.told += 1;
            return;
        }
        let Some(vcpu) = number(rest, "vcpu") else { return };
        match word {
            "gaps" => {
                if let Some(watched) = watched(rest) {
                    self.vcpus.insert(vcpu, watched);
                }
            }
            "gaps-bin" => self.extend(vcpu, pair(rest, "from_us", "count"), |seen| &mut seen.bins),
            "gap" => self.extend(vcpu, pair(rest, "at_ns", "length_ns"), |seen| &mut seen.first),
            _ => {}
        }
    }

    fn extend(
        &mut self,
        vcpu: usize,
        pair: Option<(u64, u64)>,
        of: impl FnOnce(&mut Watched) -> &mut Vec<(u64, u64)>,
    ) {
        if let Some((seen, pair)) = self.vcpus.get_mut(&vcpu).zip(pair) {
            keep(of(seen), pair);
        }
    }
}

fn pair(words: &str, first: &str, second: &str) -> Option<(u64, u64)> {
    Some((number(words, first)?, number(words, second)?))
}

fn watched(words: &str) -> Option<Watched> {
    let of = |name| number(words, name);
    Some(Watched {
        watched_ns: of("watched_ns")?,
        looks: of("looks")?,
        gaps: of("gaps")?,
        longest_ns: of("longest_ns")?,
        lost_ns: of("lost_ns")?,
        explained: of("explained")?,
        explained_longest_ns: of("explained_longest_ns")?,
        el2_longest_ns: of("el2_longest_ns")?,
        ..Watched::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_told_last_counts() {
        let mut said = GapsProgress::default();
        let line = |gaps: u64| {
            format!(
                "gaps vcpu=1 watched_ns=1000000 looks=80000 gaps={gaps} longest_ns=500007 \
                 lost_ns=500007 explained=2 explained_longest_ns=11000 el2_longest_ns=12000"
            )
        };
        for gaps in [1, 2] {
            said.hear(&line(gaps));
            said.hear("gaps-bin vcpu=1 from_us=256 count=1");
            said.hear("gap vcpu=1 at_ns=77 length_ns=500007");
            said.hear("gap vcpu=3 at_ns=77 length_ns=500007");
            said.hear("gaps-told");
        }
        said.hear("gaps vcpu=2 watched_ns=1");
        let seen = &said.vcpus[&1];
        assert_eq!((seen.gaps, seen.longest_ns, seen.explained), (2, 500_007, 2));
        assert_eq!((&*seen.bins, &*seen.first), (&[(256, 1)][..], &[(77, 500_007)][..]));
        assert_eq!((said.vcpus.len(), said.told), (1, 2));
    }
}
