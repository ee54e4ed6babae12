//! Copies of blocks that give each cycle a header.
//!
//! A compiler copies short blocks to the ends of those that lead there, and leaves out tests whose
//! outcome it knows: then a loop is entered in its middle as well. If what lies between such an
//! entry and the header is copied, once for what comes from outside, the loop has one entry.
//! What is executed stays the same.

use crate::graph::Graph;
use std::collections::{BTreeMap, BTreeSet};

/// Blocks of a function at most, with the copies.
const MOST: usize = 2048;

/// Copies blocks of a function until each cycle has a header, unless that takes too many.
#[must_use]
pub fn reducible(mut graph: Graph) -> Graph {
    while let Some(cycle) = without_header(&graph, (0..graph.blocks.len()).collect()) {
        let entries = entries(&graph, &cycle);
        let copied = |header: usize| {
            let others = entries.iter().copied().filter(|&entry| entry != header);
            before(&graph, &cycle, header, others.collect())
        };
        // What calls the function begins at its first block itself, not at a copy.
        let headers = if entries.first() == Some(&0) { &entries[..1] } else { &entries[..] };
        let fewest = headers.iter().map(|&header| copied(header)).min_by_key(BTreeSet::len);
        let Some(fewest) = fewest.filter(|all| graph.blocks.len() + all.len() <= MOST) else {
            break;
        };
        copy(&mut graph, &cycle, &fewest);
    }
    graph
}

/// Finds a cycle that can be entered at several blocks, among some blocks.
fn without_header(graph: &Graph, among: BTreeSet<usize>) -> Option<BTreeSet<usize>> {
    for mut cycle in cycles(graph, &among) {
        match entries(graph, &cycle)[..] {
            [header] => {
                cycle.remove(&header);
                if let Some(found) = without_header(graph, cycle) {
                    return Some(found);
                }
            }
            [] => {}
            _ => return Some(cycle),
        }
    }
    None
}

/// Returns the blocks of a cycle to which others lead, or where the function begins.
fn entries(graph: &Graph, cycle: &BTreeSet<usize>) -> Vec<usize> {
    let outside = graph.blocks.iter().enumerate().filter(|(at, _)| !cycle.contains(at));
    let led_to = outside.flat_map(|(_, block)| &block.next).copied().chain([0]);
    led_to.filter(|to| cycle.contains(to)).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Returns the blocks of a cycle that are reached from some of them before its header.
fn before(
    graph: &Graph,
    cycle: &BTreeSet<usize>,
    header: usize,
    mut open: Vec<usize>,
) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    while let Some(at) = open.pop() {
        if at != header && cycle.contains(&at) && found.insert(at) {
            open.extend(&graph.blocks[at].next);
        }
    }
    found
}

/// Copies blocks of a cycle, and has what comes from outside take the copies.
fn copy(graph: &mut Graph, cycle: &BTreeSet<usize>, blocks: &BTreeSet<usize>) {
    let first = graph.blocks.len();
    let copies: BTreeMap<usize, usize> = blocks.iter().copied().zip(first..).collect();
    for &block in blocks {
        let copy = graph.blocks[block].clone();
        graph.blocks.push(copy);
    }
    for (at, block) in graph.blocks.iter_mut().enumerate() {
        if at >= first || !cycle.contains(&at) {
            for next in &mut block.next {
                *next = copies.get(next).copied().unwrap_or(*next);
            }
        }
    }
}

