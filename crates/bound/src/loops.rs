//! Dominators, natural loops and how they nest.
//!
//! A loop is known by its header, the block by which alone it is entered. A cycle that can be
//! entered at several blocks (an irreducible one) has no header, and a bound on how often it runs
//! could not be tied to a block. [`crate::copies`] gives it one.

use std::collections::BTreeSet;

/// A natural loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// The block by which it is entered.
    pub header: usize,
    /// All its blocks, those of inner loops too.
    pub blocks: BTreeSet<usize>,
    /// The loop that it is directly in.
    pub parent: Option<usize>,
}

/// What a region is made of: a block, or a loop that is seen as one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// A block that is in no inner loop.
    Block(usize),
    /// A loop, by number.
    Loop(usize),
}

/// The loops of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loops {
    /// The loops, outer ones before inner ones.
    pub all: Vec<Loop>,
    /// For each block the innermost loop that it is in.
    pub of: Vec<Option<usize>>,
    /// What the function is made of, each item before those that it leads to.
    pub order: Vec<Item>,
    /// Likewise each loop; its header comes first.
    pub inside: Vec<Vec<Item>>,
}

/// A cycle without a header: an edge leads back, and the block to which it leads does not
/// dominate the one from which it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Irreducible {
    /// Where the edge leads.
    pub to: usize,
}

/// Finds the loops in a graph whose first block is the entry, from which all are reached.
///
/// # Errors
/// When there is a cycle without a header.
pub fn find(next: &[Vec<usize>]) -> Result<Loops, Irreducible> {
    let order = reverse_postorder(next);
    let dominators = dominators(next, &order);
    let mut rank = vec![0; next.len()];
    order.iter().enumerate().for_each(|(at, &block)| rank[block] = at);
    let dominates = |above: usize, mut below: usize| loop {
        if below == above {
            return true;
        }
        if below == 0 {
            return false;
        }
        below = dominators[below];
    };
    let mut before = vec![Vec::new(); next.len()];
    for (from, nexts) in next.iter().enumerate() {
        nexts.iter().for_each(|&to| before[to].push(from));
    }
    let mut all: Vec<Loop> = Vec::new();
    for &header in &order {
        let latches: Vec<_> =
            before[header].iter().copied().filter(|&from| rank[from] >= rank[header]).collect();
        if latches.is_empty() {
            continue;
        }
        if latches.iter().any(|&latch| !dominates(header, latch)) {
            return Err(Irreducible { to: header });
        }
        let mut blocks = BTreeSet::from([header]);
        let mut open = latches;
        while let Some(block) = open.pop() {
            if blocks.insert(block) {
                open.extend(&before[block]);
            }
        }
        all.push(Loop { header, blocks, parent: None });
    }
    // Outer loops first: a loop that contains another one has more blocks.
    all.sort_by_key(|found| std::cmp::Reverse(found.blocks.len()));
    let mut of = vec![None; next.len()];
    for at in 0..all.len() {
        all[at].parent = of[all[at].header];
        all[at].blocks.iter().for_each(|&block| of[block] = Some(at));
    }
    let mut loops = Loops { all, of, order: Vec::new(), inside: Vec::new() };
    loops.order = loops.arrange(next, None);
    loops.inside = (0..loops.all.len()).map(|at| loops.arrange(next, Some(at))).collect();
    Ok(loops)
}

impl Loops {
    /// Returns the item of `region` (a loop, or the whole function) that contains a block; none
    /// when the block is outside.
    fn item(&self, block: usize, region: Option<usize>) -> Option<Item> {
        let mut inner = self.of[block];
        if inner == region {
            return Some(Item::Block(block));
        }
        while let Some(at) = inner {
            if self.all[at].parent == region {
                return Some(Item::Loop(at));
            }
            inner = self.all[at].parent;
        }
        None
    }

    /// Orders the items of a region: each comes before those that it leads to, but for the
    /// edges back to the region's header.
    fn arrange(&self, next: &[Vec<usize>], region: Option<usize>) -> Vec<Item> {
        let header = region.map_or(0, |at| self.all[at].header);
        let mut done = BTreeSet::new();
        let mut order = Vec::new();
        // Depth first with a stack of its own: (item, blocks behind it that are still open).
        let open = |item: Item| -> Vec<usize> {
            match item {
                Item::Block(block) => next[block].clone(),
                Item::Loop(at) => {
                    let blocks = &self.all[at].blocks;
                    let leave = blocks.iter().flat_map(|&block| &next[block]);
                    leave.copied().filter(|to| !blocks.contains(to)).collect()
                }
            }
        };
        let key = |item: Item| match item {
            Item::Block(block) => (0, block),
            Item::Loop(at) => (1, at),
        };
        let Some(first) = self.item(header, region) else { return order };
        done.insert(key(first));
        let mut stack = vec![(first, open(first))];
        while let Some((item, rest)) = stack.last_mut() {
            let Some(block) = rest.pop() else {
                order.push(*item);
                stack.pop();
                continue;
            };
            let Some(found) = self.item(block, region) else { continue };
            if done.insert(key(found)) {
                let behind = open(found);
                stack.push((found, behind));
            }
        }
        order.reverse();
        order
    }
}

