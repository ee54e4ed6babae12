//! The longest path through one function.
//!
//! A region, the function or a loop, is a graph without cycles once its inner loops are seen as
//! single items, so the longest path to each block is found in one pass over the items in order.
//! A loop that may run so many times is left after that many cycles at the latest. Paths may
//! also begin or end in the middle of a loop: a stretch between two looks does.

use crate::loops::{Item, Loops};
use crate::trail::{self, Trail};
use std::collections::BTreeSet;

/// How long a path is, and which.
#[derive(Debug)]
pub struct Length<S> {
    /// There is a cycle on it of which nothing says how often it runs: the path is longer.
    pub open: bool,
    /// Instructions.
    pub cost: u64,
    /// What is executed.
    pub trail: Trail<S>,
}

impl<S> Clone for Length<S> {
    fn clone(&self) -> Self {
        Self { trail: self.trail.clone(), ..*self }
    }
}

impl<S> Default for Length<S> {
    fn default() -> Self {
        Self { open: false, cost: 0, trail: None }
    }
}

impl<S> Length<S> {
    /// Returns a path of one step.
    pub fn of(cost: u64, step: S) -> Self {
        Self { open: false, cost, trail: trail::step(&None, step) }
    }

    /// Returns this path and then another one.
    #[must_use]
    pub fn then(&self, after: &Self) -> Self {
        Self {
            open: self.open || after.open,
            cost: self.cost.saturating_add(after.cost),
            trail: trail::then(&self.trail, &after.trail),
        }
    }

    /// Returns this path and then so many rounds of a cycle.
    fn around(&self, count: u64, cycle: &Self) -> Self {
        Self {
            open: self.open || cycle.open && count > 0,
            cost: self.cost.saturating_add(cycle.cost.saturating_mul(count)),
            trail: trail::times(&self.trail, count, &cycle.trail),
        }
    }

    fn rank(&self) -> (bool, u64) {
        (self.open, self.cost)
    }
}

/// Replaces a length by another one that is longer.
pub fn raise<S>(longest: &mut Option<Length<S>>, other: Option<Length<S>>) {
    let Some(other) = other else { return };
    if longest.as_ref().is_none_or(|longest| longest.rank() < other.rank()) {
        *longest = Some(other);
    }
}

/// How often a loop runs each time that it is entered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The blocks in `marks` are executed so often in all.
    pub times: u64,
    /// Blocks of the loop, or of loops inside it, of which each cycle has one.
    pub marks: BTreeSet<usize>,
}

/// Returns true if each cycle of a loop executes one of these blocks.
#[must_use]
pub fn covers(next: &[Vec<usize>], loops: &Loops, at: usize, marks: &BTreeSet<usize>) -> bool {
    let bounds = vec![None; loops.all.len()];
    let weight = |_: usize| Some(Length::<()>::default());
    let region = Region { next, loops, bounds: &bounds, weight: &weight };
    let start = [(loops.all[at].header, Length::default())];
    region.pass(Some(at), &region.begin(start), marks).1.is_none()
}

/// A function, and what each block takes.
pub struct Region<'a, S> {
    /// Where each block leads.
    pub next: &'a [Vec<usize>],
    /// The loops among them.
    pub loops: &'a Loops,
    /// How often they run, as far as that is said.
    pub bounds: &'a [Option<Bound>],
    /// The length of a block with its call; none if the path does not go on behind it.
    pub weight: &'a dyn Fn(usize) -> Option<Length<S>>,
}

/// For each block the longest path to its first instruction.
type Arrivals<S> = Vec<Option<Length<S>>>;

