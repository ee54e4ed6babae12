//! Stalls: stretches of virtual time in which one core executes nothing.
//!
//! Firmware that takes a core from all that runs on it (EL3, a secure interrupt), and a core that stands
//! still for another reason, look alike from below: the counter goes on, and no instruction is executed.
//! QEMU's board has neither, so the instrument makes one where it is asked to. What finds such gaps is
//! tested with it.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// A core executes nothing from one virtual time to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// Index of the core.
    pub core: usize,
    /// Virtual time at which it begins, ns. It begins with the first block at or behind that, if
    /// the core runs.
    pub at_ns: u64,
    /// How long it lasts, ns.
    pub for_ns: u64,
}

impl Stall {
    /// How long one may last, ns: longer than a block, and an hour at most.
    pub const LENGTH_NS: RangeInclusive<u64> = 1_000..=3_600_000_000_000;
    /// When it may begin, ns: within thirty years, so that no time overflows.
    pub const BEGIN_NS: RangeInclusive<u64> = 0..=946_080_000_000_000_000;

    /// Makes one, or says what is wrong with it.
    ///
    /// # Errors
    /// If it is too short, too long or too late.
    pub fn new(core: usize, at_ns: u64, for_ns: u64) -> Result<Self, String> {
        if !Self::LENGTH_NS.contains(&for_ns) {
            return Err("a stall lasts from 1 us to 3600 s".into());
        }
        if !Self::BEGIN_NS.contains(&at_ns) {
            return Err("a stall begins within thirty years".into());
        }
        Ok(Self { core, at_ns, for_ns })
    }

    /// Reads `CORE@TIME:DURATION`, in which `time` reads the two times.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn read(text: &str, time: impl Fn(&str) -> Result<u64, String>) -> Result<Self, String> {
        let parts = text.split_once('@').and_then(|(core, times)| {
            let (at, length) = times.split_once(':')?;
            Some((core.parse().ok()?, at, length))
        });
        let (core, at, length) =
            parts.ok_or("give CORE@TIME:DURATION, for example 1@200ms:500us")?;
        Self::new(core, time(at)?, time(length)?)
    }

    fn end_ns(&self) -> u64 {
        self.at_ns + self.for_ns
    }
}

/// As the instrument's option has it: times in nanoseconds, without a unit.
impl FromStr for Stall {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let whole = |text: &str| text.parse().map_err(|_| "times are whole nanoseconds".to_owned());
        Self::read(text, whole)
    }
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}@{}:{}", self.core, self.at_ns, self.for_ns)
    }
}

/// Returns when a core may go on that is at `now_ns`, if it stalls there.
#[must_use]
pub fn end(stalls: &[Stall], core: usize, now_ns: u64) -> Option<u64> {
    let mut end_ns = now_ns;
    // One may begin where another ends.
    while let Some(stall) = stalls
        .iter()
        .find(|stall| stall.core == core && stall.at_ns <= end_ns && end_ns < stall.end_ns())
    {
        end_ns = stall.end_ns();
    }
    (end_ns > now_ns).then_some(end_ns)
}

/// Returns how far a core that is at `now_ns` and may run up to `limit_ns` runs before its next stall: no
/// further where a block that it is to execute first reaches into the stall.
#[must_use]
pub fn limit(stalls: &[Stall], core: usize, now_ns: u64, limit_ns: u64) -> u64 {
    let next = stalls.iter().filter(|stall| stall.core == core && stall.end_ns() > now_ns);
    next.map(|stall| stall.at_ns.max(now_ns)).fold(limit_ns, u64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stalls() -> [Stall; 3] {
        ["1@5000:2000", "1@6500:3000", "0@100:1000"].map(|text| text.parse().unwrap())
    }

    #[test]
    fn a_core_runs_up_to_its_stall_and_goes_on_behind_it() {
        let stalls = stalls();
        assert_eq!(limit(&stalls, 1, 4_000, 6_000), 5_000);
        assert_eq!(limit(&stalls, 1, 4_000, 4_500), 4_500);
        assert_eq!(limit(&stalls, 1, 5_003, 6_000), 5_003, "a block reached into it");
        assert_eq!(limit(&stalls, 1, 9_500, 12_000), 12_000);
        assert_eq!(limit(&stalls, 2, 0, 12_000), 12_000);
        assert_eq!(end(&stalls, 1, 4_999), None);
        assert_eq!(end(&stalls, 1, 5_007), Some(9_500), "two that overlap are one");
        assert_eq!(end(&stalls, 1, 9_499), Some(9_500));
        assert_eq!(end(&stalls, 1, 9_500), None);
        assert_eq!(end(&stalls, 0, 5_007), None);
    }

    #[test]
    fn a_core_that_slept_through_its_stall_has_none() {
        assert_eq!(end(&stalls(), 0, 20_000), None);
    }

    #[test]
    fn says_what_is_wrong() {
        for (text, wrong) in [
            ("1@5", "give CORE@TIME:DURATION"),
            ("x@5:5000", "give CORE@TIME:DURATION"),
            ("1@5us:5000", "whole nanoseconds"),
            ("1@5:999", "from 1 us"),
            ("1@5:3600000000001", "from 1 us"),
            ("1@946080000000000001:5000", "thirty years"),
        ] {
            let error = text.parse::<Stall>().unwrap_err();
            assert!(error.contains(wrong), "{text}: {error}");
        }
    }
}
