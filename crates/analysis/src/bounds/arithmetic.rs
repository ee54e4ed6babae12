//! Sums and products that never wrap, and least fixed points.

use crate::misses::exact;
use crate::model::Ns;
use thiserror::Error;

/// Why a bound could not be computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Uncomputable {
    /// A time does not fit.
    #[error("a time exceeds 2^64 - 1 ns")]
    Overflow,
    /// Periods differ by so much that iterating takes for ever.
    #[error("no fixed point in {MAX_STEPS} steps")]
    TooManySteps,
    /// EL2's visits leave no time for anything else.
    #[error(
        "EL2 alone takes all of pCPU {pcpu}: of {} its visits take {}, and {} of that {most}; longer \
         periods leave it less to do",
        exact(*window_ns), exact(*el2_ns), exact(*most_ns)
    )]
    NoTime {
        /// The pCPU.
        pcpu: u32,
        /// In a window of this length,
        window_ns: Ns,
        /// its visits take so long, if each is as long as is assumed.
        el2_ns: Ns,
        /// Which visits take longest in sum: `for` or `because of` something.
        most: &'static str,
        /// How long they take.
        most_ns: Ns,
    },
}

/// What every equation answers.
pub type Computed<T> = Result<T, Uncomputable>;

/// More steps than any system of milliseconds and seconds takes.
const MAX_STEPS: u32 = 20_000_000;

pub(super) fn add(a: Ns, b: Ns) -> Computed<Ns> {
    a.checked_add(b).ok_or(Uncomputable::Overflow)
}

pub(super) fn multiply(count: u64, time: Ns) -> Computed<Ns> {
    count.checked_mul(time).ok_or(Uncomputable::Overflow)
}

pub(super) fn sum(times: impl IntoIterator<Item = Ns>) -> Computed<Ns> {
    times.into_iter().try_fold(0, add)
}

pub(super) fn try_sum(times: impl IntoIterator<Item = Computed<Ns>>) -> Computed<Ns> {
    times.into_iter().try_fold(0, |total, time| add(total, time?))
}

/// The least fixed point of `next` that is not below `start`, if it is not above
/// `limit`. `next` never falls, and `start` is not above that fixed point.
pub(super) fn fixed_point(
    start: Ns,
    limit: Ns,
    mut next: impl FnMut(Ns) -> Computed<Ns>,
) -> Computed<Option<Ns>> {
    let mut now = start;
    for _ in 0..MAX_STEPS {
        if now > limit {
            return Ok(None);
        }
        let then = next(now)?;
        if then == now {
            return Ok(Some(now));
        }
        now = then;
    }
    Err(Uncomputable::TooManySteps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_wraps() {
        assert_eq!(add(u64::MAX, 1), Err(Uncomputable::Overflow));
        assert_eq!(multiply(1 << 32, 1 << 32), Err(Uncomputable::Overflow));
        assert_eq!(sum([1, u64::MAX]), Err(Uncomputable::Overflow));
        assert_eq!(try_sum([Ok(1), Ok(u64::MAX)]), Err(Uncomputable::Overflow));
        assert_eq!(sum([1, 2, 3]), Ok(6));
    }

    #[test]
    fn fixed_points_are_the_least_within_the_limit() {
        // 2 + ceil(w / 5) * 3: 2, 5, 5.
        let next = |w: Ns| Ok(2 + w.div_ceil(5) * 3);
        assert_eq!(fixed_point(2, 5, next), Ok(Some(5)));
        assert_eq!(fixed_point(2, 4, next), Ok(None));
        assert_eq!(fixed_point(1, u64::MAX, |w| add(w, w)), Err(Uncomputable::Overflow));
        assert_eq!(fixed_point(1, u64::MAX, |w| add(w, 1)), Err(Uncomputable::TooManySteps));
    }
}