impl<S> Region<'_, S> {
    /// Returns for each block the longest path to it from where paths begin.
    pub fn solve(&self, starts: impl IntoIterator<Item = (usize, Length<S>)>) -> Arrivals<S> {
        self.pass(None, &self.begin(starts), &BTreeSet::new()).0
    }

    fn begin(&self, starts: impl IntoIterator<Item = (usize, Length<S>)>) -> Arrivals<S> {
        let mut arrivals = vec![None; self.next.len()];
        for (block, length) in starts {
            raise(&mut arrivals[block], Some(length));
        }
        arrivals
    }

    /// Follows all paths in a region (a loop, or the whole function) without going around it, and
    /// without arriving at the blocks `avoided`. Returns the arrivals, and the longest path to
    /// the end of an edge back to the region's header.
    fn pass(
        &self,
        region: Option<usize>,
        starts: &Arrivals<S>,
        avoided: &BTreeSet<usize>,
    ) -> (Arrivals<S>, Option<Length<S>>) {
        let header = region.map(|at| self.loops.all[at].header);
        let inside =
            |block: usize| region.is_none_or(|at| self.loops.all[at].blocks.contains(&block));
        let mut arrivals = starts.clone();
        avoided.iter().for_each(|&block| arrivals[block] = None);
        let mut back = None;
        let order = region.map_or(&self.loops.order, |at| &self.loops.inside[at]);
        for &item in order {
            let from: Vec<usize> = match item {
                Item::Block(block) => vec![block],
                Item::Loop(at) => {
                    let blocks = &self.loops.all[at].blocks;
                    let mut entered: Arrivals<S> = vec![None; self.next.len()];
                    blocks.iter().for_each(|&block| entered[block] = arrivals[block].take());
                    let mut left = self.around(at, &entered, avoided);
                    blocks.iter().for_each(|&block| arrivals[block] = left[block].take());
                    blocks.iter().copied().collect()
                }
            };
            for block in from {
                let Some(length) = self.leave(block, &arrivals) else { continue };
                for &to in &self.next[block] {
                    let is_back = Some(to) == header;
                    let is_within =
                        matches!(item, Item::Loop(at) if self.loops.all[at].blocks.contains(&to));
                    if is_back {
                        raise(&mut back, Some(length.clone()));
                    } else if inside(to) && !is_within && !avoided.contains(&to) {
                        raise(&mut arrivals[to], Some(length.clone()));
                    }
                }
            }
        }
        (arrivals, back)
    }

    fn leave(&self, block: usize, arrivals: &Arrivals<S>) -> Option<Length<S>> {
        Some(arrivals[block].as_ref()?.then(&(self.weight)(block)?))
    }

    /// Follows all paths in a loop, which go around it as often as they may, without arriving at
    /// the blocks `avoided`.
    fn around(&self, at: usize, entered: &Arrivals<S>, avoided: &BTreeSet<usize>) -> Arrivals<S> {
        let header = self.loops.all[at].header;
        let (mut arrivals, back) = self.pass(Some(at), entered, avoided);
        let Some(back) = back else { return arrivals };
        let once = self.begin([(header, Length::default())]);
        let (within, cycle) = self.pass(Some(at), &once, avoided);
        // From the middle, one path leads back to the header; each cycle starts there.
        let from_header = entered.iter().enumerate().all(|(at, one)| at == header || one.is_none());
        let mut add = |reached: &Length<S>, within: &Arrivals<S>| {
            for (arrival, rest) in arrivals.iter_mut().zip(within) {
                raise(arrival, rest.as_ref().map(|rest| reached.then(rest)));
            }
        };
        let Some(cycle) = cycle else {
            add(&back, &within);
            return arrivals;
        };
        let Some(bound) = &self.bounds[at] else {
            add(&Length { open: true, ..back.clone() }, &within);
            return arrivals;
        };
        // A path that came from the header has passed a mark already.
        let cycles = bound.times.saturating_sub(from_header.into());
        let unmarked = bound.marks.union(avoided).copied().collect();
        let (unmarked, _) = self.pass(Some(at), &once, &unmarked);
        if bound.times > 0 {
            add(&back.around(cycles, &cycle), &unmarked);
        }
        match cycles.checked_sub(1) {
            Some(fewer) => add(&back.around(fewer, &cycle), &within),
            // The path back passed no mark, and no cycle may follow.
            None if bound.times == 0 && !from_header => add(&back, &unmarked),
            None => {}
        }
        arrivals
    }
}

#[cfg(test)]
mod tests;
