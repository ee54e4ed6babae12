//! Control-flow graphs of code that was assembled by hand.

use super::*;

/// Instructions from address 0 on; functions begin at `functions`, notes stand at `noted`.
struct Assembled {
    words: &'static [u32],
    functions: &'static [u64],
    noted: &'static [u64],
}

impl Code for Assembled {
    fn word(&self, address: u64) -> Option<u32> {
        self.words.get(usize::try_from(address / decode::SIZE).ok()?).copied()
    }

    fn begins_other(&self, address: u64, from: u64) -> bool {
        address != from && self.functions.contains(&address)
    }

    fn is_noted(&self, address: u64) -> bool {
        self.noted.contains(&address)
    }
}

const NOP: u32 = 0xd503_201f;
const RET: u32 = 0xd65f_03c0;
const CBZ_8: u32 = 0xb400_0040;
const CBNZ_BACK_4: u32 = 0x35ff_ffe0;
const BL_12: u32 = 0x9400_0003;
const B_12: u32 = 0x1400_0003;
const LOOK: u32 = 0xd538_c100;

fn shape(graph: &Graph) -> Vec<(u64, u64, Vec<usize>)> {
    graph.blocks.iter().map(|block| (block.start, block.length, block.next.clone())).collect()
}

#[test]
fn blocks_end_where_others_begin() {
    // cbz x0, 8; nop; nop (target); cbnz w0, -4; ret
    let code =
        Assembled { words: &[CBZ_8, NOP, NOP, CBNZ_BACK_4, RET], functions: &[0], noted: &[] };
    let graph = build(&code, 0);
    let expected = [(0, 1, vec![2, 1]), (4, 1, vec![2]), (8, 2, vec![2, 3]), (16, 1, vec![])];
    assert_eq!(shape(&graph), expected);
    assert_eq!(graph.blocks[3].exit, Some(Exit::Return));
}

#[test]
fn what_is_noted_begins_a_block() {
    let code = Assembled { words: &[NOP, NOP, RET], functions: &[0], noted: &[4] };
    assert_eq!(shape(&build(&code, 0)), [(0, 1, vec![1]), (4, 2, vec![])]);
}

#[test]
fn calls_and_looks_end_blocks() {
    // nop; bl 16; isr; ret; other function: ret
    let code = Assembled { words: &[NOP, BL_12, LOOK, RET, RET], functions: &[0, 16], noted: &[] };
    let graph = build(&code, 0);
    assert_eq!(shape(&graph), [(0, 2, vec![1]), (8, 1, vec![2]), (12, 1, vec![])]);
    assert_eq!(graph.blocks[0].call, Some(Call::To(16)));
    assert!(graph.blocks[1].look && !graph.is_tail_call(0));
}

#[test]
fn a_jump_to_a_function_is_a_call_in_place_of_the_return() {
    // nop; b 16
    let code = Assembled { words: &[NOP, B_12, NOP, NOP, RET], functions: &[0, 16], noted: &[] };
    let graph = build(&code, 0);
    assert_eq!(shape(&graph), [(0, 2, vec![])]);
    assert!(graph.is_tail_call(0));
}

#[test]
fn the_entry_comes_first_wherever_it_stands() {
    // 0: nop; ret; 8: b 0 backwards (the function begins here)
    let code = Assembled { words: &[NOP, RET, 0x17ff_fffe], functions: &[8], noted: &[] };
    let graph = build(&code, 8);
    assert_eq!(shape(&graph), [(8, 1, vec![1]), (0, 2, vec![])]);
}

#[test]
fn what_never_comes_back_is_left_out() {
    // cbz x0, 8; ret; bl 20 (never returns); undecodable, which is not reached
    let words = &[CBZ_8, RET, BL_12, 0x0000_0000, 0x0000_0000, NOP];
    let code = Assembled { words, functions: &[0, 20], noted: &[] };
    let graph = build(&code, 0);
    let pruned = graph.pruned(|block| block.call.is_none());
    assert_eq!(shape(&pruned), [(0, 1, vec![1]), (4, 1, vec![])]);
    assert_eq!(shape(&graph.pruned(|_| true)), shape(&pruned), "`udf` stops");
}

#[test]
fn a_function_that_never_comes_back_has_no_blocks() {
    // nop; b . (a loop for ever)
    let code = Assembled { words: &[NOP, 0x1400_0000], functions: &[0], noted: &[] };
    assert!(build(&code, 0).pruned(|_| true).blocks.is_empty());
}
