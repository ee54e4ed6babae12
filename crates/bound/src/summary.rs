//! Functions from callees to callers: the longest path through each, and the longest stretches of
//! it without a look.

use crate::graph::Exit;
use crate::longest::{Length, Region, raise};
use crate::program::{Function, Program};
use std::collections::BTreeMap;

/// A step of a path: a block, by the function's address and the block's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Step {
    /// The function.
    pub function: u64,
    /// The block's first instruction.
    pub block: u64,
    /// Instructions of the block.
    pub length: u64,
}

/// A path through blocks.
pub type Path = Length<Step>;

/// The longest paths of a function, with what it calls; none where there is no such path.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// From the call to the return.
    pub whole: Option<Path>,
    /// From the call to the return, without a look.
    pub through: Option<Path>,
    /// From the call to the first look.
    pub to_look: Option<Path>,
    /// From one look to the next.
    pub between: Option<Path>,
    /// From the last look to the return.
    pub from_look: Option<Path>,
}

impl Summary {
    /// Returns the longest stretch without a look, of all kinds.
    #[must_use]
    pub fn deaf(&self) -> Option<&Path> {
        let all = [&self.through, &self.to_look, &self.between, &self.from_look];
        all.into_iter().flatten().max_by_key(|path| (path.open, path.cost))
    }

    /// Takes the longer of each two paths.
    fn raise(&mut self, other: &Self) {
        raise(&mut self.whole, other.whole.clone());
        raise(&mut self.through, other.through.clone());
        raise(&mut self.to_look, other.to_look.clone());
        raise(&mut self.between, other.between.clone());
        raise(&mut self.from_look, other.from_look.clone());
    }

    /// A function of which nothing is known.
    fn unknown() -> Self {
        let open = || Some(Length { open: true, ..Length::default() });
        Self { whole: open(), through: open(), ..Self::default() }
    }
}

/// Summaries by function.
#[derive(Clone, Debug, Default)]
pub struct Summaries {
    all: BTreeMap<u64, Summary>,
    /// Of functions whose loops depend on their third argument, with that.
    sized: BTreeMap<(u64, u64), Summary>,
}

impl Summaries {
    /// Returns the summary of a function as a block of another one calls it; none if it is not
    /// known.
    #[must_use]
    pub fn of(&self, callee: u64, caller: &Function, block: usize) -> Option<&Summary> {
        let sized = caller.sizes[block].and_then(|size| self.sized.get(&(callee, size)));
        sized.or_else(|| self.all.get(&callee))
    }

    /// Returns the summary of a function, which is the same for all its callers.
    #[must_use]
    pub fn for_any_caller(&self, function: u64) -> Option<&Summary> {
        self.all.get(&function)
    }

    /// Summarizes functions that call no others for each size with which they are called.
    fn by_size(program: &Program) -> BTreeMap<(u64, u64), Summary> {
        let mut sized = BTreeMap::new();
        for caller in program.functions.values() {
            for (callees, size) in caller.calls.iter().zip(&caller.sizes) {
                for callee in callees {
                    let (Some(size), called) = (*size, &program.functions[callee]) else {
                        continue;
                    };
                    let calls_none = called.calls.iter().all(Vec::is_empty);
                    if let Some(called) = called.sized(size).filter(|_| calls_none) {
                        let of = function(*callee, &called, &|_| true, &|_, _| Summary::unknown());
                        sized.insert((*callee, size), of);
                    }
                }
            }
        }
        sized
    }
}

/// Summarizes all functions of a program. A function that calls itself, at some distance, is
/// followed `depth` times; whether that is often enough is for the program's facts to say.
#[must_use]
pub fn all(program: &Program, depth: u32) -> Summaries {
    let mut before: Option<Summaries> = None;
    let sized = Summaries::by_size(program);
    for _ in 0..depth {
        let mut summaries = Summaries { all: BTreeMap::new(), sized: sized.clone() };
        for &at in &program.order {
            let caller = &program.functions[&at];
            let summary = function(at, caller, &|_| true, &|callee, block| {
                let deeper = || match (&before, program.recursive.get(&callee)) {
                    (_, None) => Summary::unknown(),
                    (None, Some(_)) => Summary::default(),
                    (Some(before), Some(_)) => before.all[&callee].clone(),
                };
                // What is not summarized yet calls this function.
                summaries.of(callee, caller, block).cloned().unwrap_or_else(deeper)
            });
            summaries.all.insert(at, summary);
        }
        before = Some(summaries);
    }
    before.unwrap_or_default()
}

