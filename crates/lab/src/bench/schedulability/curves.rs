//! How many tasksets are schedulable at each point, and how to get there.

use super::figure::Figure;
use analysis::bounds::Computed;
use analysis::tasksets::{Choices, Scheme, draw, random, schedulable};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Tasksets between two looks at whatever waits for us.
const BATCH: u64 = 500;

/// The four schemes over what varies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curves {
    /// In the order of what varies.
    pub points: Vec<Point>,
}

/// All tasksets of one setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    pub value: f64,
    /// How many were drawn, at least 1.
    pub tasksets: u64,
    /// How many of them are schedulable, in the order of [`Scheme::ALL`].
    pub schedulable: [u64; 4],
}

/// How many tasksets to draw, from which random numbers, with which choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draw {
    /// At each point, at least 1.
    pub tasksets: u64,
    /// The same seed draws the same tasksets, however many cores there are.
    pub seed: u64,
    /// What the paper leaves open.
    pub choices: Choices,
}

impl Curves {
    /// Draws tasksets for every point of `figure` and analyses them, on all
    /// cores. `go_on` is asked between batches, with the share done of all (0 to
    /// 1); nothing is answered when it refuses.
    ///
    /// # Errors
    /// When a time overflows, which times of milliseconds do not.
    pub fn compute(
        figure: Figure,
        draw: Draw,
        mut go_on: impl FnMut(f64) -> bool,
    ) -> Computed<Option<Self>> {
        let mut points = Vec::new();
        let values = figure.values;
        for (index, &value) in values.iter().enumerate() {
            let mut point = Point { value, tasksets: draw.tasksets, schedulable: [0; 4] };
            let mut done = 0;
            while done < draw.tasksets {
                let share =
                    (index as f64 + done as f64 / draw.tasksets as f64) / values.len() as f64;
                if !go_on(share) {
                    return Ok(None);
                }
                let end = draw.tasksets.min(done + BATCH);
                let counts = (done..end)
                    .into_par_iter()
                    .map(|taskset| one(figure, index, value, draw, taskset))
                    .try_reduce(|| [0; 4], |a, b| Ok(std::array::from_fn(|i| a[i] + b[i])))?;
                point.schedulable = std::array::from_fn(|i| point.schedulable[i] + counts[i]);
                done = end;
            }
            points.push(point);
        }
        Ok(Some(Self { points }))
    }

    /// The point where what varies has this value.
    pub fn at(&self, value: f64) -> Option<&Point> {
        self.points.iter().find(|point| (point.value - value).abs() < 1e-9)
    }

    /// Those from `low` to `high`, both included.
    pub fn between(&self, low: f64, high: f64) -> Self {
        let inside = self.points.iter().filter(|point| (low..=high).contains(&point.value));
        Self { points: inside.cloned().collect() }
    }

    /// The greatest of what `of` makes of the points.
    pub(super) fn most(&self, of: impl Fn(&Point) -> f64) -> f64 {
        self.points.iter().map(of).fold(f64::MIN, f64::max)
    }

    /// From a scheme's best point to its worst, percentage points.
    pub(super) fn range(&self, scheme: Scheme) -> f64 {
        self.most(|point| point.percent(scheme)) + self.most(|point| -point.percent(scheme))
    }

    /// From a scheme's first point to its last, percentage points.
    pub(super) fn fall(&self, scheme: Scheme) -> f64 {
        let ends = self.points.first().zip(self.points.last());
        ends.map_or(0.0, |(first, last)| first.percent(scheme) - last.percent(scheme))
    }

    /// Where the same scheme differs most in `other`, and by how many percentage
    /// points: ours less theirs.
    pub fn difference(&self, other: &Self, scheme: Scheme) -> Option<(f64, f64)> {
        let pairs = self.points.iter().zip(&other.points);
        let differences = pairs.map(|(a, b)| (a.value, b.percent(scheme) - a.percent(scheme)));
        differences.max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))
    }
}

impl Point {
    /// The share of schedulable tasksets under `scheme`, 0 to 100.
    pub fn percent(&self, scheme: Scheme) -> f64 {
        100.0 * self.schedulable[scheme as usize] as f64 / self.tasksets as f64
    }

    /// By how many percentage points DSwO leads the best of the others.
    pub fn lead(&self) -> f64 {
        let others = [Scheme::PSwO, Scheme::PSnO, Scheme::DSnO].map(|scheme| self.percent(scheme));
        self.percent(Scheme::DSwO) - others.into_iter().fold(0.0, f64::max)
    }
}

/// One taskset: which schemes schedule it, 0 or 1.
fn one(figure: Figure, point: usize, value: f64, how: Draw, taskset: u64) -> Computed<[u64; 4]> {
    let mut random = random(how.seed, figure.number, point, taskset);
    let system = draw(&(figure.setting)(value), how.choices, &mut random);
    Ok(schedulable(&system, how.choices.budgets)?.map(u64::from))
}
