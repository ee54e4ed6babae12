//! SHA-256 by the instructions for it (DDI 0487, C7.2, SHA256H and its like).

use abi::digest::{BLOCK, CONSTANTS, State};
use core::arch::asm;
use core::mem::MaybeUninit;

/// Four rounds with the words in this register, which then has those of sixteen rounds later: these need the words in
/// the next three.
macro_rules! rounds {
    ($words:literal, $next:literal, $second:literal, $third:literal) => {
        concat!(
            last_rounds!($words),
            "sha256su0 ",
            $words,
            ".4s, ",
            $next,
            ".4s\n",
            "sha256su1 ",
            $words,
            ".4s, ",
            $second,
            ".4s, ",
            $third,
            ".4s\n",
        )
    };
}

/// Four rounds, whose words no later one needs. The first half of the state is in V0, the second one in V1.
macro_rules! last_rounds {
    ($words:literal) => {
        concat!(
            "ld1 {{v8.4s}}, [{constants}], #16\n",
            "mov v9.16b, v0.16b\n",
            "add v8.4s, v8.4s, ",
            $words,
            ".4s\n",
            "sha256h q0, q1, v8.4s\n",
            "sha256h2 q1, q9, v8.4s\n",
        )
    };
}

/// Sixteen rounds that are not the last.
macro_rules! sixteen_rounds {
    () => {
        concat!(
            rounds!("v4", "v5", "v6", "v7"),
            rounds!("v5", "v6", "v7", "v4"),
            rounds!("v6", "v7", "v4", "v5"),
            rounds!("v7", "v4", "v5", "v6"),
        )
    };
}

/// Does all rounds of a block, in some 130 instructions; the trap of floating point must be open, and the core must have
/// FEAT_SHA256.
///
/// Each access is aligned to its elements, which are bytes of the block and of `kept`, and words of the state and the
/// constants: with the MMU off all memory is Device memory.
#[inline(never)]
pub fn compress(state: &mut State, block: &[u8; BLOCK]) {
    let mut kept = MaybeUninit::<[u128; 10]>::uninit();
    // SAFETY: reads the block and the constants, reads and writes the state, and writes 160 bytes to `kept`, out of which it
    // puts the vector registers back that it uses: a guest's may be there. The compiler uses none.
    unsafe {
        asm!(
            ".arch_extension simd", ".arch_extension sha2",
            "st1 {{v0.16b, v1.16b, v2.16b, v3.16b}}, [{kept}], #64",
            "st1 {{v4.16b, v5.16b, v6.16b, v7.16b}}, [{kept}], #64",
            "st1 {{v8.16b, v9.16b}}, [{kept}]",
            "ld1 {{v0.4s, v1.4s}}, [{state}]",
            "ld1 {{v4.16b, v5.16b, v6.16b, v7.16b}}, [{block}]",
            "mov v2.16b, v0.16b", "mov v3.16b, v1.16b",
            "rev32 v4.16b, v4.16b", "rev32 v5.16b, v5.16b",
            "rev32 v6.16b, v6.16b", "rev32 v7.16b, v7.16b",
            sixteen_rounds!(), sixteen_rounds!(), sixteen_rounds!(),
            last_rounds!("v4"), last_rounds!("v5"), last_rounds!("v6"), last_rounds!("v7"),
            "add v0.4s, v0.4s, v2.4s", "add v1.4s, v1.4s, v3.4s",
            "st1 {{v0.4s, v1.4s}}, [{state}]",
            "ld1 {{v8.16b, v9.16b}}, [{kept}]",
            "sub {kept}, {kept}, #128",
            "ld1 {{v0.16b, v1.16b, v2.16b, v3.16b}}, [{kept}], #64",
            "ld1 {{v4.16b, v5.16b, v6.16b, v7.16b}}, [{kept}]",
            kept = inout(reg) kept.as_mut_ptr() => _,
            constants = inout(reg) CONSTANTS.as_ptr() => _,
            state = in(reg) state.as_mut_ptr(),
            block = in(reg) block.as_ptr(),
            options(nostack, preserves_flags)
        );
    }
}
