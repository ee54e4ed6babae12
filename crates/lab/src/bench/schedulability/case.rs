//! One figure, with our choices and others.

use super::curves::{Curves, Draw};
use super::figure::{FIGURES, Figure};
use crate::bench::Tell;
use crate::bench::store::{self, measured};
use crate::interrupt::Interrupt;
use analysis::tasksets::Choices;
use miette::{IntoDiagnostic, Result, miette};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// Other choices are drawn with this share of the tasksets: they show how much
/// matters, not how much exactly.
const FEWER: u64 = 10;
/// But with so many at least, if ours are.
const ENOUGH: u64 = 500;

/// Which figure, and how its tasksets are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// As the paper numbers it.
    pub figure: u32,
    /// How many at each point, at least 1.
    pub tasksets: u64,
    /// Of the random numbers.
    pub seed: u64,
}

/// What came out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// The case that was run.
    pub case: Case,
    /// Real time from start to end, in seconds.
    pub real_s: f64,
    /// With our choices.
    pub curves: Curves,
    /// With those that the paper seems to have made, [`Choices::PAPER`].
    pub paper: Curves,
    /// What would have come out with [`Choices::OTHERS`], in their order.
    pub others: Vec<Curves>,
}

impl store::Case for Case {
    fn name(&self) -> String {
        format!("figure-{}", self.figure)
    }
}

measured!(Seen, case: Case, real_s);

impl Case {
    /// Returns the figure.
    ///
    /// # Panics
    /// When the paper has no such figure.
    pub fn figure(&self) -> Figure {
        let found = FIGURES.into_iter().find(|figure| figure.number == self.figure);
        found.expect("a case is made of a figure")
    }

    /// Returns how many tasksets are drawn at each point with other choices.
    pub fn fewer(&self) -> u64 {
        self.tasksets.min((self.tasksets / FEWER).max(ENOUGH))
    }

    /// Draws and analyses tasksets, until Ctrl-C comes.
    pub fn run(&self, interrupt: &Interrupt, tell: Tell<'_>) -> Result<Seen> {
        let begin = Instant::now();
        let mut compute = |what: &str, tasksets, choices| {
            let draw = Draw { tasksets, seed: self.seed, choices };
            let computed = Curves::compute(self.figure(), draw, |share| {
                tell(&format!("{what}: {:.0} %", 100.0 * share));
                !interrupt.requested()
            });
            computed.into_diagnostic()?.ok_or_else(|| miette!("interrupted"))
        };
        let curves = compute("our choices", self.tasksets, Choices::BASE)?;
        let paper = compute("the paper's choices", self.tasksets, Choices::PAPER)?;
        let others = Choices::OTHERS.into_iter();
        let others = others.map(|(name, choices)| compute(name, self.fewer(), choices));
        let others = others.collect::<Result<_>>()?;
        Ok(Seen { case: *self, real_s: begin.elapsed().as_secs_f64(), curves, paper, others })
    }
}
