//! All functions that the entries reach, and their calls.

use crate::facts::{self, Facts};
use crate::graph::{self, Block, Call, Exit, Graph};
use crate::image::Image;
use crate::lines::Lines;
use crate::longest::{Bound, covers};
use crate::loops::{self, Loops};
use crate::notes::What;
use std::collections::{BTreeMap, BTreeSet};

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
    /// The header of a cycle.
    Header,
    /// An end of a recursion through these functions.
    Recursion(Vec<String>),
    /// What these bytes do.
    Instruction,
}

/// A function of the image.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its control-flow graph, without what never comes back.
    pub graph: Graph,
    /// Where each block leads.
    pub next: Vec<Vec<usize>>,
    /// Its loops.
    pub loops: Loops,
    /// How often they run, as far as that is said.
    pub bounds: Vec<Option<Bound>>,
    /// The functions that each block calls.
    pub calls: Vec<Vec<u64>>,
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
    /// Facts that were used: of loops, of calls.
    pub used: [BTreeSet<usize>; 2],
}

/// What is known while the functions are found.
pub struct Reader<'a> {
    /// The image.
    pub image: &'a Image<'a>,
    /// Its debug information.
    pub lines: &'a Lines<'a>,
    /// What the image does not say.
    pub facts: &'a Facts,
}

impl Reader<'_> {
    /// Finds the functions that `entries` reach.
    #[must_use]
    pub fn read(&self, entries: &[u64]) -> Program {
        let mut program = Program {
            functions: BTreeMap::new(),
            order: Vec::new(),
            problems: BTreeSet::new(),
            used: [BTreeSet::new(), BTreeSet::new()],
        };
        let mut calls = BTreeMap::new();
        let raw = self.raw_graphs(entries, &mut calls, &mut program);
        let returning = returning(&raw, &calls);
        let returns = |block: &Block| {
            callees(block, &calls).is_none_or(|callees| {
                callees.is_empty() || callees.iter().any(|callee| returning.contains(callee))
            })
        };
        let mut open = entries.to_vec();
        while let Some(start) = open.pop() {
            if program.functions.contains_key(&start) {
                continue;
            }
            let graph = raw[&start].pruned(returns);
            let function = self.function(start, graph, &calls, &mut program);
            open.extend(function.calls.iter().flatten());
            program.functions.insert(start, function);
        }
        self.arrange(entries, &mut program);
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
                        let targets = self.targets(block.last(), program);
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

    /// Finds where a call through a register leads; none if that is not said.
    fn targets(&self, at: u64, program: &mut Program) -> Vec<u64> {
        let frames = self.lines.frames(at);
        let fact =
            self.facts.calls.iter().position(|fact| {
                frames.iter().any(|frame| facts::fits(&fact.from, &frame.function))
            });
        let Some(fact) = fact else { return Vec::new() };
        program.used[1].insert(fact);
        let named = |name: &str| self.facts.calls[fact].to.iter().any(|to| facts::fits(to, name));
        self.image.functions().filter(|(_, name)| named(name)).map(|(at, _)| at).collect()
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
        let bounds =
            (0..loops.all.len()).map(|at| self.bound(&graph, &next, &loops, at, program)).collect();
        Function { graph, next, loops, bounds, calls }
    }

    /// Finds how often a loop runs.
    fn bound(
        &self,
        graph: &Graph,
        next: &[Vec<usize>],
        loops: &Loops,
        at: usize,
        program: &mut Program,
    ) -> Option<Bound> {
        let own = |block: usize| loops.of[block] == Some(at);
        let header = loops.all[at].header;
        self.noted(graph, next, loops, at)
            .or_else(|| {
                let frames = self.lines.frames(graph.blocks[header].start);
                let fact = self.facts.loops.iter().position(|fact| {
                    frames.iter().any(|frame| {
                        facts::fits(&fact.function, &frame.function)
                            && frames.iter().any(|f| f.to_string().starts_with(&fact.at))
                    })
                })?;
                program.used[0].insert(fact);
                Some(Bound { times: self.facts.loops[fact].times, marks: [header].into() })
            })
            .or_else(|| {
                let blocks = &loops.all[at].blocks;
                let with = |has: fn(&Block) -> bool| -> BTreeSet<usize> {
                    let own = blocks.iter().copied().filter(|&block| own(block));
                    own.filter(|&block| has(&graph.blocks[block])).collect()
                };
                let stores = with(|block| block.stores_exclusive);
                let retries = covers(next, loops, at, &stores)
                    && covers(next, loops, at, &with(|block| block.loads_exclusive))
                    && blocks.iter().all(|&block| own(block));
                retries.then_some(Bound { times: self.facts.exclusive.times, marks: stores })
            })
    }

    /// Finds the least bound that notes in the loop itself give.
    fn noted(&self, graph: &Graph, next: &[Vec<usize>], loops: &Loops, at: usize) -> Option<Bound> {
        let starts: BTreeMap<u64, usize> =
            graph.blocks.iter().map(|block| block.start).zip(0..).collect();
        // Notes that one line of source left, inlined into one place, are one: the compiler has
        // unrolled the loop.
        let mut groups: BTreeMap<_, Bound> = BTreeMap::new();
        let mut begun = BTreeSet::new();
        for note in self.image.notes() {
            let Some(&block) = starts.get(&note.address) else { continue };
            match note.what {
                What::Begins if loops.all[at].blocks.contains(&block) => {
                    begun.insert(block);
                }
                What::Passes(times) if loops.of[block] == Some(at) => {
                    let group = groups.entry(times).or_insert(Bound { times, marks: [].into() });
                    group.marks.insert(block);
                }
                _ => {}
            }
        }
        let covering = groups.into_values().filter(|bound| covers(next, loops, at, &bound.marks));
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

/// Finds the functions that come back to their callers or to a guest: those with a path to such
/// an exit on which every callee does so, or is not known.
fn returning(raw: &BTreeMap<u64, Graph>, targets: &BTreeMap<u64, Vec<u64>>) -> BTreeSet<u64> {
    let mut found = BTreeSet::new();
    let mut changed = true;
    while std::mem::take(&mut changed) {
        for (&start, graph) in raw {
            if found.contains(&start) {
                continue;
            }
            let returns = |block: &Block| {
                callees(block, targets).is_none_or(|callees| {
                    callees.is_empty() || callees.iter().any(|callee| found.contains(callee))
                })
            };
            if !graph.pruned(returns).blocks.is_empty() {
                found.insert(start);
                changed = true;
            }
        }
    }
    found
}
