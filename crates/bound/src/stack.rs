//! How deep the stack of a core gets.
//!
//! A function's code says how it moves the stack pointer: by constants. So the deepest stack of a
//! function is the deepest of its own, or what it has at a call and the deepest of the callee.
//! Recursion is followed as deep as the facts say. What never comes back to a guest, a panic above
//! all, is not in the figure.

use crate::decode::{self, Move};
use crate::facts::{self, Facts};
use crate::graph::Code;
use crate::image::Image;
use crate::program::{Function, Missing, Program};
use serde::Serialize;
use std::collections::BTreeMap;

/// So much of a stack must stay free, for what the figure leaves out, bytes.
const FREE: u64 = 4_096;

/// The deepest stack over all entries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stack {
    /// How deep it gets, bytes.
    pub bytes: u64,
    /// How much each core has, bytes.
    pub reserved: u64,
    /// How deep it gets from each entry, bytes.
    pub entries: BTreeMap<String, u64>,
    /// The functions on it when it is deepest, the entry first.
    pub frames: Vec<Frame>,
    /// Why it may be deeper, such as an instruction that sets the stack pointer to what is not
    /// known.
    pub missing: Vec<String>,
}

/// What a function has of the stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Frame {
    /// The function.
    pub function: String,
    /// So much when it calls the next one, or at most if it is the last, bytes.
    pub bytes: u64,
}

impl Stack {
    /// Returns what is wrong with it, a line for each.
    #[must_use]
    pub fn objections(&self) -> Vec<String> {
        let mut all: Vec<String> =
            self.missing.iter().map(|gap| format!("the stack may be deeper: {gap}")).collect();
        if self.bytes + FREE > self.reserved {
            all.push(format!(
                "the stack gets {} bytes deep, and of the {} that a core has {FREE} must stay free",
                self.bytes, self.reserved
            ));
        }
        all
    }
}

/// The deepest stack of a function, its callees' included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Depth {
    bytes: u64,
    /// The functions on it, this one first, with what each has.
    frames: Vec<(u64, u64)>,
}

/// Finds the deepest stack over `entries`, of which `program` was read.
#[must_use]
pub fn deepest(image: &Image<'_>, program: &Program, facts: &Facts, entries: &[u64]) -> Stack {
    let mut missing: Vec<String> = Vec::new();
    for problem in &program.problems {
        if matches!(problem.what, Missing::Targets | Missing::Recursion(_) | Missing::Instruction) {
            missing.push(format!("{} ({})", problem, problem.place));
        }
    }
    for &entry in entries.iter().filter(|entry| !program.functions.contains_key(entry)) {
        missing.push(format!("{} leads to no guest", image.name(entry)));
    }
    let mut heights = BTreeMap::new();
    for (&at, function) in &program.functions {
        let name = image.name(at);
        let empties = facts.empties.iter().any(|fact| facts::fits(&fact.function, name));
        match heights_of(image, function, empties) {
            Ok(found) => drop(heights.insert(at, found)),
            Err(why) => missing.push(format!("{name} {why}")),
        }
    }
    let mut depths: BTreeMap<u64, Depth> = BTreeMap::new();
    for _ in 0..facts.passes() {
        for at in &program.order {
            let Some(heights) = heights.get(at) else { continue };
            let depth = depth(*at, &program.functions[at], heights, &depths);
            depths.insert(*at, depth);
        }
    }
    let above = facts.empties.iter().map(|fact| fact.above).max().unwrap_or(0);
    let of_entry = |at: &u64| Some((image.name(*at).to_owned(), above + depths.get(at)?.bytes));
    let by_entry = entries.iter().filter_map(of_entry).collect();
    let deepest = entries.iter().filter_map(|entry| depths.get(entry));
    let Some(deepest) = deepest.max_by_key(|depth| depth.bytes) else {
        return Stack { missing, ..Stack::default() };
    };
    let frame = |&(at, bytes): &(u64, u64)| Frame { function: image.name(at).to_owned(), bytes };
    let frames = deepest.frames.iter().map(frame).collect();
    let bytes = above + deepest.bytes;
    Stack { bytes, reserved: image.stack(), entries: by_entry, frames, missing }
}

/// Combines the stack of the function at `at` with those of its callees, as far as they are known.
fn depth(at: u64, function: &Function, heights: &[Height], known: &BTreeMap<u64, Depth>) -> Depth {
    let own = heights.iter().map(|height| height.most).max().unwrap_or(0);
    let (mut bytes, mut frame, mut below) = (own, own, None);
    for (height, callees) in heights.iter().zip(&function.calls) {
        for callee in callees.iter().filter_map(|callee| known.get(callee)) {
            if height.end + callee.bytes > bytes {
                (bytes, frame, below) = (height.end + callee.bytes, height.end, Some(callee));
            }
        }
    }
    let below = below.into_iter().flat_map(|callee| &callee.frames);
    Depth { bytes, frames: [(at, frame)].into_iter().chain(below.copied()).collect() }
}

/// The stack of a block: how much the function has at the most, and at the block's end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Height {
    most: u64,
    end: u64,
}

/// Follows the stack pointer through a function. One that `empties` the stack may set it; what it
/// has then is taken to be what it had.
fn heights_of(
    code: &impl Code,
    function: &Function,
    empties: bool,
) -> Result<Vec<Height>, &'static str> {
    let blocks = &function.graph.blocks;
    let mut begins: Vec<Option<u64>> = vec![None; blocks.len()];
    let mut heights = vec![Height::default(); blocks.len()];
    let mut open = vec![(0, 0)];
    while let Some((at, begin)) = open.pop() {
        let Some(block) = blocks.get(at) else { continue };
        match begins[at].replace(begin) {
            Some(before) if before == begin => continue,
            Some(_) => return Err("reaches a place with stacks of two sizes"),
            None => {}
        }
        let (mut most, mut now) = (begin, begin);
        for number in 0..block.length {
            let word = code.word(block.start + number * decode::SIZE);
            match word.map_or(Move::Unknown, decode::stack) {
                Move::None => {}
                Move::Down(bytes) => now += bytes,
                Move::Up(bytes) => {
                    now = now.checked_sub(bytes).ok_or("gives back more stack than it has")?;
                }
                Move::Unknown if empties => {}
                Move::Unknown => return Err("sets the stack pointer to what is not known"),
            }
            most = most.max(now);
        }
        heights[at] = Height { most, end: now };
        open.extend(function.next[at].iter().map(|&next| (next, now)));
    }
    Ok(heights)
}

#[cfg(test)]
mod tests;
