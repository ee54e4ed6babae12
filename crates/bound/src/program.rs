//! All functions that the entries reach, and their calls.

use crate::copies;
use crate::decode::{self, Third};
use crate::facts::{self, BySize, CallFact, Facts, LoopFact};
use crate::graph::{self, Block, Call, Code, Exit, Graph};
use crate::image::Image;
use crate::lines::Lines;
use crate::longest::{Bound, covers};
use crate::loops::{self, Loops};
use crate::notes::What;
use crate::sizes::Sizes;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Something without which no bound can be given.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// What is missing.
    pub what: Missing,
    /// The function.
    pub function: String,
    /// The line of its source.
    pub place: String,
}

/// What is missing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Missing {
    /// How often a loop runs.
    LoopBound,
    /// Where a pointer to a function leads.
    Targets,
    /// What calls a function to which something points.
    Caller,
    /// The header of a cycle.
    Header,
    /// An end of a recursion through these functions.
    Recursion(Vec<String>),
    /// What these bytes do.
    Instruction,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let function = &self.function;
        match &self.what {
            Missing::LoopBound => write!(f, "a loop in {function} has no bound"),
            Missing::Targets => {
                write!(f, "{function} calls through a pointer, and nothing says whither")
            }
            Missing::Caller => {
                write!(f, "something points to {function}, and nothing says what calls it")
            }
            Missing::Header => write!(f, "a cycle in {function} can be entered at several places"),
            Missing::Recursion(circle) => {
                write!(f, "recursion: {} and again {function}", circle.join(", "))
            }
            Missing::Instruction => write!(f, "{function} has an instruction that is not known"),
        }
    }
}

/// A function of the image.
#[derive(Clone, Debug)]
pub struct Function {
    /// The control-flow graph, without what never comes back.
    pub graph: Graph,
    /// Where each block leads.
    pub next: Vec<Vec<usize>>,
    /// The loops.
    pub loops: Loops,
    /// How often they run, as far as that is said.
    pub bounds: Vec<Option<Bound>>,
    /// How often they run by the third argument of the call, as far as that is said.
    pub by_size: Vec<Option<BySize>>,
    /// The functions that each block calls.
    pub calls: Vec<Vec<u64>>,
    /// The third argument of each block's call, where it is a constant.
    pub sizes: Vec<Option<u64>>,
}

impl Function {
    /// Returns this function as it is called for so many bytes; none if that makes no difference.
    #[must_use]
    pub fn sized(&self, size: u64) -> Option<Self> {
        self.by_size.iter().find(|by_size| by_size.is_some())?;
        let mut sized = self.clone();
        for (bound, by_size) in sized.bounds.iter_mut().zip(&self.by_size) {
            if let (Some(bound), Some(by_size)) = (bound, by_size) {
                bound.times = bound.times.min(by_size.times(size));
            }
        }
        Some(sized)
    }

    /// Returns true if each cycle of a loop has a look of its own.
    #[must_use]
    pub fn looks_each_time(&self, at: usize) -> bool {
        let blocks = self.loops.all[at].blocks.iter().copied();
        let looks = blocks.filter(|&block| self.graph.blocks[block].look).collect();
        covers(&self.next, &self.loops, at, &looks)
    }
}

/// The functions that the entries reach.
#[derive(Debug)]
pub struct Program {
    /// The functions by address.
    pub functions: BTreeMap<u64, Function>,
    /// Their addresses, callees before callers.
    pub order: Vec<u64>,
    /// What is missing, but for bounds of loops: which of those matter depends on the paths.
    pub problems: BTreeSet<Problem>,
    /// Functions that call themselves, and how deep.
    pub recursive: BTreeMap<u64, u32>,
    /// Facts that were used: of loops, of calls.
    pub used: [BTreeSet<usize>; 2],
}

/// What is known while the functions are found.
pub struct Reader<'a> {
    /// The image.
    pub image: &'a Image<'a>,
    /// The debug information.
    pub lines: &'a Lines<'a>,
    /// What the image does not say.
    pub facts: &'a Facts,
    /// How large a system is.
    pub sizes: &'a Sizes,
}