/// Finds the strongly connected components of some blocks that have a cycle (Tarjan 1972).
fn cycles(graph: &Graph, among: &BTreeSet<usize>) -> Vec<BTreeSet<usize>> {
    let (mut number, mut low) = (BTreeMap::new(), BTreeMap::new());
    let (mut stack, mut found) = (Vec::new(), Vec::new());
    let next = |at: usize| graph.blocks[at].next.iter().copied().filter(|to| among.contains(to));
    for &root in among {
        if number.contains_key(&root) {
            continue;
        }
        let mut path = vec![(root, next(root).collect::<Vec<_>>())];
        number.insert(root, number.len());
        low.insert(root, number[&root]);
        stack.push(root);
        while let Some((at, open)) = path.last_mut() {
            let at = *at;
            if let Some(to) = open.pop() {
                if !number.contains_key(&to) {
                    number.insert(to, number.len());
                    low.insert(to, number[&to]);
                    stack.push(to);
                    path.push((to, next(to).collect()));
                } else if stack.contains(&to) {
                    low.insert(at, low[&at].min(number[&to]));
                }
                continue;
            }
            path.pop();
            if let Some((above, _)) = path.last() {
                low.insert(*above, low[above].min(low[&at]));
            }
            if low[&at] == number[&at] {
                let from = stack.iter().position(|&other| other == at).unwrap_or_default();
                let component: BTreeSet<usize> = stack.split_off(from).into_iter().collect();
                if component.len() > 1 || graph.blocks[at].next.contains(&at) {
                    found.push(component);
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Block;
    use crate::loops;
    use proptest::prelude::*;

    fn graph(next: &[Vec<usize>]) -> Graph {
        let block = |(at, next): (usize, &Vec<usize>)| Block {
            start: 4 * at as u64,
            length: 1,
            next: next.clone(),
            call: None,
            exit: None,
            look: false,
            stores_exclusive: false,
            loads_exclusive: false,
        };
        Graph { blocks: next.iter().enumerate().map(block).collect() }
    }

    fn nexts(graph: &Graph) -> Vec<Vec<usize>> {
        graph.blocks.iter().map(|block| block.next.clone()).collect()
    }

    /// Returns the addresses that are executed when each block is left by the branch that `turns`
    /// says.
    fn walk(graph: &Graph, turns: &[usize]) -> Vec<u64> {
        let (mut at, mut seen) = (0, Vec::new());
        for turn in turns {
            let block = &graph.blocks[at];
            seen.push(block.start);
            let Some(&next) = block.next.get(turn % block.next.len().max(1)) else { break };
            at = next;
        }
        seen
    }

    #[test]
    fn a_cycle_with_two_entries_gets_a_header() {
        // 0 -> 1, 0 -> 2, 1 -> 2 -> 1, 2 -> 3
        let two = graph(&[vec![1, 2], vec![2], vec![1, 3], vec![]]);
        let one = reducible(two.clone());
        assert_eq!(one.blocks.len(), 5);
        assert!(loops::find(&nexts(&one)).is_ok());
    }

    #[test]
    fn the_first_block_is_the_header_of_its_cycle() {
        // 0 -> 1, 1 -> 0, 1 -> 2 -> 1, and 3, that nothing reaches, leads into the middle. To copy
        // the first block would leave the original where the function begins, for ever.
        let entered = graph(&[vec![1], vec![0, 2], vec![1], vec![1]]);
        let after = reducible(entered.clone());
        assert!(loops::find(&nexts(&reached(&after))).is_ok());
        assert!(after.blocks.len() <= 2 * entered.blocks.len());
    }

    #[test]
    fn what_has_headers_stays_as_it_is() {
        let nested = graph(&[vec![1], vec![2, 3], vec![2, 1], vec![]]);
        assert_eq!(reducible(nested.clone()), nested);
    }

    proptest! {
        /// Any graph gets headers, and the same is executed as before.
        #[test]
        fn the_same_is_executed(
            next in prop::collection::vec(prop::collection::vec(0usize..6, 0..3), 6),
            turns in prop::collection::vec(0usize..2, 40),
        ) {
            let before = graph(&next);
            let after = reducible(before.clone());
            prop_assert_eq!(walk(&before, &turns), walk(&after, &turns));
            // What is never reached has no order.
            let kept = reached(&after);
            prop_assert!(loops::find(&nexts(&kept)).is_ok());
        }
    }

    fn reached(graph: &Graph) -> Graph {
        let (mut open, mut order) = (vec![0], Vec::new());
        while let Some(at) = open.pop() {
            if !order.contains(&at) {
                order.push(at);
                open.extend(&graph.blocks[at].next);
            }
        }
        let number = |at: &usize| order.iter().position(|other| other == at).unwrap();
        let blocks = order.iter().map(|&at| {
            let next = graph.blocks[at].next.iter().map(number).collect();
            Block { next, ..graph.blocks[at].clone() }
        });
        Graph { blocks: blocks.collect() }
    }
}
