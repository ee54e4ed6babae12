//! Several runs of the same thing.

use crate::observe::Distribution;
use crate::quantity::real;
use crate::results::{Check, Goal};
use serde::{Deserialize, Serialize};

/// Runs' results, in the order of the runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sample(pub Vec<f64>);

impl Sample {
    /// The arithmetic mean; not a number without runs.
    pub fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }

    /// The standard deviation of the sample (n - 1) over its mean, in percent.
    /// Not a number with fewer than two runs.
    pub fn deviation_percent(&self) -> f64 {
        let mean = self.mean();
        let squares: f64 = self.0.iter().map(|x| (x - mean).powi(2)).sum();
        100.0 * (squares / (self.0.len() as f64 - 1.0)).sqrt() / mean
    }

    /// Half of the width of the interval in which the mean of all such runs lies with a
    /// probability of 95 %, if runs are independent and normally distributed (Student's t). Not a
    /// number with fewer than two runs.
    pub fn interval(&self) -> f64 {
        let deviation = self.deviation_percent() / 100.0 * self.mean();
        student(self.0.len().saturating_sub(1)) * deviation / (self.0.len() as f64).sqrt()
    }

    /// Returns the mean and its interval.
    pub fn estimate(&self) -> Estimate {
        Estimate { mean: self.mean(), half: self.interval() }
    }

    /// Adds runs of the same.
    pub fn extend(&mut self, more: &Self) {
        self.0.extend(&more.0);
    }

    /// The least of all; infinite without runs.
    pub fn least(&self) -> f64 {
        self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The most of all; minus infinity without runs.
    pub fn most(&self) -> f64 {
        self.0.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }

    /// Without its first run, in which caches of the guest's fill.
    pub fn steady(&self) -> Self {
        Self(self.0.iter().skip(1).copied().collect())
    }
}

/// A mean, and half of the width of the interval in which that of all such values lies with a
/// probability of 95 %; not a number where too few values tell it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    pub mean: f64,
    pub half: f64,
}

impl Estimate {
    /// Returns the mean of a distribution, if it has any value, as if its values were independent.
    pub fn of(values: &Distribution) -> Option<Self> {
        let mean = values.mean()?;
        let squares = values.iter().map(|(value, n)| real(n) * (f64::from(value) - mean).powi(2));
        let variance = squares.sum::<f64>() / real(values.count());
        Some(Self::with_variance(values.count(), mean, variance))
    }

    /// Returns the mean of `count` values of which only their extremes are known. The interval is the widest that
    /// there is with these: the variance is at most the product of the mean's distances from both (Bhatia
    /// and Davis, 2000).
    pub fn between(count: u64, mean: f64, [least, most]: [f64; 2]) -> Self {
        let distances = [most - mean, mean - least].map(|distance| distance.max(0.0));
        Self::with_variance(count, mean, distances.into_iter().product())
    }

    /// `variance` is that of the values themselves, the mean square of their distances from their mean.
    fn with_variance(count: u64, mean: f64, variance: f64) -> Self {
        let degrees = count.saturating_sub(1);
        let half = student(usize::try_from(degrees).unwrap_or(usize::MAX))
            * (variance / real(degrees)).sqrt();
        Self { mean, half }
    }

    /// Returns how many times another mean it is, as if the errors of both were independent.
    pub fn over(self, other: Self) -> Self {
        let mean = self.mean / other.mean;
        Self { mean, half: mean * (self.half / self.mean).hypot(other.half / other.mean) }
    }

    /// Returns the ends of the interval.
    pub fn range(self) -> [f64; 2] {
        [self.mean - self.half, self.mean + self.half]
    }
}

/// Compares an estimate with `goal`: a statement on it says where runs do not tell.
pub fn estimated(name: &str, found: Option<Estimate>, unit: &str, goal: Goal) -> Check {
    let check = Check::new(name, found.map(|found| found.mean), unit, goal);
    match found {
        Some(found) => check.within(found.range()),
        None => check,
    }
}

/// Returns the value that a variable of Student's t distribution exceeds with a probability of
/// 2.5 %, to two decimals; beyond 30 degrees of freedom that of the least number in the table's
/// next step, which is no smaller than the value. Not a number without any.
fn student(degrees: usize) -> f64 {
    const UP_TO_30: [f64; 30] = [
        12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13,
        2.12, 2.11, 2.10, 2.09, 2.09, 2.08, 2.07, 2.07, 2.06, 2.06, 2.06, 2.05, 2.05, 2.05, 2.04,
    ];
    match degrees {
        0 => f64::NAN,
        1..=30 => UP_TO_30[degrees - 1],
        31..=60 => 2.04,
        _ => 2.00,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_deviation() {
        let sample = Sample(vec![9.0, 2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).steady();
        assert!((sample.mean() - 5.0).abs() < 1e-12);
        // The squares' sum is 32, over seven degrees of freedom.
        assert!((sample.deviation_percent() - 100.0 * (32.0_f64 / 7.0).sqrt() / 5.0).abs() < 1e-9);
        assert_eq!((sample.least(), sample.most()), (2.0, 9.0));
        // The standard error is the root of 32 / 7 / 8, and t 2.36 with seven degrees of freedom.
        assert!((sample.interval() - 2.36 * (32.0_f64 / 56.0).sqrt()).abs() < 1e-9);
        assert!(Sample(vec![1.0]).interval().is_nan() && student(31) >= student(61));
        assert!(Sample(vec![1.0]).deviation_percent().is_nan());
    }

    #[test]
    fn a_ratio_has_the_errors_of_both() {
        let [ours, other] = [(3.0, 0.3), (2.0, 0.2)].map(|(mean, half)| Estimate { mean, half });
        let ratio = ours.over(other);
        assert!((ratio.mean - 1.5).abs() < 1e-12);
        assert!((ratio.half - 1.5 * 0.02_f64.sqrt()).abs() < 1e-12);
        let [low, high] = ratio.range();
        assert!((low + high - 3.0).abs() < 1e-12 && low < 1.3);
        assert!(Sample(vec![1.0]).estimate().over(other).half.is_nan());
    }

    #[test]
    fn values_of_a_distribution_are_a_sample() {
        let mut values = Distribution::default();
        assert_eq!(Estimate::of(&values), None);
        values.record(5);
        assert!(Estimate::of(&values).unwrap().half.is_nan());
        values.record_many(7, 3);
        let sample = Sample(vec![5.0, 7.0, 7.0, 7.0]).estimate();
        let found = Estimate::of(&values).unwrap();
        assert!((found.mean - 6.5).abs() < 1e-12 && (found.half - sample.half).abs() < 1e-9);
    }

    /// With half of the values at each extreme the interval is the one of a sample, and no sample has a wider one.
    #[test]
    fn extremes_give_the_widest_interval() {
        let sample = Sample(vec![2.0, 2.0, 6.0, 6.0]).estimate();
        let found = Estimate::between(4, 4.0, [2.0, 6.0]);
        assert!((found.mean - 4.0).abs() < 1e-12 && (found.half - sample.half).abs() < 1e-9);
        assert!(Sample(vec![2.0, 3.0, 5.0, 6.0]).estimate().half < found.half);
        assert!(Estimate::between(1, 4.0, [4.0, 4.0]).half.is_nan());
        assert!(Estimate::between(9, 7.0, [2.0, 6.0]).half.abs() < 1e-12, "a rounded mean");
    }
}