impl Reader<'_> {
    /// Finds the functions that `entries` reach.
    #[must_use]
    pub fn read(&self, entries: &[u64]) -> Program {
        let mut program = Program {
            functions: BTreeMap::new(),
            order: Vec::new(),
            problems: BTreeSet::new(),
            recursive: BTreeMap::new(),
            used: [BTreeSet::new(), BTreeSet::new()],
        };
        let mut calls = BTreeMap::new();
        let mut raw = self.raw_graphs(entries, &mut calls, &mut program);
        depart(&mut raw);
        let never: BTreeSet<u64> = raw.values().flat_map(|graph| self.never(graph)).collect();
        let returning = returning(&raw, &calls, &never);
        let returns = |block: &Block| returns(block, &calls, &never, &returning);
        // What never comes back has no path.
        let entries = entries.iter().copied().filter(|entry| returning.contains(entry));
        let entries: Vec<u64> = entries.collect();
        let mut open = entries.clone();
        while let Some(start) = open.pop() {
            if program.functions.contains_key(&start) {
                continue;
            }
            let graph = raw[&start].pruned(returns);
            let function = self.function(start, graph, &calls, &mut program);
            open.extend(function.calls.iter().flatten());
            program.functions.insert(start, function);
        }
        self.arrange(&entries, &mut program);
        self.check_pointers(&mut program);
        program
    }

    /// Builds the graphs of all functions that can be reached if every call returns.
    fn raw_graphs(
        &self,
        entries: &[u64],
        calls: &mut BTreeMap<u64, Vec<u64>>,
        program: &mut Program,
    ) -> BTreeMap<u64, Graph> {
        let mut raw = BTreeMap::new();
        let mut open = entries.to_vec();
        while let Some(start) = open.pop() {
            if raw.contains_key(&start) {
                continue;
            }
            let graph = graph::build(self.image, start);
            for block in &graph.blocks {
                match block.call {
                    Some(Call::To(callee)) => open.push(callee),
                    Some(Call::Register) => {
                        let targets = self.targets(start, block.last(), program);
                        open.extend(&targets);
                        calls.insert(block.last(), targets);
                    }
                    None => {}
                }
            }
            raw.insert(start, graph);
        }
        raw
    }

    /// Finds blocks that are executed in other systems only, by their first instructions. A note
    /// at a place where ways meet may stand for the end of one of them, so it counts for nothing.
    fn never(&self, graph: &Graph) -> BTreeSet<u64> {
        let mut ways = vec![0; graph.blocks.len()];
        ways[0] = 1;
        graph.blocks.iter().flat_map(|block| &block.next).for_each(|&next| ways[next] += 1);
        let starts: BTreeMap<u64, usize> =
            graph.blocks.iter().map(|block| block.start).zip(0..).collect();
        let mut never = BTreeSet::new();
        for note in self.image.notes() {
            let (What::Needs(times) | What::Passes(times)) = note.what else { continue };
            let Some(&block) = starts.get(&note.address) else { continue };
            if self.sizes.times(times) == 0 && ways[block] == 1 {
                never.insert(note.address);
            }
        }
        never
    }

    /// Finds where a call through a register leads; none if that is not said.
    fn targets(&self, function: u64, at: u64, program: &mut Program) -> Vec<u64> {
        let names = self.names(function, at);
        let from = |fact: &CallFact| names.iter().any(|name| facts::fits(&fact.from, name));
        let fact = self.facts.calls.iter().position(from);
        let Some(fact) = fact else { return Vec::new() };
        program.used[1].insert(fact);
        let named = |name: &str| self.facts.calls[fact].to.iter().any(|to| facts::fits(to, name));
        self.image.functions().filter(|(_, name)| named(name)).map(|(at, _)| at).collect()
    }

    /// Names the function that an instruction is in, and those that were inlined there.
    fn names(&self, function: u64, at: u64) -> Vec<String> {
        let frames = self.lines.frames(at).into_iter().map(|frame| frame.function);
        frames.chain([self.image.name(function).to_owned()]).collect()
    }

    fn function(
        &self,
        start: u64,
        graph: Graph,
        targets: &BTreeMap<u64, Vec<u64>>,
        program: &mut Program,
    ) -> Function {
        let name = self.image.name(start);
        let mut report = |what, at: u64| {
            let (function, place) = (name.to_owned(), self.lines.place(at));
            program.problems.insert(Problem { what, function, place });
        };
        let graph = copies::reducible(graph);
        let next: Vec<Vec<usize>> = graph.blocks.iter().map(|block| block.next.clone()).collect();
        for block in &graph.blocks {
            if block.exit == Some(Exit::Undecoded) {
                report(Missing::Instruction, block.last());
            }
            if callees(block, targets).is_some_and(<[u64]>::is_empty) {
                report(Missing::Targets, block.last());
            }
        }
        let loops = loops::find(&next).unwrap_or_else(|irreducible| {
            report(Missing::Header, graph.blocks[irreducible.to].start);
            Loops::default()
        });
        let calls = graph
            .blocks
            .iter()
            .map(|block| callees(block, targets).map_or_else(Vec::new, <[u64]>::to_vec));
        let calls = calls.collect();
        let found =
            (0..loops.all.len()).map(|at| self.bound(start, &graph, &next, &loops, at, program));
        let (bounds, by_size) = found.unzip();
        let sizes = self.sizes(&graph, &next);
        Function { graph, next, loops, bounds, by_size, calls, sizes }
    }

    /// Finds the third argument of each block's call, where it is a constant.
    fn sizes(&self, graph: &Graph, next: &[Vec<usize>]) -> Vec<Option<u64>> {
        let mut before = vec![Vec::new(); next.len()];
        for (from, nexts) in next.iter().enumerate() {
            nexts.iter().for_each(|&to| before[to].push(from));
        }
        let left_by = |block: &Block, count: u64| {
            let words = (0..count).rev().map(|at| self.image.word(block.start + at * decode::SIZE));
            let left = words.map(|word| word.map_or(Third::Unknown, decode::third_argument));
            left.into_iter().find(|left| *left != Third::Kept).unwrap_or(Third::Kept)
        };
        let size = |at: usize| {
            let mut left = left_by(&graph.blocks[at], graph.blocks[at].length - 1);
            let (mut at, mut seen) = (at, BTreeSet::new());
            // The compiler may have moved it to before a branch.
            while left == Third::Kept {
                let [only] = before[at][..] else { return None };
                if !seen.insert(only) || graph.blocks[only].call.is_some() {
                    return None;
                }
                at = only;
                left = left_by(&graph.blocks[at], graph.blocks[at].length);
            }
            match left {
                Third::Constant(size) => Some(size),
                Third::Kept | Third::Unknown => None,
            }
        };
        let sizes = graph.blocks.iter().enumerate();
        sizes.map(|(at, block)| block.call.and_then(|_| size(at))).collect()
    }

    /// Reports functions to which something points, when no fact says what calls them: the next
    /// such function, a policy's or a device's, must not be forgotten.
    fn check_pointers(&self, program: &mut Program) {
        let called = self.facts.calls.iter().flat_map(|fact| &fact.to);
        let known: Vec<&String> =
            called.chain(self.facts.elsewhere.iter().map(|e| &e.to)).collect();
        for at in self.image.pointed_to() {
            let name = self.image.name(at);
            if !known.iter().any(|pattern| facts::fits(pattern, name)) {
                let (function, place) = (name.to_owned(), self.lines.place(at));
                program.problems.insert(Problem { what: Missing::Caller, function, place });
            }
        }
    }

    /// Finds how often a loop runs.
    fn bound(
        &self,
        start: u64,
        graph: &Graph,
        next: &[Vec<usize>],
        loops: &Loops,
        at: usize,
        program: &mut Program,
    ) -> (Option<Bound>, Option<BySize>) {
        let own = |block: usize| loops.of[block] == Some(at);
        let header = loops.all[at].header;
        if let Some(noted) = self.noted(graph, next, loops, at) {
            return (Some(noted), None);
        }
        let names = self.names(start, graph.blocks[header].start);
        let has = |fact: &LoopFact| names.iter().any(|name| facts::fits(&fact.function, name));
        if let Some(fact) = self.facts.loops.iter().position(has) {
            program.used[0].insert(fact);
            let fact = &self.facts.loops[fact];
            return (Some(Bound { times: fact.times, marks: [header].into() }), fact.by_size);
        }
        let blocks = &loops.all[at].blocks;
        let with = |has: fn(&Block) -> bool| -> BTreeSet<usize> {
            let own = blocks.iter().copied().filter(|&block| own(block));
            own.filter(|&block| has(&graph.blocks[block])).collect()
        };
        let stores = with(|block| block.stores_exclusive);
        let loads = with(|block| block.loads_exclusive);
        let retries = !stores.is_empty()
            && covers(next, loops, at, &loads)
            && blocks.iter().all(|&block| own(block));
        (retries.then_some(Bound { times: self.facts.exclusive.times, marks: loads }), None)
    }

    /// Finds the least bound that notes give.
    fn noted(&self, graph: &Graph, next: &[Vec<usize>], loops: &Loops, at: usize) -> Option<Bound> {
        // A block may have copies.
        let mut starts: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        let found = &loops.all[at];
        for &block in &found.blocks {
            starts.entry(graph.blocks[block].start).or_default().push(block);
        }
        // By how often and for what, which tells the notes of one loop from those of most others.
        let mut begun = BTreeSet::new();
        let (mut own, mut inner) = (BTreeMap::new(), BTreeMap::new());
        let noted = self.image.notes().iter().flat_map(|note| {
            starts.get(&note.address).into_iter().flatten().map(move |&block| (note, block))
        });
        for (note, block) in noted {
            match note.what {
                // What stands before the loop is at the address of its header, as a note takes
                // no room.
                What::Begins(_) if block == found.header => {}
                What::Begins(times) => {
                    begun.insert(times);
                }
                What::Needs(_) => {}
                // Copies of one note are one: the compiler has unrolled the loop.
                What::Passes(times) => {
                    let group = if loops.of[block] == Some(at) { &mut own } else { &mut inner };
                    group.entry(times).or_insert_with(BTreeSet::new).insert(block);
                }
            }
        }
        // A loop that begins in here and has left no loop inside has become one with this one,
        // which then goes round as often as both.
        own.retain(|times, _| !begun.contains(times) || inner.contains_key(times));
        // What begins outside counts as well where the compiler has made two loops of one.
        inner.retain(|times, _| !begun.contains(times));
        for (times, marks) in inner {
            own.entry(times).or_default().extend(marks);
        }
        let bound = |(times, marks)| Bound { times: self.sizes.times(times), marks };
        let bounds = own.into_iter().map(bound);
        let covering = bounds.filter(|bound| covers(next, loops, at, &bound.marks));
        covering.min_by_key(|bound| bound.times)
    }

    /// Puts callees before callers, and reports recursion.
    fn arrange(&self, entries: &[u64], program: &mut Program) {
        let mut done = BTreeSet::new();
        for &entry in entries {
            let mut path: Vec<(u64, Vec<u64>)> = Vec::new();
            let calls = |at: u64| -> Vec<u64> {
                program.functions[&at].calls.iter().flatten().copied().collect()
            };
            if done.insert(entry) {
                path.push((entry, calls(entry)));
            }
            while let Some((at, rest)) = path.last_mut() {
                let Some(callee) = rest.pop() else {
                    program.order.push(*at);
                    path.pop();
                    continue;
                };
                if let Some(from) = path.iter().position(|(at, _)| *at == callee) {
                    let name = self.image.name(callee);
                    let fact =
                        self.facts.recursions.iter().find(|fact| facts::fits(&fact.of, name));
                    if let Some(fact) = fact {
                        program.recursive.insert(callee, fact.depth);
                        continue;
                    }
                    let circle: Vec<u64> = path[from..].iter().map(|(at, _)| *at).collect();
                    let names = circle.iter().map(|&at| self.image.name(at).to_owned()).collect();
                    program.problems.insert(Problem {
                        what: Missing::Recursion(names),
                        function: self.image.name(callee).to_owned(),
                        place: self.lines.place(callee),
                    });
                } else if done.insert(callee) {
                    let behind = calls(callee);
                    path.push((callee, behind));
                }
            }
        }
    }
}

