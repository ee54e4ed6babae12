//! Functions that were assembled by hand.

use super::*;
use crate::graph::{self, Code};
use crate::loops::Loops;

const NOP: u32 = 0xd503_201f;
const RET: u32 = 0xd65f_03c0;
const CBZ_12: u32 = 0xb400_0060;
const SUB_32: u32 = 0xd100_83ff;
const ADD_32: u32 = 0x9100_83ff;
const PUSH_16: u32 = 0xa9bf_7bfd;
const POP_16: u32 = 0xa8c1_7bfd;
const MOV_SP_X1: u32 = 0x9100_003f;
const BL_OUTSIDE: u32 = 0x9400_0400;

/// Instructions from address 0 on.
struct Assembled(&'static [u32]);

impl Code for Assembled {
    fn word(&self, address: u64) -> Option<u32> {
        self.0.get(usize::try_from(address / decode::SIZE).ok()?).copied()
    }

    fn begins_other(&self, address: u64, _: u64) -> bool {
        address >= decode::SIZE * self.0.len() as u64
    }

    fn is_noted(&self, _: u64) -> bool {
        false
    }
}

/// The function in `words`; its calls lead to `callee`.
fn function(words: &'static [u32], callee: u64) -> (Assembled, Function) {
    let code = Assembled(words);
    let graph = graph::build(&code, 0);
    let blocks = &graph.blocks;
    let next: Vec<Vec<usize>> = blocks.iter().map(|block| block.next.clone()).collect();
    let call = |block: &graph::Block| block.call.map_or(vec![], |_| vec![callee]);
    let calls = blocks.iter().map(call).collect();
    let sizes = vec![None; blocks.len()];
    let (bounds, by_size) = (Vec::new(), Vec::new());
    let loops = Loops::default();
    (code, Function { graph, next, loops, bounds, by_size, calls, sizes })
}

/// The deepest stack of the function in `words` itself.
fn own(words: &'static [u32], empties: bool) -> Result<u64, &'static str> {
    let (code, function) = function(words, 0);
    let heights = heights_of(&code, &function, empties)?;
    Ok(heights.iter().map(|height| height.most).max().unwrap_or(0))
}

#[test]
fn a_function_has_what_it_has_at_the_deepest_of_its_ways() {
    for (words, bytes) in [
        (&[NOP, RET][..], 0),
        (&[SUB_32, ADD_32, RET], 32),
        (&[PUSH_16, SUB_32, ADD_32, POP_16, RET], 48),
        // One way only.
        (&[CBZ_12, PUSH_16, POP_16, RET], 16),
        // It is deep for a moment, then less.
        (&[SUB_32, ADD_32, PUSH_16, POP_16, RET], 32),
    ] {
        assert_eq!(own(words, false), Ok(bytes), "{words:x?}");
    }
}

#[test]
fn what_cannot_be_followed_is_refused() {
    for (words, why) in [
        (&[MOV_SP_X1, RET][..], "sets the stack pointer to what is not known"),
        (&[ADD_32, RET], "gives back more stack than it has"),
        (&[CBZ_12, PUSH_16, NOP, RET], "reaches a place with stacks of two sizes"),
    ] {
        assert_eq!(own(words, false), Err(why), "{words:x?}");
    }
    assert_eq!(own(&[SUB_32, MOV_SP_X1, RET], true), Ok(32), "assembly of which that is known");
}

#[test]
fn a_callee_s_stack_is_below_what_the_caller_has_then() {
    const CALLEE: u64 = 0x1000;
    let known = [(CALLEE, Depth { bytes: 100, frames: vec![(CALLEE, 100)] })].into();
    for (words, bytes, frames) in [
        (&[PUSH_16, BL_OUTSIDE, POP_16, RET][..], 116, &[(0, 16), (CALLEE, 100)][..]),
        // It has given all back when it calls.
        (&[SUB_32, ADD_32, BL_OUTSIDE, RET], 100, &[(0, 0), (CALLEE, 100)]),
        (&[SUB_32, ADD_32, RET], 32, &[(0, 32)]),
    ] {
        let (code, function) = function(words, CALLEE);
        let heights = heights_of(&code, &function, false).unwrap();
        let found = depth(0, &function, &heights, &known);
        assert_eq!((found.bytes, &found.frames[..]), (bytes, frames), "{words:x?}");
    }
}

#[test]
fn some_of_the_stack_stays_free() {
    let stack = |bytes| Stack { bytes, reserved: 0x7000, ..Stack::default() };
    assert!(stack(0x6000).objections().is_empty());
    assert!(stack(0x6001).objections()[0].contains("4096 must stay free"));
    let open = Stack { missing: vec!["a gap".into()], ..stack(16) };
    assert_eq!(open.objections(), ["the stack may be deeper: a gap"]);
}
