//! What a Linux says that is the real-time guest beside another one: lines that begin with `cyclic: `
//! (`guests/peers/cyclictest` writes them). Xen prints other words before them.

use crate::observe::Distribution;

/// What it has said so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CyclictestProgress {
    /// It has booted.
    pub is_ready: bool,
    /// cyclictest begins.
    pub has_begun: bool,
    /// It has told all that it measured.
    pub is_done: bool,
    /// From when the timer was due until the process ran, nanoseconds.
    pub latencies_ns: Distribution,
    /// Why it gave up.
    pub failed: Option<String>,
}

impl CyclictestProgress {
    /// Takes one line of its console.
    pub fn hear(&mut self, line: &str) {
        let Some((_, said)) = line.split_once("cyclic: ") else { return };
        let said = said.trim_end();
        match said.split_once(' ') {
            None => self.hear_word(said),
            Some(("failed", why)) => self.failed = Some(why.to_owned()),
            Some(("late", figures)) => {
                let figures =
                    figures.split_once(' ').map(|(ns, times)| (ns.parse(), times.parse()));
                if let Some((Ok(ns), Ok(times))) = figures {
                    self.latencies_ns.record_many(ns, times);
                }
            }
            Some(_) => {}
        }
    }

    fn hear_word(&mut self, word: &str) {
        match word {
            "ready" => self.is_ready = true,
            "begin" => self.has_begun = true,
            "done" => self.is_done = true,
            _ => {}
        }
    }
}

/// Returns how many periods cyclictest slept through: it has no latency of these, so they are in no mean. When
/// it wakes, it adds its interval until the next wake-up is not past (rt-tests, `timerthread`), and
/// drops one period for each interval that the latency has besides. `latencies` and the interval, at least 1, are in one
/// unit; whole microseconds give the same as nanoseconds.
#[must_use]
pub fn missed_periods(latencies: &Distribution, interval: u32) -> u64 {
    let missed = |(latency, times): (u32, u64)| times.saturating_mul((latency / interval).into());
    latencies.iter().map(missed).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_is_missed_for_each_interval_that_a_latency_has() {
        let of = |latencies: &[(u32, u64)], interval| {
            let mut all = Distribution::default();
            latencies.iter().for_each(|&(latency, times)| all.record_many(latency, times));
            missed_periods(&all, interval)
        };
        assert_eq!(of(&[], 1_009), 0);
        assert_eq!(of(&[(9, 500), (1_008, 1)], 1_009), 0);
        // The mean of these is below the interval, and seven periods are missed.
        assert_eq!(of(&[(9, 500), (1_010, 3), (2_900, 2)], 1_009), 3 + 2 * 2);
        assert_eq!(of(&[(1_010_000, 3), (2_900_999, 2)], 1_009_000), 7);
        assert_eq!(of(&[(u32::MAX, u64::MAX)], 1), u64::MAX, "a guest may say anything");
    }

    #[test]
    fn each_latency_is_told_once_with_how_often_it_occurred() {
        let mut said = CyclictestProgress::default();
        for line in ["cyclic: ready", "(XEN) DOM1: cyclic: begin\r", "cyclic: late 8123 2"] {
            said.hear(line);
        }
        assert!(said.is_ready && said.has_begun && !said.is_done);
        said.hear("(XEN) DOM1: cyclic: late 512345 1\r");
        said.hear("cyclic: late 5");
        said.hear("cyclic: done");
        let latencies = &said.latencies_ns;
        assert_eq!((latencies.count(), latencies.max()), (3, Some(512_345)));
        assert!(said.is_done && said.failed.is_none());
        said.hear("cyclic: failed late 317");
        assert_eq!(said.failed.as_deref(), Some("late 317"));
    }
}
