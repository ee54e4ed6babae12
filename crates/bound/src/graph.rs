//! Basic blocks of one function, and the edges between them.

use crate::decode::{self, Flow};
use std::collections::{BTreeMap, BTreeSet};

/// How a block is left other than to a block of its function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Back to the caller.
    Return,
    /// Back to the guest.
    ExceptionReturn,
    /// Nothing comes after this block: the instruction stops.
    Stop,
    /// This is not known to be code.
    Undecoded,
}

/// A function that a block calls with its last instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// The function at an address.
    To(u64),
    /// One whose address is in a register.
    Register,
}

/// Instructions that are executed one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Where it begins.
    pub start: u64,
    /// How many instructions it has.
    pub length: u64,
    /// Blocks that may come next, by number.
    pub next: Vec<usize>,
    /// The call that its last instruction makes. Without a next block and an exit, the callee
    /// returns to this function's caller.
    pub call: Option<Call>,
    /// How it is left, if not to other blocks.
    pub exit: Option<Exit>,
    /// The last instruction is a look.
    pub look: bool,
    /// It has an instruction that ends an exclusive access.
    pub stores_exclusive: bool,
    /// It has an instruction that begins one.
    pub loads_exclusive: bool,
}

impl Block {
    /// Returns the address behind it.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.start + self.length * decode::SIZE
    }

    /// Returns the address of its last instruction.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.end() - decode::SIZE
    }
}

/// The control-flow graph of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// The blocks; the first is entered first.
    pub blocks: Vec<Block>,
}

/// Where code is read from.
pub trait Code {
    /// Returns the instruction at an address; none outside the code.
    fn word(&self, address: u64) -> Option<u32>;
    /// Returns true if a function other than the one at `from` begins at `address`.
    fn begins_other(&self, address: u64, from: u64) -> bool;
    /// Returns true if a block has to begin at `address`, because something is said of it.
    fn is_noted(&self, address: u64) -> bool;
}

/// Follows the code from the function's `start` on.
pub fn build(code: &impl Code, start: u64) -> Graph {
    let leaders = leaders(code, start);
    let numbers: BTreeMap<u64, usize> = leaders.iter().copied().zip(0..).collect();
    // The function's entry need not be its lowest address.
    let first = numbers[&start];
    let number = |address| match numbers[&address] {
        at if at == first => 0,
        at if at < first => at + 1,
        at => at,
    };
    let mut blocks: Vec<_> =
        leaders.iter().map(|&leader| block(code, start, leader, &leaders, number)).collect();
    let entry = blocks.remove(first);
    blocks.insert(0, entry);
    Graph { blocks }
}

/// Finds where blocks begin: at what is jumped to, and behind what jumps, calls or looks.
fn leaders(code: &impl Code, start: u64) -> BTreeSet<u64> {
    let mut leaders = BTreeSet::new();
    let mut open = vec![start];
    let mut seen = BTreeSet::new();
    while let Some(leader) = open.pop() {
        if !leaders.insert(leader) {
            continue;
        }
        let mut at = leader;
        while seen.insert(at) {
            let next = at + decode::SIZE;
            let inside = |to: u64| !code.begins_other(to, start);
            match flow_at(code, at) {
                Flow::Next | Flow::LoadExclusive | Flow::StoreExclusive if code.is_noted(next) => {
                    open.extend(inside(next).then_some(next));
                    break;
                }
                Flow::Next | Flow::LoadExclusive | Flow::StoreExclusive if inside(next) => {
                    at = next
                }
                Flow::Jump(to) => {
                    open.extend(inside(to).then_some(to));
                    break;
                }
                Flow::Branch(to) => {
                    open.extend([to, next].into_iter().filter(|&to| inside(to)));
                    break;
                }
                Flow::Call(_) | Flow::CallRegister | Flow::Look => {
                    open.extend(inside(next).then_some(next));
                    break;
                }
                _ => break,
            }
        }
        // A leader in the middle of what was seen ends the block before it; that block's
        // successors are found from the leader that was seen first.
    }
    leaders
}

fn flow_at(code: &impl Code, address: u64) -> Flow {
    code.word(address).map_or(Flow::Undecoded, |word| decode::flow(address, word))
}

