//! Several runs of the same thing.

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
        assert!(Sample(vec![1.0]).deviation_percent().is_nan());
    }
}