/// Summarizes a function: of its blocks those that are `taken`, and its callees (with the block
/// that calls) as `callee` says.
pub fn function(
    at: u64,
    function: &Function,
    taken: &dyn Fn(usize) -> bool,
    callee: &dyn Fn(u64, usize) -> Summary,
) -> Summary {
    let blocks = &function.graph.blocks;
    if blocks.is_empty() {
        return Summary::default();
    }
    let callees: Vec<Option<Summary>> = (0..blocks.len())
        .map(|block| {
            blocks[block].call?;
            let mut merged = Summary::default();
            match &function.calls[block][..] {
                [] => merged = Summary::unknown(),
                all => all.iter().for_each(|&one| merged.raise(&callee(one, block))),
            }
            Some(merged)
        })
        .collect();
    let own = |block: usize| {
        let Some(found) = blocks.get(block) else { return Path::default() };
        Length::of(found.length, Step { function: at, block: found.start, length: found.length })
    };
    let with = |block: usize, choose: &dyn Fn(&Summary) -> Option<Path>| match &callees[block] {
        None => Some(own(block)),
        Some(callee) => Some(own(block).then(&choose(callee)?)),
    };
    let whole = |block: usize| with(block, &|callee| callee.whole.clone()).filter(|_| taken(block));
    let silent = |block: usize| {
        let passes = taken(block) && !blocks[block].look;
        with(block, &|callee| callee.through.clone()).filter(|_| passes)
    };
    let solve = |weight: &dyn Fn(usize) -> Option<Path>, starts: Vec<(usize, Path)>| {
        let Function { next, loops, bounds, .. } = function;
        Region { next, loops, bounds, weight }.solve(starts)
    };
    let ends = |arrivals: &[Option<Path>], weight: &dyn Fn(usize) -> Option<Path>| {
        let mut longest = None;
        for (block, arrival) in arrivals.iter().enumerate() {
            let tail = function.graph.is_tail_call(block);
            let leaves = matches!(blocks[block].exit, Some(Exit::Return | Exit::ExceptionReturn));
            if let Some(arrival) = arrival.as_ref().filter(|_| tail || leaves) {
                raise(&mut longest, weight(block).map(|rest| arrival.then(&rest)));
            }
        }
        longest
    };
    let to_looks = |arrivals: &[Option<Path>]| {
        let mut longest = None;
        for (block, arrival) in arrivals.iter().enumerate().filter(|(block, _)| taken(*block)) {
            let Some(arrival) = arrival else { continue };
            let to = |rest: Path| Some(arrival.then(&own(block)).then(&rest));
            if blocks[block].look {
                raise(&mut longest, to(Path::default()));
            } else if let Some(callee) = &callees[block] {
                raise(&mut longest, callee.to_look.clone().and_then(to));
            }
        }
        longest
    };
    let from_start = solve(&silent, vec![(0, Path::default())]);
    let mut summary = Summary {
        through: ends(&from_start, &silent),
        to_look: to_looks(&from_start),
        ..Summary::default()
    };
    let arrivals = solve(&whole, vec![(0, Path::default())]);
    summary.whole = ends(&arrivals, &whole);
    let reached = |block: &usize| arrivals[*block].is_some() && taken(*block);
    let mut looks = Vec::new();
    for block in (0..blocks.len()).filter(reached) {
        let callee = callees[block].as_ref();
        let behind = match (blocks[block].look, callee) {
            (true, None) => Some(Path::default()),
            // It looks and runs into another function.
            (true, Some(callee)) => {
                raise(&mut summary.from_look, callee.through.clone());
                raise(&mut summary.between, callee.to_look.clone());
                None
            }
            (false, callee) => callee.and_then(|callee| callee.from_look.clone()),
        };
        raise(&mut summary.between, callee.and_then(|callee| callee.between.clone()));
        let Some(behind) = behind else { continue };
        if function.graph.is_tail_call(block) {
            raise(&mut summary.from_look, Some(behind));
        } else {
            looks.extend(function.next[block].iter().map(|&next| (next, behind.clone())));
        }
    }
    if !looks.is_empty() {
        let from_looks = solve(&silent, looks);
        raise(&mut summary.from_look, ends(&from_looks, &silent));
        raise(&mut summary.between, to_looks(&from_looks));
    }
    summary
}
