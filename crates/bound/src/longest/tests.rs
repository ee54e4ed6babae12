//! The longest path against a search through all paths.

use super::*;
use crate::loops;
use proptest::prelude::*;

/// Follows every path one block at a time, and counts what each loop may still do.
struct Search<'a> {
    next: &'a [Vec<usize>],
    loops: &'a Loops,
    bounds: &'a [Option<Bound>],
    costs: &'a [u64],
    /// Looked at so far: there may be very many paths.
    steps: u32,
}

impl Search<'_> {
    /// Returns the longest path from here to the last block; none if there is none.
    fn longest(&mut self, at: usize, left: &mut [u64]) -> Option<u64> {
        self.steps += 1;
        if self.steps > 200_000 {
            return None;
        }
        for (inner, bound) in self.bounds.iter().enumerate() {
            if bound.as_ref().is_some_and(|bound| bound.marks.contains(&at)) {
                left[inner] = left[inner].checked_sub(1)?;
            }
        }
        let mut best = (at + 1 == self.next.len()).then_some(0);
        for &to in &self.next[at] {
            let mut after = left.to_vec();
            for (inner, found) in self.loops.all.iter().enumerate() {
                if !found.blocks.contains(&at) && found.blocks.contains(&to) {
                    after[inner] = self.bounds[inner].as_ref().map_or(0, |bound| bound.times);
                }
            }
            best = best.max(self.longest(to, &mut after));
        }
        best.map(|rest| rest + self.costs[at])
    }
}

/// Edges, costs of blocks, and for each loop how often it runs and which block counts.
type Case = (Vec<Vec<usize>>, Vec<u64>, Vec<(u64, usize)>);

/// Graphs of few blocks, each reached from the first: edges go anywhere.
fn graphs() -> impl Strategy<Value = Case> {
    (3_usize..8).prop_flat_map(|count| {
        let edges = prop::collection::vec(prop::collection::vec(1..count, 0..3), count);
        let costs = prop::collection::vec(1_u64..50, count);
        let bounds = prop::collection::vec((1_u64..4, 0..count), count);
        (edges, costs, bounds).prop_map(move |(mut next, costs, bounds)| {
            // A chain, so that all blocks are reached and lead to the last one.
            for (at, nexts) in next.iter_mut().enumerate() {
                nexts.push((at + 1).min(count - 1));
                nexts.retain(|&to| to != at || at + 1 < count);
                nexts.sort_unstable();
                nexts.dedup();
            }
            (next, costs, bounds)
        })
    })
}

/// For each loop a block of its own (or also of the loops inside it) that all its cycles pass,
/// chosen by number; else its header.
fn bounds(
    next: &[Vec<usize>],
    loops: &Loops,
    wanted: &[(u64, usize)],
    own: bool,
) -> Vec<Option<Bound>> {
    let one = |at: usize| {
        let found = &loops.all[at];
        let (times, choice) = wanted[at];
        let blocks = found.blocks.iter().filter(|&&block| !own || loops.of[block] == Some(at));
        let blocks: Vec<_> = blocks.collect();
        let marks = BTreeSet::from([*blocks[choice % blocks.len()]]);
        let marks = if covers(next, loops, at, &marks) { marks } else { [found.header].into() };
        Some(Bound { times, marks })
    };
    (0..loops.all.len()).map(one).collect()
}

fn solved(
    next: &[Vec<usize>],
    loops: &Loops,
    bounds: &[Option<Bound>],
    costs: &[u64],
    start: usize,
) -> Option<Length<usize>> {
    let weight = |block: usize| Some(Length::of(costs[block], block));
    let region = Region { next, loops, bounds, weight: &weight };
    let last = next.len() - 1;
    let arrival = region.solve([(start, Length::default())]).swap_remove(last)?;
    Some(arrival.then(&weight(last)?))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_path_is_longer_and_one_is_as_long((next, costs, wanted) in graphs()) {
        let Ok(loops) = loops::find(&next) else { return Ok(()) };
        let bounds = bounds(&next, &loops, &wanted, true);
        let mut search = Search { next: &next, loops: &loops, bounds: &bounds, costs: &costs, steps: 0 };
        let mut left: Vec<_> = bounds.iter().flatten().map(|bound| bound.times).collect();
        let searched = search.longest(0, &mut left);
        prop_assume!(search.steps <= 200_000);
        let found = solved(&next, &loops, &bounds, &costs, 0);
        prop_assert_eq!(found.as_ref().map(|path| path.cost), searched);
        // The trail is that path.
        let Some(found) = found else { return Ok(()) };
        let mut walked = 0;
        trail::walk(&found.trail, &mut |&block, times| walked += costs[block] * times);
        prop_assert_eq!(walked, found.cost);
        prop_assert!(!found.open);
    }

    #[test]
    fn from_the_middle_of_a_loop_no_path_is_longer((next, costs, wanted) in graphs(), start in 0_usize..8) {
        let Ok(loops) = loops::find(&next) else { return Ok(()) };
        let start = start % next.len();
        let bounds = bounds(&next, &loops, &wanted, false);
        let mut search = Search { next: &next, loops: &loops, bounds: &bounds, costs: &costs, steps: 0 };
        let mut left: Vec<_> = bounds.iter().flatten().map(|bound| bound.times).collect();
        let searched = search.longest(start, &mut left);
        prop_assume!(search.steps <= 200_000);
        prop_assert!(solved(&next, &loops, &bounds, &costs, start).map(|path| path.cost) >= searched);
    }
}

#[test]
fn a_loop_without_a_bound_is_told() {
    let next = [vec![1], vec![1, 2], vec![]];
    let loops = loops::find(&next).unwrap();
    assert!(solved(&next, &loops, &[None], &[1, 1, 1], 0).unwrap().open);
    let bound = Bound { times: 5, marks: [1].into() };
    let path = solved(&next, &loops, &[Some(bound)], &[10, 2, 1], 0).unwrap();
    assert_eq!((path.open, path.cost), (false, 21));
}

#[test]
fn a_mark_beside_the_cycle_bounds_nothing() {
    // 1 -> 2 -> 1 and 1 -> 3 -> 1: each has one of two blocks.
    let next = [vec![1], vec![2, 3, 4], vec![1], vec![1], vec![]];
    let loops = loops::find(&next).unwrap();
    assert!(!covers(&next, &loops, 0, &[2].into()));
    assert!(covers(&next, &loops, 0, &[2, 3].into()));
    assert!(covers(&next, &loops, 0, &[1].into()));
}