/// Reads the block at `leader`.
fn block(
    code: &impl Code,
    function: u64,
    leader: u64,
    leaders: &BTreeSet<u64>,
    number: impl Fn(u64) -> usize,
) -> Block {
    let mut block = Block {
        start: leader,
        length: 0,
        next: Vec::new(),
        call: None,
        exit: None,
        look: false,
        stores_exclusive: false,
        loads_exclusive: false,
    };
    loop {
        let at = block.end();
        let flow = flow_at(code, at);
        block.length += 1;
        block.stores_exclusive |= flow == Flow::StoreExclusive;
        block.loads_exclusive |= flow == Flow::LoadExclusive;
        let next = block.end();
        let leaves = |to: u64| code.begins_other(to, function);
        match flow {
            Flow::Next | Flow::LoadExclusive | Flow::StoreExclusive if leaves(next) => {
                // It runs into another function, as assembly may.
                block.call = Some(Call::To(next));
            }
            Flow::Next | Flow::LoadExclusive | Flow::StoreExclusive => {
                if !leaders.contains(&next) {
                    continue;
                }
                block.next = vec![number(next)];
            }
            Flow::Look => {
                block.look = true;
                if leaves(next) {
                    block.call = Some(Call::To(next));
                } else {
                    block.next = vec![number(next)];
                }
            }
            Flow::Jump(to) if leaves(to) => block.call = Some(Call::To(to)),
            Flow::Jump(to) => block.next = vec![number(to)],
            Flow::Branch(to) => {
                // A branch on a condition to another function does not occur: the compiler
                // would need to know that nothing is left to undo.
                if leaves(to) || leaves(next) {
                    block.exit = Some(Exit::Undecoded);
                } else {
                    block.next = vec![number(to), number(next)];
                    block.next.dedup();
                }
            }
            Flow::Call(to) => {
                block.call = Some(Call::To(to));
                block.next.extend((!leaves(next)).then(|| number(next)));
                // Only a callee that does not return may be called at a function's end.
                block.exit = leaves(next).then_some(Exit::Stop);
            }
            Flow::CallRegister => {
                block.call = Some(Call::Register);
                block.next.extend((!leaves(next)).then(|| number(next)));
                block.exit = leaves(next).then_some(Exit::Stop);
            }
            Flow::JumpRegister => block.call = Some(Call::Register),
            Flow::Return => block.exit = Some(Exit::Return),
            Flow::ExceptionReturn => block.exit = Some(Exit::ExceptionReturn),
            Flow::Stop => block.exit = Some(Exit::Stop),
            Flow::Undecoded => block.exit = Some(Exit::Undecoded),
        }
        return block;
    }
}

impl Graph {
    /// Returns true if the block's call takes the place of its return.
    #[must_use]
    pub fn is_tail_call(&self, block: usize) -> bool {
        let block = &self.blocks[block];
        block.call.is_some() && block.next.is_empty() && block.exit.is_none()
    }

    /// Leaves out what lies behind blocks through which no path leads, such as calls from which
    /// nothing returns, what is never reached, and what leads to no exit: a path there never comes
    /// back to a guest.
    #[must_use]
    pub fn pruned(&self, returns: impl Fn(&Block) -> bool) -> Self {
        let mut blocks = self.blocks.clone();
        for block in &mut blocks {
            if !returns(block) {
                block.next.clear();
                block.call = None;
                block.exit = Some(Exit::Stop);
            }
        }
        let reached = reach(blocks.len(), [0], |at| blocks[at].next.clone());
        let leaves = |block: &Block| match block.exit {
            Some(Exit::Return | Exit::ExceptionReturn) => true,
            // What cannot be decoded is not left out, or nothing would tell.
            Some(Exit::Undecoded) => true,
            Some(Exit::Stop) => false,
            None => block.call.is_some() && block.next.is_empty(),
        };
        let mut before = vec![Vec::new(); blocks.len()];
        for (at, block) in blocks.iter().enumerate() {
            block.next.iter().for_each(|&next| before[next].push(at));
        }
        let exits = (0..blocks.len()).filter(|&at| leaves(&blocks[at]));
        let leading = reach(blocks.len(), exits, |at| before[at].clone());
        let kept = |at: &usize| reached[*at] && leading[*at];
        let numbers: BTreeMap<_, _> = (0..blocks.len()).filter(kept).zip(0..).collect();
        let blocks = numbers.keys().map(|&at| {
            let next =
                blocks[at].next.iter().filter_map(|next| numbers.get(next).copied()).collect();
            Block { next, ..blocks[at].clone() }
        });
        Self { blocks: blocks.collect() }
    }
}

/// Tells which of `count` nodes can be reached from `from`.
fn reach(
    count: usize,
    from: impl IntoIterator<Item = usize>,
    next: impl Fn(usize) -> Vec<usize>,
) -> Vec<bool> {
    let mut reached = vec![false; count];
    let mut open: Vec<_> = from.into_iter().filter(|&at| at < count).collect();
    while let Some(at) = open.pop() {
        if !std::mem::replace(&mut reached[at], true) {
            open.extend(next(at));
        }
    }
    reached
}

#[cfg(test)]
mod tests;
