//! The schedulability experiments of vMPCP (Kim, Wang and Rajkumar, RTSS 2014,
//! section V-A): Figures 6 to 10, and beside each what the paper says of it.
//!
//! | module | story |
//! | --- | --- |
//! | `setting` | Table I, and what we chose where the paper leaves something open |
//! | `taskset` | random tasksets |
//! | `scheme` | PSwO, DSwO, PSnO, DSnO: budgets, then Equation 6 |
//! | `curves` | ten thousand of them at each point |
//! | [`figure`] | what varies, and the paper's statements as checks |
//! | `report` | the page, the drawing, the table, the JSON |

mod curves;
pub mod figure;
mod report;
mod scheme;
mod setting;
mod taskset;

use crate::interrupt::Interrupt;
use crate::progress::Progress;
use analysis::bounds::Computed;
use curves::{Curves, Draw};
use figure::Figure;
use setting::Choices;

/// Other choices are drawn with this share of the tasksets: they show how much
/// matters, not how much exactly.
const FEWER: u64 = 10;
/// But with so many at least, if ours are.
const ENOUGH: u64 = 500;

/// One figure, with our choices and others.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Which.
    pub figure: Figure,
    /// How tasksets were drawn.
    pub draw: Draw,
    /// What came out.
    pub curves: Curves,
    /// What would have come out.
    pub others: Vec<Other>,
}

/// The same figure with another choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Other {
    /// What is other, in words.
    pub name: &'static str,
    /// At each point.
    pub tasksets: u64,
    /// What came out.
    pub curves: Curves,
}

/// Draws and analyses `tasksets` tasksets at each point of `figure`. Answers
/// nothing after Ctrl-C.
///
/// # Errors
/// When a time overflows, which times of milliseconds do not.
pub fn run(
    figure: Figure,
    tasksets: u64,
    seed: u64,
    progress: &mut Progress,
    interrupt: &Interrupt,
) -> Computed<Option<Experiment>> {
    let mut compute = |what: &str, draw| {
        Curves::compute(figure, draw, |share| {
            let percent = 100.0 * share;
            progress.now(&format!("figure {}, {what}: {percent:.0} %", figure.number));
            !interrupt.requested()
        })
    };
    let draw = Draw { tasksets, seed, choices: Choices::BASE };
    let Some(curves) = compute("our choices", draw)? else { return Ok(None) };
    let tasksets = tasksets.min((tasksets / FEWER).max(ENOUGH));
    let mut others = Vec::new();
    for (name, choices) in Choices::OTHERS {
        let Some(curves) = compute(name, Draw { tasksets, seed, choices })? else {
            return Ok(None);
        };
        others.push(Other { name, tasksets, curves });
    }
    Ok(Some(Experiment { figure, draw, curves, others }))
}

#[cfg(test)]
mod tests;