/// Returns the functions that a block calls, none if it calls none.
fn callees<'a>(block: &'a Block, targets: &'a BTreeMap<u64, Vec<u64>>) -> Option<&'a [u64]> {
    match &block.call {
        None => None,
        Some(Call::To(callee)) => Some(std::slice::from_ref(callee)),
        Some(Call::Register) => Some(targets.get(&block.last()).map_or(&[], Vec::as_slice)),
    }
}

/// Returns true if a path may lead through a block: it is none of those that are `never` executed,
/// and one of its callees is not known or comes back.
fn returns(
    block: &Block,
    targets: &BTreeMap<u64, Vec<u64>>,
    never: &BTreeSet<u64>,
    returning: &BTreeSet<u64>,
) -> bool {
    let back = |callees: &[u64]| {
        callees.is_empty() || callees.iter().any(|callee| returning.contains(callee))
    };
    !never.contains(&block.start) && callees(block, targets).is_none_or(back)
}

/// Has paths end at calls of functions that enter a guest and come back to no caller, as where a
/// core has booted. In assembly such a function may be jumped to instead.
fn depart(raw: &mut BTreeMap<u64, Graph>) {
    let mut departing = BTreeSet::new();
    let mut changed = true;
    while std::mem::take(&mut changed) {
        for (&start, graph) in &*raw {
            let departs = graph.blocks.iter().any(|block| match block.call {
                Some(Call::To(callee)) => departing.contains(&callee),
                _ => block.exit == Some(Exit::ExceptionReturn),
            });
            changed |= departs && departing.insert(start);
        }
    }
    for graph in raw.values_mut() {
        for block in &mut graph.blocks {
            let departs =
                matches!(block.call, Some(Call::To(callee)) if departing.contains(&callee));
            let is_tail = block.next.is_empty() && block.exit.is_none();
            if departs && !is_tail {
                block.next.clear();
                block.exit = Some(Exit::ExceptionReturn);
            }
        }
    }
}

/// Finds the functions that come back to their callers or to a guest: those with a path to such
/// an exit on which every callee does so, or is not known.
fn returning(
    raw: &BTreeMap<u64, Graph>,
    targets: &BTreeMap<u64, Vec<u64>>,
    never: &BTreeSet<u64>,
) -> BTreeSet<u64> {
    let mut found = BTreeSet::new();
    let mut changed = true;
    while std::mem::take(&mut changed) {
        for (&start, graph) in raw {
            if found.contains(&start) {
                continue;
            }
            let returns = |block: &Block| returns(block, targets, never, &found);
            if !graph.pruned(returns).blocks.is_empty() {
                found.insert(start);
                changed = true;
            }
        }
    }
    found
}