/// Orders blocks so that each comes before those that it leads to, but for edges back.
fn reverse_postorder(next: &[Vec<usize>]) -> Vec<usize> {
    let mut order = Vec::new();
    if next.is_empty() {
        return order;
    }
    let mut seen = vec![false; next.len()];
    seen[0] = true;
    let mut stack = vec![(0, 0)];
    while let Some((block, at)) = stack.last_mut() {
        match next[*block].get(*at) {
            None => {
                order.push(*block);
                stack.pop();
            }
            Some(&to) => {
                *at += 1;
                if !std::mem::replace(&mut seen[to], true) {
                    stack.push((to, 0));
                }
            }
        }
    }
    order.reverse();
    order
}

/// Finds the immediate dominator of each block; that of the entry is the entry (Cooper, Harvey
/// and Kennedy, "A Simple, Fast Dominance Algorithm", 2001).
fn dominators(next: &[Vec<usize>], order: &[usize]) -> Vec<usize> {
    let unknown = usize::MAX;
    let mut rank = vec![unknown; next.len()];
    order.iter().enumerate().for_each(|(at, &block)| rank[block] = at);
    let mut before = vec![Vec::new(); next.len()];
    for &from in order {
        next[from].iter().for_each(|&to| before[to].push(from));
    }
    let mut dominator = vec![unknown; next.len()];
    if let Some(&entry) = order.first() {
        dominator[entry] = entry;
    }
    let mut changed = true;
    while std::mem::take(&mut changed) {
        for &block in order.iter().skip(1) {
            let known = before[block].iter().copied().filter(|&from| dominator[from] != unknown);
            let new = known.reduce(|mut a, mut b| {
                while a != b {
                    while rank[a] > rank[b] {
                        a = dominator[a];
                    }
                    while rank[b] > rank[a] {
                        b = dominator[b];
                    }
                }
                a
            });
            let new = new.unwrap_or(unknown);
            changed |= std::mem::replace(&mut dominator[block], new) != new;
        }
    }
    dominator
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_nest() {
        // 0 -> 1 -> 2 -> 2, 2 -> 1, 1 -> 3
        let loops = find(&[vec![1], vec![2, 3], vec![2, 1], vec![]]).unwrap();
        let headers: Vec<_> = loops.all.iter().map(|l| (l.header, l.parent)).collect();
        assert_eq!(headers, [(1, None), (2, Some(0))]);
        assert_eq!(loops.of, [None, Some(0), Some(1), None]);
        assert_eq!(loops.order, [Item::Block(0), Item::Loop(0), Item::Block(3)]);
        assert_eq!(loops.inside, [vec![Item::Block(1), Item::Loop(1)], vec![Item::Block(2)]]);
    }

    #[test]
    fn loops_beside_each_other_are_in_order() {
        // 0 -> 1 -> 1 -> 2 -> 3 -> 3 -> 4
        let loops = find(&[vec![1], vec![1, 2], vec![3], vec![3, 4], vec![]]).unwrap();
        let order = [
            Item::Block(0),
            Item::Loop(loops.of[1].unwrap()),
            Item::Block(2),
            Item::Loop(loops.of[3].unwrap()),
            Item::Block(4),
        ];
        assert_eq!(loops.order, order);
    }

    #[test]
    fn two_back_edges_to_one_header_are_one_loop() {
        let loops = find(&[vec![1], vec![2, 3], vec![1], vec![1, 4], vec![]]).unwrap();
        assert_eq!(loops.all.len(), 1);
        assert_eq!(loops.all[0].blocks, BTreeSet::from([1, 2, 3]));
    }

    #[test]
    fn a_cycle_that_is_entered_at_two_blocks_is_refused() {
        let irreducible = find(&[vec![1, 2], vec![2], vec![1, 3], vec![]]);
        assert!(irreducible.is_err());
    }
}
