//! What a call of vMPCP took a guest. FreeRTOS and Linux's tool say it in the same words
//! (`guests/freertos/src/bench.c`, `guests/linux/vmpcp/bench.c`).

use super::words::number;
use serde::{Deserialize, Serialize};

/// How long a call took, nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimedCall {
    /// What the guest calls it.
    pub key: String,
    /// How often it was made.
    pub count: u64,
    /// The shortest.
    pub min_ns: u64,
    /// The mean.
    pub mean_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

impl TimedCall {
    /// Reads what stands behind `vmpcp `; none if it is about something else.
    pub(super) fn of(said: &str) -> Option<Self> {
        let (key, figures) = said.split_once(' ')?;
        Some(Self {
            key: key.into(),
            count: number(figures, "count")?,
            min_ns: number(figures, "min")?,
            mean_ns: number(figures, "mean")?,
            max_ns: number(figures, "max")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_told_from_what_else_is_said() {
        let said = "intra_lock count=10000 call_ns min=120 mean=123 max=4567";
        let key = "intra_lock".into();
        let call = TimedCall { key, count: 10_000, min_ns: 120, mean_ns: 123, max_ns: 4_567 };
        assert_eq!(TimedCall::of(said), Some(call));
        for said in ["x", "x count=1 min=2", "service=1.0 interrupt=12"] {
            assert_eq!(TimedCall::of(said), None, "{said}");
        }
    }
}
