//! Memory that two VMs share, as `shared.toml` describes it: one of them writes the first piece
//! and the other one only reads it, and both write the second.

use crate::arch::fault;
use crate::suite::{Check, Done};
use crate::{ensure, ensure_eq, pass, platform, wait};
use abi::platform::SHARED_ALIGN;

/// How often a word goes from one VM to the other and back.
const ROUNDS: u64 = 1_000;

/// What is written in the first piece in a round: in each round another value, and in each word.
const fn value(round: u64, offset: u64) -> u64 {
    (round << 32 | offset).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Sees what the other VM writes, and no more than it may.
pub fn shared() -> Check<Done> {
    let [page, wide] = platform::get().shared[..] else {
        crate::fail!("there are {} pieces of shared memory, not 2", platform::get().shared.len())
    };
    ensure_eq!(wide.base, page.base + SHARED_ALIGN, "where the second one is");
    for address in [page.base, wide.base, wide.base + wide.size - 8] {
        ensure!(fault::execute(address).is_err(), "{address:#x} can be executed");
    }
    let (first, second) = (page.window(), wide.window());
    // The writer's round stands at the beginning of the second piece, the reader's at its end.
    let (written, read) = (0, wide.size - 8);
    let corners = [0, page.size - 8];
    for round in 1..=ROUNDS {
        if page.read_only {
            wait::until("the other VM's round", || second.read64(written) == round)?;
            for offset in corners {
                ensure_eq!(
                    first.read64(offset),
                    value(round, offset),
                    "round {round}, {offset:#x}"
                );
            }
            second.write64(read, round);
        } else {
            corners.iter().for_each(|&offset| first.write64(offset, value(round, offset)));
            crate::arch::cpu::dsb();
            second.write64(written, round);
            wait::until("the other VM's answer", || second.read64(read) == round)?;
        }
    }
    pass!("{ROUNDS} rounds")
}
